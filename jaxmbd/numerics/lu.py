"""``A = L U`` without pivoting, for matrices whose leading minors are well away from zero."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from jaxmbd.numerics.traced_once import traced_once


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
