"""`flagged`: tangents set to NaN where a test fails, by an operation with identity transpose."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array
from jax.extend import core
from jax.interpreters import ad, batching, mlir

from jaxmbd.lanes.primitive import varying

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
