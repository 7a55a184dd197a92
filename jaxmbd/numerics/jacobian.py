"""A Jacobian by columns in a loop, so that the tangent program is compiled once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

WRITTEN_OUT = 2
"""Up to this many columns are unrolled, which exploits the zeros of the unit directions."""


def jacobian(fn: Callable[[Array], Any], x: Array) -> Any:
    """``∂fn/∂x`` of each array in ``fn(x)``, with the components of x along the last axis.

    `jax.jacfwd` maps the tangent over n directions, which a compiler to scalars unrolls n times;
    here the tangent map is the body of a loop, so the program size is independent of n.

    Args:
        fn: a function of x.
        x: the point (n,).

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
