"""Contractions, reductions and cumulative operations over axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Node
from jaxmbd.lanes.trace.arrays import Stacked, Value, elementwise, empty, scalars
from jaxmbd.lanes.trace.interpreter import rule
from jaxmbd.lanes.trace.rules.arithmetic import result_dtype
from jaxmbd.lanes.trace.rules.derivatives import by_its_rule


@rule("dot_general")
def _dot_general(g: Graph, eqn: Any, a: Value, b: Value) -> Value:
    (ca, cb), (ba, bb) = eqn.params["dimension_numbers"]
    a, b = scalars(g, a), scalars(g, b)
    dtype = result_dtype(eqn)
    if a.size and a.flat[0].dtype != dtype or b.size and b.flat[0].dtype != dtype:
        convert = np.frompyfunc(lambda x: g.op("convert", x, dtype=dtype), 1, 1)
        a, b = np.asarray(convert(a), object), np.asarray(convert(b), object)
    fa = [k for k in range(a.ndim) if k not in (*ca, *ba)]
    fb = [k for k in range(b.ndim) if k not in (*cb, *bb)]
    batch = [a.shape[k] for k in ba]
    rows, cols = [a.shape[k] for k in fa], [b.shape[k] for k in fb]
    inner = int(np.prod([a.shape[k] for k in ca]))
    count = int(np.prod(batch)), int(np.prod(rows)), int(np.prod(cols))
    left = np.transpose(a, [*ba, *fa, *ca]).reshape(count[0], count[1], inner)
    right = np.transpose(b, [*bb, *fb, *cb]).reshape(count[0], count[2], inner)
    out = empty(count)
    for n, i, j in np.ndindex(*count):
        out[n, i, j] = dot(g, left[n, i], right[n, j], dtype)
    return out.reshape(batch + rows + cols)


def dot(g: Graph, a: Any, b: Any, dtype: str) -> Node:
    """Σ aᵢ bᵢ over nodes; products of a literal zero are passed over, but those with ∞ or NaN."""
    total = zero = g.const(0, dtype)
    for x, y in zip(a, b, strict=True):
        if x is zero and _harmless(y) or y is zero and _harmless(x):
            continue
        product = g.op("mul", x, y)
        total = product if total is zero else g.op("add", total, product)
    return total


def _harmless(n: Node) -> bool:
    """Whether its product with zero adds nothing to a sum."""
    return not n.constant or n.data - n.data == 0


@rule("clamp")
def _clamp(g: Graph, eqn: Any, low: Value, x: Value, high: Value) -> Value:
    def inside(low: Node, x: Node, high: Node) -> Node:
        return g.op("min", g.op("max", x, low), high)

    out = elementwise(g, inside, low, x, high, dtype=result_dtype(eqn))
    if isinstance(out, Stacked) or out.size == 0 or out.flat[0].dtype[0] != "f":
        return out
    # At a bound JAX gives x no cotangent; max and min would give it half.
    (out,) = by_its_rule(g, eqn, [low, x, high], [out])
    return out


_REDUCTIONS: dict[str, tuple[str, Any]] = {
    "reduce_sum": ("add", 0), "reduce_prod": ("mul", 1), "reduce_and": ("and", -1),
    "reduce_or": ("or", 0), "reduce_xor": ("xor", 0), "reduce_max": ("max", None),
    "reduce_min": ("min", None),
}  # fmt: skip


def _extreme(dtype: str, largest: bool) -> Any:
    """The identity element of max (if `largest`) or min: the least or greatest value of a type."""
    if dtype[0] == "f":
        return float("-inf") if largest else float("inf")
    bits = int(dtype[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if dtype[0] == "u" or bits == 1:
        low, high = 0, (1 << bits) - 1
    return low if largest else high


@rule(*_REDUCTIONS)
def _reduce(g: Graph, eqn: Any, x: Value) -> Value:
    op, start = _REDUCTIONS[eqn.primitive.name]
    dtype = result_dtype(eqn)
    if start is None:
        start = _extreme(dtype, op == "max")
    first = g.const(start, dtype)
    axes = tuple(eqn.params["axes"])
    if isinstance(x, Stacked):
        inner = tuple(k - 1 for k in axes if k)
        shape = tuple(n for k, n in enumerate(x.shape) if k not in axes)
        if 0 not in axes:
            return x.map(lambda r: _over(g, op, first, r, inner), shape, dtype)
        return _accumulate_rows(g, op, first, x, inner)
    out = _over(g, op, first, x, axes)
    if op in ("max", "min") and dtype[0] == "f" and x.size > 2 * out.size:
        # JAX shares a cotangent equally among equal extremes; pairs would by their order.
        (out,) = by_its_rule(g, eqn, [x], [out])
    return out


def _over(g: Graph, op: str, first: Node, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    kept = [k for k in range(x.ndim) if k not in axes]
    terms = math.prod(x.shape[k] for k in axes)
    moved = np.transpose(x, kept + list(axes)).reshape([x.shape[k] for k in kept] + [terms])
    out = empty(moved.shape[:-1])
    for place in np.ndindex(*out.shape):
        total = None
        for node in moved[place]:
            total = node if total is None else g.op(op, total, node, dtype=first.dtype)
        out[place] = first if total is None else total
    return out


def _accumulate_rows(
    g: Graph, op: str, first: Node, x: Stacked, inner: tuple[int, ...]
) -> np.ndarray:
    """Reduce a long array over its leading axis (and others) by a loop."""
    shape = tuple(n for k, n in enumerate(x.shape[1:]) if k not in inner)
    totals = np.full(shape, first, object)

    def body(index: Node, carries: list[Node]) -> Any:
        row = _over(g, op, first, x.at(g, index), inner)
        pairs = zip(carries, row.reshape(-1), strict=True)
        return [g.op(op, total, node, dtype=first.dtype) for total, node in pairs], []

    # The dependencies of the totals are known only once the body is traced.
    deps = [g.active] * totals.size
    totals.reshape(-1)[:] = g.loop(x.shape[0], list(totals.reshape(-1)), body, deps)
    return totals


@rule("argmax", "argmin")
def _argmax(g: Graph, eqn: Any, x: Value) -> Value:
    (axis,), dtype = eqn.params["axes"], result_dtype(eqn)
    moved = np.moveaxis(scalars(g, x), axis, -1)
    better = "gt" if eqn.primitive.name == "argmax" else "lt"
    out = empty(moved.shape[:-1])
    for place in np.ndindex(*out.shape):
        best, where = moved[place][0], g.const(0, dtype)
        for k, node in enumerate(moved[place][1:], 1):
            wins = g.op(better, node, best)
            if node.dtype[0] == "f":  # the first NaN wins
                nan = g.op("and", g.op("ne", node, node), g.op("eq", best, best))
                wins = g.op("or", wins, nan)
            best = g.op("select", wins, node, best)
            where = g.op("select", wins, g.const(k, dtype), where)
        out[place] = where
    return out


@rule("cumsum", "cumprod", "cummax", "cummin")
def _cumulative(g: Graph, eqn: Any, x: Value) -> Value:
    op = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}
    combine: Callable[[Node, Node], Node] = lambda a, b: g.op(op[eqn.primitive.name], a, b)  # noqa: E731
    moved = np.moveaxis(scalars(g, x), eqn.params["axis"], 0)
    if eqn.params["reverse"]:
        moved = moved[::-1]
    out = empty(moved.shape)
    total: Any = None
    for k in range(moved.shape[0]):
        total = moved[k] if k == 0 else np.frompyfunc(combine, 2, 1)(total, moved[k])
        out[k] = total
    if eqn.params["reverse"]:
        out = out[::-1]
    return np.moveaxis(out, 0, eqn.params["axis"])
