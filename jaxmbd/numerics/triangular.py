"""Substitution with unit triangular factors, and ``A = L U`` without pivoting.

The latter is for matrices whose leading minors are well away from zero.

``H = Lᵀ D L`` along a tree: factorisation of a mass matrix without fill-in.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float

from jaxmbd.lanes import traced_once
from jaxmbd.numerics.small_arrays import outer, same_type, spread, where


@traced_once
def unit_lower_solve(lower: Array, b: Array) -> Array:
    """Solve ``L x = b`` for unit lower triangular L."""
    lower, b = same_type(lower, b)
    x = b[:1]
    for k in range(1, lower.shape[0]):
        known = lax.dot(lower[k : k + 1, :k], x)
        x = lax.concatenate([x, lax.sub(b[k : k + 1], known)], 0)
    return x


@traced_once
def unit_lower_transpose_solve(lower: Array, b: Array) -> Array:
    """Solve ``Lᵀ x = b`` for unit lower triangular L."""
    lower, b = same_type(lower, b)
    n = lower.shape[0]
    x = b[n - 1 :]
    for k in range(n - 2, -1, -1):
        known = lax.dot(lower[k + 1 :, k : k + 1].T, x)
        x = lax.concatenate([lax.sub(b[k : k + 1], known), x], 0)
    return x


def symmetric(a: Array) -> Array:
    """The symmetric matrix with the upper triangle of `a`; its lower triangle is not used."""
    return where(np.triu(np.ones(a.shape, bool)), a, a.T)


@traced_once
def unpivoted_lu(a: Array) -> tuple[Array, Array]:
    """``A = L U`` with unit lower triangular L; a zero pivot is replaced by 1."""
    n = a.shape[0]
    rows, columns = [], []
    for k in range(n):
        pivot = jnp.where(a[0, 0] == 0.0, 1.0, a[0, 0])
        row, column = a[0, 1:], a[1:, 0] / pivot
        done = jnp.zeros(k, a.dtype)
        rows.append(jnp.concatenate([done, pivot[None], row]))
        columns.append(jnp.concatenate([done, jnp.ones(1, a.dtype), column]))
        a = a[1:, 1:] - column[:, None] * row[None, :]
    return jnp.stack(columns, axis=1), jnp.stack(rows)


@traced_once
def lu_solve(lower: Array, upper: Array, b: Array) -> Array:
    """Solve ``L U x = b`` (n,)."""
    y: list[Array] = []
    for k in range(lower.shape[0]):
        y.append(b[k] - (lower[k, :k] @ jnp.stack(y) if k else 0.0))
    x: list[Array] = []
    for k in range(lower.shape[0] - 1, -1, -1):
        rest = upper[k, k + 1 :] @ jnp.stack(x[::-1]) if x else 0.0
        x.append((y[k] - rest) / upper[k, k])
    return jnp.stack(x[::-1])


@traced_once
def lu_transpose_solve(lower: Array, upper: Array, b: Array) -> Array:
    """Solve ``(L U)ᵀ x = b`` (n,)."""
    y: list[Array] = []
    for k in range(lower.shape[0]):
        rest = upper[:k, k] @ jnp.stack(y) if k else 0.0
        y.append((b[k] - rest) / upper[k, k])
    x: list[Array] = []
    for k in range(lower.shape[0] - 1, -1, -1):
        rest = lower[k + 1 :, k] @ jnp.stack(x[::-1]) if x else 0.0
        x.append(y[k] - rest)
    return jnp.stack(x[::-1])


@traced_once
def ltdl(
    h: Float[Array, "n n"], floor: Float[Array, " n"] | None = None
) -> tuple[Float[Array, "n n"], Float[Array, " n"], Bool[Array, " n"]]:
    """``H = Lᵀ D L`` with unit lower `L`, from the last row upward (Featherstone 2008, 6.5).

    For a mass matrix whose coordinates are numbered from root to leaf, `L` has a nonzero only
    where one coordinate supports another: there is no fill-in between branches.

    Args:
        h: symmetric, positive semidefinite.
        floor: lower bound that the size of each pivot must exceed; by default zero.

    Returns:
        `L` (n, n), the pivots `D` (n,), and whether each exceeds its floor; one that does not is
        replaced by 1. A negative pivot (a body of negative mass) is no rounding error.
    """
    n = h.shape[0]
    unit = np.eye(n, dtype=h.dtype)
    rows, pivots, sound = [], [], []
    for k in range(n - 1, -1, -1):
        row, pivot = h[k, :k], h[k, k:]
        least = spread(0.0, (1,), h.dtype) if floor is None else floor[k : k + 1]
        above = lax.gt(lax.abs(pivot), least)
        d = where(above, pivot, 1.0)
        factor = lax.div(row, spread(d, row.shape, h.dtype))
        h = lax.sub(h[:k, :k], outer(factor, row))
        rows.append(lax.concatenate([factor, unit[k, k:]], 0))
        pivots.append(d)
        sound.append(above)
    lower = lax.reshape(lax.concatenate(rows[::-1], 0), (n, n))
    return lower, lax.concatenate(pivots[::-1], 0), lax.concatenate(sound[::-1], 0)


@traced_once
def ltdl_backward(lower: Float[Array, "n n"], b: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Solve ``Lᵀ y = b`` for the factor of `ltdl`."""
    lower, b = same_type(lower, b)
    out = []
    for k in range(lower.shape[0] - 1, -1, -1):
        row = b[k:]
        out.append(row)
        b = lax.sub(b[:k], outer(lower[k, :k], row[0]))
    return lax.concatenate(out[::-1], 0)


@traced_once
def ltdl_forward(lower: Float[Array, "n n"], b: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Solve ``L x = b`` for the factor of `ltdl`."""
    return unit_lower_solve(lower, b)


@traced_once
def ltdl_solve(a: Float[Array, "n n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    """Solve ``A x = b`` for a small positive definite matrix."""
    lower, pivots, _ = ltdl(a)
    y = ltdl_backward(lower, b[:, None]) / pivots[:, None]
    return ltdl_forward(lower, y)[:, 0]
