"""A lanes call inside another: unrolled over its samples and differentiated on the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Unsupported
from jaxmbd.lanes.reverse import inner_pullback
from jaxmbd.lanes.tangent import tangent_flags, tangent_key, without_pullback
from jaxmbd.lanes.trace.arrays import Lifted, Value, scalars
from jaxmbd.lanes.trace.interpreter import evaluate_closed, rule


@rule("lanes")
def _lanes(g: Graph, eqn: Any, *args: Value) -> list[Value]:
    p = eqn.params
    key, count = p["key"], len(p["batched"])
    if p["pullback"] is None or g.active:
        closed = without_pullback(key, p["pullback"]).closed
        return _each(lambda *x: evaluate_closed(g, closed, x), g, p, args)

    def back(*x: Value) -> list[Value]:
        return inner_pullback(g, key.closed, x[:count], p["pullback"], x[count:])

    return _each(back, g, p, args)


@rule("lanes_tangent")
def _lanes_tangent(g: Graph, eqn: Any, *args: Value) -> list[Value]:
    p = eqn.params
    flags = tangent_flags(p["batched"], p["moving"])
    closed = tangent_key(without_pullback(p["key"], p["pullback"]), p["moving"]).closed
    return _each(lambda *x: evaluate_closed(g, closed, x), g, {**p, "batched": flags}, args)


def _each(
    fn: Callable[..., list[Value]], g: Graph, params: Any, args: Sequence[Value]
) -> list[Value]:
    """A function of one sample, unrolled over a batch."""
    flags = [*params["batched"], *[True] * (len(args) - len(params["batched"]))]
    rows = []
    for k in range(params["size"]):
        at = [_sample(g, x, k) if b else x for x, b in zip(args, flags, strict=True)]
        rows.append(fn(*at))
    return [_stacked(g, column) for column in zip(*rows, strict=True)]


def _sample(g: Graph, x: Value, k: int) -> Value:
    if isinstance(x, np.ndarray):
        return np.asarray(x[k], object)
    if isinstance(x, Lifted):
        return x.inner
    return x.at(g, g.const(k, "i64"))


def _stacked(g: Graph, column: Sequence[Value]) -> Value:
    if isinstance(column[0], np.ndarray):
        return np.stack([scalars(g, x) for x in column])
    if len(column) > 1:
        raise Unsupported("a lanes call with long results over a batch inside another")
    return Lifted(column[0])
