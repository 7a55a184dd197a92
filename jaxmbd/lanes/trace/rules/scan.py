"""Scans: carries as loop-carried scalars, stacked results in memory as far as they must be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.extend import core

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Body, Buffer, Node, Write
from jaxmbd.lanes.trace.arrays import (
    Stacked,
    Value,
    bits,
    empty,
    in_memory,
    scalars,
    shaped,
    short_dtype,
)
from jaxmbd.lanes.trace.interpreter import evaluate_closed, rule
from jaxmbd.lanes.trace.jaxprs import BOUNDED, is_choice, scan_counts
from jaxmbd.lanes.trace.rules.control import any_of, taken

UNROLLED = 1
"""Scans of at most this many iterations are unrolled."""
SEGMENTED = 64
"""In reverse mode, longer scans become two nested loops, so that memory grows with √length."""
HELD = 256
"""Stacked results of at most this many elements are arrays of nodes, others loaded on use."""


class Source(NamedTuple):
    """Where an element of a stacked result is found, for all iterations.

    Attributes:
        node: a constant or loop invariant that it equals, or None.
        given: (k, place) if it is what stacked input k has at that place.
        stored: (buffer, slot) if it is stored.
    """

    node: Node | None = None
    given: tuple[int, int] | None = None
    stored: tuple[_Stack, int] | None = None


class _Stack:
    """A buffer of stacked results, and which results (leaf, place) an iteration stores there."""

    def __init__(self, buffer: Buffer):
        self.buffer = buffer
        self.kept: list[tuple[int, int]] = []


@rule("scan")
def _scan(g: Graph, eqn: Any, *args: Value) -> list[Value]:
    return Scan(g, eqn, args, *scan_counts(eqn.params)).run()


class Scan:
    """One scan.

    Attributes:
        given: stacked inputs; `xs`: the same, with rows at computed indices.
        sources: for each element of each stacked result, where it is found; set by the first trace
            of the body.
        stacks: the buffers of stored results.
        flags: of a scan of `lanes.bounded_while`, how many carries, the first ones, say whether the
            sample goes on; the scan ends as soon as none does. Of other scans 0.
    """

    def __init__(self, g: Graph, eqn: Any, args: Sequence[Value], consts: int, carry: int):
        p = eqn.params
        self.g, self.body, self.length, self.reverse = g, p["jaxpr"], p["length"], p["reverse"]
        self.consts = list(args[:consts])
        init = [scalars(g, x) for x in args[consts : consts + carry]]
        self.given = list(args[consts + carry :])
        self.xs: list[Value] = []
        self.sources: list[list[Source]] = []
        self.stacks: list[_Stack] = []
        self.carry_shapes = [x.shape for x in init]
        self.init = [node for x in init for node in x.reshape(-1)]
        dtypes = [short_dtype(v.aval.dtype) for v in self.body.jaxpr.outvars[:carry]]
        types = [t for t, x in zip(dtypes, init, strict=True) for _ in range(x.size)]
        self.init = [g.op("convert", x, dtype=t) for x, t in zip(self.init, types, strict=True)]
        self.ncarry = carry
        self.out_avals = [v.aval for v in eqn.outvars[carry:]]
        alone = init and not self.out_avals and not self.given
        bounded = alone and any(is_choice(e, BOUNDED) for e in self.body.jaxpr.eqns)
        self.flags = init[0].size if bounded and types[0] == "i1" else 0
        if self.flags:
            begins = any_of(g, self.init[: self.flags])
            self.consts = [taken(g, [begins], x) for x in self.consts]

    def run(self) -> list[Value]:
        """Its results: final carries, then stacked outputs."""
        if self.length <= UNROLLED:
            return self._unrolled()
        g = self.g
        self.region = g.region
        self.xs = [self._indexable(x) for x in self.given]
        deps, stacked = self._dependencies() if g.active else (None, [0] * len(self.out_avals))
        if g.active and self.length > SEGMENTED:
            carries = self._segmented(deps)
        else:
            carries = self._loop(self.length, self.init, None, deps)
        stacks = [self._stacked(k, deps) for k, deps in enumerate(stacked)]
        return self._arrays(carries) + stacks

    def _loop(
        self,
        count: int,
        carries: list[Node],
        start: Node | None,
        deps: list[int] | None,
    ) -> list[Node]:
        # The trace of the body says where stacked results are, so it cannot be left out.
        whole = not any(0 not in a.shape for a in self.out_avals)
        return self._run(count, carries, self._trace(start), deps, whole)

    def _run(
        self, count: int, carries: list[Node], body: Body, deps: list[int] | None, whole: bool
    ) -> list[Node]:
        """A loop, which ends early if the first carry says which samples go on."""
        g = self.g
        if not self.flags:
            return g.loop(count, carries, body, deps, recallable=whole)

        def flagged(carries: list[Node]) -> list[Node]:
            return [*carries, any_of(g, carries[: self.flags])]

        def step(index: Node, carries: list[Node]) -> tuple[list[Node], list[Write]]:
            new, writes = body(index, carries[:-1])
            return flagged(new), writes

        deps = None if deps is None else [*deps, 0]
        return g.loop(count, flagged(carries), step, deps, until=True)[:-1]

    def _segmented(self, deps: list[int] | None) -> list[Node]:
        g = self.g
        inner = _segment(self.length)
        outer, rest = divmod(self.length, inner)

        def segment(index: Node, carries: list[Node]) -> tuple[list[Node], list[Write]]:
            start = g.op("mul", index, g.const(inner, "i64"))
            return self._loop(inner, carries, start, deps), []

        carries = self._run(outer, self.init, segment, deps, True)
        if rest:
            start = g.const(outer * inner, "i64")
            carries = self._loop(rest, carries, start, deps)
        return carries

    def _trace(self, start: Node | None) -> Any:
        g = self.g

        def body(index: Node, carries: list[Node]) -> tuple[list[Node], list[Write]]:
            if start is not None:
                index = g.op("add", index, start)
            if self.reverse:
                index = g.op("sub", g.const(self.length - 1, "i64"), index)
            rows = [_at(g, x, index) for x in self.xs]
            out = self._step(self._arrays(carries), rows)
            new = [n for x in out[: self.ncarry] for n in scalars(g, x).reshape(-1)]
            ys = [list(scalars(g, y).reshape(-1)) for y in out[self.ncarry :]]
            if not self.sources:
                self._arrange(rows, ys)
            writes: list[Write] = []
            for stack in self.stacks:
                place = g.op("mul", index, g.const(len(stack.kept), "i64"))
                values = [ys[k][j] for k, j in stack.kept]
                writes += [(stack.buffer, place, slot, n) for slot, n in enumerate(values)]
            return new, writes

        return body

    def _step(self, carry: list[Value], xs: list[Value]) -> list[Value]:
        return evaluate_closed(self.g, self.body, [*self.consts, *carry, *xs])

    def _arrays(self, nodes: Sequence[Node]) -> list[Value]:
        return shaped(nodes, self.carry_shapes)

    def _indexable(self, x: Value) -> Value:
        if isinstance(x, Stacked) or x.size == 0:
            return x
        return in_memory(self.g, x, shared=True)

    def _arrange(self, rows: list[Value], ys: list[list[Node]]) -> None:
        """Find out which elements of the stacked results must be stored, and where all are."""
        known: dict[Node, Source] = {}
        for k, x in enumerate(rows):
            for j, n in enumerate(scalars(self.g, x).reshape(-1)):
                if n.op == "load" or isinstance(self.given[k], np.ndarray):
                    known.setdefault(n, Source(given=(k, j)))
        for k, nodes in enumerate(ys):
            stack, found = None, []
            for j, n in enumerate(nodes):
                if n.region is None or n.region.depth <= self.region.depth:
                    found.append(Source(node=n))
                    continue
                if n not in known:
                    if stack is None:
                        buffer = self.g.scratch(n.dtype, 0, final=True)
                        buffer.region = self.region
                        stack = _Stack(buffer)
                        self.stacks.append(stack)
                    known[n] = Source(stored=(stack, len(stack.kept)))
                    stack.kept.append((k, j))
                    stack.buffer.size += self.length
                found.append(known[n])
            self.sources.append(found)

    def _stacked(self, k: int, deps: int) -> Value:
        """Stacked result k."""
        shape = self.out_avals[k].shape
        if 0 in shape:
            return empty(shape)
        dtype = short_dtype(self.out_avals[k].dtype)
        if dtype[0] != "f":
            deps = 0

        def row(index: Node) -> np.ndarray:
            sources = self.sources[k]
            found = {s: self._element(s, index, deps) for s in dict.fromkeys(sources)}
            nodes = empty(shape[1:])
            nodes.reshape(-1)[:] = [found[s] for s in sources]
            return nodes

        stack = Stacked(shape, dtype, [(self.length, row)])
        return scalars(self.g, stack) if stack.size <= HELD else stack

    def _element(self, source: Source, index: Node, deps: int) -> Node:
        """An element of a stacked result at an index."""
        if source.node is not None:
            return source.node
        if source.given is not None:
            k, j = source.given
            x = self.given[k] if index.constant else self.xs[k]
            return _at(self.g, x, index).reshape(-1)[j]
        assert source.stored is not None
        stack, slot = source.stored
        place = self.g.op("mul", index, self.g.const(len(stack.kept), "i64"))
        return self.g.load(stack.buffer, place, slot, deps)

    def _unrolled(self) -> list[Value]:
        g, carry, stacks = self.g, self._arrays(self.init), []
        order = range(self.length)
        for i in reversed(order) if self.reverse else order:
            xs = [_at(g, x, g.const(i, "i64")) for x in self.given]
            out = self._step(carry, xs)
            carry = out[: self.ncarry]
            stacks.append([scalars(g, y) for y in out[self.ncarry :]])
        if self.reverse:
            stacks.reverse()
        ys = []
        for k, aval in enumerate(self.out_avals):
            rows = [s[k] for s in stacks]
            ys.append(np.stack(rows) if rows else empty(aval.shape))
        return [*carry, *ys]

    def _dependencies(self) -> tuple[list[int], list[int]]:
        """Dependency bits of each carry and stacked result, by fixed-point iteration."""
        known = [bits(self.g, x) for x in self.consts]
        stacked = [bits(self.g, x) for x in self.given]
        state = [bits(self.g, x) for x in self._arrays(self.init)]
        while True:
            out = flow(self.body.jaxpr, [*known, *state, *stacked])
            new = [a | b for a, b in zip(state, out, strict=False)]
            if new == state:
                break
            state = new
        sizes = [int(np.prod(s)) for s in self.carry_shapes]
        carries = [b for b, n in zip(state, sizes, strict=True) for _ in range(n)]
        return carries, out[self.ncarry :]


def _segment(length: int) -> int:
    """Iterations of the inner loop: about √length, and a divisor of it if there is one nearby."""
    root = math.isqrt(length - 1) + 1
    near = [k for k in range(root // 2, 2 * root) if length % k == 0]
    return min(near, key=lambda k: abs(k - root)) if near else root


def flow(jaxpr: Any, bits: Sequence[int]) -> list[int]:
    """Dependency bits of each result from those of the inputs, per array."""
    env: dict[Any, int] = dict(zip(jaxpr.invars, bits, strict=True))

    def read(v: Any) -> int:
        return 0 if isinstance(v, core.Literal) else env.get(v, 0)

    for eqn in jaxpr.eqns:
        total = 0
        for v in eqn.invars:
            total |= read(v)
        for v in eqn.outvars:
            env[v] = total if str(v.aval.dtype).startswith("float") else 0
    return [read(v) for v in jaxpr.outvars]


def _at(g: Graph, x: Value, index: Node) -> Value:
    if isinstance(x, Stacked):
        return x.at(g, index)
    if x.size == 0:  # any index will do, and it need not be a constant
        return empty(x.shape[1:])
    return np.asarray(x[index.data], object)
