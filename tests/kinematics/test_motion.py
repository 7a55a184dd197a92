"""The motion at an instant, and changes of coordinates."""

import jax.numpy as jnp
import numpy as np
import pytest
from random_mechanisms import random_mechanism, random_state

import jaxmbd as mbd
from jaxmbd.kinematics import MotionState, Pose, coordinate_change, motion_state


def test_a_change_leads_from_one_configuration_to_the_other():
    mech = random_mechanism(5)
    q, v = random_state(mech, 5)
    change = 1e-3 * jnp.asarray(v)
    moved = mbd.step_coordinates(mech, q, change)
    found = coordinate_change(mech, jnp.asarray(q), moved)
    np.testing.assert_allclose(found, change, rtol=0, atol=1e-9)


def test_the_motion_of_a_pendulum():
    """A bob 1 m from the hinge, drawn along -x and turned by a quarter about z."""
    mech, q, v = mbd.zoo.simple_pendulum(), jnp.array([np.pi / 2]), jnp.array([2.0])
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    pose = mbd.poses(mech, q)["bob"]
    assert isinstance(pose, Pose)
    np.testing.assert_allclose(pose.rotation, turn, rtol=0, atol=1e-15)
    np.testing.assert_allclose(pose.position, [0.0, -1.0, 0.0], rtol=0, atol=1e-15)
    m = motion_state(mech, q, v)
    assert isinstance(m, MotionState)
    x, velocity = m.point("bob", (-2.0, 0.0, 0.0))
    np.testing.assert_allclose(x, [0.0, -2.0, 0.0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(velocity, [4.0, 0.0, 0.0], rtol=0, atol=1e-14)
    np.testing.assert_allclose(m.angular_velocity("bob"), [0.0, 0.0, 2.0])
    np.testing.assert_allclose(m.joint("hinge"), [q, v])


@pytest.mark.parametrize(
    ("body", "point", "said"),
    [("rokcer", (0.0, 0.0, 0.0), "no body 'rokcer' (did you mean 'rocker'?)"),
     ("rocker", "rocker_pivto", "no point 'rocker_pivto' (did you mean 'rocker_pivot'?)")],
)  # fmt: skip
def test_unknown_names_are_told_with_the_nearest(body, point, said):
    mech = mbd.zoo.rssr()
    with pytest.raises(ValueError, match="there is") as error:
        mbd.point_position(mech, mbd.neutral(mech), body, point)
    assert said in str(error.value)
