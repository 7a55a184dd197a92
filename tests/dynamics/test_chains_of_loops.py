"""Chains of loops: constant work per loop, and the results of full matrices."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.analysis.status import closure, initial_status
from jaxmbd.dynamics.forward import applied_efforts
from jaxmbd.dynamics.inertia import BlockInertia, joint_space_inertia
from jaxmbd.dynamics.kkt import (
    System,
    conditioning,
    factor_kkt,
    kkt_system,
    least_norm,
    solve_kkt,
)
from jaxmbd.kinematics.closure import closure_residual, closure_rows
from jaxmbd.kinematics.motion import motion_state
from jaxmbd.kinematics.scales import own_jacobian, own_rows, speed_units
from jaxmbd.numerics.blocks import BlockRows, dense

G = 9.81
COUNT = 7
HEIGHTS = np.random.default_rng(5).uniform(0.3, 0.8, 18)
"""Of the cranks' centres of mass, relative to their lengths."""


def cranks(masses, *, reach=2, seed=0, axes=None):
    """Upright cranks side by side, whose tips are joined by rods to the next `reach` tips.

    They stay parallel, so that with `reach` 2 there are twice as many rows as needed. With `axes`
    they turn about those, and their lengths are random.
    """
    rng = np.random.default_rng(seed)
    n, bodies, joints = len(masses), {}, {}
    length = np.ones(n) if axes is None else rng.uniform(0.7, 1.5, n)
    height = HEIGHTS[:n] * length
    for i in range(n):
        com = (float(i), height[i], 0.0)
        bodies[f"crank_{i}"] = mbd.Body(masses[i], com, jnp.eye(3) * masses[i] * 0.1)
        axis = (0.0, 0.0, 1.0) if axes is None else axes[i]
        joints[f"pivot_{i}"] = mbd.Revolute("ground", f"crank_{i}", (float(i), 0, 0), axis)
    for i in range(n):
        for j in range(i + 1, min(i + 1 + reach, n)):
            ends = (float(i), length[i], 0.0), (float(j), length[j], 0.0)
            joints[f"rod_{i}_{j}"] = mbd.Rod(f"crank_{i}", f"crank_{j}", *ends)
    return mbd.Mechanism(bodies, joints, gravity=(0.0, -G, 0.0))


def random_masses(seed, spread):
    return jnp.asarray(10.0 ** np.random.default_rng(seed).uniform(-spread, spread, COUNT))


def exact_acceleration(masses, turn):
    """Of parallel cranks."""
    heights = HEIGHTS[:COUNT]
    weight, inertia = masses @ heights, masses @ (heights**2 + 0.1)
    return G * jnp.sin(turn) * weight / inertia


def full_system(m):
    return System(
        BlockInertia((joint_space_inertia(m),), (range(m.top.nv),)), own_jacobian(m), own_rows(m)
    )


def solved(mech, q, v, system):
    m = motion_state(mech, q, v)
    force, rhs = applied_efforts(m, None)
    k = system(m)
    vdot, lam = solve_kkt(k, force[:, None], rhs[:, None])
    return vdot[:, 0], lam[:, 0], least_norm(k, lam[:, 0]), conditioning(k)


@pytest.mark.parametrize("recursive", [False, True], ids=["dense", "recursive"])
def test_the_work_per_loop_is_constant(recursive):
    """With trees of two links and of one, of which the mass matrix is factored recursively."""
    counts = []
    for n in (10, 12, 14) if recursive else (4, 5, 6):  # beyond what happens at the ends
        mech = cranks(jnp.ones(n), reach=1) if recursive else mbd.zoo.n_four_bar(n)
        top = mbd.topology(mech)
        assert top.elimination.is_recursive == recursive

        def accelerations(q, v, mech=mech):
            return mbd.forward_dynamics(mech, q, v)

        found = lanes.explain(accelerations, mbd.neutral(mech), np.ones(top.nv))
        assert found.unsupported is None
        counts.append((found.operations, found.asked))
    (first, asked), (second, more) = np.diff(counts, axis=0)
    assert abs(first - second) <= 1e-3 * first
    assert abs(asked - more) <= 1e-3 * asked


def test_a_few_loops_are_treated_as_full():
    kinds = []

    def look(mech, q):
        kinds.append(type(kkt_system(motion_state(mech, q)).jacobian))

    for mech in (mbd.zoo.rssr(), mbd.zoo.n_four_bar(2), mbd.zoo.double_parallel_crank()):
        assert mbd.topology(mech).loop_blocks is None
        jax.eval_shape(look, mech, mbd.neutral(mech))
    assert len(kinds) == 3 and BlockRows not in kinds


