"""Second derivatives of the goals of many designs, by one kernel.

A row of the kernel is one element of a Hessian-vector product, ``d · Σ wᵢ Fᵢ''(x) v``, by two
forward derivatives.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd import lanes
from jaxmbd.design.evaluation import Evaluation


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
