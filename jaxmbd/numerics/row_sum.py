"""Sums over the rows of a matrix, in a loop where there are many."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array

MANY = 256
"""Number of rows from which a sum is a loop. Unrolled it would be slightly faster, but most of the
program of an imported model with thousands of points."""


def row_sum(rows: Sequence[Array], term: Callable[[Array], Array] = jnp.asarray) -> Array:
    """``Σ term(row)`` over at least one row, all of one shape.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.numerics.row_sum import row_sum
        >>> row_sum([jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])], lambda x: x @ x).item()
        30.0
    """
    stack = jnp.stack(rows)
    if len(rows) < MANY:
        return jnp.sum(jax.vmap(term)(stack), axis=0)
    start = jnp.zeros_like(term(stack[0]))
    total, _ = jax.lax.scan(lambda so_far, row: (so_far + term(row), None), start, stack)
    return total
