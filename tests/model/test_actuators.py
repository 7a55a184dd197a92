"""Actuators and joint drag: what they exert, their controls as inputs, their ranges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.observe import element_measures


def arm(**forces):
    return mbd.Mechanism(
        {"arm": mbd.Body(1.0, (0.5, 0, 0), 0.1), "tip": mbd.Body(0.5, (1.2, 0, 0), 0.1)},
        {
            "shoulder": mbd.Revolute("ground", "arm", (0, 0, 0), (0, 1, 0)),
            "wrist": mbd.Cylindrical("arm", "tip", (1, 0, 0), (1, 0, 0)),
        },
        forces,
        gravity=(0, 0, 0),
    )


Q, V = np.array([0.3, -0.2, 0.1]), np.array([0.7, 1.1, -0.4])


def efforts(mech, inputs=None, v=V):
    """What the forces add to ``M v̇`` of the bare mechanism, along the three speeds."""
    with_them, _ = mbd.forward_dynamics(mech, Q, v, inputs=inputs)
    bare, _ = mbd.forward_dynamics(arm(), Q, v)
    return mbd.mass_matrix(mech, Q) @ (with_them - bare)


def test_the_effort_of_a_servo():
    gear, gain, bias, u = 3.0, 40.0, (0.5, -40.0, -2.0), 0.25
    mech = arm(servo=mbd.Actuator("wrist", gear, gain, bias, u, index=1))
    force = gain * u + bias[0] + bias[1] * gear * Q[2] + bias[2] * gear * V[2]
    np.testing.assert_allclose(efforts(mech), [0, 0, gear * force], rtol=0, atol=1e-12)
    mech = arm(servo=mbd.Actuator("wrist", gear, gain, bias, index=1))
    np.testing.assert_allclose(
        efforts(mech, {"servo": u}), [0, 0, gear * force], rtol=0, atol=1e-12
    )


def test_an_actuator_of_several_joints(tmp_path):
    """A tendon's length is ``Σ gearᵢ qᵢ``, and its force acts on each joint through its gear."""
    gears, bias, u = np.array([3.0, -2.0]), (0.5, -40.0, -2.0), 0.25
    tendon = mbd.Actuator(("shoulder", "wrist"), gears, 40.0, bias, u)
    mech = arm(tendon=tendon)
    force = 40.0 * u + bias[0] + bias[1] * (gears @ Q[:2]) + bias[2] * (gears @ V[:2])
    np.testing.assert_allclose(efforts(mech), [*(gears * force), 0.0], rtol=0, atol=1e-12)
    told = element_measures(mech, Q, V)["tendon"]
    assert float(told["effort_on_wrist"].value) == pytest.approx(gears[1] * force)
    assert float(told["power"].value) == pytest.approx(force * (gears @ V[:2]))
    mbd.save(mech, tmp_path / "arm.json")
    np.testing.assert_array_equal(efforts(mbd.load(tmp_path / "arm.json")), efforts(mech))
    assert np.shape(mbd.variables(mech)["forces/tendon/gear"].value) == (2,)


def test_a_propeller_turns_with_its_body():
    """Force and moment are fixed in the body; another body has their reaction."""
    at, force, moment = (0.4, 0.1, 0.0), np.array([0.0, 3.0, 4.0]), np.array([1.0, 0.5, 0.0])
    motor = mbd.BodyActuator("arm", at, force, moment, "ground", 2.0, 0.1, force_range=(-1, 1))
    vdot = {u: mbd.forward_dynamics(arm(motor=motor), Q, V, inputs={"motor": u})[0] for u in (0, 9)}
    bare, _ = mbd.forward_dynamics(arm(), Q, V)
    change = mbd.mass_matrix(arm(), Q) @ np.stack([vdot[0] - bare, vdot[9] - bare], axis=1)
    # About the shoulder's y axis: the body's moment, and z fx − x fz of the force, in its axes.
    expected = moment[1] + at[2] * force[0] - at[0] * force[2]
    np.testing.assert_allclose(
        change, [[0.1 * expected, expected], [0, 0], [0, 0]], rtol=0, atol=1e-12
    )
    told = element_measures(arm(motor=motor), Q, V)["motor"]
    turn = mbd.poses(arm(), Q)["arm"].rotation
    np.testing.assert_allclose(told["force"].value, turn @ (0.1 * force), rtol=0, atol=1e-12)


