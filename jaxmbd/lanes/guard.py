"""Functions that samples of a batch may fail, or seldom need.

`guarded` functions may fail for some samples without spoiling shared gradients; `flagged` sets
tangents to NaN where a test fails, by an operation whose transpose is the identity; `rarely` is a
computation that few samples need.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend import core
from jax.interpreters import ad, batching, mlir

from jaxmbd.lanes.primitive import varying
from jaxmbd.lanes.trace.jaxprs import GUARDED
from jaxmbd.lanes.trace.rules.control import RARELY


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


flag_p = core.Primitive("lanes_flag")


def flagged(x: Array, miss: Array, terms: Array, tolerance: float) -> Array:
    """x, or NaN where the largest absolute `miss` exceeds `tolerance` times that of the `terms`.

    For the rule of a `jax.custom_jvp`, where x, `miss` and `terms` are linear in the tangents. In
    forward mode it tests the given direction, which no linear map can do. Its transpose is the
    identity from x to x without a test, because a cotangent specifies no tangent direction.

    Args:
        x: (n,).
        miss: (m,), residuals that must vanish.
        terms: (k,), the scale against which the residuals are judged.
        tolerance: relative tolerance.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd import lanes
        >>> lanes.flagged(jnp.ones(2), jnp.array([1e-3]), jnp.ones(1), 1e-6).tolist()
        [nan, nan]
    """
    return flag_p.bind(*varying([x, miss, terms]), tolerance=float(tolerance))


@flag_p.def_impl
def _flag(x: Array, miss: Array, terms: Array, *, tolerance: float) -> Array:
    limit = tolerance * jnp.max(jnp.abs(terms), axis=-1, initial=0.0)
    bad = jnp.max(jnp.abs(miss), axis=-1, initial=0.0) > limit
    return jnp.where(bad[..., None], jnp.asarray(jnp.nan, x.dtype), x)


@flag_p.def_abstract_eval
def _abstract(x: Any, *_: Any, **__: Any) -> Any:
    return x


mlir.register_lowering(flag_p, mlir.lower_fun(_flag, multiple_results=False))


def _jvp(primals: Any, tangents: Any, *, tolerance: float) -> Any:
    x, miss, terms = primals
    dx = ad.instantiate_zeros(tangents[0])
    return tuple(flagged(y, miss, terms, tolerance) for y in (x, dx))


def _transpose(ct: Any, *args: Any, **_: Any) -> Any:
    others = [ad.Zero(a.aval) if ad.is_undefined_primal(a) else None for a in args[1:]]
    return [ct if ad.is_undefined_primal(args[0]) else None, *others]


def _batch(args: Any, dims: Any, **params: Any) -> Any:
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    spread = [
        jnp.broadcast_to(x, (size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
        for x, d in zip(args, dims, strict=True)
    ]
    return flag_p.bind(*spread, **params), 0


ad.primitive_jvps[flag_p] = _jvp
ad.primitive_transposes[flag_p] = _transpose
batching.primitive_batchers[flag_p] = _batch


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
