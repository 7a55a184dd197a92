"""Products of matrices whose program does not grow with their third power."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

WRITTEN_OUT = 8
"""Up to this many rows a product is unrolled, which exploits zeros."""


def product(a: Array, b: Array) -> Array:
    """``A B`` (m, k) of A (m, n) and B (n, k), row by row in a loop.

    A compiler to scalars writes out all ``m n k`` terms of ``a @ b``: a minute of compiling for the
    few products of forty rows that an equilibrium needs.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.numerics.products import product
        >>> product(2.0 * jnp.eye(9), jnp.ones((9, 2))).shape
        (9, 2)
    """
    if a.shape[0] <= WRITTEN_OUT:
        return a @ b
    return jnp.asarray(lax.map(lambda row: row @ b, a))
