"""The graph of a kernel from its function's jaxpr: arguments, value, results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph, built
from jaxmbd.lanes.ir.nodes import Buffer, Node
from jaxmbd.lanes.trace import rules  # noqa: F401 (fills the table)
from jaxmbd.lanes.trace.arrays import Stacked, Value, from_buffer, short_dtype
from jaxmbd.lanes.trace.registry import evaluate_closed


def input_values(
    g: Graph, avals: Sequence[Any], batched: Sequence[bool], wanted: Sequence[int] | None = None
) -> list[Value]:
    """The values of a kernel's arguments; `wanted`: dependency bits of each, 0 for none."""
    values = []
    for k, (aval, b) in enumerate(zip(avals, batched, strict=True)):
        size = int(np.prod(aval.shape))
        buffer = Buffer("input", short_dtype(aval.dtype), size, k, batched=b)
        values.append(from_buffer(g, buffer, aval.shape, wanted[k] if wanted else 0))
    return values


def output(g: Graph, position: int, dtype: str, value: Value) -> None:
    """Make a value the kernel's result at a position."""
    if not isinstance(value, Stacked):
        buffer = Buffer("output", dtype, value.size, position)
        if value.size:
            g.outputs.append((buffer, list(value.reshape(-1))))
        return
    buffer = Buffer("output", dtype, value.size, position)
    width, start = value.size // value.shape[0], 0
    for length, row in value.pieces:
        _write_rows(g, buffer, row, length, start, width)
        start += length


def _write_rows(
    g: Graph, buffer: Buffer, row: Callable[[Node], Any], length: int, start: int, width: int
) -> None:
    def body(index: Node, carries: list[Node]) -> Any:
        nodes = np.asarray(row(index), object).reshape(-1)
        place = g.op("add", index, g.const(start, "i64"))
        place = g.op("mul", place, g.const(width, "i64"))
        g.effect("row", (place, *nodes), buffer.dtype, (buffer,))
        return [], []

    if length == 1:
        body(g.const(0, "i64"), [])
    else:
        g.loop(length, [], body)


def value_graph(closed: Any, batched: Sequence[bool]) -> Graph:
    """The graph that evaluates a closed jaxpr."""

    def write(g: Graph) -> None:
        args = input_values(g, closed.in_avals, batched)
        values = evaluate_closed(g, closed, args)
        for k, (value, aval) in enumerate(zip(values, closed.out_avals, strict=True)):
            output(g, k, short_dtype(aval.dtype), value)

    return built(write)
