"""The pullback (VJP) of a kernel's function, or of a lanes call inside a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph, built
from jaxmbd.lanes.ir.nodes import Buffer, Node
from jaxmbd.lanes.reverse.adjoint import Sweep
from jaxmbd.lanes.trace.arrays import Stacked, Value, from_buffer, rows_of, scalars, short_dtype
from jaxmbd.lanes.trace.build import input_values, output
from jaxmbd.lanes.trace.registry import evaluate_closed


def pullback_graph(
    closed: Any, batched: Sequence[bool], wanted: Sequence[bool], given: Sequence[bool]
) -> Graph:
    """The graph of ``x, ȳ ↦ x̄``, for the arguments in `wanted` and the results in `given`."""
    return built(lambda g: _pull(g, closed, batched, wanted, given))


def _pull(
    g: Graph, closed: Any, batched: Sequence[bool], wanted: Sequence[bool], given: Sequence[bool]
) -> None:
    g.active = mask = g.new_bit()
    args = input_values(g, closed.in_avals, batched, [mask if w else 0 for w in wanted])
    outs = evaluate_closed(g, closed, args)
    g.active = 0
    sweep = Sweep(g, mask)
    position = len(args)
    for out, aval, is_given in zip(outs, closed.out_avals, given, strict=True):
        if is_given:
            size = int(np.prod(aval.shape))
            buffer = Buffer("input", short_dtype(aval.dtype), size, position)
            load = rows_of if isinstance(out, Stacked) else from_buffer
            sweep.seed(out, load(g, buffer, aval.shape))
            position += 1
    sweep.run(g.base)
    sweep.run(g.prologue)
    chosen = [k for k, w in enumerate(wanted) if w]
    for j, k in enumerate(chosen):
        output(g, j, short_dtype(closed.in_avals[k].dtype), sweep.gradient(args[k], k))


def inner_pullback(
    g: Graph, closed: Any, args: Sequence[Value], pullback: Any, cotangents: Sequence[Value]
) -> list[Value]:
    """The same within a graph under construction, for a VJP inside a traced function."""
    wanted, given = pullback
    before, mask, region = g.active, g.new_bit(), g.region
    g.active |= mask
    first = len(region.nodes)
    marked, leaves = [], []
    for x, w in zip(args, wanted, strict=True):
        x = scalars(g, x).copy() if w else x
        if w:
            for place in np.ndindex(*x.shape):
                n = x[place]
                x[place] = Node("mark", (n,), n.dtype, region, n.uniform, mask)
            leaves += list(x.reshape(-1))
            region.nodes.extend(x.reshape(-1))
        marked.append(x)
    outs = evaluate_closed(g, closed, marked)
    g.active = before
    sweep = Sweep(g, mask, leaves)
    seeds = iter(cotangents)
    for out, is_given in zip(outs, given, strict=True):
        if is_given:
            sweep.seed(out, next(seeds))
    sweep.run(region, first)
    return [sweep.gradient(x, -1) for x, w in zip(marked, wanted, strict=True) if w]
