"""`guarded`: functions that may fail for some samples without spoiling shared gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbd.lanes.trace.derivative_rules import GUARDED


def guarded(fn: Callable[..., Any], *args: Any) -> Any:
    """``fn(*args)``, with zero derivatives where its value is not finite.

    A sample that becomes NaN then contributes no cotangent, so it cannot spoil the gradient with
    respect to leaves shared by the batch. `fn` must not close over traced values.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxmbd import lanes
        >>> float(jax.grad(lambda x: lanes.guarded(jnp.sqrt, x))(-1.0))
        0.0
    """
    return _guarded(fn, *args)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _guarded(fn: Any, *args: Any) -> Any:
    def call(*args: Any) -> Any:
        return fn(*args)

    call.__name__ = GUARDED  # the name by which the tracer recognises it
    return jax.jit(call)(*args)


@_guarded.defjvp
def _guarded_jvp(fn: Any, primals: Any, tangents: Any) -> Any:
    out, linear = jax.linearize(lambda *x: fn(*x), *primals)
    ok = finite(out)

    def masked(tree: Any) -> Any:
        return jax.tree_util.tree_map(lambda x: jnp.where(ok, x, jnp.zeros_like(x)), tree)

    return out, masked(linear(*masked(tangents)))


def finite(tree: Any) -> Any:
    """Whether all floating-point leaves are finite."""
    ok = jnp.asarray(True)
    for x in jax.tree_util.tree_leaves(tree):
        if jnp.issubdtype(x.dtype, jnp.floating):
            ok = ok & jnp.all(jnp.isfinite(x))
    return ok
