"""Array values during tracing: small ones as arrays of nodes, long ones as functions of indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import DTYPES, NUMPY, Buffer, Node, Region, Unsupported

SMALL = 1024
"""Arrays with more elements stay in memory and are accessed one leading index at a time."""


@cache
def short_dtype(dtype: Any) -> str:
    """The graph's name of a dtype.

    Raises:
        Unsupported: the graph has no such dtype (complex numbers, keys).
    """
    name = str(dtype)
    if name not in DTYPES:
        raise Unsupported(f"arrays of dtype {name}")
    return DTYPES[name]


class Stacked:
    """A long array, represented by functions of its leading index.

    Attributes:
        shape: its full shape.
        dtype: the graph's name of the element type.
        pieces: (length, row) of consecutive segments along the leading axis; ``row(index)`` gives
            the nodes at an index node, counted from the start of the segment.
    """

    __slots__ = ("_rows", "dtype", "pieces", "shape")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: str,
        pieces: Sequence[tuple[int, Callable[[Node], np.ndarray]]],
    ):
        self.shape, self.dtype, self.pieces = tuple(shape), dtype, list(pieces)
        self._rows: dict[tuple[Node, Region], np.ndarray] = {}

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))

    def at(self, g: Graph, index: Node) -> Any:
        """The row at an i64 index, which must be in bounds; built once per region."""
        key = (index, g.region)
        if key not in self._rows:
            self._rows[key] = self._row(g, index)
        return self._rows[key]

    def _row(self, g: Graph, index: Node) -> np.ndarray:
        if len(self.pieces) == 1:
            return np.asarray(self.pieces[0][1](index), object)
        result, start = None, 0
        for length, row in self.pieces:
            if index.constant:
                if start <= index.data < start + length:
                    return np.asarray(row(g.const(index.data - start, "i64")), object)
            else:
                local = g.op("sub", index, g.const(start, "i64"))
                local = clamp(g, local, 0, length - 1)
                here = np.asarray(row(local), object)
                if result is None:
                    result = here
                else:
                    after = g.op("ge", index, g.const(start, "i64"))
                    result = np.asarray(_choose(g, after)(here, result), object)
            start += length
        assert result is not None
        return result

    def map(
        self, fn: Callable[[np.ndarray], np.ndarray], shape: Sequence[int], dtype: str
    ) -> Stacked:
        """Apply `fn` to each row; `shape` is the full new shape."""

        def changed(row: Callable[[Node], np.ndarray]) -> Callable[[Node], np.ndarray]:
            return lambda index: fn(np.asarray(row(index), object))

        return Stacked(shape, dtype, [(n, changed(row)) for n, row in self.pieces])


class Lifted(Stacked):
    """A long array with a leading axis of length one, which is removed again later."""

    def __init__(self, inner: Stacked):
        self.inner = inner
        super().__init__((1, *inner.shape), inner.dtype, [])

    def at(self, g: Graph, index: Node) -> Any:
        """The whole inner array."""
        return scalars(g, self.inner)


Value = Any
"""A NumPy object array of nodes, or `Stacked`; Any, as NumPy's types cannot express the former."""


def empty(shape: Any) -> Any:
    """An uninitialised array of nodes."""
    return np.empty(shape, object)


def _choose(g: Graph, condition: Node) -> Callable[..., Any]:
    return np.frompyfunc(lambda a, b: g.op("select", condition, a, b), 2, 1)


def clamp(g: Graph, index: Node, low: int, high: int) -> Node:
    """An integer clamped between two constants."""
    if index.constant:
        return g.const(min(max(index.data, low), high), index.dtype)
    lo, hi = g.const(low, index.dtype), g.const(high, index.dtype)
    index = g.op("select", g.op("lt", index, lo), lo, index)
    return g.op("select", g.op("gt", index, hi), hi, index)


