"""Arrays while a jaxpr is traced to scalars: small ones of nodes, long ones by their index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import DTYPES, NUMPY, Buffer, Node, Region, Unsupported

SMALL = 1024
"""Arrays of more elements stay in memory, and are taken one leading index at a time."""


def short_dtype(dtype: Any) -> str:
    """The graph's name of a dtype.

    Raises:
        Unsupported: it has none (complex numbers, keys).
    """
    name = str(dtype)
    if name not in DTYPES:
        raise Unsupported(f"arrays of dtype {name}")
    return DTYPES[name]


class Stacked:
    """A long array, known as functions of its leading index.

    Attributes:
        shape: its whole shape.
        dtype: short dtype of the elements.
        pieces: (length, row) along the leading axis; row(index node) gives the nodes there.
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
        """The row at an index (i64) that lies inside; found once in each region."""
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
        """Each row changed by `fn`; `shape` is the whole new shape."""

        def changed(row: Callable[[Node], np.ndarray]) -> Callable[[Node], np.ndarray]:
            return lambda index: fn(np.asarray(row(index), object))

        return Stacked(shape, dtype, [(n, changed(row)) for n, row in self.pieces])


class Lifted(Stacked):
    """A long array under an axis of one entry, which is to be taken off again."""

    def __init__(self, inner: Stacked):
        self.inner = inner
        super().__init__((1, *inner.shape), inner.dtype, [])

    def at(self, g: Graph, index: Node) -> Any:
        """The whole of what lies under the axis."""
        return scalars(g, self.inner)


Value = Any
"""An array of nodes (of dtype object, whose entries numpy's types cannot tell), or `Stacked`."""


def empty(shape: Any) -> Any:
    """An array for nodes."""
    return np.empty(shape, object)


def _choose(g: Graph, condition: Node) -> Callable[..., Any]:
    return np.frompyfunc(lambda a, b: g.op("select", condition, a, b), 2, 1)


def clamp(g: Graph, index: Node, low: int, high: int) -> Node:
    """An integer held between two constants."""
    if index.constant:
        return g.const(min(max(index.data, low), high), index.dtype)
    lo, hi = g.const(low, index.dtype), g.const(high, index.dtype)
    index = g.op("select", g.op("lt", index, lo), lo, index)
    return g.op("select", g.op("gt", index, hi), hi, index)


def constants(g: Graph, array: Any, dtype: Any = None) -> Value:
    """The value of a constant array, of `dtype` where that is given.

    A jaxpr may hold wider numbers than it declares: NumPy's float64 where x64 is off.
    """
    short = short_dtype(array.dtype if dtype is None else dtype)
    array = np.asarray(array, NUMPY[short])
    if array.size > SMALL and array.ndim:
        flat = array.reshape(-1)
        table = Buffer("const", short, array.size, values=flat.tolist(), batched=False)
        return from_buffer(g, table, array.shape)
    nodes = empty(array.shape)
    nodes.reshape(-1)[:] = [g.const(x, short) for x in array.reshape(-1).tolist()]
    return nodes


def from_buffer(g: Graph, buffer: Buffer, shape: Sequence[int], deps: int = 0) -> Value:
    """A buffer's elements as an array: loaded at once where it is small."""
    if buffer.size <= SMALL or not shape:
        nodes = empty(shape)
        index = [g.load(buffer, g.const(i, "i64"), 0, deps) for i in range(buffer.size)]
        nodes.reshape(-1)[:] = index
        return nodes
    return rows_of(g, buffer, shape, deps)


def rows_of(g: Graph, buffer: Buffer, shape: Sequence[int], deps: int = 0) -> Stacked:
    """A buffer's elements, loaded a row at a time."""
    rest = tuple(shape[1:])
    width = int(np.prod(rest))

    def row(index: Node) -> np.ndarray:
        start = g.op("mul", index, g.const(width, "i64"))
        nodes = empty(rest)
        nodes.reshape(-1)[:] = [g.load(buffer, start, i, deps) for i in range(width)]
        return nodes

    return Stacked(shape, buffer.dtype, [(shape[0], row)])


def scalars(g: Graph, value: Value, limit: int = 4 * SMALL) -> Any:
    """The elements of a value, all of them.

    Raises:
        Unsupported: there are too many to hold one by one.
    """
    if isinstance(value, np.ndarray):
        return value
    if value.size > limit:
        raise Unsupported(f"this operation on an array of shape {value.shape}")
    rows = [value.at(g, g.const(i, "i64")) for i in range(value.shape[0])]
    return np.stack(rows) if rows else empty(value.shape)


def elementwise(g: Graph, fn: Callable[..., Node], *args: Value, dtype: str | None = None) -> Value:
    """Apply a function of nodes to arrays of one shape (or scalars)."""
    ufunc = _quiet(np.frompyfunc(fn, len(args), 1))
    long = [a for a in args if isinstance(a, Stacked)]
    if not long:
        return np.asarray(ufunc(*args), object)
    shape = long[0].shape
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
    """An array whose rows are all the same, as one row."""
    if isinstance(value, Stacked) or value.shape[0] < 2:
        return value
    same = (value[1:] == value[:1]).all()  # nodes are equal where they are one
    return value[:1] if same else value


def _pick(g: Graph, value: np.ndarray, start: int, index: Node) -> Any:
    if index.constant:
        return value[index.data + start]
    index = g.op("add", index, g.const(start, "i64"))
    return in_memory(g, value).at(g, index)


def in_memory(g: Graph, x: np.ndarray) -> Stacked:
    """A small array as one in memory, so that a computed index is one load."""
    flat = x.reshape(-1)
    dtype = flat[0].dtype
    if all(n.constant for n in flat):
        values = [n.data for n in flat]
        table = Buffer("const", dtype, flat.size, values=values, batched=False)
        return rows_of(g, table, x.shape)
    buffer = g.scratch(dtype, flat.size)
    deps = 0
    for k, node in enumerate(flat):
        g.store(buffer, g.const(k, "i64"), 0, node)
        deps |= node.deps
    return rows_of(g, buffer, x.shape, deps)


def _common_lengths(values: Sequence[Stacked]) -> list[int]:
    """Lengths of the pieces that all values' pieces are cut into."""
    ends = {0}
    for v in values:
        ends |= set(np.cumsum([n for n, _ in v.pieces]).tolist())
    ordered = sorted(ends)
    return [b - a for a, b in zip(ordered, ordered[1:], strict=False)]


def _quiet(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose folding of constants may meet infinities without a word."""

    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return ufunc(*args)

    return call