@pytest.mark.parametrize("reach", [1, 2])
def test_the_blocks_are_those_of_the_full_matrices(reach):
    mech = cranks(random_masses(reach, 1.0), reach=reach, axes=random_axes(reach))
    x = jnp.asarray(np.random.default_rng(0).normal(size=(COUNT, 2)))

    def parts(system):
        factor = factor_kkt(system.mass, system.jacobian)
        return system.mass @ x, factor.half.T @ x, factor.schur.kept

    @partial(lanes.jit, strict=True)
    def compared(q):
        m, found = motion_state(mech, q), []
        for recursive in (False, True):
            system = kkt_system(m, recursive=recursive)
            assert isinstance(system.jacobian, BlockRows)
            mass = system.mass.array(), system.mass.diagonal()
            size = () if recursive else system.mass.scale()
            found.append((dense(system.jacobian), mass, size, parts(system)))
        full = full_system(m)
        return found, full.jacobian, full.mass.array(), parts(full)

    found, jacobian, mass, (moved, half, kept) = compared(np.linspace(-0.3, 0.4, COUNT))
    for rows, (array, diagonal), size, (by_blocks, other_half, other_kept) in found:
        np.testing.assert_array_equal(rows, jacobian)
        np.testing.assert_allclose(array, mass, rtol=1e-12)
        np.testing.assert_allclose(diagonal, np.diag(mass), rtol=1e-12)
        np.testing.assert_allclose(by_blocks, moved, atol=1e-12 * abs(mass).max())
        np.testing.assert_allclose(size or np.trace(mass), np.trace(mass), rtol=1e-12)
        np.testing.assert_allclose(other_half, half, atol=1e-12)
        np.testing.assert_array_equal(other_kept, kept)


def random_axes(seed):
    axes = np.random.default_rng(seed).normal(size=(COUNT, 3)) * 0.3 + [0.0, 0.0, 1.0]
    return axes.tolist()


SYSTEMS = partial(kkt_system, recursive=True), partial(kkt_system, recursive=False), full_system


@lanes.jit
def solved_each_way(mech, q, v):
    """What `solved` finds by each of `SYSTEMS`, and the constraints' Jacobian."""
    found = [solved(mech, q, v, system) for system in SYSTEMS]
    return found, own_jacobian(motion_state(mech, q))


@pytest.mark.parametrize("spread", [0.0, 3.0], ids=["alike", "unequal"])
def test_redundant_rows_across_loops(spread):
    """Accelerations of the closed form, multipliers of the pseudoinverse."""
    masses = random_masses(1, spread)
    mech = cranks(masses)
    assert mbd.topology(mech).loop_blocks is not None
    found, rows = solved_each_way(mech, np.full(COUNT, 0.4), np.full(COUNT, 1.7))
    rows = np.asarray(rows)
    _, _, other, full_share = found.pop()
    for vdot, lam, least, share in found:
        np.testing.assert_allclose(vdot, exact_acceleration(masses, 0.4), rtol=1e-9)
        assert abs(np.asarray(lam)).max() > 1e-2
        np.testing.assert_allclose(share, full_share, rtol=1e-6)
        size = abs(np.asarray(lam)).max()
        pseudo = np.linalg.pinv(rows.T, rcond=1e-9) @ (rows.T @ lam)
        np.testing.assert_allclose(least, pseudo, atol=1e-11 * size)
        np.testing.assert_allclose(least, other, atol=1e-7 * size)
        np.testing.assert_allclose(rows.T @ least, rows.T @ lam, atol=1e-12 * size)


@lanes.jit
def equations(mech, q, v):
    """``M``, ``J`` and the right sides of ``M v̇ − Jᵀ λ = f`` and ``J v̇ = r``."""
    m = motion_state(mech, q, v)
    return joint_space_inertia(m), own_jacobian(m), *applied_efforts(m, None)


@pytest.mark.parametrize("seed", range(3))
def test_random_chains_agree_with_full_matrices(seed):
    mech = cranks(random_masses(seed, 1.0), reach=1, seed=seed, axes=random_axes(seed))
    rng = np.random.default_rng(seed)
    q, v = rng.uniform(-0.3, 0.3, COUNT), rng.normal(size=COUNT)
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    mass, rows, force, rhs = map(np.asarray, equations(mech, q, v))
    matrix = np.block([[mass, -rows.T], [rows, np.zeros((COUNT - 1,) * 2)]])
    expected = np.linalg.solve(matrix, np.concatenate([force, rhs]))
    np.testing.assert_allclose(np.concatenate([vdot, lam]), expected, rtol=1e-9, atol=1e-9)
    other = mbd.forward_dynamics(mech, q, v, backend="xla")
    np.testing.assert_allclose(np.concatenate([vdot, lam]), np.concatenate(other), atol=1e-10)


