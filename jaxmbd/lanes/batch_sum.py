"""Sums over the batch of many arrays at once: cotangents of arguments that all samples share.

One operation of XLA in place of one for each array, which XLA would compile each time that the
batch has another size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.core import ShapedArray
from jax.extend import core
from jax.interpreters import ad, batching, mlir

from jaxmbd.lanes.ir.nodes import Unsupported
from jaxmbd.lanes.primitive import NOT_PORTABLE, run
from jaxmbd.lanes.targets import cpu_sum, partition

sum_p = core.Primitive("lanes_sum")
sum_p.multiple_results = True


def batch_sum(arrays: Sequence[Any]) -> list[Array]:
    """The sum of each array over its leading axis."""
    types = [jax.typeof(x) for x in arrays]
    ours = all(a.sharding.mesh.empty and a.size and a.dtype.name in cpu_sum.TYPES for a in types)
    return sum_p.bind(*arrays) if ours and arrays else plain(*arrays)


def plain(*arrays: Any) -> list[Array]:
    """The same by JAX's own operation."""
    return [jax.lax.reduce_sum(x, (0,)) for x in arrays]


@sum_p.def_impl
def _impl(*arrays: Any) -> Any:
    return run(sum_p, arrays, {})


@sum_p.def_abstract_eval
def _abstract(*avals: Any) -> Any:
    return [ShapedArray(a.shape[1:], a.dtype, weak_type=a.weak_type) for a in avals]


def _transpose(cotangents: Any, *arrays: Any) -> Any:
    return [
        None if isinstance(c, ad.Zero) else jax.lax.broadcast(c, x.aval.shape[:1])
        for c, x in zip(cotangents, arrays, strict=True)
    ]


ad.deflinear2(sum_p, _transpose)


def _batch(arrays: Any, dims: Any) -> Any:
    """The new axis goes behind the one that is summed over."""
    pairs = zip(arrays, dims, strict=True)
    moved = [x if d is None else jnp.moveaxis(x, d, 1) for x, d in pairs]
    return batch_sum(moved), [None if d is None else 0 for d in dims]


batching.primitive_batchers[sum_p] = _batch

_lower_plain = mlir.lower_fun(plain, multiple_results=True)


def _lower_cpu(ctx: Any, *arrays: Any, **_: Any) -> Any:
    module = ctx.module_context
    if module.lowering_parameters.for_export or partition.devices(module.axis_context) > 1:
        return _lower_plain(ctx, *arrays)
    try:
        name = cpu_sum.target()
    except Unsupported:
        return _lower_plain(ctx, *arrays)
    module.add_keepalive(NOT_PORTABLE)
    return partition.lowering(name, [True] * len(arrays))(ctx, *arrays)


mlir.register_lowering(sum_p, _lower_plain, cacheable=False)
mlir.register_lowering(sum_p, _lower_cpu, platform="cpu", cacheable=False)
