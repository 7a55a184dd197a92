"""Momentum, centre of mass and Jacobians of bodies: what they are by definition and by balance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_mechanisms import random_mechanism, random_state

import jaxmbd as mbd


@pytest.mark.parametrize("seed", [3, 8])
def test_momentum_and_jacobians_are_those_of_the_bodies(seed):
    mech = random_mechanism(seed)
    q, v = random_state(mech, seed)
    point = mech.structure.points[0]

    @jax.jit
    def numbers(q, v):
        rate = mbd.coordinate_rates(mech, q, v)
        centre, drift = jax.jvp(lambda q: mbd.centre_of_mass(mech, q), (q,), (rate,))
        jacobians = {b: mbd.body_jacobian(mech, q, b) for b in mech.bodies}
        points = {b: mbd.body_jacobian(mech, q, b, point) for b in mech.bodies}
        velocities = {b: mbd.point_velocity(mech, q, v, b, point) for b in mech.bodies}
        return (
            mbd.body_velocities(mech, q, v), mbd.poses(mech, q), mbd.momentum(mech, q, v),
            mbd.momentum(mech, q, v, about=(1.0, -2.0, 0.5)), centre, drift,
            jacobians, points, velocities,
        )  # fmt: skip

    twists, poses, own, other, centre, drift, jacobians, points, velocities = (
        jax.tree_util.tree_map(np.asarray, numbers(jnp.asarray(q), jnp.asarray(v)))
    )
    v, total, spin = np.asarray(v), 0.0, np.zeros(3)
    for name, body in mech.bodies.items():
        np.testing.assert_allclose(jacobians[name] @ v, twists[name], atol=1e-12)
        np.testing.assert_allclose(points[name][3:] @ v, velocities[name], atol=1e-12)
        np.testing.assert_allclose(points[name][:3], jacobians[name][:3], atol=0.0)
        r, mass = poses[name].rotation, float(body.mass)
        spin += r @ np.asarray(mech.inertia(name)) @ r.T @ twists[name][:3]
        spin += mass * np.cross(poses[name].position - centre, twists[name][3:])
        total += mass
    np.testing.assert_allclose(own[3:], total * drift, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(own[:3], spin, rtol=1e-12, atol=1e-12)
    moved = own[:3] + np.cross(centre - np.array([1.0, -2.0, 0.5]), own[3:])
    np.testing.assert_allclose(other, [*moved, *own[3:]], rtol=1e-11, atol=1e-11)


def test_what_floats_keeps_its_momentum_but_for_its_weight():
    """By forward dynamics: springs between its bodies change neither p nor h about the centre."""
    inertia = np.diag([0.02, 0.03, 0.04])
    bodies = {
        n: mbd.Body(m, (x, 0.1, 0.0), inertia) for n, m, x in [("a", 2.0, 0.0), ("b", 0.7, 0.6)]
    }
    joints = {
        "float": mbd.Free("ground", "a"),
        "hinge": mbd.Revolute("a", "b", (0.3, 0, 0), (0, 1, 1)),
    }
    spring = mbd.SpringDamper("a", "b", (0, 0.2, 0), (0.7, 0.3, 0.1), stiffness=90.0, damping=3.0)
    mech = mbd.Mechanism(bodies, joints, forces={"spring": spring})
    q, v = random_state(mech, 5)

    @jax.jit
    def rates(q, v):
        vdot, _ = mbd.forward_dynamics(mech, q, v)
        along = (mbd.coordinate_rates(mech, q, v), vdot)
        return jax.jvp(lambda q, v: mbd.momentum(mech, q, v), (q, v), along)

    held, change = rates(jnp.asarray(q), jnp.asarray(v))
    assert np.linalg.norm(held[:3]) > 1e-2
    expected = [0.0, 0.0, 0.0, *(2.7 * np.asarray(mech.field()))]
    np.testing.assert_allclose(change, expected, atol=1e-12)


def test_massless_mechanisms_have_no_centre():
    from jaxmbd.synthesis import massless_four_bar

    mech = massless_four_bar()
    assert np.all(np.isnan(mbd.centre_of_mass(mech, mbd.neutral(mech))))
