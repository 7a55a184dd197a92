"""Shape operations, which rearrange nodes and generate no code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.trace.arrays import (
    SMALL,
    Lifted,
    Stacked,
    Value,
    empty,
    in_memory,
    scalars,
)
from jaxmbd.lanes.trace.interpreter import rule
from jaxmbd.lanes.trace.rules.arithmetic import result_dtype

TRANSPOSED = 64 * SMALL
"""Arrays of at most this many elements are transposed: each is one load and one store."""


@rule("reshape")
def _reshape(g: Graph, eqn: Any, x: Value, *_: Value) -> Value:
    sizes, order = eqn.params["new_sizes"], eqn.params.get("dimensions")
    if order is not None:
        x = np.transpose(scalars(g, x), order)
    if isinstance(x, Lifted) and tuple(sizes) == x.inner.shape:
        return x.inner
    if isinstance(x, Stacked):
        if tuple(sizes) == (1, *x.shape):
            return Lifted(x)
        if sizes and sizes[0] == x.shape[0]:
            return x.map(lambda r: r.reshape(sizes[1:]), sizes, x.dtype)
        x = scalars(g, x)
    return x.reshape(sizes)


@rule("squeeze")
def _squeeze(g: Graph, eqn: Any, x: Value) -> Value:
    return _reshape(g, _Sizes(eqn), x)


@rule("expand_dims")
def _expand_dims(g: Graph, eqn: Any, x: Value) -> Value:
    return _reshape(g, _Sizes(eqn), x)


class _Sizes:
    """The parameters of a reshape to the shape of an equation's result."""

    def __init__(self, eqn: Any):
        self.params = {"new_sizes": tuple(eqn.outvars[0].aval.shape)}


@rule("transpose")
def _transpose(g: Graph, eqn: Any, x: Value) -> Value:
    order = eqn.params["permutation"]
    if isinstance(x, Stacked):
        if order[0] == 0:
            rest = [k - 1 for k in order[1:]]
            shape = [x.shape[k] for k in order]
            return x.map(lambda r: np.transpose(r, rest), shape, x.dtype)
        x = scalars(g, x, TRANSPOSED)
    return np.transpose(x, order)


@rule("broadcast_in_dim")
def _broadcast_in_dim(g: Graph, eqn: Any, x: Value, *_: Value) -> Value:
    shape = tuple(eqn.params["shape"])
    places = eqn.params["broadcast_dimensions"]
    if isinstance(x, Stacked):
        if shape == (1, *x.shape):
            return Lifted(x)
        if not places or places[0] != 0 or x.shape[0] != shape[0]:
            x = scalars(g, x)
        else:
            inner = [1] * (len(shape) - 1)
            for d, n in zip(places[1:], x.shape[1:], strict=True):
                inner[d - 1] = n
            return x.map(lambda r: np.broadcast_to(r.reshape(inner), shape[1:]), shape, x.dtype)
    sizes = [1] * len(shape)
    for d, n in zip(places, x.shape, strict=True):
        sizes[d] = n
    spread = x.reshape(sizes)
    if int(np.prod(shape)) > SMALL and shape and sizes[0] == 1 and shape[0] > 1:
        row = np.broadcast_to(spread[0], shape[1:])
        return Stacked(shape, result_dtype(eqn), [(shape[0], lambda index: row)])
    return np.broadcast_to(spread, shape)


@rule("concatenate")
def _concatenate(g: Graph, eqn: Any, *parts: Value) -> Value:
    axis = eqn.params["dimension"]
    if any(isinstance(p, Stacked) for p in parts):
        if axis == 0:
            pieces = []
            for p in parts:
                if isinstance(p, Stacked):
                    pieces += p.pieces
                else:
                    pieces += [(1, lambda index, r=r: np.asarray(r, object)) for r in p]
            return Stacked(eqn.outvars[0].aval.shape, result_dtype(eqn), pieces)
        if long := _by_rows(g, parts):
            shape = eqn.outvars[0].aval.shape

            def row(index: Any) -> np.ndarray:
                return np.concatenate([p.at(g, index) for p in long], axis=axis - 1)

            return Stacked(shape, result_dtype(eqn), [(shape[0], row)])
        parts = tuple(scalars(g, p) for p in parts)
    return np.concatenate(parts, axis=axis)  # pyright: ignore[reportCallIssue, reportArgumentType]