def test_derivatives_are_those_of_the_closed_form_and_of_differences():
    masses, turn = random_masses(3, 0.5), 0.4
    v = jnp.full(COUNT, 1.7)

    def motion(masses, turn):
        lam = mbd.forward_dynamics(cranks(masses), jnp.full(COUNT, turn), v)
        return lam[0][COUNT // 2], lam[1]

    slope = jax.jit(jax.grad(lambda *x: motion(*x)[0], argnums=(0, 1)))(masses, turn)
    for found, exact in zip(slope, jax.grad(exact_acceleration, (0, 1))(masses, turn), strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-8, atol=1e-9)
    along = np.random.default_rng(0).normal(size=COUNT)
    forces = lambda s: motion(masses * (1.0 + s * along), turn)[1]  # noqa: E731
    both = jax.jit(lambda s: jax.jvp(forces, (s,), (1.0,)))
    rate, h = both(0.0)[1], 1e-5
    assert abs(rate).max() > 1e-2
    np.testing.assert_allclose(rate, (both(h)[0] - both(-h)[0]) / (2 * h), atol=1e-6)
    pulled = jax.jit(jax.grad(lambda s: forces(s) @ rate))(0.0)
    np.testing.assert_allclose(pulled, rate @ rate, rtol=1e-8)


def test_cranks_without_inertia():
    """The rods determine their motion; a crank that no rod holds is indeterminate."""
    masses = random_masses(4, 0.0).at[jnp.array([2, 5])].set(0.0)
    mech = cranks(masses, reach=1, seed=4, axes=random_axes(4))
    q, v = np.linspace(-0.2, 0.2, COUNT), np.ones(COUNT)
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    mass, rows, force, rhs = map(np.asarray, equations(mech, q, v))
    left = mass @ vdot - rows.T @ lam
    np.testing.assert_allclose(left, force, atol=1e-9)
    np.testing.assert_allclose(rows @ vdot, rhs, atol=1e-9)
    idle = mech.replace(
        bodies={**mech.bodies, "idle": mbd.Body(0.0, (0.0, 0.0, 1.0), jnp.zeros((3, 3)))},
        joints={**mech.joints, "loose": mbd.Revolute("ground", "idle", (0.0, 0, 1), (0, 0, 1))},
    )
    assert mbd.topology(idle).loop_blocks is not None
    found = jax.jit(lambda q, v: mbd.forward_dynamics(idle, q, v)[0])
    assert np.isnan(found(np.append(q, 0.0), np.append(v, 0.0))).all()


def test_what_redundant_rows_contradict_is_that_of_least_squares():
    """Errors of rows that are stored in blocks, by a dense projection in NumPy."""
    mech = mbd.zoo.n_four_bar(4)
    rng, top = np.random.default_rng(7), mbd.topology(mech)
    q = mbd.neutral(mech) + 1e-5 * rng.normal(size=top.nq)
    v = 1e-3 * rng.normal(size=top.nv)

    @lanes.jit
    def errors(q, v):
        m = motion_state(mech, q, v)
        own, rows = own_rows(m), closure_rows(m)
        assert isinstance(rows, BlockRows)
        scaled = own.of(dense(rows)) * speed_units(mech)
        return scaled, own.of(closure_residual(m)), own.of(rows @ m.v), closure(m)

    rows, open_, slip, found = errors(q, v)
    u, s, _ = np.linalg.svd(rows)
    span = u[:, : np.sum(s > 1e-3 * s[0])]
    assert span.shape[1] < top.nc
    for error, opened, left in (
        (open_, found.opened, found.contradiction),
        (slip, found.slip, found.slip_contradiction),
    ):
        inside = span @ (span.T @ np.asarray(error))
        np.testing.assert_allclose(opened, np.abs(inside).max(), rtol=1e-3)
        np.testing.assert_allclose(left, np.abs(error - inside).max(), rtol=1e-3, atol=1e-12)


@pytest.mark.slow
def test_a_start_of_forty_loops_is_one_kernel():
    mech = mbd.zoo.n_four_bar(40, planar=True)
    start = lambda q, v: initial_status(motion_state(mech, q, v))  # noqa: E731
    found = lanes.jit(start, strict=True)(mbd.neutral(mech), jnp.zeros(mbd.topology(mech).nv))
    assert found == mbd.Status.OK
