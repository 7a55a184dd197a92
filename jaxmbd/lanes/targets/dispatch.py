"""Calls on the host that return before a long kernel has run, as calls of JAX's operations do.

XLA's CPU client runs a program in the calling thread if it has fewer than 1000 flops, as counted by
`HloCostAnalysis`: another thread would take longer to start. A custom call counts as −1, so a
program of kernels alone always blocked its caller. Neither a custom call, nor an option of
`jax.jit`, nor the executable can say otherwise. Therefore a long kernel gets an operand that it
does not read, the product of two small matrices, whose flops XLA counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.interpreters import mlir

from jaxmbd.lanes.targets import partition

LONG = 200_000_000
"""Flops from which a call is run by another thread. They take milliseconds, and the other thread
0.01 ms, or 0.1 ms if all cores are busy."""
SIZE = 16
"""Rows of the matrices: 2·16³ flops, about a microsecond, and nothing that XLA must compile."""


def lowering(name: str, batched: Sequence[bool], flops: float) -> Any:
    """A lowering rule that calls an FFI target of the host.

    Args:
        name: of the target.
        batched: which arguments have a batch, on their leading axis; the results all have.
        flops: of the whole batch.
    """
    plain = partition.lowering(name, batched)
    if flops < LONG:
        return plain
    with_product = partition.lowering(name, (*batched, False))
    product = mlir.lower_fun(_product, multiple_results=False)

    def rule(ctx: Any, *args: Any) -> Any:
        if partition.devices(ctx.module_context.axis_context) > 1:
            return plain(ctx, *args)  # each device has a thread of its own
        aval = ShapedArray((SIZE, SIZE), np.dtype(np.float32))
        (unread,) = product(ctx.replace(avals_in=[], avals_out=[aval]))
        return with_product(ctx.replace(avals_in=[*ctx.avals_in, aval]), *args, unread)

    return rule


def _product() -> Any:
    """A product of constants; the barrier keeps XLA from folding it."""
    a = lax.optimization_barrier(np.arange(SIZE * SIZE, dtype=np.float32).reshape(SIZE, SIZE))
    return lax.dot(a, a)
