"""The agile wrist: closed-form kinematics and modes, torques three ways, reactions two ways."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from papers import agile_wrist as paper
from papers.agile_wrist import BASE_AXES, BASES, ELBOW_AXES, MODES, PLATFORM_AXES
from repository import REFERENCES

import jaxmbd as mbd
from jaxmbd.formulations import (
    constraint_matrix_reactions,
    determinate_projections,
    lagrange_efforts,
)

DATA = REFERENCES / "agile_eye_kinematics.csv"
THETA, RATE, ACCELERATION = np.array([[0.4, -0.3, 0.5], [1.0, -2.0, 0.7], [3.0, 2.0, -5.0]])


def elbow_axes(theta):
    """w_i: the drawn ones turned about u_i by Rodrigues' formula."""
    cosines, sines = np.cos(theta)[:, None], np.sin(theta)[:, None]
    return cosines * ELBOW_AXES + sines * np.cross(BASE_AXES, ELBOW_AXES)


def whole_turns_apart(a, b):
    return np.abs((np.asarray(a) - b + np.pi) % (2 * np.pi) - np.pi).max()


def test_against_the_published_formulas():
    rows = np.loadtxt(DATA, delimiter=",", skiprows=sum(1 for _ in heading()))
    theta, r, jacobian = rows[:, :3], rows[:, 3:12].reshape(-1, 3, 3), rows[:, 12:]
    assert len(rows) >= 15
    direct = jax.jit(jax.vmap(paper.agile_eye_direct))(theta)
    np.testing.assert_allclose(direct, r, rtol=0, atol=1e-14)
    np.testing.assert_allclose(jax.vmap(paper.agile_eye_inverse)(r), theta, rtol=0, atol=1e-14)
    ours = jax.jit(jax.vmap(paper.agile_eye_jacobian))(theta, r)
    np.testing.assert_allclose(ours, jacobian.reshape(-1, 3, 3), rtol=1e-11, atol=1e-13)


def heading():
    """The lines before the numbers."""
    for line in DATA.read_text(encoding="utf-8").splitlines():
        yield line
        if not line.startswith("#"):
            return


def test_working_and_assembly_modes():
    """Four assembly modes for all angles; each is in the working mode of its own signs."""
    theta = jnp.asarray(np.random.default_rng(0).uniform(-np.pi, np.pi, (200, 3)))
    signs = jnp.asarray(MODES)
    direct = jax.vmap(lambda t: jax.vmap(lambda m: paper.agile_eye_direct(t, m))(signs))
    rotations = np.asarray(jax.jit(direct)(theta))
    exists = ~np.isnan(rotations).any(axis=(2, 3))
    assert (exists.sum(axis=1) == 4).all()
    s, c = np.sin(theta), np.cos(theta)
    sense = np.sign(np.prod(c, axis=1) + np.prod(s, axis=1))
    np.testing.assert_array_equal(exists, np.prod(MODES, axis=1)[None] == sense[:, None])
    for i in range(8):
        elbows = elbow_axes(theta[i])
        for m in np.flatnonzero(exists[i]):
            r = rotations[i, m]
            np.testing.assert_allclose(r.T @ r, np.eye(3), rtol=0, atol=1e-14)
            assert np.linalg.det(r) > 0
            loops = [elbows[k] @ (r @ PLATFORM_AXES[k]) for k in range(3)]
            assert np.abs(loops).max() < 1e-14
            assert whole_turns_apart(paper.agile_eye_inverse(r, MODES[m]), theta[i]) < 1e-11
        # The other working modes of an orientation: each leg half a turn on.
        r = rotations[i, np.flatnonzero(exists[i])[0]]
        angles = np.array([paper.agile_eye_inverse(r, m) for m in MODES])
        halves = (angles - angles[0]) / np.pi
        np.testing.assert_allclose(halves, np.round(halves), rtol=0, atol=1e-14)
        assert len(np.unique(np.round(angles, 9), axis=0)) == 8


def test_trivial_orientations_close_for_all_angles():
    theta = np.random.default_rng(1).uniform(-np.pi, np.pi, (20, 3))
    for r in paper.agile_eye_trivial_orientations():
        assert np.linalg.det(r) == pytest.approx(1.0)
        loops = [
            w @ r @ v for t in theta for w, v in zip(elbow_axes(t), PLATFORM_AXES, strict=True)
        ]
        assert np.abs(loops).max() < 1e-15


def test_impossible_modes_are_nan_and_do_not_spoil_gradients():
    assert np.isnan(paper.agile_eye_direct(np.zeros(3), (1, 1, -1))).all()
    singular = np.array([np.pi / 2, 0.0, 0.3])  # D = c1 c2 c3 + s1 s2 s3 = 6e-17
    near = jax.jacfwd(paper.agile_eye_direct)(singular - np.array([0.1, 0, 0]))
    assert np.isfinite(near).all()
    theta = jnp.array([0.3, -0.2, 0.1])
    r, slope = paper.agile_eye_direct(theta), jax.jacfwd(paper.agile_eye_direct)(theta)
    spins = np.stack([mbd.spatial.rotations.vee(slope[..., k] @ r.T) for k in range(3)], axis=1)
    np.testing.assert_allclose(paper.agile_eye_jacobian(theta, r), spins, rtol=0, atol=1e-14)


