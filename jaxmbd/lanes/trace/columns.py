"""Rows of small arrays at computed indices, with as little memory traffic as possible.

A column is what all rows have at one place. One that is equal in all rows is a node; one that lies
in memory already, at regular distances, is loaded from there, as are the results of a scan that
another scan goes through; one that is computed from such columns is computed again; only other
columns are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Buffer, Node
from jaxmbd.lanes.trace.arrays import Stacked, clamp, empty

CHEAP = frozenset({"add", "sub", "mul", "div", "neg", "sqrt"})
"""Operations that are rather repeated for each row than stored."""
GATHERED = 8
"""Rows of at most this many elements of an argument are gathered, sample by sample; of longer rows,
the whole argument is transposed first."""
Column = Callable[[Node], Node]
"""A column's element at an index node, which is in bounds."""


def in_memory(g: Graph, x: np.ndarray, *, shared: bool = False) -> Stacked:
    """A small array as a long one: its row at a computed index is a few loads.

    Args:
        g: the graph.
        x: the array.
        shared: whether its indices are the same in all samples.
    """
    flat = x.reshape(len(x), -1)
    columns = [tuple(flat[:, j]) for j in range(flat.shape[1])]
    found: dict[tuple[Node, ...], Column] = {}
    rest: list[tuple[Node, ...]] = []
    few = len(columns) <= GATHERED
    for nodes in dict.fromkeys(columns):
        source = _known(g, nodes, shared, few) or _before(g, nodes)
        if source is None:
            rest.append(nodes)
        else:
            found[nodes] = source
    found |= _stored(g, rest)

    def row(index: Node) -> np.ndarray:
        values = {nodes: source(index) for nodes, source in found.items()}
        out = empty(x.shape[1:])
        out.reshape(-1)[:] = [values[nodes] for nodes in columns]
        return out

    return Stacked(x.shape, flat[0, 0].dtype, [(len(x), row)])


def _known(g: Graph, nodes: Sequence[Node], shared: bool, few: bool) -> Column | None:
    """A column that need not be stored, but for constants; one row at either end may differ."""
    source = _regular(g, nodes, shared, few) or _computed(g, tuple(nodes), shared, few)
    if source is not None or len(nodes) < 3 or all(n.constant for n in nodes):
        return source
    for end, inner in ((0, nodes[1:]), (len(nodes) - 1, nodes[:-1])):
        source = _regular(g, inner, shared, few)
        if source is not None:
            return _with_end(g, source, nodes[end], end, len(inner))
    return None


def _with_end(g: Graph, source: Column, other: Node, end: int, count: int) -> Column:
    """A column of `count` elements and one more before (`end` is zero) or after them."""

    def at(index: Node) -> Node:
        if index.constant and index.data == end:
            return other
        inner = g.op("sub", index, g.const(1, "i64")) if end == 0 else index
        here = source(clamp(g, inner, 0, count - 1))
        return g.op("select", g.op("eq", index, g.const(end, "i64")), other, here)

    return at


def _regular(g: Graph, nodes: Sequence[Node], shared: bool, few: bool) -> Column | None:
    """A column of equal nodes, or of loads at regular distances from memory that stays as it is."""
    first = nodes[0]
    if all(n is first for n in nodes):
        return lambda index: first
    if shared and first.op == "element" and nodes[1].data != first.data:
        source = _of_arguments(g, nodes)
        if source is not None:
            return source
    buffer, start = _place(first, few)
    if buffer is None:
        return None
    places = [_place(n, few) for n in nodes]
    step = places[1][1] - start
    if any(place != (buffer, start + k * step) for k, place in enumerate(places)):
        return None
    deps = 0
    for n in nodes:
        deps |= n.deps
    return lambda index: g.load(buffer, g.op("mul", index, g.const(step, "i64")), start, deps)


