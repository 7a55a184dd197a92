"""Small dense factorisations, unrolled over columns, that know what to do at a zero pivot.

Library factorisations are batched LAPACK calls on CPU; these are plain `jax.numpy` on static
shapes, differentiable, and keep literal zeros, so the tree's sparsity costs nothing.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float


def ltdl(
    h: Float[Array, "n n"], floor: Float[Array, " n"] | None = None
) -> tuple[Float[Array, "n n"], Float[Array, " n"], Bool[Array, " n"]]:
    """``H = Lᵀ D L`` with unit lower `L`, from the last row upward (Featherstone 2008, 6.5).

    For a mass matrix whose coordinates are numbered from root to leaf, `L` has a nonzero only
    where one coordinate supports another: branches do not fill in.

    Args:
        h: symmetric, positive semidefinite.
        floor: what a pivot must exceed; by default zero.

    Returns:
        `L` (n, n), the pivots `D` (n,), and whether each exceeds its floor: one that does not is
        replaced by one.
    """
    n = h.shape[0]
    rows, pivots, sound = [], [], []
    for k in range(n - 1, -1, -1):
        above = h[k, k] > (0.0 if floor is None else floor[k])
        d = jnp.where(above, h[k, k], 1.0)
        row = h[k, :k]
        factor = row / d
        h = h[:k, :k] - factor[:, None] * row[None, :]
        rows.append(jnp.concatenate([factor, jnp.ones(1, h.dtype), jnp.zeros(n - k - 1, h.dtype)]))
        pivots.append(d)
        sound.append(above)
    return jnp.stack(rows[::-1]), jnp.stack(pivots[::-1]), jnp.stack(sound[::-1])


def ltdl_backward(lower: Float[Array, "n n"], b: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Solve ``Lᵀ y = b`` for the factor of `ltdl`."""
    out = []
    for k in range(lower.shape[0] - 1, -1, -1):
        out.append(b[k])
        b = b[:k] - lower[k, :k, None] * b[k]
    return jnp.stack(out[::-1])


def ltdl_forward(lower: Float[Array, "n n"], b: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Solve ``L x = b`` for the factor of `ltdl`."""
    return _unit_lower_solve(lower, b)


def ltdl_solve(a: Float[Array, "n n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    """Solve ``A x = b`` for a small positive definite matrix."""
    lower, pivots, _ = ltdl(a)
    y = ltdl_backward(lower, b[:, None]) / pivots[:, None]
    return ltdl_forward(lower, y)[:, 0]


def ldlt_rank_revealing(
    a: Float[Array, "n n"], tolerance: float
) -> tuple[Float[Array, "n n"], Float[Array, " n"], Bool[Array, " n"]]:
    """``A = L D Lᵀ`` of a positive semidefinite matrix, skipping rows that add no rank.

    A pivot over its diagonal element is the squared sine of the angle between a row and the span
    of those before it. Where that is below `tolerance` the row is redundant: its pivot is set to
    one and its column to zero, exactly as a semidefinite matrix demands. So is a row that is
    rounding beside the others (a planar loop's moment rows), or so short beside them that half of
    its digits are (a row that vanishes at a singular position, next to it): in double precision
    one shorter than 1.5e-8 of the longest.

    Returns:
        `L` (n, n), `D` (n,), and `kept` (n,), false for redundant rows.
    """
    n = a.shape[0]
    diagonal = jnp.asarray(jnp.diagonal(a))
    # Entries are squares of the rows'. Single precision has no digits to give away.
    noise = min(float(jnp.finfo(a.dtype).eps), 1e-10) * jnp.max(diagonal)
    real, floor = diagonal > noise, tolerance * diagonal
    columns, pivots, kept = [], [], []
    for k in range(n):
        keep = real[k] & (a[0, 0] > floor[k])
        d = jnp.where(keep, a[0, 0], 1.0)
        column = jnp.where(keep & real[k + 1 :], a[1:, 0], 0.0) / d
        a = a[1:, 1:] - column[:, None] * a[None, 1:, 0]
        columns.append(jnp.concatenate([jnp.zeros(k, a.dtype), jnp.ones(1, a.dtype), column]))
        pivots.append(d)
        kept.append(keep)
    return jnp.stack(columns, axis=1), jnp.stack(pivots), jnp.stack(kept)


def ldlt_solve(
    lower: Float[Array, "n n"],
    pivots: Float[Array, " n"],
    kept: Bool[Array, " n"],
    b: Float[Array, "n m"],
) -> Float[Array, "n m"]:
    """The basic solution of ``A x = b``: zero in the rows that `ldlt_rank_revealing` skipped."""
    kept = kept[:, None]
    eye = jnp.eye(lower.shape[0], dtype=b.dtype)
    y = _unit_lower_solve(jnp.where(kept, lower, eye), jnp.where(kept, b, 0.0))
    y = jnp.where(kept, y / pivots[:, None], 0.0)
    return _unit_lower_transpose_solve(jnp.where(kept, lower, 0.0), y, kept[:, 0])


def minimum_norm(
    lower: Float[Array, "n n"], kept: Bool[Array, " n"], x: Float[Array, " n"]
) -> Float[Array, " n"]:
    """The solution of least norm beside the basic solution `x` of ``A x = b``.

    The null space of `A` has one vector for each redundant row r: ``z = e_r − Σ_kept c e_k``
    with ``Lᵀ`` back-substituted. With those as the columns of `Z` (zero where kept),
    ``x − Z (ZᵀZ + K)⁻¹ Zᵀ x``, `K` the identity on kept columns.
    """
    n = lower.shape[0]
    eye = jnp.eye(n, dtype=x.dtype)
    redundant = jnp.where(kept, 0.0, 1.0)
    # Row r of L holds the coefficients of row r on the kept rows' orthogonalised basis.
    coupling = jnp.where(kept[:, None], 0.0, lower - eye).T * jnp.where(kept, 1.0, 0.0)[:, None]
    z = redundant[None, :] * eye - _unit_lower_transpose_solve(
        jnp.where(kept[:, None], lower, 0.0), coupling, kept
    )
    return x - z @ ltdl_solve(z.T @ z + jnp.diag(1.0 - redundant), z.T @ x)


def _unit_lower_solve(lower: Array, b: Array) -> Array:
    out = []
    for k in range(lower.shape[0]):
        row = b[k]
        if k:
            row = row - lower[k, :k] @ jnp.stack(out)
        out.append(row)
    return jnp.stack(out)


def _unit_lower_transpose_solve(lower: Array, b: Array, kept: Array) -> Array:
    """Solve ``Lᵀ x = b`` on the kept rows; `lower` has zero rows elsewhere, and x is zero there."""
    n = lower.shape[0]
    out: list[Array] = []
    for k in range(n - 1, -1, -1):
        row = b[k]
        if out:
            row = row - lower[k + 1 :, k] @ jnp.stack(out[::-1])
        out.append(jnp.where(kept[k], row, 0.0))
    return jnp.stack(out[::-1])
