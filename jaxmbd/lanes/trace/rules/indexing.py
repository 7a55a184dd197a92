"""Slices, gathers and scatters, at constant or computed indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import NUMPY, Node, Unsupported
from jaxmbd.lanes.trace.arrays import SMALL, Stacked, Value, clamp, empty, in_memory, scalars
from jaxmbd.lanes.trace.interpreter import rule
from jaxmbd.lanes.trace.rules.arithmetic import result_dtype

LONG = 24
"""A computed index into an axis longer than this is a load; otherwise a chain of selects."""


def pick(g: Graph, x: Value, index: Sequence[Node]) -> Node:
    """``x[index]`` for indices in bounds."""
    if isinstance(x, Stacked):
        row = x.at(g, g.op("convert", index[0], dtype="i64"))
        return pick(g, row, index[1:])
    if not index:
        return x.item() if isinstance(x, np.ndarray) else x
    first, rest = index[0], index[1:]
    if first.constant:
        return pick(g, x[first.data], rest)
    if x.shape[0] > LONG:
        return pick(g, in_memory(g, x), index)
    result = pick(g, x[-1], rest)
    for k in range(x.shape[0] - 2, -1, -1):
        here = g.op("le", first, g.const(k, first.dtype))
        result = g.op("select", here, pick(g, x[k], rest), result)
    return result


def _indices(value: Value, g: Graph) -> np.ndarray:
    return scalars(g, value)


def _clamped(
    g: Graph, start: Sequence[Node], sizes: Sequence[int], shape: Sequence[int]
) -> list[Node]:
    return [clamp(g, s, 0, n - k) for s, k, n in zip(start, sizes, shape, strict=True)]


@rule("dynamic_slice")
def _dynamic_slice(g: Graph, eqn: Any, x: Value, *start: Value) -> Value:
    sizes = eqn.params["slice_sizes"]
    first = _clamped(g, [scalars(g, s).item() for s in start], sizes, x.shape)
    if isinstance(x, Stacked) and sizes[0] == x.shape[0]:
        inner = first[1:]

        def cut(row: np.ndarray) -> np.ndarray:
            return _window(g, row, inner, sizes[1:])

        return x.map(cut, sizes, x.dtype)
    return _window(g, x, first, sizes)


def _window(g: Graph, x: Value, first: Sequence[Node], sizes: Sequence[int]) -> np.ndarray:
    if not isinstance(x, Stacked) and all(f.constant for f in first):
        return x[tuple(slice(f.data, f.data + n) for f, n in zip(first, sizes, strict=True))]
    if int(np.prod(sizes)) > SMALL:
        raise Unsupported(f"a computed slice of {tuple(sizes)} elements")
    out = empty(sizes)
    for offset in product(*(range(n) for n in sizes)):
        out[offset] = pick(g, x, [_plus(g, f, k) for f, k in zip(first, offset, strict=True)])
    return out


def _plus(g: Graph, x: Node, k: int) -> Node:
    return g.op("add", x, g.const(k, x.dtype))


@rule("dynamic_update_slice")
def _dynamic_update_slice(g: Graph, eqn: Any, x: Value, update: Value, *start: Value) -> Value:
    x, update = scalars(g, x), scalars(g, update)
    first = _clamped(g, [scalars(g, s).item() for s in start], update.shape, x.shape)
    out = np.array(x, object)
    for offset in np.ndindex(*update.shape):
        index = [_plus(g, f, k) for f, k in zip(first, offset, strict=True)]
        _place(g, out, index, lambda old, new=update[offset]: new)
    return out


def _place(g: Graph, out: Any, index: Sequence[Node], combine: Callable[[Node], Node]) -> None:
    """``out[index] = combine(out[index])``; an index out of bounds changes nothing."""
    ranges = []
    for i, n in zip(index, out.shape, strict=True):
        inside = [i.data] if i.constant and 0 <= i.data < n else range(0 if i.constant else n)
        ranges.append(inside)
    for place in product(*ranges):
        here = None
        for i, k in zip(index, place, strict=True):
            if not i.constant:
                match = g.op("eq", i, g.const(k, i.dtype))
                here = match if here is None else g.op("and", here, match)
        new = combine(out[place])
        out[place] = new if here is None else g.op("select", here, new, out[place])


def _mode(eqn: Any) -> str:
    name = str(eqn.params["mode"]).upper()
    return "clip" if "CLIP" in name else "promise" if "PROMISE" in name else "drop"


@rule("gather")
def _gather(g: Graph, eqn: Any, x: Value, indices: Value) -> Value:
    d, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    index = _indices(indices, g)
    shape = tuple(eqn.outvars[0].aval.shape)
    if int(np.prod(shape)) > 4 * SMALL:
        raise Unsupported(f"a gather of {shape} elements")
    batch = [k for k in range(len(shape)) if k not in d.offset_dims]
    window = [
        k for k in range(len(sizes)) if k not in (*d.collapsed_slice_dims, *d.operand_batching_dims)
    ]
    dtype, mode = result_dtype(eqn), _mode(eqn)
    fill = _fill(g, eqn, dtype)
    out = empty(shape)
    for place in np.ndindex(*shape):
        where = tuple(place[k] for k in batch)
        start, valid = _start(g, d, index, where, sizes, x.shape, mode)
        for k, o in zip(window, d.offset_dims, strict=True):
            start[k] = _plus(g, start[k], place[o])
        node = pick(g, x, start)
        out[place] = node if valid is None else g.op("select", valid, node, fill)
    return out


def _signed(g: Graph, index: Node, last: int, mode: str) -> Node:
    """An index as i64; one of 2⁶³ or more that is clipped is the last, not a negative one."""
    if mode == "clip" and index.dtype == "u64":
        index = clamp(g, index, 0, last)
    return g.op("convert", index, dtype="i64")


def _fill(g: Graph, eqn: Any, dtype: str) -> Node:
    value = eqn.params.get("fill_value")
    if value is None:
        if dtype[0] == "f":
            value = float("nan")
        elif dtype == "i1":
            value = True
        else:
            value = np.iinfo(NUMPY[dtype]).min if dtype[0] == "i" else np.iinfo(NUMPY[dtype]).max
    return g.const(value, dtype)


def _start(
    g: Graph,
    d: Any,
    index: np.ndarray,
    where: tuple[int, ...],
    sizes: Sequence[int],
    shape: Sequence[int],
    mode: str,
) -> tuple[list[Node], Node | None]:
    """Start of a gathered slice, clamped to bounds, and whether it was in bounds (None: yes)."""
    start = [g.const(0, "i64")] * len(shape)
    valid: Node | None = None
    for k, dim in enumerate(d.start_index_map):
        last = shape[dim] - sizes[dim]
        i = _signed(g, index[(*where, k)], last, mode)
        start[dim] = clamp(g, i, 0, last)
        if mode == "drop":
            low = g.op("ge", i, g.const(0, "i64"))
            inside = g.op("and", low, g.op("le", i, g.const(last, "i64")))
            valid = inside if valid is None else g.op("and", valid, inside)
    for dim, axis in zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True):
        start[dim] = g.const(where[axis], "i64")
    if valid is not None and valid.constant and valid.data:
        valid = None
    return start, valid


_COMBINE = {
    "scatter": None, "scatter-add": "add", "scatter_add": "add", "scatter-mul": "mul",
    "scatter_mul": "mul", "scatter-min": "min", "scatter_min": "min", "scatter-max": "max",
    "scatter_max": "max", "scatter-sub": "sub", "scatter_sub": "sub",
}  # fmt: skip


@rule(*_COMBINE)
def _scatter(g: Graph, eqn: Any, x: Value, indices: Value, updates: Value) -> Value:
    d, op = eqn.params["dimension_numbers"], _COMBINE[eqn.primitive.name]
    update = eqn.params.get("update_jaxpr")
    if op is None and update is not None and update.eqns:
        raise Unsupported("a scatter that applies a function")
    out, index, updates = np.array(scalars(g, x), object), _indices(indices, g), scalars(g, updates)
    batch = [k for k in range(updates.ndim) if k not in d.update_window_dims]
    window = [
        k for k in range(out.ndim) if k not in (*d.inserted_window_dims, *d.operand_batching_dims)
    ]
    sizes = dict.fromkeys(range(out.ndim), 1)
    sizes.update({k: updates.shape[u] for k, u in zip(window, d.update_window_dims, strict=True)})
    mode = _mode(eqn)
    for place in np.ndindex(*updates.shape):
        where = tuple(place[k] for k in batch)
        target = [g.const(0, "i64")] * out.ndim
        for k, dim in enumerate(d.scatter_dims_to_operand_dims):
            last = out.shape[dim] - sizes[dim]
            i = _signed(g, index[(*where, k)], last, mode)
            target[dim] = clamp(g, i, 0, last) if mode == "clip" else i
        for dim, axis in zip(d.operand_batching_dims, d.scatter_indices_batching_dims, strict=True):
            target[dim] = g.const(where[axis], "i64")
        for k, u in zip(window, d.update_window_dims, strict=True):
            target[k] = _plus(g, target[k], place[u])
        new = updates[place]
        _place(g, out, target, lambda old, n=new: n if op is None else g.op(op, old, n))
    return out