def _computed(g: Graph, nodes: tuple[Node, ...], shared: bool, few: bool) -> Column | None:
    """A column of one cheap operation on elements of such columns: computed where it is used."""
    key = (_computed, g.region, nodes, shared, few)
    if key not in g.calls:
        g.calls[key] = _operation(g, nodes, shared, few)
    return g.calls[key]


def _operation(g: Graph, nodes: tuple[Node, ...], shared: bool, few: bool) -> Column | None:
    first = nodes[0]
    if first.op not in CHEAP or len(nodes) < 3:
        return None
    if any((n.op, n.dtype, len(n.args)) != (first.op, first.dtype, len(first.args)) for n in nodes):
        return None
    sources = []
    for operands in zip(*(n.args for n in nodes), strict=True):
        source = _regular(g, operands, shared, few) or _computed(g, operands, shared, few)
        if source is None:
            return None
        sources.append(source)
    return lambda index: g.op(first.op, *(x(index) for x in sources), dtype=first.dtype)


def _of_arguments(g: Graph, nodes: Sequence[Node]) -> Column | None:
    """A column that has the same element of different arguments."""
    buffer, place = nodes[0].data
    kind = (buffer.dtype, buffer.size, buffer.batched)
    positions = []
    for n in nodes:
        if n.op != "element" or n.deps or n.data[1] != place:
            return None
        other = n.data[0]
        if (other.dtype, other.size, other.batched) != kind:
            return None
        positions.append(other.position)
    if len(set(positions)) == 1:
        return None
    key = ("inputs", *positions)
    inputs = g.calls.get(key)
    if inputs is None:
        table = Buffer("const", "i64", len(positions), values=positions, batched=False)
        inputs = Buffer("inputs", buffer.dtype, buffer.size, values=table, batched=buffer.batched)
        g.calls[key] = inputs

    def at(index: Node) -> Node:
        if index.constant:
            return nodes[index.data]
        if not index.uniform:  # a result of the scan that is used elsewhere
            return in_memory(g, np.array(nodes, object)).at(g, index).item()
        return g.entry(inputs, index, place)

    return at


def _place(n: Node, few: bool) -> tuple[Buffer | None, int]:
    """The buffer and index that a node was loaded from, if the buffer still holds its value."""
    if n.op == "load" and n.args[0].constant and n.data[0].final:
        return n.data[0], n.args[0].data + n.data[1]
    if n.op == "element" and (n.uniform or few) and not n.deps:
        return n.data
    return None, 0


def _before(g: Graph, nodes: tuple[Node, ...]) -> Column | None:
    """A column that has been stored before, in this region or around it."""
    region = g.region
    while region is not None:
        source = g.calls.get((in_memory, region, nodes))
        if source is not None:
            return source
        region = region.parent
    return None


def _stored(g: Graph, columns: Sequence[tuple[Node, ...]]) -> dict[tuple[Node, ...], Column]:
    """Columns that are stored: constants in a table, all others in scratch."""
    found: dict[tuple[Node, ...], Column] = {}
    for constant in (True, False):
        some = [c for c in columns if all(n.constant for n in c) is constant]
        if not some:
            continue
        count, dtype = len(some), some[0][0].dtype
        rows = list(zip(*some, strict=True))
        if constant:
            values = [n.data for row in rows for n in row]
            buffer = Buffer("const", dtype, len(values), values=values, batched=False)
        else:
            buffer = g.scratch(dtype, count * len(rows), final=True)
            for i, row in enumerate(rows):
                for k, n in enumerate(row):
                    g.store(buffer, g.const(i * count + k, "i64"), 0, n)
        for k, nodes in enumerate(some):
            deps = 0
            for n in nodes:
                deps |= n.deps
            found[nodes] = _slot(g, buffer, count, k, deps)
            if not deps & g.active:  # or a guard would take the cotangents of others for its own
                g.calls[in_memory, g.region, nodes] = found[nodes]
    return found


def _slot(g: Graph, buffer: Buffer, count: int, slot: int, deps: int) -> Column:
    return lambda index: g.load(buffer, g.op("mul", index, g.const(count, "i64")), slot, deps)
