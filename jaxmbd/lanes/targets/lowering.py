"""FFI calls in XLA's programs: over several devices, and long ones that return at once.

**Several devices.** XLA splits a kernel's batch without gathering it. The call carries a sharding
rule for Shardy, XLA's sharding propagation: the batch is common to arguments and results; every
other axis must be replicated. XLA then splits the leading axis of all buffers of a "batch
partitionable" call, so an argument without a batch axis gets one with a copy for each device, of
which the kernel reads the first in its part. XLA takes over the split that the operands have in
common, of those with two axes or more, and gathers if it finds none. Therefore the copies are split
as the batch is: in the rule its axis is two factors, of which the major one is that of the axis of
copies as well; and an operand with one axis gets another of length 1.

**Long calls** on the host return before they have run, as calls of JAX's operations do; only so
does Ctrl-C reach Python while a kernel runs (`stopping`). XLA's CPU client runs a program in the
calling thread if it has fewer than 1000 flops, as counted by `HloCostAnalysis`. A custom call
counts as −1, and nothing can say otherwise. Therefore a long kernel gets an operand that it does
not read, the product of two small matrices, whose flops XLA counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy
from jaxlib.mlir.dialects import stablehlo as hlo

_TYPED_FFI = 4
"""StableHLO's version of calling conventions in which a call has attributes by name."""


def call(name: str, batched: Sequence[bool]) -> Any:
    """A lowering rule that calls an FFI target, whose arrays are row-major.

    Args:
        name: name of the target.
        batched: which arguments have a (leading) batch axis; all results have one.
    """

    def rule(ctx: Any, *args: Any) -> Any:
        extra, count = None, devices(ctx.module_context.axis_context)
        if count > 1 and any(batched):
            _partitionable(name)
            avals = [
                ShapedArray(_splittable(a.shape, b, count), a.dtype)
                for a, b in zip(ctx.avals_in, batched, strict=True)
            ]
            views = zip(args, avals, batched, strict=True)
            args = tuple(_view(x, a.shape, b) for x, a, b in views)
            ctx = ctx.replace(avals_in=avals)
            extra = _attributes(avals, ctx.avals_out, batched, count)
        return _typed(jax.ffi.ffi_lowering(name, extra_attributes=extra)(ctx, *args))

    return rule


def _typed(results: Any) -> Any:
    """The results of an FFI call, which says in StableHLO's own terms that it is one.

    JAX writes an untyped call with an attribute ``mhlo.backend_config``, from which XLA makes a
    typed one, but not in every program of many nested functions; there no handler is then found.
    """
    attributes = results[0].owner.attributes
    if "mhlo.backend_config" in attributes:
        attributes["backend_config"] = attributes["mhlo.backend_config"]
        attributes["api_version"] = mlir.i32_attr(_TYPED_FFI)
        del attributes["mhlo.backend_config"]
    return results


def devices(axes: Any) -> int:
    """Number of devices that XLA may partition the call over; 1 inside a full `shard_map`."""
    mesh = getattr(axes, "mesh", None)
    if mesh is None:
        return getattr(axes, "num_devices", 1)
    return math.prod(n for name, n in mesh.shape.items() if name not in axes.manual_axes)


@cache
def _partitionable(name: str) -> None:
    jax.ffi.register_ffi_target_as_batch_partitionable(name)


def _splittable(shape: tuple[int, ...], batched: bool, count: int) -> tuple[int, ...]:
    """The shape of an operand that XLA can split: a leading axis for it, and another."""
    whole = shape if batched else (count, *shape)
    return whole if len(whole) > 1 else (*whole, 1)


def _view(x: Any, shape: tuple[int, ...], batched: bool) -> Any:
    """An operand in another shape; one without a batch axis is copied along a new leading axis."""
    old = ir.RankedTensorType(x.type)
    new = ir.RankedTensorType.get(shape, old.element_type)
    if batched:
        return x if new == old else hlo.reshape(new, x)
    axes = ir.DenseI64ArrayAttr.get(range(1, 1 + len(old.shape)))
    return hlo.broadcast_in_dim(new, x, axes)


def _attributes(
    ins: Sequence[Any], outs: Sequence[Any], batched: Sequence[bool], count: int
) -> dict[str, Any]:
    """Attributes that tell Shardy and XLA's partitioner that a call is batched."""
    extra = {"mhlo.frontend_attributes": mlir.ir_attribute({"num_batch_dims": "1"})}
    if not jax.config.jax_use_shardy_partitioner:  # pyright: ignore[reportAttributeAccessIssue]
        return extra
    size = outs[0].shape[0]
    common = math.gcd(size, count)  # parts that a batch and the copies can have in common
    lengths = [n for n in (common, size // common) if n > 1] or [1]  # of factors
    batch, copies = list(range(len(lengths))), [0] if common > 1 else []

    def factors(*more: int) -> list[int]:
        lengths.extend(more)
        return list(range(len(lengths) - len(more), len(lengths)))

    def mapping(aval: Any, has_batch: bool) -> Any:
        spare = [] if has_batch or common == count else [count // common]
        leading = batch if has_batch else [*copies, *factors(*spare)]
        dims = [leading, *([k] for k in factors(*aval.shape[1:]))]
        found = [sdy.DimMappingAttr.get(factor_indices=d) for d in dims]
        return sdy.TensorMappingAttr.get(dim_mappings=found)

    operands = [mapping(a, b) for a, b in zip(ins, batched, strict=True)]
    results = [mapping(a, True) for a in outs]
    extra["sdy.sharding_rule"] = sdy.OpShardingRuleAttr.get(
        factor_sizes=lengths, operand_mappings=operands, result_mappings=results, is_custom=True,
        reduction_factors=[], need_replication_factors=list(range(len(batch), len(lengths))),
        permutation_factors=[],
    )  # fmt: skip
    return extra


LONG = 200_000_000
"""Flops from which a call is run by another thread. They take milliseconds, and the other thread
0.01 ms, or 0.1 ms if all cores are busy."""
SIZE = 16
"""Rows of the matrices: 2·16³ flops, about a microsecond, and nothing that XLA must compile."""


def host_call(name: str, batched: Sequence[bool], flops: float) -> Any:
    """A lowering rule that calls an FFI target of the host.

    Args:
        name: of the target.
        batched: which arguments have a batch, on their leading axis; the results all have.
        flops: of the whole batch.
    """
    plain = call(name, batched)
    if flops < LONG:
        return plain
    with_product = call(name, (*batched, False))
    product = mlir.lower_fun(_product, multiple_results=False)

    def rule(ctx: Any, *args: Any) -> Any:
        if devices(ctx.module_context.axis_context) > 1:
            return plain(ctx, *args)  # each device has a thread of its own
        aval = ShapedArray((SIZE, SIZE), np.dtype(np.float32))
        (unread,) = product(ctx.replace(avals_in=[], avals_out=[aval]))
        return with_product(ctx.replace(avals_in=[*ctx.avals_in, aval]), *args, unread)

    return rule


def _product() -> Any:
    """A product of constants; the barrier keeps XLA from folding it."""
    a = lax.optimization_barrier(np.arange(SIZE * SIZE, dtype=np.float32).reshape(SIZE, SIZE))
    return lax.dot(a, a)
