"""`rarely`: a computation that few samples need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.lanes.trace.rules.control import RARELY


def rarely(condition: Array, fn: Callable[..., Any], otherwise: Any, *args: Any) -> Any:
    """``fn(*args)`` where a condition holds, else ``otherwise``.

    Unlike `jax.lax.cond` under `jax.vmap`, `fn` runs only if a sample of the batch (in a kernel: of
    a vector) needs it, so that it costs the others nothing but its code. There is no reverse mode
    through it, as through any while loop: use it inside a rule.

    Args:
        condition: a boolean.
        fn: must not close over traced values.
        otherwise: a pytree of arrays like that of the function's results.
        *args: arguments.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd import lanes
        >>> lanes.rarely(jnp.array(True), jnp.sqrt, jnp.array(0.0), jnp.array(4.0)).item()
        2.0
    """

    def call(*args: Any) -> Any:
        return fn(*args)

    call.__name__ = RARELY  # the name by which the tracer recognises it
    once = jax.jit(call)
    state = condition, otherwise
    done = jnp.zeros_like(condition)
    return jax.lax.while_loop(lambda s: s[0], lambda _: (done, once(*args)), state)[1]