def test_the_reaction_of_a_motor_between_two_bodies():
    """A moment along the wrist's axis drives it, and leaves the shoulder alone."""
    motor = mbd.BodyActuator("tip", (1, 0, 0), moment=(0.7, 0, 0), a="arm", control=1.0)
    np.testing.assert_allclose(efforts(arm(motor=motor)), [0.0, 0.7, 0.0], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("u", "force"), [(0.5, 1.0), (2.0, 2.0), (-9.0, -0.7)])
def test_ranges(u, force):
    motor = mbd.Actuator("shoulder", 5.0, 2.0, control_range=(-3, 1), force_range=(-0.7, 4.0))
    mech = arm(motor=motor)
    np.testing.assert_allclose(efforts(mech, {"motor": u}), [5.0 * force, 0, 0], rtol=0, atol=1e-12)


def test_controls_reach_everything_that_takes_inputs():
    mech, inputs = arm(motor=mbd.Actuator("shoulder", 5.0)), {"motor": 0.3, "wrist": (0.1, 0.2)}
    vdot, lam = mbd.forward_dynamics(mech, Q, V, inputs=inputs)
    tau, _ = mbd.inverse_dynamics(mech, Q, V, vdot, inputs=inputs)
    np.testing.assert_allclose(tau, 0, rtol=0, atol=1e-12)
    run = mbd.simulate(mech, Q, V, t1=0.1, dt=0.01, inputs=lambda t: {"motor": 0.3 + 0 * t})
    constant = mech.replace(forces={"motor": mbd.Actuator("shoulder", 5.0, control=0.3)})
    same = mbd.simulate(constant, Q, V, t1=0.1, dt=0.01)
    np.testing.assert_allclose(run.q[-1], same.q[-1], rtol=0, atol=1e-12)
    slope = jax.grad(lambda u: mbd.forward_dynamics(mech, Q, V, inputs={"motor": u})[0][0])(0.3)
    assert float(slope) == pytest.approx(5.0 * np.linalg.inv(mbd.mass_matrix(mech, Q))[0, 0])


def test_a_joint_goes_before_an_actuator_of_its_name():
    mech = arm(shoulder=mbd.Actuator("shoulder", 5.0))
    np.testing.assert_allclose(efforts(mech, {"shoulder": 0.3}), [0.3, 0, 0], rtol=0, atol=1e-12)


def test_drag_opposes_each_speed():
    drag = mbd.JointDrag("wrist", dry=(0.3, 0.6), viscous=2.0, velocity_scale=0.1)
    expected = -np.array([0.0, 0.3, 0.6]) * np.tanh(V / 0.1) - [0.0, 2.0, 2.0] * V
    np.testing.assert_allclose(efforts(arm(drag=drag)), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(efforts(arm(drag=drag), v=jnp.zeros(3)), 0, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("element", "text"),
    [
        (mbd.Actuator("wrist", control_range=(1.0, -1.0)), "lower end first"),
        (mbd.Actuator("wrist", bias=(1.0, 2.0)), "bias is of shape"),
        (mbd.Actuator("nowhere"), "nowhere"),
        (mbd.Actuator(("shoulder", "nowhere"), (1.0, 1.0)), "nowhere"),
        (mbd.Actuator(("shoulder", "shoulder"), (1.0, 1.0)), "names a joint twice"),
        (mbd.Actuator(("shoulder", "wrist"), 2.0), "gear is of shape"),
        (mbd.BodyActuator("nowhere", (0, 0, 0)), "nowhere"),
        (mbd.BodyActuator("tip", (0, 0, 0), force=(1.0, 2.0)), "force is of shape"),
        (mbd.BodyActuator("tip", (0, 0, 0), force_range=(2.0, 1.0)), "lower end first"),
        (mbd.Actuator((), np.zeros(0)), "acts on no joint"),
        (mbd.Actuator("wrist", index=2), "index 2"),
        (mbd.JointDrag("wrist", dry=-0.1), "must not be negative"),
        (mbd.JointDrag("wrist", velocity_scale=0.0), "must be positive"),
    ],
)
def test_refused(element, text):
    with pytest.raises(ValueError, match=text):
        arm(it=element)


def test_unknown_inputs_are_told_the_actuators():
    with pytest.raises(ValueError, match="motor"):
        mbd.forward_dynamics(arm(motor=mbd.Actuator("shoulder")), Q, V, inputs={"moter": 1.0})
