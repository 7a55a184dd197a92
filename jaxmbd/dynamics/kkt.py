"""The KKT system of a closed-loop mechanism, factored once and solved as often as needed.

``[M −Jᵀ; J 0] [x; λ] = [f; c]``. Constraints may be redundant; the multipliers of least norm are
computed separately (`least_norm`). M may be singular, but a motion with neither inertia nor
constraint is indeterminate.

With ``M = Lᵀ D L`` along the tree, ``y = L x``, ``g = L⁻ᵀ f`` and ``H = L⁻ᵀ Jᵀ`` the system is

    D y − H λ = g,   Hᵀ y = c,

solved by the Schur complement ``A = Hᵀ D⁻¹ H``. A pivot of D vanishes where a motion has no
inertia: a massless link that ends a branch, and on it three revolutes in gimbal lock. Each sample's
numbers tell. There the trace of M takes its place, a scale that costs nothing: with ``D + E`` for D
the same factors give a solution operator ``K``, and the solution of the given system is that of
``z = K ([g; c] + [E y; 0])``. With ``w = √E y`` and ``K_yy``, the block of K that maps g to y,
this is

    (I − √E K_yy √E) w = √E y₀,   z₀ = K [g; c],

a symmetric positive definite system in the few motions without inertia, solved by conjugate
gradients (Hestenes and Stiefel 1952) in as many iterations as there are such motions. It is
singular if such a motion has no constraint either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.dynamics.inertia import BlockFactor, BlockInertia, block_inertia
from jaxmbd.dynamics.loop_embedding import Embedding, embedded, solve_embedded
from jaxmbd.dynamics.reverse_gaussian_elimination import Eliminated, TreeInertia, tree_inertia
from jaxmbd.kinematics import (
    MotionState,
    OwnRows,
    own_rows,
    row_doubt,
    speed_units,
    stored_jacobian,
)
from jaxmbd.lanes import rarely, traced_once
from jaxmbd.numerics import (
    AnyColumns,
    AnyRows,
    BlockColumns,
    BlockRankRevealed,
    BlockRows,
    Doubt,
    RankRevealed,
    believed,
    block_ldlt,
    dense,
    largest,
    ldlt_rank_revealing,
    ltdl_backward,
    solution,
    squared_rows,
    tolerances,
)

MassOperator = BlockInertia | TreeInertia
"""M (nv, nv); ``M @ x`` is its product, ``M.factored()`` its factors."""


def mass_operator(m: MotionState, *, recursive: bool | None = None) -> MassOperator:
    """M at a configuration; `recursive` chooses its kind, by default the topology does."""
    recursive = m.top.elimination.is_recursive if recursive is None else recursive
    return tree_inertia(m) if recursive else block_inertia(m)


def factored_rows(factor: BlockFactor | Eliminated, jacobian: AnyRows) -> AnyColumns:
    """``L⁻ᵀ Jᵀ`` (nv, nc)."""
    if not isinstance(jacobian, BlockRows):
        return jnp.asarray(factor.backward_rows(jacobian))
    if not isinstance(factor, BlockFactor):
        return jacobian.like(factor.backward_rows(jacobian.array()).T).T
    found = []
    for i, touched in enumerate(jacobian.sparsity.touched):
        parts = [ltdl_backward(factor.lower[k], jacobian.part(i, k).T).T for k in touched]
        found.append(jnp.concatenate(parts, axis=1))
    return BlockRows(tuple(found), jacobian.sparsity).T


class Factors(NamedTuple):
    """Factors of a KKT system.

    Attributes:
        lower: L of M, an operator.
        pivots: D + E (nv,).
        sound: (nv,), whether a motion has inertia, so that E is zero.
        half: H (nv, nc).
        schur: rank-revealing factors of ``A = Hᵀ (D + E)⁻¹ H``.
    """

    lower: BlockFactor | Eliminated
    pivots: Array
    sound: Array
    half: AnyColumns
    schur: RankRevealed | BlockRankRevealed

    @property
    def light(self) -> Array:
        """Whether a motion has no inertia."""
        return ~jnp.all(self.sound)

    @property
    def added(self) -> Array:
        """E (nv,)."""
        return jnp.where(self.sound, 0.0, self.pivots)


def factor_kkt(
    mass: MassOperator,
    jacobian: AnyRows,
    size: Array | None = None,
    doubt: Doubt = Doubt(),  # noqa: B008
    units: Array | None = None,
) -> Factors:
    """Factor a KKT system; rows that add no rank to J are skipped.

    Args:
        mass: M.
        jacobian: J (nc, nv).
        size: what takes the place of a pivot that vanishes; by default 1.
        doubt: what is known of the rows.
        units: those of the speeds (nv,) (`speed_units`), by which lengths of rows are compared.
    """
    lower, pivots, sound = mass.factored()
    if jacobian.shape[0]:
        others = 1.0 if size is None else jnp.where(size > 0.0, size, 1.0)
        pivots = jnp.where(sound, pivots, others)
    half, schur = _factored_schur(lower, pivots, jacobian, doubt, units)
    return Factors(lower, pivots, sound, half, schur)


@traced_once
def _factored_schur(
    lower: BlockFactor | Eliminated,
    pivots: Array,
    jacobian: AnyRows,
    doubt: Doubt,
    units: Array | None,
) -> tuple[AnyColumns, RankRevealed | BlockRankRevealed]:
    """H and the factors of the Schur complement."""
    half = factored_rows(lower, jacobian)
    if jacobian.shape[0] == 0:
        none = jnp.zeros((0, 0), pivots.dtype)
        return half, RankRevealed(none, jnp.zeros(0, pivots.dtype), jnp.zeros(0, bool))
    # Rows that are rounding error are detected by their length in J, not in the metric of M⁻¹, in
    # which the rows of a heavy loop are short compared with those of a light one.
    squares = squared_rows(jacobian, factor=None if units is None else units * units)
    if isinstance(half, BlockColumns):
        pattern, tolerance = half.T.sparsity.gram, tolerances.redundancy(pivots.dtype)
        gram = half.T.gram(pivots)
        return half, block_ldlt(gram, pattern, squares=squares, tolerance=tolerance, doubt=doubt)
    gram = half.T @ (half / pivots[:, None])
    return half, ldlt_rank_revealing(gram, squares=squares, doubt=doubt)


def solve_factored(
    k: Factors, force: Array, rhs: Array, *, metric: bool = False, idle: bool = False
) -> Array:
    """``[x; −λ]`` (nv + nc, m), with λ zero in redundant rows; NaN if a motion is indeterminate.

    Args:
        k: the factors.
        force: f (nv, m).
        rhs: c (nc, m).
        metric: whether M is only a metric, in which motions without inertia may have any.
        idle: whether motions with neither inertia nor constraint may have any, instead of NaN.
    """
    y, multipliers = _reduced(k, k.lower.backward(force), rhs)
    z = _speeds(k, y, multipliers)
    if metric:
        return z
    if rhs.shape[0] == 0:
        return jnp.where(k.light, jnp.nan, z)
    otherwise = z if idle else jnp.full_like(z, jnp.nan)
    return rarely(k.light, _conjugate_gradients, z, k, y, multipliers, otherwise)


def _speeds(k: Factors, y: Array, multipliers: Array) -> Array:
    return jnp.concatenate([k.lower.forward(y), -multipliers])


@traced_once
def _reduced(k: Factors, g: Array, c: Array) -> tuple[Array, Array]:
    """``(y, λ) = K [g; c]``, by substitution with the factors."""
    if c.shape[0] == 0:
        return g / k.pivots[:, None], c
    multipliers = k.schur.solve(c - k.half.T @ (g / k.pivots[:, None]))
    return (g + k.half @ multipliers) / k.pivots[:, None], multipliers


def _conjugate_gradients(k: Factors, y: Array, multipliers: Array, otherwise: Array) -> Array:
    """``[x; −λ]`` from ``(y₀, λ₀) = K [g; c]``, or `otherwise` if a motion is indeterminate."""
    first = jnp.concatenate([y, multipliers])
    residuals = jnp.concatenate([jnp.sqrt(k.added) * y.T, _probe(k)[None]])
    change, found = jax.lax.map(lambda x: _one_solution(k, x), residuals)
    sound = jnp.all(found) & (_least_eigenvalue(k, change[-1]) > _indeterminate(change.dtype))
    y, multipliers = jnp.split(first + change[:-1].T, [y.shape[0]])
    return jnp.where(sound, _speeds(k, y, multipliers), otherwise)


@traced_once
def _one_solution(k: Factors, residual: Array) -> tuple[Array, Array]:
    """``K [√E w; 0]`` (nv + nc,) with ``(I − √E K_yy √E) w = residual``; whether it exists."""
    root, (n, rows) = jnp.sqrt(k.added), k.half.shape
    z, none = jnp.zeros(n + rows, root.dtype), jnp.zeros((rows, 1), root.dtype)
    start = residual @ residual
    least = tolerances.rounding(z.dtype) ** 2 * start

    def more(state: tuple[Array, ...]) -> Array:
        count, _, _, _, square = state
        return (square > least) & (count < 2 * n + 4)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        count, z, r, p, square = state
        y, multipliers = (part[:, 0] for part in _reduced(k, (root * p)[:, None], none))
        image = p - root * y
        curvature = p @ image
        a = jnp.where(curvature > 0.0, square / curvature, 0.0)
        r = r - a * image
        new = r @ r
        change = jnp.concatenate([y, multipliers])
        return count + 1, z + a * change, r, r + new / square * p, new

    state = jnp.zeros((), jnp.int32), z, residual, residual, start
    _, z, _, _, square = jax.lax.while_loop(more, step, state)
    return z, square <= tolerances.agreement(z.dtype) ** 2 * start


def firmness(k: Factors) -> Array:
    """How firmly the constraints determine the motions without inertia, from 0 to 1 (if none).

    About the least eigenvalue of ``I − √E K_yy √E`` in these motions; 0 if one is indeterminate.
    """
    if k.half.shape[1] == 0:
        return jnp.where(k.light, 0.0, 1.0).astype(k.added.dtype)
    return rarely(k.light, _firmness, jnp.ones((), k.added.dtype), k)


def _firmness(k: Factors) -> Array:
    z, found = _one_solution(k, _probe(k))
    least = _least_eigenvalue(k, z)
    return jnp.where(found & (least > _indeterminate(z.dtype)), least, 0.0)


def _probe(k: Factors) -> Array:
    """A vector (nv,) that is orthogonal to no eigenvector, but by coincidence."""
    vector = jnp.asarray(1.0 + np.sqrt(np.arange(k.added.shape[0])), k.added.dtype)
    return jnp.where(k.sound, 0.0, vector)


def _least_eigenvalue(k: Factors, z: Array) -> Array:
    """From the solution for the probe: how much shorter that is than w."""
    probe = _probe(k)
    w = probe + jnp.sqrt(k.added) * z[: probe.shape[0]]
    return jnp.sqrt(probe @ probe / (w @ w))


def _indeterminate(dtype: Any) -> float:
    """3e-13: the estimate of a least eigenvalue that is zero seldom exceeds a quarter of it."""
    return max(tolerances.rounding(dtype, 64), tolerances.rounding(dtype) ** 0.8)


class System(NamedTuple):
    """The matrices of a KKT system, with all multipliers in newtons.

    Attributes:
        mass: M (nv, nv).
        jacobian: J (nc, nv) of own rows, an array or its blocks.
        own: the scale and directions of own rows.
        doubt: how far the state is off the constraints, where rows may be redundant.
        units: of the speeds (nv,), if they are not all angles or all travels.
    """

    mass: MassOperator
    jacobian: AnyRows
    own: OwnRows
    doubt: Doubt = Doubt()
    units: Array | None = None


def kkt_system(m: MotionState, *, recursive: bool | None = None) -> System:
    """The KKT matrices at a configuration; `recursive` chooses M (`mass_operator`)."""
    mass, own = mass_operator(m, recursive=recursive), own_rows(m)
    return System(mass, stored_jacobian(m, own), own, row_doubt(m), _units(m))


def _units(m: MotionState) -> Array | None:
    return speed_units(m.mech) if len(set(m.top.speed_kinds)) > 1 else None


def _factors(system: System) -> Factors:
    size = system.mass.scale()
    return factor_kkt(system.mass, system.jacobian, size, system.doubt, system.units)


def kkt_factors(system: System) -> Factors:
    """Factors for `solve_kkt`, without derivatives."""
    return _factors(lax.stop_gradient(system))


def conditioning(system: System) -> Array:
    """The least ratio of pivot to diagonal element of M times that of A, from 0 (singular) to 1.

    The relative error of accelerations is about ε divided by it. Motions without inertia count by
    how firmly the constraints determine them; it is 0 if one is indeterminate, or if a pivot is
    negative, which only a negative mass or inertia makes it.
    """
    k = _factors(system)
    own = jnp.where(k.sound, k.pivots, 1.0)
    diagonal = jnp.where(k.sound, system.mass.diagonal(), 1.0)
    gram = squared_rows(k.half.T, k.pivots)
    rows = jnp.where(k.schur.kept, k.schur.pivots / gram, 1.0)
    share = jnp.min(own / diagonal, initial=1.0) * jnp.min(rows, initial=1.0)
    return jnp.where(jnp.any(k.pivots < 0.0), 0.0, share * firmness(k))


def determinate(system: System) -> Array:
    """Whether every motion has inertia or a constraint."""
    return firmness(_factors(system)) > 0.0


def indeterminate(system: System) -> np.ndarray:
    """(nv,), which motions have neither inertia nor constraint; on the host only.

    They are those of the null space of M and J together.
    """
    mass, rows = np.asarray(system.mass.array()), np.asarray(dense(system.jacobian))
    size = np.sqrt(np.where(np.diag(mass) > 0.0, np.diag(mass), 1.0))
    _, values, motions = np.linalg.svd(np.concatenate([mass / np.outer(size, size), rows / size]))
    found = np.zeros(len(size), bool)
    for motion in motions[values <= tolerances.rank(mass.dtype) * values.max(initial=0.0)]:
        found |= np.abs(motion) > 1e-6
    return found


def solve_kkt(
    system: System,
    force: Array,
    rhs: Array,
    *,
    test: bool = True,
    metric: bool = False,
    idle: bool = False,
    factors: Factors | None = None,
    embedding: Embedding | None = None,
) -> tuple[Array, Array]:
    """Solve ``M x = force + Jᵀ λ``, ``J x = rhs`` for x (nv, m) and λ (nc, m), with m right sides.

    With redundant rows λ is one of the solutions (see `least_norm`); x is NaN if a motion has
    neither inertia nor constraint. The derivative is that of the equations, ``K ẋ = ḃ − K̇ x``,
    with the factors of K: written ``[M Jᵀ; J 0] [x; −λ] = [f; c]`` K is symmetric, and so is the
    solution operator.

    Args:
        system: the matrices.
        force: (nv, m).
        rhs: (nc, m), of the unscaled rows.
        test: whether tangents are NaN where redundant rows become inconsistent
            (`jaxmbd.numerics.redundant_equations`); False if the caller tests them.
        metric: whether M is only a metric, in which motions without inertia may have any.
        idle: whether motions with neither inertia nor constraint may have any, instead of NaN.
        factors: those of the system (`kkt_factors`), where several calls share them.
        embedding: how loops are embedded, if they are (`jaxmbd.dynamics.loop_embedding`).
    """
    mass, jacobian = system.mass, system.jacobian
    nc, nv = jacobian.shape
    constant = lax.stop_gradient((mass, jacobian))
    rhs = system.own.of(rhs)
    solved = _solver(system, factors, embedding, metric=metric, idle=idle)

    def product(z: Array) -> Array:
        x, push = z[:nv], z[nv:]
        return jnp.concatenate([mass @ x + jacobian.T @ push, jacobian @ x])

    def solve(_: Any, b: Array) -> Array:
        return solved(b[:nv], b[nv:])

    b = jnp.concatenate([force, rhs])
    z = lax.custom_linear_solve(product, b, solve, symmetric=True)
    if test and nc:
        x, still = z[:nv], lax.stop_gradient(z[:nv])
        size = lax.stop_gradient(largest(jacobian))
        terms = [rhs, jacobian @ still, size * x]
        # Where the rows leave no freedom x is the rounding error of forces that cancel.
        mass = jnp.max(constant[0].diagonal(), initial=0.0)
        cancels = size * (constant[1].T @ z[nv:]) / jnp.where(mass > 0.0, mass, 1.0)
        miss = believed(jacobian @ x - rhs, system.doubt.error)
        z = solution(z.reshape(-1), miss, terms, [cancels]).reshape(z.shape)
    return z[:nv], -system.own.multipliers(z[nv:])


def _solver(
    system: System,
    factors: Factors | None,
    embedding: Embedding | None,
    *,
    metric: bool,
    idle: bool,
) -> Callable[[Array, Array], Array]:
    """``[x; −λ]`` of f and c, without derivatives; what it closes over is computed once."""
    system = lax.stop_gradient(system)

    def factored(system: System) -> Factors:
        size = None if metric else system.mass.scale()
        return factor_kkt(system.mass, system.jacobian, size, system.doubt, system.units)

    def given(factors: Factors, force: Array, rhs: Array) -> Array:
        return solve_factored(factors, force, rhs, metric=metric, idle=idle)

    if embedding is None or factors is not None:
        return partial(given, factored(system) if factors is None else factors)
    k = embedded(embedding, system.mass.array(), dense(system.jacobian), system.units)

    def otherwise(system: System, force: Array, rhs: Array) -> Array:
        return given(factored(system), force, rhs)

    def either(force: Array, rhs: Array) -> Array:
        usual = solve_embedded(embedding, k, force, rhs)
        return rarely(~k.fine, otherwise, usual, system, force, rhs)

    return either


def rows_met(system: System, x: Array, rhs: Array, size: Array) -> Array:
    """Whether ``J x = rhs`` to 5e-7 of `size`, the size of the rows' terms, in skipped rows too."""
    miss = system.jacobian @ x - system.own.of(rhs)
    return jnp.all(jnp.abs(miss) <= tolerances.carrying(x.dtype) * size)


def least_norm(
    system: System, multipliers: Array, groups: Sequence[Sequence[int]] | None = None
) -> Array:
    """λ (nc,) of least norm (moments divided by the mechanism's length) with the same ``Jᵀ λ``.

    Args:
        system: the matrices.
        multipliers: λ of the same rows, zero in those that are skipped as redundant.
        groups: `Topology.row_groups`; by default all rows are one group.
    """
    n = multipliers.shape[0]
    if n < 2 or (groups is not None and len(groups) == n):
        return multipliers
    schur, own = _factors(system).schur, system.own.own_multipliers(multipliers)
    if isinstance(schur, RankRevealed):
        return system.own.multipliers(schur.minimum_norm(own, groups))
    return system.own.multipliers(schur.minimum_norm(own))