WRISTS = [
    pytest.param(True, id="overconstrained"),
    pytest.param(False, id="determinate", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=WRISTS)
def moving(request):
    """A wrist in motion: mechanism, q, v, v̇, the actuated coordinates."""
    mech = mbd.zoo.agile_wrist(overconstrained=request.param)
    keys = BASES if request.param else ("base1", ("base2", 0), ("base3", 0))
    q = mbd.assemble(mech, known=dict(zip(keys, THETA, strict=True))).q
    v = mbd.assemble_velocity(mech, q, dict(zip(keys, RATE, strict=True)))
    vdot = mbd.assemble_acceleration(mech, q, v, dict(zip(keys, ACCELERATION, strict=True)))
    return mech, q, v, vdot, keys


def test_the_assembled_mechanism_is_the_closed_form(moving):
    mech, q, v, _, keys = moving
    place, expected = mbd.poses(mech, q), paper.agile_wrist_rotations(THETA)
    for name, r in expected.items():
        np.testing.assert_allclose(place[name].rotation, r, rtol=0, atol=1e-13)
    np.testing.assert_allclose(paper.agile_eye_inverse(place["platform"].rotation), THETA)
    spin = paper.agile_eye_jacobian(THETA, expected["platform"]) @ RATE
    np.testing.assert_allclose(
        mbd.body_velocities(mech, q, v)["platform"][:3], spin, rtol=0, atol=1e-12
    )
    mobility = mbd.mobility(mech, q)
    assert mobility.dof == 3 and len(mobility.redundant) == (6 if keys == BASES else 0)


@pytest.fixture(scope="module")
def carried(moving):
    """Base torques and multipliers by the recursion, and all by the constraint matrices."""
    mech, q, v, vdot, keys = moving
    tau, lam = mbd.inverse_dynamics(mech, q, v, vdot, actuated=keys)
    layout = mbd.topology(mech).layout
    compiled = jax.jit(partial(constraint_matrix_reactions, actuated=keys))
    return {n: tau[layout[n].v] for n in BASES}, lam, compiled(mech, q, v, vdot)


@pytest.mark.slow
def test_torques_and_reactions_by_two_formulations(moving, carried):
    mech, q, v, vdot, keys = moving
    inputs, lam, second = carried
    first = np.array([x[0] for x in inputs.values()])
    assert np.abs(first).max() > 0.1
    np.testing.assert_allclose([second.efforts[n][0] for n in BASES], first, rtol=1e-11)
    # Power of the torques = rate of the energy.
    qdot = mbd.coordinate_rates(mech, q, v)
    _, kinetic = jax.jvp(partial(mbd.kinetic_energy, mech), (q, v), (qdot, vdot))
    _, potential = jax.jvp(partial(mbd.potential_energy, mech), (q,), (qdot,))
    np.testing.assert_allclose(first @ RATE, kinetic + potential, rtol=1e-11)

    one = mbd.joint_reactions(mech, q, v, vdot, lam, 0.0, inputs)
    keep = determinate_projections(mech, q, keys)
    size = max(float(jnp.abs(w).max()) for w in one.values())
    for name, wrench in one.items():
        assert np.abs(keep[name] @ (wrench - second.reactions[name])).max() < 1e-11 * size
        # Forces may run through the centre around the loops: three components a joint stay.
        assert np.trace(keep[name]) == pytest.approx(3 if keys == BASES else 6)


@pytest.mark.slow
def test_torques_by_lagrange(moving, carried):
    """Neither joints nor loops enter: energies of the closed form alone."""
    mech, inputs = moving[0], carried[0]
    third = jax.jit(partial(lagrange_efforts, mech, paper.closed_form(mech)))(
        THETA, RATE, ACCELERATION
    )
    np.testing.assert_allclose(third, [x[0] for x in inputs.values()], rtol=1e-11)


@pytest.mark.slow
def test_what_the_forces_of_the_legs_do_determine(moving, carried):
    """Forces at the platform: each leg's share is indeterminate, their sum carries the platform."""
    mech, q, v, vdot, _ = moving
    found = carried[2].reactions
    total = sum(found[f"wrist{k}"][3:] for k in (1, 2, 3))
    acceleration = mbd.body_accelerations(mech, q, v, vdot)["platform"][3:]
    mass = mech.bodies["platform"].mass
    np.testing.assert_allclose(total, mass * (acceleration - mech.gravity), rtol=1e-11)
