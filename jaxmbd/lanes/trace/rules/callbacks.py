"""Callbacks into Python, which no kernel can contain: the error says so and what to do."""

from __future__ import annotations

from typing import Any

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Unsupported
from jaxmbd.lanes.trace.arrays import Value
from jaxmbd.lanes.trace.registry import rule


@rule("debug_callback", "debug_print", "io_callback", "pure_callback")
def _callback(g: Graph, eqn: Any, *args: Value) -> Value:
    raise Unsupported(
        f"the primitive '{eqn.primitive.name}' (jax.debug.print and other callbacks): a kernel "
        "cannot call Python, so XLA compiles the whole function, which can take far longer; take "
        "it out to get a kernel again"
    )
