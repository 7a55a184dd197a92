"""Sorting of small arrays by exchanges of neighbours, so that equals keep their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Node, Unsupported
from jaxmbd.lanes.trace.arrays import Value, empty, scalars
from jaxmbd.lanes.trace.interpreter import rule

EXCHANGES = 2016
"""Most exchanges of a sort: those of 64 numbers."""

Item = Sequence[Node]
"""What is exchanged together."""
Before = Callable[[Item, Item], Node]
"""Whether the second of two neighbours belongs before the first."""


def sorted_items(g: Graph, items: Sequence[Item], before: Before, first: int) -> list[Item]:
    """The items of which the `first` ones are those, in order, of all sorted.

    Pass i moves the item that belongs there down to place i, past one neighbour after the other.
    """
    items = list(items)
    for i in range(min(first, len(items) - 1)):
        for k in range(len(items) - 1, i, -1):
            x, y = items[k - 1], items[k]
            swap = before(x, y)
            items[k - 1] = [g.op("select", swap, b, a) for a, b in zip(x, y, strict=True)]
            items[k] = [g.op("select", swap, a, b) for a, b in zip(x, y, strict=True)]
    return items


def less(g: Graph, x: Node, y: Node) -> Node:
    """Whether x is before y in ascending order, in which NaN is last."""
    if x.dtype == "i1":
        return g.op("and", g.op("not", x), y)
    if x.dtype[0] != "f":
        return g.op("lt", x, y)
    return g.op("and", g.op("eq", x, x), g.op("not", g.op("le", y, x)))


def _equal(g: Graph, x: Node, y: Node) -> Node:
    if x.dtype[0] != "f":
        return g.op("eq", x, y)
    both = g.op("and", g.op("ne", x, x), g.op("ne", y, y))
    return g.op("or", g.op("eq", x, y), both)


def _along(g: Graph, arrays: Sequence[Value], axis: int, first: int, before: Before) -> list[Value]:
    """Arrays whose rows along an axis are sorted together, cut to the `first` places."""
    moved = [np.moveaxis(scalars(g, x), axis, -1) for x in arrays]
    *rows, n = moved[0].shape
    exchanges = int(np.prod(rows)) * (first * (2 * n - first - 1) // 2)
    if exchanges > EXCHANGES:
        raise Unsupported(
            f"of shape {arrays[0].shape}, {exchanges} exchanges of neighbours (at most {EXCHANGES})"
        )
    out = [empty((*rows, first)) for _ in moved]
    for place in np.ndindex(*rows):
        items = list(zip(*(x[place] for x in moved), strict=True))
        found = sorted_items(g, items, before, first)[:first]
        for k, x in enumerate(out):
            x[place] = [item[k] for item in found]
    return [np.moveaxis(x, -1, axis) for x in out]


@rule("sort")
def _sort(g: Graph, eqn: Any, *arrays: Value) -> list[Value]:
    """Sorted by the first operands, as by words by their letters; stable, whether asked or not."""
    keys, axis = eqn.params["num_keys"], eqn.params["dimension"]

    def before(x: Item, y: Item) -> Node:
        swap = less(g, y[keys - 1], x[keys - 1])
        for a, b in reversed(list(zip(x[: keys - 1], y[: keys - 1], strict=True))):
            swap = g.op("or", less(g, b, a), g.op("and", _equal(g, a, b), swap))
        return swap

    return _along(g, arrays, axis, arrays[0].shape[axis], before)


@rule("top_k")
def _top_k(g: Graph, eqn: Any, x: Value) -> list[Value]:
    """The largest numbers and where they are; equals in their order."""
    axis, x = eqn.params["axis"], scalars(g, x)
    at = np.arange(x.shape[axis]).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    places = np.frompyfunc(lambda i: g.const(i, "i32"), 1, 1)(np.broadcast_to(at, x.shape))
    ranks = np.frompyfunc(lambda x: _rank(g, x), 1, 1)(x)
    found = _along(g, [x, places, ranks], axis, eqn.params["k"], lambda a, b: less(g, a[2], b[2]))
    return found[:2]


def _rank(g: Graph, x: Node) -> Node:
    """An integer in the order of IEEE 754's totalOrder: −0 before 0, NaN at the end of its sign."""
    if x.dtype[0] != "f":
        return x
    width = int(x.dtype[1:])
    bits = g.op("bitcast", x, dtype=f"i{width}")
    negative = g.op("lt", bits, g.const(0, bits.dtype))
    rest = g.op("xor", bits, g.const((1 << (width - 1)) - 1, bits.dtype))
    return g.op("select", negative, rest, bits)
