"""Random keys and numbers: those of `jax.random` with its default generator, to the bit.

The generator is Threefry-2×32 with 20 rounds (Salmon, Moraes, Dror & Shaw, "Parallel random
numbers: as easy as 1, 2, 3", SC11, 2011). A key, which has two words of 32 bits, is one number of
64 bits in the graph: so arrays of keys have their own shape, and every operation that only moves
numbers works for them. What JAX makes of the generator (bits, splitting, folding in, seeding) is
JAX's own code, traced where it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Node
from jaxmbd.lanes.trace.arrays import Value, constants, elementwise, empty, scalars
from jaxmbd.lanes.trace.interpreter import evaluate_closed, rule
from jaxmbd.lanes.trace.jaxprs import THREEFRY
from jaxmbd.lanes.trace.rules.arithmetic import result_dtype

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def threefry(g: Graph, k0: Node, k1: Node, x0: Node, x1: Node) -> Node:
    """The two words that a key (k0, k1) makes of two words, as one number of 64 bits."""

    def rotated(x: Node, by: int) -> Node:
        left, right = (g.const(n, "u32") for n in (by, 32 - by))
        return g.op("or", g.op("shl", x, left), g.op("lshr", x, right))

    last = g.op("xor", g.op("xor", k0, k1), g.const(PARITY, "u32"))
    keys = (k0, k1, last)
    x0, x1 = g.op("add", x0, k0), g.op("add", x1, k1)
    for group in range(5):
        for by in ROTATIONS[group % 2]:
            x0 = g.op("add", x0, x1)
            x1 = g.op("xor", x0, rotated(x1, by))
        x0 = g.op("add", x0, keys[(group + 1) % 3])
        count = g.op("add", keys[(group + 2) % 3], g.const(group + 1, "u32"))
        x1 = g.op("add", x1, count)
    return packed(g, x0, x1)


def packed(g: Graph, first: Node, second: Node) -> Node:
    """Two words of 32 bits as one of 64."""
    high, low = (g.op("convert", x, dtype="u64") for x in (first, second))
    return g.op("or", g.op("shl", high, g.const(32, "u64")), low)


def _first(g: Graph, x: Node) -> Node:
    return g.op("convert", g.op("lshr", x, g.const(32, "u64")), dtype="u32")


def _second(g: Graph, x: Node) -> Node:
    return g.op("convert", x, dtype="u32")


def words(g: Graph, key: Node) -> np.ndarray:
    """A key's two words (2,), as JAX's functions of raw keys take them."""
    return np.array([_first(g, key), _second(g, key)], object)


def _map(g: Graph, keys: Value, fn: Any, shape: tuple[int, ...]) -> np.ndarray:
    """An array of a function's results (of `shape`) for each key."""
    keys = scalars(g, keys)
    out = empty((*keys.shape, *shape))
    for place in np.ndindex(*keys.shape):
        out[(*place, ...)] = fn(place, keys[place])
    return out


def _as_keys(g: Graph, x: Value) -> np.ndarray:
    x = scalars(g, x)
    out = empty(x.shape[:-1])
    for place in np.ndindex(*out.shape):
        out[place] = packed(g, *x[place])
    return out


def _of_key(g: Graph, fn: Callable[[Any], Any], key: Node) -> Value:
    """What one of JAX's functions makes of a raw key."""
    raw = jax.ShapeDtypeStruct((2,), np.uint32)
    return evaluate_closed(g, jax.make_jaxpr(fn)(raw), [words(g, key)])[0]


@rule("random_wrap")
def _wrap(g: Graph, eqn: Any, data: Value) -> Value:
    result_dtype(eqn)  # there is none for the keys of other generators
    return _as_keys(g, data)


@rule("random_unwrap")
def _unwrap(g: Graph, eqn: Any, keys: Value) -> Value:
    return _map(g, keys, lambda _, key: words(g, key), (2,))


@rule("random_bits")
def _bits(g: Graph, eqn: Any, keys: Value) -> Value:
    width, shape = eqn.params["bit_width"], tuple(eqn.params["shape"])

    def bits(key: Node) -> Value:
        return _of_key(g, lambda k: THREEFRY.random_bits(k, width, shape), key)

    if keys.shape == ():  # those of one key may be a long array
        return bits(scalars(g, keys)[()])
    return _map(g, keys, lambda _, key: scalars(g, bits(key)), shape)


@rule("random_split")
def _split(g: Graph, eqn: Any, keys: Value) -> Value:
    shape = tuple(eqn.params["shape"])

    def split(_: Any, key: Node) -> np.ndarray:
        return _as_keys(g, _of_key(g, lambda k: THREEFRY.split(k, shape), key))

    return _map(g, keys, split, shape)


@rule("random_fold_in")
def _fold_in(g: Graph, eqn: Any, keys: Value, numbers: Value) -> Value:
    closed = jax.make_jaxpr(THREEFRY.fold_in)(
        *(jax.ShapeDtypeStruct(s, np.uint32) for s in ((2,), ()))
    )
    keys, numbers = np.broadcast_arrays(scalars(g, keys), scalars(g, numbers))

    def folded(place: Any, key: Node) -> np.ndarray:
        number = g.op("convert", numbers[place], dtype="u32")
        found = evaluate_closed(g, closed, [words(g, key), np.array(number, object)])[0]
        return _as_keys(g, found)

    return _map(g, keys, folded, ())


@rule("random_seed")
def _seed(g: Graph, eqn: Any, seeds: Value) -> Value:
    result_dtype(eqn)
    closed = jax.make_jaxpr(THREEFRY.seed)(jax.ShapeDtypeStruct((), eqn.invars[0].aval.dtype))

    def seeded(_: Any, seed: Node) -> np.ndarray:
        return _as_keys(g, evaluate_closed(g, closed, [np.array(seed, object)])[0])

    return _map(g, seeds, seeded, ())


@rule("threefry2x32")
def _threefry(g: Graph, eqn: Any, *args: Value) -> list[Value]:
    def both(*nodes: Node) -> Node:
        return threefry(g, *nodes)

    whole = elementwise(g, both, *args, dtype="u64")
    return [
        elementwise(g, lambda x, part=part: part(g, x), whole, dtype="u32")
        for part in (_first, _second)
    ]


@rule("iota_2x32_shape")
def _counts(g: Graph, eqn: Any) -> list[Value]:
    """The high and low words of the places of an array's elements, in order."""
    shape = tuple(eqn.params["shape"])
    places = np.arange(int(np.prod(shape)), dtype=np.uint64).reshape(shape)
    return [constants(g, (x & 0xFFFFFFFF).astype(np.uint32)) for x in (places >> 32, places)]
