"""``A = L D Lᵀ`` of a semidefinite matrix, and its basic and least-norm solutions."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from jaxmbd.numerics.ltdl import ltdl_solve
from jaxmbd.numerics.tolerances import faintness, redundancy
from jaxmbd.numerics.traced_once import traced_once
from jaxmbd.numerics.triangular import unit_lower_solve, unit_lower_transpose_solve


class RankRevealed(NamedTuple):
    """Factors of a semidefinite matrix, from `ldlt_rank_revealing`.

    Attributes:
        lower: `L` (n, n).
        pivots: `D` (n,), 1 in redundant rows.
        kept: (n,), false for redundant rows.
    """

    lower: Float[Array, "n n"]
    pivots: Float[Array, " n"]
    kept: Bool[Array, " n"]

    def solve(self, b: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """The basic solution of ``A x = b`` (`ldlt_solve`)."""
        return ldlt_solve(*self, b)

    def minimum_norm(self, x: Float[Array, " n"]) -> Float[Array, " n"]:
        """The solution of least norm, from the basic one (`minimum_norm`)."""
        return minimum_norm(self.lower, self.kept, x)


@partial(traced_once, static=("tolerance",))
def ldlt_rank_revealing(
    a: Float[Array, "n n"],
    tolerance: float | None = None,
    squares: Float[Array, " n"] | None = None,
) -> RankRevealed:
    """``A = L D Lᵀ`` of a positive semidefinite matrix, skipping rows that add no rank.

    `a` is the Gram matrix of some rows. A pivot divided by its diagonal element is the squared sine
    of the angle between a row and the span of the previous rows. If that is below `tolerance` the
    row is redundant: its pivot is set to 1 and its column to zero (for a semidefinite matrix, the
    column of a zero pivot is zero). Rows much shorter than the longest, in double precision by a
    factor of 1.5e-8, are redundant too: they are rounding error (moment rows of a planar loop) or
    have lost half of their digits (a row close to a singular position where it vanishes).

    Args:
        a: symmetric, positive semidefinite.
        tolerance: a squared sine; by default `tolerances.redundancy`.
        squares: squared lengths of the rows for the latter test; by default the diagonal of `a`,
            which is not suitable if `a` is a Gram matrix with very unequal weights.
    """
    tolerance = redundancy(a.dtype) if tolerance is None else tolerance
    diagonal = jnp.asarray(jnp.diagonal(a))
    # Entries of a are products of two rows, so these are squared lengths.
    squares = diagonal if squares is None else squares
    real, floor = independence(diagonal, squares, tolerance)
    return RankRevealed(*eliminate_columns(a, floor, real)[:3])


def independence(
    diagonal: Float[Array, " n"], squares: Float[Array, " n"] | None, tolerance: float
) -> tuple[Bool[Array, " n"], Float[Array, " n"]]:
    """Which rows are no rounding error, and the pivot that each must exceed.

    Args:
        diagonal: of the Gram matrix.
        squares: squared lengths of the rows; by default none is rounding error.
        tolerance: a squared sine.
    """
    if squares is None:
        real = jnp.asarray(np.ones(diagonal.shape, bool))
    else:
        real = squares > faintness(diagonal.dtype) * jnp.max(squares)
    return real, tolerance * diagonal


@traced_once
def eliminate_columns(
    a: Float[Array, "n n"], floor: Float[Array, " m"], real: Bool[Array, " n"]
) -> tuple[Float[Array, "n m"], Float[Array, " m"], Bool[Array, " m"], Array]:
    """The first m columns of L, their pivots and which are kept, and the rest of A without them.

    Args:
        a: symmetric, positive semidefinite; its upper triangle is not used.
        floor: what the pivots must exceed.
        real: whether a row is no rounding error.
    """
    unit = np.eye(a.shape[0], dtype=a.dtype)
    columns, pivots, kept = [], [], []
    for k in range(floor.shape[0]):
        pivot, below = a[:1, 0], a[1:, 0]
        keep = real[k : k + 1] & (pivot > floor[k : k + 1])
        d = jnp.where(keep, pivot, 1.0)
        column = jnp.where(keep & real[k + 1 :], below, 0.0) / d
        a = a[1:, 1:] - jnp.outer(column, below)
        columns.append(jnp.concatenate([unit[k, : k + 1], column]))
        pivots.append(d)
        kept.append(keep)
    return jnp.stack(columns, axis=1), jnp.concatenate(pivots), jnp.concatenate(kept), a


@traced_once
def ldlt_solve(
    lower: Float[Array, "n n"],
    pivots: Float[Array, " n"],
    kept: Bool[Array, " n"],
    b: Float[Array, "n m"],
) -> Float[Array, "n m"]:
    """The basic solution of ``A x = b``: zero in the rows that `ldlt_rank_revealing` skipped.

    Their columns of `L` are zero, so nothing follows from what stands in these rows.
    """
    y = unit_lower_solve(lower, b)
    y = jnp.where(kept[:, None], y / pivots[:, None], 0.0)
    return unit_lower_transpose_solve(lower, y)


@traced_once
def minimum_norm(
    lower: Float[Array, "n n"], kept: Bool[Array, " n"], x: Float[Array, " n"]
) -> Float[Array, " n"]:
    """The solution of least norm of ``A x = b``, from its basic solution `x`.

    The null space of `A` has one vector for each redundant row r, ``z = e_r − Σ_kept c_k e_k``,
    with c from back-substitution in ``Lᵀ``. With these as columns of `Z` (zero in kept columns) the
    solution is ``x − Z (ZᵀZ + K)⁻¹ Zᵀ x``, where `K` is the identity on the kept columns.
    """
    n = lower.shape[0]
    eye = jnp.eye(n, dtype=x.dtype)
    redundant = jnp.where(kept, 0.0, 1.0)
    # Row r of L: coefficients of row r in the orthogonal basis of the kept rows.
    coupling = jnp.where(kept[:, None], 0.0, lower - eye).T * jnp.where(kept, 1.0, 0.0)[:, None]
    z = redundant[None, :] * eye - unit_lower_transpose_solve(lower, coupling)
    return x - z @ ltdl_solve(z.T @ z + jnp.diag(1.0 - redundant), z.T @ x)
