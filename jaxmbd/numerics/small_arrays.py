"""Functions of `jax.numpy` as a few primitives, for code that is traced with many shapes.

Most of `jax.numpy` is nested `jax.jit` calls, operators of arrays too. JAX traces each of them anew
for every shape, which takes five times as long as the primitive inside. Where each of many steps
has a shape of its own, as in a factorisation, these and `jax.lax` are used instead.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax


def spread(x: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """`x` as an array of this shape and type."""
    if not np.ndim(x):
        return lax.full(shape, x, dtype)
    x = lax.convert_element_type(x, dtype)
    if x.shape == shape:
        return x
    x = lax.expand_dims(x, range(len(shape) - x.ndim))
    kept = [k for k in range(x.ndim) if x.shape[k] == shape[k]]
    cut = lax.squeeze(x, [k for k in range(x.ndim) if k not in kept])
    return lax.broadcast_in_dim(cut, shape, kept)


def same_type(*arrays: Any) -> list[Array]:
    """Arrays in their common type."""
    dtype = jnp.result_type(*arrays)
    return [x if x.dtype == dtype else lax.convert_element_type(x, dtype) for x in arrays]


def where(condition: Any, x: Any, y: Any) -> Array:
    """``x`` where the condition holds, else ``y``."""
    shape = np.broadcast_shapes(np.shape(condition), np.shape(x), np.shape(y))
    dtype = jnp.result_type(x, y)
    return lax.select(spread(condition, shape, bool), *(spread(a, shape, dtype) for a in (x, y)))


def inner(a: Array, b: Array) -> Array:
    """``A Bᵀ``."""
    a, b = same_type(a, b)
    return lax.dot_general(a, b, (((1,), (1,)), ((), ())))


def outer(x: Array, y: Array) -> Array:
    """``x yᵀ`` of two vectors."""
    shape = (*x.shape, *y.shape)
    return lax.mul(lax.broadcast_in_dim(x, shape, (0,)), lax.broadcast_in_dim(y, shape, (1,)))


def diagonal(a: Array) -> Array:
    """The diagonal (n,) of a matrix (n, n)."""
    n = a.shape[0]
    return lax.slice(lax.reshape(a, (n * n,)), (0,), (n * n,), (n + 1,))


def identity(n: int, dtype: Any) -> Array:
    """The unit matrix (n, n)."""
    rows, columns = (lax.broadcasted_iota(np.int32, (n, n), k) for k in range(2))
    return lax.convert_element_type(lax.eq(rows, columns), dtype)


def trace(a: Array) -> Array:
    """The sum of the diagonal."""
    return lax.reduce_sum(diagonal(a), (0,))
