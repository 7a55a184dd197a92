"""Small arrays whose programs do not grow with their size.

Products of matrices and sums over the rows of a matrix as loops, columns of matrices of which only
some are stored, and fixed numbers in general position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

AnyArray = Array | np.ndarray


WRITTEN_OUT = 8
"""Up to this many rows a product is unrolled, which exploits zeros."""


def product(a: Array, b: Array) -> Array:
    """``A B`` (m, k) of A (m, n) and B (n, k), row by row in a loop.

    A compiler to scalars writes out all ``m n k`` terms of ``a @ b``: a minute of compiling for the
    few products of forty rows that an equilibrium needs.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.numerics.small_arrays import product
        >>> product(2.0 * jnp.eye(9), jnp.ones((9, 2))).shape
        (9, 2)
    """
    if a.shape[0] <= WRITTEN_OUT:
        return a @ b
    return jnp.asarray(lax.map(lambda row: row @ b, a))


MANY = 256
"""Number of rows from which a sum is a loop. Unrolled it would be slightly faster, but most of the
program of an imported model with thousands of points."""


def row_sum(rows: Sequence[Array], term: Callable[[Array], Array] = jnp.asarray) -> Array:
    """``Σ term(row)`` over at least one row, all of one shape.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.numerics.small_arrays import row_sum
        >>> row_sum([jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])], lambda x: x @ x).item()
        30.0
    """
    stack = jnp.stack(rows)
    if len(rows) < MANY:
        return jnp.sum(jax.vmap(term)(stack), axis=0)
    start = jnp.zeros_like(term(stack[0]))
    total, _ = jax.lax.scan(lambda so_far, row: (so_far + term(row), None), start, stack)
    return total


def chosen_columns(x: Array, columns: Sequence[int]) -> Array:
    """Some columns of `x` (r, m), in ascending order."""
    if len(columns) == x.shape[1]:
        return x
    return jnp.concatenate([x[:, a:b] for a, b in _runs(columns)] or [x[:, :0]], axis=1)


def placed_columns(x: Array, columns: Sequence[int], within: Sequence[int]) -> Array:
    """The matrix with `x` (r, n) in `columns` and zeros in the other columns of `within`."""
    if len(columns) == len(within):
        return x
    parts, done, end = [], 0, 0
    for a, b in _runs([within.index(c) for c in columns]):
        parts += [jnp.zeros((x.shape[0], a - end), x.dtype), x[:, done : done + b - a]]
        done, end = done + b - a, b
    parts.append(jnp.zeros((x.shape[0], len(within) - end), x.dtype))
    return jnp.concatenate(parts, axis=1)


def generic(size: int, dtype: Any) -> Array:
    """Fixed numbers in general position, of either sign."""
    return jnp.asarray(np.sin(1.0 + 2.3 * np.arange(size)), dtype)


def limited(x: Array, most: float) -> Array:
    """`x`, made shorter if an element is larger than `most`."""
    size = jnp.max(jnp.abs(x), initial=0.0)
    return x * (most / jnp.maximum(size, most))


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Slices of consecutive numbers."""
    starts = [i for i, c in enumerate(places) if i == 0 or places[i - 1] != c - 1]
    ends = [*starts[1:], len(places)] if starts else []
    return [(places[a], places[b - 1] + 1) for a, b in zip(starts, ends, strict=True)]
