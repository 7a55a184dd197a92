"""Forward and back substitution with unit triangular factors."""

from __future__ import annotations

import numpy as np
from jax import Array, lax

from jaxmbd.numerics.small_arrays import same_type, where
from jaxmbd.numerics.traced_once import traced_once


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
