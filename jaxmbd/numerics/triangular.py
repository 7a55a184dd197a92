"""Forward and back substitution with unit triangular factors."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.numerics.traced_once import traced_once


@traced_once
def unit_lower_solve(lower: Array, b: Array) -> Array:
    """Solve ``L x = b`` for unit lower triangular L."""
    x = b[:1]
    for k in range(1, lower.shape[0]):
        x = jnp.concatenate([x, b[k : k + 1] - lower[k : k + 1, :k] @ x])
    return x


@traced_once
def unit_lower_transpose_solve(lower: Array, b: Array) -> Array:
    """Solve ``Lᵀ x = b`` for unit lower triangular L."""
    n = lower.shape[0]
    x = b[n - 1 :]
    for k in range(n - 2, -1, -1):
        x = jnp.concatenate([b[k : k + 1] - lower[k + 1 :, k] @ x, x])
    return x


def symmetric(a: Array) -> Array:
    """The symmetric matrix with the upper triangle of `a`; its lower triangle is not used."""
    return jnp.where(np.triu(np.ones(a.shape, bool)), a, a.T)
