"""A joint's reaction as forces at the edges of its bearing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

LENGTH, OFFSET = 0.24, 0.05


def drawer(kind=mbd.Prismatic, a="ground", b="drawer"):
    return mbd.Mechanism(
        {"drawer": mbd.Body(2.0, (0.3, 0.1, -0.2), 0.02)},
        {"rail": kind(a, b, at=(0.1, 0.0, 0.0), axis=(1.0, 0.5, 0.2))},
        gravity=(0.0, 1.0, -9.0),
    )


def solved(mech):
    q = jnp.array([0.2, 0.1])[: mbd.topology(mech).nv]
    v = jnp.array([0.7, -0.4])[: mbd.topology(mech).nv]
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    return q, mbd.joint_reactions(mech, q, v, vdot, lam)


@pytest.mark.parametrize("kind", [mbd.Prismatic, mbd.Cylindrical, mbd.Revolute])
def test_they_are_the_whole_wrench(kind):
    mech = drawer(kind)
    q, reactions = solved(mech)
    edges = mbd.edge_forces(mech, q, reactions, "rail", LENGTH, OFFSET)
    axis = np.array([1.0, 0.5, 0.2]) / np.linalg.norm([1.0, 0.5, 0.2])
    x = mbd.point_position(mech, q, "drawer", "rail.at")
    np.testing.assert_allclose(edges.points[0] - edges.points[1], LENGTH * axis, rtol=0, atol=1e-15)
    np.testing.assert_allclose(
        jnp.mean(edges.points, axis=0), x + OFFSET * axis, rtol=0, atol=1e-15
    )
    np.testing.assert_allclose(edges.forces @ axis, 0.0, rtol=0, atol=1e-13)
    moment = sum(np.cross(p - x, f) for p, f in zip(edges.points, edges.forces, strict=True))
    whole = [
        *(moment + edges.torque * axis),
        *(jnp.sum(edges.forces, axis=0) + edges.thrust * axis),
    ]
    np.testing.assert_allclose(whole, reactions["rail"], rtol=0, atol=1e-12)
    if kind is not mbd.Revolute:
        assert abs(edges.thrust) < 1e-13  # nothing holds a slider along its guide
    if kind is not mbd.Prismatic:
        assert abs(edges.torque) < 1e-13  # nothing holds a shaft about its axis


def test_slider_in_its_guide():
    """Lecture text, figure 4.4: a push above the slider's middle holds it crosswise."""
    push, height = 30.0, 0.1
    mech = mbd.Mechanism(
        {"slider": mbd.Body(2.0, (0.0, 0.0, 0.0), 0.02)},
        {"guide": mbd.Prismatic("ground", "slider", at=(0, 0, 0), axis=(1, 0, 0))},
        {"push": mbd.PointForce("slider", (0.0, 0.0, height), (push, 0.0, 0.0))},
        gravity=10.0 * np.array([0, 0, -1.0]),
    )
    q, reactions = solved(mech)
    front, back = np.asarray(mbd.edge_forces(mech, q, reactions, "guide", 0.2).forces)
    # Half the weight each, and a couple ± push · height / length.
    np.testing.assert_allclose(front, [0, 0, 10.0 + push * height / 0.2], rtol=0, atol=1e-12)
    np.testing.assert_allclose(back, [0, 0, 10.0 - push * height / 0.2], rtol=0, atol=1e-12)


def test_either_body_may_be_the_slider():
    """The same joint declared the other way round: forces on its b turn their sign."""
    forward, backward = drawer(), drawer(a="drawer", b="ground")
    q, reactions = solved(forward)
    vdot, lam = mbd.forward_dynamics(backward, -q, jnp.array([-0.7]))
    other = mbd.joint_reactions(backward, -q, jnp.array([-0.7]), vdot, lam)
    one = mbd.edge_forces(forward, q, reactions, "rail", LENGTH, OFFSET)
    two = mbd.edge_forces(backward, -q, other, "rail", LENGTH, OFFSET, slider="drawer")
    np.testing.assert_allclose(one.points, two.points, rtol=0, atol=1e-14)
    np.testing.assert_allclose(one.forces, -two.forces, rtol=0, atol=1e-12)


def test_transforms():
    mech = drawer()
    q, reactions = solved(mech)

    def largest(length):
        return jnp.sum(mbd.edge_forces(mech, q, reactions, "rail", length).forces ** 2)

    lengths = jnp.array([0.2, 0.3])
    batch = jax.jit(jax.vmap(largest))(lengths)
    np.testing.assert_allclose(batch, [largest(x) for x in lengths], rtol=1e-13)
    step = 1e-6
    slope = (largest(0.2 + step) - largest(0.2 - step)) / (2 * step)
    np.testing.assert_allclose(jax.grad(largest)(0.2), slope, rtol=1e-7)


def test_bad_input():
    mech = drawer()
    q, reactions = solved(mech)
    with pytest.raises(ValueError, match="'door' is no joint"):
        mbd.edge_forces(mech, q, reactions, "door", LENGTH)
    with pytest.raises(ValueError, match="neither 'ground' nor 'drawer'"):
        mbd.edge_forces(mech, q, reactions, "rail", LENGTH, slider="rail")
    ball = mech.replace(joints={"rail": mbd.Spherical("ground", "drawer", at="rail.at")})
    with pytest.raises(ValueError, match="Spherical and has no axis"):
        mbd.edge_forces(ball, mbd.neutral(ball), reactions, "rail", LENGTH)


def test_a_drawer_pulled_out():
    """Its weight hangs 0.2 m outside the front edge, once the bearing's length."""
    mech = mbd.Mechanism(
        {"drawer": mbd.Body(2.0, (0.3, 0, 0))},
        {"rail": mbd.Prismatic("ground", "drawer", at=(0, 0, 0), axis=(1, 0, 0))},
    )
    rest = jnp.zeros(1)
    reactions = mbd.joint_reactions(mech, rest, rest, rest, jnp.zeros(0))
    found = mbd.edge_forces(mech, rest, reactions, "rail", length=0.2)
    expected = mbd.EdgeForces(
        points=np.array([[0.1, 0, 0], [-0.1, 0, 0]]),
        forces=np.array([[0, 0, 39.24], [0, 0, -19.62]]),
        thrust=0.0,
        torque=0.0,
    )
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12)
