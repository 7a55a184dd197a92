"""The RSSR as its paper runs it: the spin's torque, three formulations, ė as speeds."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.formulations import (
    EulerParameterBall,
    absolute_forward_dynamics,
    particle_accelerations,
    with_euler_parameter_rates,
)
from jaxmbd.formulations.euler_parameter_rates import speeds_from_angular_velocity
from jaxmbd.spatial.rotations import quaternion_from_matrix, rotation_matrix

TIMES = np.linspace(0.0, 0.6, 25)
KNOWN = {"crank": lambda t: 2 * np.pi / 0.6 * t}
AXIAL = 1.53e-6
Z = np.array([0.0, 0.0, 1.0])


@cache
def driven(held):
    mech = mbd.zoo.rssr(hold_spin=held)
    return mech, mbd.simulate_driven(mech, KNOWN, t=TIMES)


@pytest.mark.parametrize("held", [False, True])
def test_the_held_spin_takes_its_inertia(held):
    """φ5's torque along the coupler is I_xx α_x; with the spin left free there is none."""
    mech, run = driven(held)
    layout = mbd.topology(mech).layout
    line = mech.points["B"] - mech.points["A"]

    def at(q, v, vdot, lam):
        place = mbd.poses(mech, q)["coupler"].rotation
        x, z = (place @ (a / np.linalg.norm(a)) for a in (line, np.cross(Z, line)))
        alpha = mbd.body_accelerations(mech, q, v, vdot)["coupler"][:3]
        torque = lam[layout["spin"].rows][0] if held else 0.0
        return torque * x @ jnp.cross(z, Z), AXIAL * x @ alpha, z @ Z

    torque, inertia, across = (np.asarray(x) for x in lanes.vmap(at)(*run[1:4], run.lam))
    np.testing.assert_allclose(torque, inertia, rtol=0, atol=1e-15)
    if held:
        assert np.abs(torque).max() == pytest.approx(4.6e-5, rel=0.02)
        np.testing.assert_allclose(across, 0.0, rtol=0, atol=1e-13)
    else:
        assert np.abs(inertia).max() < 1e-15


def test_euler_parameters_as_corrected():
    """Relative to link 1 the coupler starts as the corrected table has it."""
    mech = mbd.zoo.rssr(hold_spin=True)
    x = np.asarray(mech.points["B"] - mech.points["A"])
    z = np.cross(Z, x)
    frame = np.stack([x, np.cross(z, x), z], axis=1)
    crank = np.asarray(mech.joints["crank"].axis)
    b10 = np.stack([[1.0, 0, 0], np.cross(crank, [1.0, 0, 0]), crank], axis=1)
    p = quaternion_from_matrix(jnp.asarray(b10.T @ (frame / np.linalg.norm(frame, axis=0))))
    np.testing.assert_allclose(p, [0.44267, -0.65278, -0.36877, 0.49186], rtol=0, atol=5e-6)