def constants(g: Graph, array: Any, dtype: Any = None) -> Value:
    """The value of a constant array, converted to `dtype` if that is given.

    A jaxpr may hold wider constants than it declares: NumPy's float64 where x64 is off.
    """
    short = short_dtype(array.dtype if dtype is None else dtype)
    array = np.asarray(array, NUMPY[short])
    if array.size > SMALL and array.ndim:
        return _table(g, array, short)
    nodes = empty(array.shape)
    nodes.reshape(-1)[:] = [g.const(x, short) for x in array.reshape(-1).tolist()]
    return nodes


def _table(g: Graph, array: np.ndarray, dtype: str) -> Stacked:
    """A long constant array; elements that are equal in all its rows are not loaded."""
    rows = array.reshape(len(array), -1)
    columns = [rows[:, j].tobytes() for j in range(rows.shape[1])]
    fixed = [c == x.tobytes() * len(rows) for c, x in zip(columns, rows[0], strict=True)]
    kept = list({c: j for j, c in enumerate(columns) if not fixed[j]}.values())
    slots = {columns[j]: slot for slot, j in enumerate(kept)}
    values = rows[:, kept].reshape(-1).tolist()
    buffer = Buffer("const", dtype, len(values), values=values, batched=False)

    def row(index: Node) -> np.ndarray:
        start = g.op("mul", index, g.const(len(kept), "i64"))
        loaded = [g.load(buffer, start, slot) for slot in range(len(kept))]
        out = empty(array.shape[1:])
        out.reshape(-1)[:] = [
            g.const(x.item(), dtype) if same else loaded[slots[c]]
            for c, same, x in zip(columns, fixed, rows[0], strict=True)
        ]
        return out

    return Stacked(array.shape, dtype, [(len(array), row)])


def from_buffer(g: Graph, buffer: Buffer, shape: Sequence[int], deps: int = 0) -> Value:
    """A buffer's elements as an array: all loaded if it is small, else row by row on use."""
    if buffer.size <= SMALL or not shape:
        nodes = empty(shape)
        index = [g.load(buffer, g.const(i, "i64"), 0, deps) for i in range(buffer.size)]
        nodes.reshape(-1)[:] = index
        return nodes
    return rows_of(g, buffer, shape, deps)


def rows_of(g: Graph, buffer: Buffer, shape: Sequence[int], deps: int = 0) -> Stacked:
    """A buffer's elements as a long array, loaded one row at a time."""
    rest = tuple(shape[1:])
    width = int(np.prod(rest))

    def row(index: Node) -> np.ndarray:
        start = g.op("mul", index, g.const(width, "i64"))
        nodes = empty(rest)
        nodes.reshape(-1)[:] = [g.load(buffer, start, i, deps) for i in range(width)]
        return nodes

    return Stacked(shape, buffer.dtype, [(shape[0], row)])


def scalars(g: Graph, value: Value, limit: int = 4 * SMALL) -> Any:
    """All elements of a value, as an array of nodes.

    Raises:
        Unsupported: there are too many to be scalars.
    """
    if isinstance(value, np.ndarray):
        return value
    if value.size > limit:
        raise Unsupported(f"this operation on an array of shape {value.shape}")
    rows = [value.at(g, g.const(i, "i64")) for i in range(value.shape[0])]
    return np.stack(rows) if rows else empty(value.shape)


def shaped(nodes: Sequence[Node], shapes: Sequence[tuple[int, ...]]) -> list[Value]:
    """A flat list of nodes as arrays of the given shapes."""
    out, k = [], 0
    for shape in shapes:
        x = empty(shape)
        x.reshape(-1)[:] = nodes[k : k + x.size]
        out.append(x)
        k += x.size
    return out


def bits(g: Graph, x: Value) -> int:
    """The dependency bits of an array."""
    if isinstance(x, Stacked):
        return g.active if x.dtype[0] == "f" else 0
    total = 0
    for n in x.reshape(-1):
        total |= n.deps
    return total
