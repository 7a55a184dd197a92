"""Array values during tracing: small ones as arrays of nodes, long ones as functions of indices.

Rows of small arrays at computed indices cost as little memory traffic as possible (`in_memory`). A
column is what all rows have at one place. One that is equal in all rows is a node; one that lies
in memory already, at regular distances, is loaded from there, as are the results of a scan that
another scan goes through; one that is computed from such columns is computed again; only other
columns are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import DTYPES, NUMPY, Buffer, Node, Region, Unsupported
from jaxmbd.lanes.trace.jaxprs import as_numbers

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
    array = np.asarray(as_numbers(array), NUMPY[short])
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
    """Columns that are stored: constants in a table, all others in scratch.

    They are stored once where they are known, outside the loops that read them, so that a reverse
    sweep adds an iteration's cotangents to those elements alone that the iteration has read.
    """
    found: dict[tuple[Node, ...], Column] = {}
    for constant in (True, False):
        some = [c for c in columns if all(n.constant for n in c) is constant]
        if not some:
            continue
        count, dtype = len(some), some[0][0].dtype
        rows = list(zip(*some, strict=True))
        home = g.region if constant else _home(g, some)
        if constant:
            values = [n.data for row in rows for n in row]
            buffer = Buffer("const", dtype, len(values), values=values, batched=False)
        else:
            with g.outside(home):
                buffer = g.scratch(dtype, count * len(rows), final=True)
                for i, row in enumerate(rows):
                    for k, n in enumerate(row):
                        g.store(buffer, g.const(i * count + k, "i64"), 0, n)
        for k, nodes in enumerate(some):
            deps = 0
            for n in nodes:
                deps |= n.deps
            found[nodes] = _slot(g, buffer, count, k, deps)
            if home is not g.region or not deps & g.active:
                # else a guard would take the cotangents of others for its own
                g.calls[in_memory, home, nodes] = found[nodes]
    return found


def _home(g: Graph, columns: Sequence[tuple[Node, ...]]) -> Region:
    """The region around the present one in which columns are known and can be stored.

    Not outside a region that seldom runs, nor where a guard is being traced or an adjoint has
    begun: their sweeps would not find the stores.
    """
    depth = g.base.depth
    for nodes in columns:
        depth = max(depth, *(n.region.depth for n in nodes if n.region is not None))
    within = g.guarded is not None and depth >= g.guarded.depth
    if within or g.rare is not None or (g.replay is not None and depth < g.replay.depth):
        return g.region
    home = g.region
    while home.depth > depth and home.parent is not None:
        home = home.parent
    return home


def _slot(g: Graph, buffer: Buffer, count: int, slot: int, deps: int) -> Column:
    return lambda index: g.load(buffer, g.op("mul", index, g.const(count, "i64")), slot, deps)


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