@pytest.mark.parametrize("held", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_three_formulations_agree(held):
    """Under the drive's torque: DeNOC, absolute coordinates, particles, and the driven motion."""
    mech, run = driven(held)
    cut, bodies = mbd.topology(mech).layout["B"].rows, mech.structure.bodies
    states = [x[1::8] for x in (run.q, run.v, run.effort)]

    def absolute(q, v, tau):
        found = absolute_forward_dynamics(mech, q, v, inputs={"crank": tau[0]})[1]
        return jnp.stack([found.accelerations[b] for b in bodies]), found.multipliers["B"]

    def particles(q, v, tau):
        found = particle_accelerations(mech, q, v, inputs={"crank": tau[0]})
        return jnp.stack([found.accelerations[b] for b in bodies])

    def engine(q, v, tau):
        vdot, lam = mbd.forward_dynamics(mech, q, v, inputs={"crank": tau[0]})
        found = mbd.body_accelerations(mech, q, v, vdot)
        return jnp.stack([found[b] for b in bodies]), lam[cut], vdot

    ours, force, vdot = lanes.vmap(engine)(*states)
    both = jax.jit(lambda *x: (absolute(*x), particles(*x)))
    each = [both(*x) for x in zip(*states, strict=True)]
    (others, their_force), points = jax.tree.map(lambda *x: np.stack(x), *each)
    for part in (slice(0, 3), slice(3, 6)):
        size = float(jnp.abs(ours[..., part]).max())
        np.testing.assert_allclose(others[..., part], ours[..., part], rtol=0, atol=1e-9 * size)
        np.testing.assert_allclose(points[..., part], ours[..., part], rtol=0, atol=1e-9 * size)
    size = float(jnp.abs(force).max())
    np.testing.assert_allclose(their_force, force, rtol=0, atol=1e-9 * size)
    np.testing.assert_allclose(run.lam[1::8, cut], force, rtol=0, atol=1e-9 * size)
    np.testing.assert_allclose(run.vdot[1::8], vdot, rtol=0, atol=1e-9 * float(jnp.abs(vdot).max()))


# --- ė as speeds ----------------------------------------------------------------------------------


def test_the_paper_s_matrices():
    """``G* = 2 G C = (B + 1)/e0``, ``ω = G* ė``, and ``ṗ = C ė`` keeps p at unit length."""
    ball = EulerParameterBall("ground", "link", at=(0, 0, 0))
    for p in np.random.default_rng(0).normal(size=(20, 4)):
        p = jnp.asarray(p / np.linalg.norm(p))
        e0, (e1, e2, e3) = p[0], p[1:]
        tilde = jnp.array([[0, -e3, e2], [e3, 0, -e1], [-e2, e1, 0]])
        g = jnp.concatenate([-p[1:, None], tilde + e0 * jnp.eye(3)], axis=1)
        c = jnp.concatenate([-p[None, 1:] / e0, jnp.eye(3)])
        star, _ = ball.subspace(p)
        np.testing.assert_allclose(star, 2 * g @ c, rtol=1e-9)
        rates = jnp.array([0.3, -0.2, 0.7])
        moved = ball.rate(p, rates)
        np.testing.assert_allclose(moved, c @ rates, rtol=1e-12)
        np.testing.assert_allclose(p @ moved, 0.0, rtol=0, atol=1e-13)
        np.testing.assert_allclose(speeds_from_angular_velocity(p, star @ rates), rates, rtol=1e-9)
        _, turned = jax.jvp(rotation_matrix, (p,), (moved,))
        omega = star @ rates
        spin = jnp.array(
            [[0, -omega[2], omega[1]], [omega[2], 0, -omega[0]], [-omega[1], omega[0], 0]]
        )
        np.testing.assert_allclose(turned @ rotation_matrix(p).T, spin, rtol=0, atol=1e-9)


def test_rates_of_euler_parameters_move_alike():
    """The same motion, torque and multipliers, away from e0 = 0, in free and driven motion."""
    mech, run = driven(False)
    twin, top = with_euler_parameter_rates(mech), mbd.topology(mech)
    ball = top.layout["A"]

    def engine(q, v):
        return mbd.forward_dynamics(mech, q, v)

    def by_rates(q, v):
        return mbd.forward_dynamics(
            twin, q, v.at[ball.v].set(speeds_from_angular_velocity(q[ball.q], v[ball.v]))
        )

    assert 0.02 < float(jnp.abs(run.q[:, ball.q][:, 0]).min()) < 0.2
    (ours, lam), (theirs, their_lam) = (lanes.vmap(f)(run.q, run.v) for f in (engine, by_rates))
    others = np.r_[0, 4]
    size = float(jnp.abs(ours[:, others]).max())
    np.testing.assert_allclose(theirs[:, others], ours[:, others], rtol=0, atol=1e-11 * size)
    np.testing.assert_allclose(their_lam, lam, rtol=0, atol=1e-11)
    by_twin = mbd.simulate_driven(twin, KNOWN, t=TIMES)
    np.testing.assert_allclose(by_twin.effort, run.effort, rtol=0, atol=1e-13)
    np.testing.assert_allclose(by_twin.lam, run.lam, rtol=0, atol=1e-11)


def test_rates_of_euler_parameters_are_singular_at_half_a_turn():
    mech = with_euler_parameter_rates(mbd.zoo.rssr())
    q = jnp.asarray(mbd.neutral(mech)).at[1:5].set(jnp.array([0.0, 1.0, 0.0, 0.0]))
    assert not np.isfinite(np.asarray(mbd.mass_matrix(mech, q))).all()
    assert np.isfinite(np.asarray(mbd.mass_matrix(mbd.zoo.rssr(), q))).all()
