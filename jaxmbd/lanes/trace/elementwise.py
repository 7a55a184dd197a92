"""Elementwise functions of array values; of long arrays one row at a time, when it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Node
from jaxmbd.lanes.trace.arrays import Stacked, Value, scalars
from jaxmbd.lanes.trace.columns import in_memory


def elementwise(g: Graph, fn: Callable[..., Node], *args: Value, dtype: str | None = None) -> Value:
    """Apply a function of nodes to scalars and arrays of one shape, except for axes of length 1."""
    ufunc = _quiet(np.frompyfunc(fn, len(args), 1))
    if all(isinstance(a, np.ndarray) and a.shape == args[0].shape for a in args):
        return np.asarray(ufunc(*args), object)
    shape = np.broadcast_shapes(*(a.shape for a in args))
    args = tuple(scalars(g, a) if shape and a.shape[:1] == (1,) != shape[:1] else a for a in args)
    long = [a for a in args if isinstance(a, Stacked)]
    if not long:
        return np.asarray(ufunc(*args), object)
    args = tuple(_thin(a) if len(a.shape) == len(shape) else a for a in args)

    def row(value: Value, start: int, index: Node) -> Any:
        if not isinstance(value, Stacked) and value.ndim < len(shape):
            return value
        if isinstance(value, Stacked):
            return value.at(g, g.op("add", index, g.const(start, "i64")))
        return value[0] if value.shape[0] == 1 else _pick(g, value, start, index)

    pieces, start = [], 0
    for n in _common_lengths(long):
        pieces.append(
            (n, lambda i, s=start: np.asarray(ufunc(*(row(a, s, i) for a in args)), object))
        )
        start += n
    if dtype is None:
        dtype = long[-1].dtype
    return Stacked(shape, dtype, pieces)


def _thin(value: Value) -> Value:
    """An array whose rows are all equal, reduced to one row."""
    if isinstance(value, Stacked) or value.shape[0] < 2:
        return value
    same = (value[1:] == value[:1]).all()  # nodes compare by identity
    return value[:1] if same else value


def _pick(g: Graph, value: np.ndarray, start: int, index: Node) -> Any:
    if index.constant:
        return value[index.data + start]
    return in_memory(g, value).at(g, g.op("add", index, g.const(start, "i64")))


def _common_lengths(values: Sequence[Stacked]) -> list[int]:
    """Segment lengths of the common refinement of all values' segments."""
    ends = {0}
    for v in values:
        ends |= set(np.cumsum([n for n, _ in v.pieces]).tolist())
    ordered = sorted(ends)
    return [b - a for a, b in zip(ordered, ordered[1:], strict=False)]


def _quiet(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    """A function with NumPy's floating-point warnings off: folding may produce infinities."""

    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return ufunc(*args)

    return call
