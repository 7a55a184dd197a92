"""Hessian-vector products, of anything that JAX differentiates twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from jaxmbd import lanes

MODES = ("forward-over-reverse", "reverse-over-forward", "forward-over-forward")


def hessian_vector(
    fn: Callable[[Any], Any], x: Any, v: Any, *, mode: str = "forward-over-reverse"
) -> Any:
    """``∇²f(x) v`` of a scalar function, a pytree like x.

    The three modes are independent of each other and agree to rounding:

    - "forward-over-reverse": the derivative of the gradient along v; one gradient's cost, whatever
      the number of variables.
    - "reverse-over-forward": the gradient of the derivative along v.
    - "forward-over-forward": a row of one kernel for each variable, without reverse mode, so it
      compiles fastest and suits few variables, and functions that only have forward mode.

    Args:
        fn: a function of a pytree that returns one number.
        x: a pytree of floating-point arrays (a mechanism, an array).
        v: a pytree like x.
        mode: one of the three.

    Raises:
        ValueError: the mode is unknown.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import hessian_vector
        >>> hessian_vector(lambda x: x[0] ** 2 * x[1], jnp.array([1.0, 2.0]), jnp.ones(2)).tolist()
        [6.0, 2.0]
    """
    if mode not in MODES:
        raise ValueError(f"mode={mode!r}; give one of {list(MODES)}")
    x = jax.tree_util.tree_map(jnp.asarray, x)
    v = jax.tree_util.tree_map(lambda a, b: jnp.asarray(b, a.dtype), x, v)
    if mode == "forward-over-reverse":
        return jax.jvp(jax.grad(fn), (x,), (v,))[1]
    if mode == "reverse-over-forward":
        return jax.grad(lambda y: jax.jvp(fn, (y,), (v,))[1])(x)
    flat, restore = ravel_pytree(x)
    along, _ = ravel_pytree(v)

    def row(direction: Any, x: Any, v: Any) -> Any:
        def slope(y: Any) -> Any:
            return jax.jvp(lambda z: fn(restore(z)), (y,), (v,))[1]

        return jax.jvp(slope, (x,), (direction,))[1]

    eye = np.eye(flat.shape[0], dtype=flat.dtype)
    return restore(lanes.vmap(row, in_axes=(0, None, None))(eye, flat, along))
