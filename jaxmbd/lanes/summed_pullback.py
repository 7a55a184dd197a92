"""A pullback whose cotangents of arguments that all samples share are summed over the batch.

It is a call followed by `batch_sum`, as one primitive: for mechanisms with hundreds of arguments
half of what JAX and XLA have to handle is what would stand between the two.
"""

from __future__ import annotations

from typing import Any

import jax
from jax import Array
from jax.extend import core
from jax.interpreters import ad, batching, mlir

from jaxmbd.lanes.batch_sum import batch_sum
from jaxmbd.lanes.kernel import Kernel, kernel
from jaxmbd.lanes.primitive import batch, call_p, lower, result_types, run, varying
from jaxmbd.lanes.targets import cpu_sum, dispatch, partition

summed_p = core.Primitive("lanes_summed_pullback")
summed_p.multiple_results = True

# Parameters: those of the call.


def pullback(args: Any, params: dict[str, Any]) -> list[Array]:
    """The cotangents of a call with these parameters; they have a batch axis if arguments do."""
    args, k = varying(args), _kernel(params)
    if not any(k.totals):
        return call_p.bind(*args, **params)
    placed = any(not jax.typeof(x).sharding.mesh.empty for x in args)
    typed = all(a.dtype.name in cpu_sum.TYPES and a.size for a in k.out_avals)
    if placed or not typed:
        return composed(*args, **params)
    return summed_p.bind(*args, **params)


def composed(*args: Any, **params: Any) -> list[Array]:
    """The same as a call and sums."""
    return summed(call_p.bind(*args, **params), params)


def summed(cotangents: list[Any], params: dict[str, Any]) -> list[Any]:
    """The cotangents of a call, with those summed that belong to shared arguments."""
    totals = _kernel(params).totals
    sums = iter(batch_sum([x for x, t in zip(cotangents, totals, strict=True) if t]))
    return [next(sums) if t else x for x, t in zip(cotangents, totals, strict=True)]


def _kernel(params: dict[str, Any]) -> Kernel:
    return kernel(params["key"], params["batched"], params["pullback"])


@summed_p.def_impl
def _impl(*args: Any, **params: Any) -> Any:
    return run(summed_p, args, params)


@summed_p.def_abstract_eval
def _abstract(*avals: Any, size: int, **params: Any) -> Any:
    k = _kernel(params)
    pairs = list(zip(k.out_avals, k.totals, strict=True))
    rows = iter(result_types([a for a, t in pairs if not t], size, avals, k.in_batched))
    return [a if t else next(rows) for a, t in pairs]


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    outs, dots = ad.primitive_jvps[call_p](primals, tangents, **params)
    totals = _kernel(params).totals
    moving = [t and not isinstance(x, ad.Zero) for x, t in zip(dots, totals, strict=True)]
    sums = iter(batch_sum([x for x, m in zip(dots, moving, strict=True) if m]))
    outs = summed(outs, params)
    zeros = (ad.Zero(jax.typeof(y).to_tangent_aval()) for y in outs)
    return outs, [
        next(sums) if m else z if isinstance(x, ad.Zero) else x
        for x, m, z in zip(dots, moving, zeros, strict=True)
    ]


ad.primitive_jvps[summed_p] = _jvp


def _batch(args: Any, dims: Any, **params: Any) -> Any:
    outs, places = batch(args, dims, **params)
    return jax.vmap(lambda *xs: summed(list(xs), params))(*outs), places


batching.primitive_batchers[summed_p] = _batch

_lower_composed = mlir.lower_fun(composed, multiple_results=True)


def _lower_cpu(ctx: Any, *args: Any, **params: Any) -> Any:
    if partition.devices(ctx.module_context.axis_context) > 1:
        return _lower_composed(ctx, *args, **params)
    return lower(ctx, args, params, _rule, _lower_composed)


def _rule(k: Kernel, params: Any) -> Any:
    code = k.compile_cpu(params["options"].threads, summed=True)
    return dispatch.lowering(code.name, k.in_batched, code.flops * params["size"])


mlir.register_lowering(summed_p, _lower_composed, cacheable=False)
mlir.register_lowering(summed_p, _lower_cpu, platform="cpu", cacheable=False)
