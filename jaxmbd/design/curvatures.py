"""Second derivatives of the goals of many designs, by one kernel.

A row of the kernel is one element of a Hessian-vector product, ``d · Σ wᵢ Fᵢ''(x) v``, by two
forward derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from jaxmbd import lanes
from jaxmbd.design.evaluation import Evaluation

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


class Curvatures:
    """Second derivatives of weighted goals.

    Args:
        evaluation: the goals, without scatter.

    Raises:
        ValueError: there is scatter; second derivatives of its measures are not provided.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.design import Between, Evaluation, Unknowns
        >>> from jaxmbd.design.curvatures import Curvatures
        >>> unknowns = Unknowns.of(None, {"a": Between(-1.0, 1.0, start=0.0)})
        >>> square = Curvatures(Evaluation(unknowns, {"square": lambda x: x["a"] ** 2}))
        >>> square.hessians(np.zeros((1, 1)), np.ones((1, 1)))
        array([[[2.]]])
    """

    def __init__(self, evaluation: Evaluation):
        if evaluation.scatter is not None:
            raise ValueError(
                "second derivatives of measures over scatter are not provided; choose "
                'method="slsqp", which needs first ones only'
            )

        def product(x: Array, d: Array, v: Array, w: Array) -> Array:
            def slope(y: Array) -> Array:
                return jax.jvp(lambda z: w @ evaluation.row(z, {}), (y,), (v,))[1]

            return jax.jvp(slope, (x,), (d,))[1]

        batched = lanes.vmap(product)

        def products(x: Array, v: Array, w: Array) -> Array:
            b, n = x.shape
            spread = [jnp.repeat(y, n, axis=0) for y in (x, v, w)]
            ways = jnp.tile(jnp.eye(n, dtype=x.dtype), (b, 1))
            return batched(spread[0], ways, *spread[1:]).reshape(b, n)

        self._products = jax.jit(products)

    def products(self, x: np.ndarray, direction: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Hessian-vector products ``Σ wᵢ Fᵢ''(x) v`` (b, n) of x (b, n), v (b, n), w (b, m)."""
        found = self._products(np.asarray(x), np.asarray(direction), np.asarray(weights))
        return np.asarray(lanes.finished(found), np.float64)

    def hessians(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Hessians ``Σ wᵢ Fᵢ''(x)`` (b, n, n) of designs (b, n), w (b, m)."""
        b, n = x.shape
        every = [np.repeat(y, n, axis=0) for y in (x, weights)]
        return self.products(every[0], np.tile(np.eye(n), (b, 1)), every[1]).reshape(b, n, n)
