"""Forward and back substitution with unit triangular factors."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def unit_lower_solve(lower: Array, b: Array) -> Array:
    """Solve ``L x = b`` for unit lower triangular L."""
    out = []
    for k in range(lower.shape[0]):
        row = b[k]
        if k:
            row = row - lower[k, :k] @ jnp.stack(out)
        out.append(row)
    return jnp.stack(out)


def unit_lower_transpose_solve(lower: Array, b: Array) -> Array:
    """Solve ``Lᵀ x = b`` for unit lower triangular L."""
    out: list[Array] = []
    for k in range(lower.shape[0] - 1, -1, -1):
        row = b[k]
        if out:
            row = row - lower[k + 1 :, k] @ jnp.stack(out[::-1])
        out.append(row)
    return jnp.stack(out[::-1])
