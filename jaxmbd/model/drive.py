"""Drives: joint coordinates prescribed as functions of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array


class Drive(eqx.Module):
    """One joint coordinate as a function of time: a rheonomic row whose λ is the drive's effort.

    Attributes:
        joint: name of the joint (in the tree).
        function: ``function(t, params)`` → the coordinate [rad or m], twice differentiable.
        params: a pytree of numbers handed to `function`.
        index: which coordinate of the joint.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Drive("crank", lambda t, p: p["speed"] * t, {"speed": 6.0}).joint
        'crank'
    """

    joint: str = eqx.field(static=True)
    function: Callable[[Array, Any], Array] = eqx.field(static=True)
    params: Any = None
    index: int = eqx.field(static=True, default=0)

    def value(self, t: Array) -> tuple[Array, Array, Array]:
        """The coordinate and its first and second time derivatives at `t` [s]."""
        one = jnp.ones_like(t)

        def value_rate(s: Array) -> tuple[Array, Array]:
            return jax.jvp(lambda u: jnp.asarray(self.function(u, self.params)), (s,), (one,))

        (value, rate), (_, acceleration) = jax.jvp(value_rate, (t,), (one,))
        return value, rate, acceleration