def _by_rows(g: Graph, parts: Sequence[Value]) -> list[Value]:
    """Arrays whose rows are joined one by one; none if that takes more than loading them."""
    if any(isinstance(p, Lifted) or (isinstance(p, Stacked) and len(p.pieces) > 1) for p in parts):
        return []
    return [p if isinstance(p, Stacked) else in_memory(g, p) for p in parts]


@rule("stack")
def _stack(g: Graph, eqn: Any, *parts: Value) -> Value:
    return np.stack([scalars(g, p) for p in parts], axis=eqn.params["axis"])


@rule("unstack")
def _unstack(g: Graph, eqn: Any, x: Value) -> list[Value]:
    axis = eqn.params["axis"]
    return [np.asarray(p, object) for p in np.moveaxis(scalars(g, x), axis, 0)]


@rule("tile")
def _tile(g: Graph, eqn: Any, x: Value) -> Value:
    return np.tile(scalars(g, x), eqn.params["reps"])


@rule("split")
def _split(g: Graph, eqn: Any, x: Value) -> list[Value]:
    ends = np.cumsum(eqn.params["sizes"])[:-1]
    return list(np.split(scalars(g, x), ends, axis=eqn.params["axis"]))


@rule("pad")
def _pad(g: Graph, eqn: Any, x: Value, fill: Value) -> Value:
    x, out = scalars(g, x), empty(eqn.outvars[0].aval.shape)
    out[...] = scalars(g, fill).item()
    source, target = [], []
    for n, m, (low, _, inner) in zip(x.shape, out.shape, eqn.params["padding_config"], strict=True):
        places = low + np.arange(n) * (inner + 1)
        inside = np.nonzero((places >= 0) & (places < m))[0]
        source.append(inside)
        target.append(places[inside])
    out[np.ix_(*target)] = x[np.ix_(*source)]
    return out


@rule("slice")
def _slice(g: Graph, eqn: Any, x: Value) -> Value:
    starts, limits = eqn.params["start_indices"], eqn.params["limit_indices"]
    strides = eqn.params["strides"] or (1,) * len(starts)
    cuts = tuple(slice(a, b, s) for a, b, s in zip(starts, limits, strides, strict=True))
    if not isinstance(x, Stacked):
        return x[cuts]
    shape = tuple(eqn.outvars[0].aval.shape)
    if shape[0] == 1:
        row = x.at(g, g.const(starts[0], "i64"))
        return np.asarray(row[cuts[1:]], object)[None]
    stride, start = strides[0], starts[0]

    def cut(index: Any) -> np.ndarray:
        place = g.op("mul", index, g.const(stride, "i64"))
        row = x.at(g, g.op("add", place, g.const(start, "i64")))
        return np.asarray(row[cuts[1:]], object)

    return Stacked(shape, x.dtype, [(shape[0], cut)])


@rule("rev")
def _rev(g: Graph, eqn: Any, x: Value) -> Value:
    dimensions = eqn.params["dimensions"]
    if not isinstance(x, Stacked):
        return np.flip(x, dimensions)
    inner = tuple(d - 1 for d in dimensions if d)

    def row(index: Any) -> np.ndarray:
        if 0 in dimensions:
            index = g.op("sub", g.const(x.shape[0] - 1, "i64"), index)
        return np.flip(x.at(g, index), inner)

    return Stacked(x.shape, x.dtype, [(x.shape[0], row)])
