"""Factors of a KKT system ``[M −Jᵀ; J 0] [x; λ] = [f; c]``, where M may be singular.

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

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.dynamics.mass_operator import Factor, MassOperator, factor_mass, factored_rows
from jaxmbd.lanes import rarely
from jaxmbd.numerics import tolerances
from jaxmbd.numerics.block_ldlt import BlockRankRevealed, block_ldlt
from jaxmbd.numerics.block_rows import BlockColumns, Columns, Rows, squared_rows
from jaxmbd.numerics.rank_revealing import Doubt, RankRevealed, ldlt_rank_revealing
from jaxmbd.numerics.traced_once import traced_once


class Factors(NamedTuple):
    """Factors of a KKT system.

    Attributes:
        lower: L of M, an operator.
        pivots: D + E (nv,).
        sound: (nv,), whether a motion has inertia, so that E is zero.
        half: H (nv, nc).
        schur: rank-revealing factors of ``A = Hᵀ (D + E)⁻¹ H``.
    """

    lower: Factor
    pivots: Array
    sound: Array
    half: Columns
    schur: RankRevealed | BlockRankRevealed

    @property
    def light(self) -> Array:
        """Whether a motion has no inertia."""
        return ~jnp.all(self.sound)

    @property
    def added(self) -> Array:
        """E (nv,)."""
        return jnp.where(self.sound, 0.0, self.pivots)


@traced_once
def factor_kkt(
    mass: MassOperator,
    jacobian: Rows,
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
    lower, pivots, sound = factor_mass(mass)
    half = factored_rows(lower, jacobian)
    if jacobian.shape[0] == 0:
        none = jnp.zeros((0, 0), pivots.dtype)
        schur = RankRevealed(none, jnp.zeros(0, pivots.dtype), jnp.zeros(0, bool))
        return Factors(lower, pivots, sound, half, schur)
    if size is not None:
        pivots = jnp.where(sound, pivots, jnp.where(size > 0.0, size, 1.0))
    # Rows that are rounding error are detected by their length in J, not in the metric of M⁻¹, in
    # which the rows of a heavy loop are short compared with those of a light one.
    squares = squared_rows(jacobian, factor=None if units is None else units * units)
    if isinstance(half, BlockColumns):
        pattern, tolerance = half.T.sparsity.gram, tolerances.redundancy(pivots.dtype)
        gram = half.T.gram(pivots)
        schur = block_ldlt(gram, pattern, squares=squares, tolerance=tolerance, doubt=doubt)
    else:
        gram = half.T @ (half / pivots[:, None])
        schur = ldlt_rank_revealing(gram, squares=squares, doubt=doubt)
    return Factors(lower, pivots, sound, half, schur)


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
    starts = jnp.concatenate([first, jnp.zeros_like(first[:, :1])], axis=1).T
    z, found = jax.lax.map(lambda x: _one_solution(k, *x), (starts, residuals))
    sound = jnp.all(found) & (_least_eigenvalue(k, z[-1]) > _indeterminate(z.dtype))
    y, multipliers = jnp.split(z[:-1].T, [y.shape[0]])
    return jnp.where(sound, _speeds(k, y, multipliers), otherwise)


@traced_once
def _one_solution(k: Factors, z: Array, residual: Array) -> tuple[Array, Array]:
    """``z + K [√E w; 0]`` (nv + nc,) with ``(I − √E K_yy √E) w = residual``; whether it exists."""
    root, n = jnp.sqrt(k.added), k.added.shape[0]
    none = jnp.zeros((z.shape[0] - n, 1), z.dtype)
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
    z, found = _one_solution(k, jnp.zeros(sum(k.half.shape), k.added.dtype), _probe(k))
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
    return tolerances.rounding(dtype, 64)
