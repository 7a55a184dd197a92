"""A Jacobian by columns: the tangent's program once in a loop, not written out once a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

WRITTEN_OUT = 2
"""Up to so many columns are written out: the zeros of each one's direction then cost nothing."""


def jacobian(fn: Callable[[Array], Any], x: Array) -> Any:
    """``∂fn/∂x`` of each array that ``fn(x)`` consists of, x's components along the last axis.

    `jax.jacfwd` maps the tangent over all n directions, which a compiler to scalars writes out n
    times; here the tangent map is one loop's body, so the program is as long for any n.

    Args:
        fn: a function of x.
        x: where, (n,).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.numerics.jacobian import jacobian
        >>> jacobian(lambda x: x[:2] * x[2], jnp.array([1.0, 2.0, 3.0])).tolist()
        [[3.0, 0.0, 1.0], [0.0, 3.0, 2.0]]
    """
    if x.shape[0] <= WRITTEN_OUT:
        return jax.jacfwd(fn)(x)

    def column(direction: Array) -> Any:
        return jax.jvp(fn, (x,), (direction,))[1]

    columns = lax.map(column, jnp.eye(x.shape[0], dtype=x.dtype))
    return jax.tree_util.tree_map(lambda c: jnp.moveaxis(c, 0, -1), columns)
