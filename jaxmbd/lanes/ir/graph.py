"""Construction of a function's scalar expression graph.

Every element of every small array is a `Node`. Nodes are folded (`fold`) and shared (value
numbering) as they are built, and placed in the outermost `Region` where their operands are defined:
loop invariants move out of loops, values common to all samples out of the loop over the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.lanes.ir.nodes import (
    FLOATS,
    Body,
    Buffer,
    CallSite,
    Loop,
    Node,
    Region,
    Result,
    Routine,
)
from jaxmbd.lanes.ir.table import OPERATIONS, WRITERS, reads

SHORT = 8
"""Most iterations of an inner loop whose carries are saved in every iteration of the enclosing
loop, so that the adjoint need not run it again …"""
KEPT = 1024
"""… and most saved iterations of the inner loop in all."""


class Recall(NamedTuple):
    """Saved inner loops that an adjoint can load while it traces a loop body again.

    Attributes:
        region: the region that the body is traced into.
        index: iteration of the body.
        loops: the loops directly inside the body, in order.
    """

    region: Region
    index: Node
    loops: Iterator[Loop]


class Graph:
    """Builds nodes: folds, shares and places them.

    Attributes:
        outputs: (buffer, nodes), whole rows of results that are stored at the end.
        active: bits of `Node.deps` with respect to which a reverse sweep will differentiate the
            nodes under construction; if any, loops save the carries that their adjoint needs.
        replay: while an adjoint traces a loop body again, the region it is traced into; writes to
            buffers from outside that region are then skipped.
        recall: in the same case, the saved inner loops.
        guarded: region of the outermost guarded call that is being traced.
        open: stack of the loops under construction.
        rare: the region that `rarely` keeps nodes in; what is shared there is not shared outside.
        quotients: the divisions that the function asks for.
        sweeping: whether a reverse sweep asks, rather than the function, traced anew or not.
        built: number of operations requested, before folding and sharing.
        calls: what was made for a function or a column, by region and operands.
        constants: the nodes of constants, which routines share.
        repeated: ids of the jaxprs that may become routines; routines: those made from them, by
            jaxpr and what is known of the operands, inner ones first, each with what the tracer
            needs to call it; None for a short one.
        equation: the equation that is being traced, of which a reverse sweep may have to tell.
        traced: what was derived from an equation or a jaxpr, by its id (stored alongside to keep it
            alive).
    """

    def __init__(self) -> None:
        self.prologue = Region(None)
        self.base = Region(self.prologue)
        self.region = self.base
        self.memo: dict[Any, Node] = {}
        self.constants: dict[Any, Node] = {}
        self.repeated: frozenset[int] = frozenset()
        self.routines: dict[Any, tuple[Routine, Any, Any] | None] = {}
        self.outputs: list[tuple[Buffer, list[Node]]] = []
        self.active = 0
        self.replay: Region | None = None
        self.recall: Recall | None = None
        self.guarded: Region | None = None
        self.open: list[Loop] = []
        self.built = 0
        self.calls: dict[Any, Any] = {}
        self.traced: dict[int, tuple[Any, Any]] = {}
        self.equation: Any = None
        self.bits = 0
        self.rare: Region | None = None
        self.quotients: set[Node] = set()
        self.sweeping = False
        self._rare: dict[Any, Node] = {}

    def of(self, owner: Any, make: Callable[[], Any]) -> Any:
        """What `make` derives from an equation or a jaxpr, made once."""
        if id(owner) not in self.traced:
            self.traced[id(owner)] = (owner, make())
        return self.traced[id(owner)][1]

    # Values

    def const(self, value: Any, dtype: str) -> Node:
        """The node of a constant, shared."""
        if dtype in FLOATS:
            value = float(value) if dtype == "f64" else float(np.float32(value))
            key = (dtype, "nan") if value != value else (dtype, value, math.copysign(1.0, value))
        else:
            value = bool(value) if dtype == "i1" else int(value)
            key = (dtype, value)
        node = self.constants.get(key)
        if node is None:
            node = self.constants[key] = Node("const", (), dtype, None, True, 0, value)
        return node

    def op(self, op: str, *args: Node, dtype: str | None = None) -> Node:
        """The node ``op(*args)``, folded if possible, and shared with an equal existing node."""
        self.built += 1
        entry = OPERATIONS[op]
        if dtype is None:
            dtype = "i1" if entry.result is Result.BOOLEAN else args[-1].dtype
        if entry.fold is not None:
            folded = entry.fold(self, dtype, *args)
            if folded is not None:
                return folded
        swap = entry.commutative and args[0].number > args[1].number
        key = (op, dtype, *(args[::-1] if swap else args))
        node = self.memo.get(key) or self._rare.get(key)
        if node is None:
            known = self.memo if self.rare is None else self._rare
            node = known[key] = self._place(op, args, dtype)
        if op == "div" and not self.sweeping:
            self.quotients.add(node)
        return node

    @contextmanager
    def rarely(self, region: Region) -> Iterator[None]:
        """Keep new nodes inside a region that seldom runs, instead of moving them out of it."""
        before = self.rare, self._rare
        region.rare = True
        self.rare, self._rare = region, dict(self._rare)
        try:
            yield
        finally:
            self.rare, self._rare = before

    @contextmanager
    def outside(self, region: Region) -> Iterator[None]:
        """Build in a region around the present one, before the loops under construction."""
        before, self.region = self.region, region
        try:
            yield
        finally:
            self.region = before

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Trace a guarded call, whose part of the region is swept by itself."""
        before = self.guarded
        self.guarded = before or self.region
        try:
            yield
        finally:
            self.guarded = before

    def _place(self, op: str, args: tuple[Node, ...], dtype: str, data: Any = None) -> Node:
        region, uniform, deps = self.rare or self.prologue, True, 0
        for a in args:
            if a.region is not None and a.region.depth > region.depth:
                region = a.region
            uniform = uniform and a.uniform
            deps |= a.deps
        node = Node(op, args, dtype, region, uniform, 0 if op == "stop" else deps, data)
        region.nodes.append(node)
        return node

    def effect(
        self, op: str, args: Sequence[Node], dtype: str, data: Any, *, uniform: bool = False
    ) -> Node:
        """A node that is not moved or shared: memory access, loops, custom derivatives."""
        deps = 0
        for a in args:
            deps |= a.deps
        node = Node(op, tuple(args), dtype, self.region, uniform, deps, data)
        self.region.nodes.append(node)
        return node

    def placeholder(self, dtype: str, deps: int) -> Node:
        """A node without a definition: a tangent that stands for an input of a linear map."""
        return Node("param", (), dtype, self.region, False, deps)

    def held(self, n: Node, deps: int) -> Node:
        """The value of a node as if it were an input: derivatives stop there."""
        alias = Node("stop", (n,), n.dtype, self.region, n.uniform, deps)
        self.region.nodes.append(alias)
        return alias

    def new_bit(self) -> int:
        """A fresh bit for `Node.deps`."""
        self.bits += 1
        return 1 << (self.bits - 1)

    def clear(self) -> None:
        """Drop all references between nodes.

        Python's garbage collector does not traverse NumPy object arrays, so reference cycles
        through nodes, loops and arrays of nodes would leak.
        """
        made, self.routines = [x for x in self.routines.values() if x is not None], {}
        for routine, _, _ in made:
            routine.graph.routines = {}
            routine.graph.clear()
        regions = [self.prologue, self.base]
        for region in regions:
            for n in region.nodes:
                if isinstance(n.data, Loop):
                    regions.append(n.data.body)
                n.args, n.data = (), None
            region.nodes.clear()
        self.memo.clear()
        self.constants.clear()
        self._rare.clear()
        self.outputs.clear()
        self.calls.clear()
        self.traced.clear()
        self.quotients.clear()

    # Routines

    def inside(self, repeated: Iterable[int]) -> Graph:
        """An empty graph for a routine that this one calls."""
        inner = Graph()
        inner.constants, inner.routines = self.constants, self.routines
        inner.repeated = frozenset(repeated)
        return inner

    def call(self, routine: Routine, args: Sequence[Node]) -> list[Node]:
        """The results of a routine, one call for equal operands."""
        key = ("call", routine, *args)
        node = self.memo.get(key) or self._rare.get(key)
        if node is None:
            region = self.rare or self.base
            for a in args:
                if a.region is not None and a.region.depth > region.depth:
                    region = a.region
            own, found = (
                Buffer("scratch", "f64", b.size, region=region)
                for b in (routine.given[0], routine.found)
            )
            given = [own] * len(routine.given)
            for a, (k, _) in zip(args, routine.places, strict=True):
                if k:
                    given[k] = a.args[0].data.found
            site = CallSite(routine, given, found)
            node = Node("call", tuple(args), "i1", region, False, 0, site)
            known = self.memo if self.rare is None else self._rare
            known[key] = node
            region.nodes.append(node)
            self.calls[node] = [
                Node("returned", (node,), n.dtype, region, False, 0, k)
                for k, n in enumerate(routine.results)
            ]
            region.nodes += self.calls[node]
        return self.calls[node]

    # Memory

    def element(self, buffer: Buffer, index: int, deps: int = 0) -> Node:
        """Element `index` of an argument, shared."""
        key = ("element", id(buffer), index)
        node = self.memo.get(key)
        if node is None:
            region = self.base if buffer.batched else self.prologue
            data = (buffer, index)
            node = Node("element", (), buffer.dtype, region, not buffer.batched, deps, data)
            self.memo[key] = node
            region.nodes.append(node)
        return node

    def entry(self, inputs: Buffer, index: Node, place: int) -> Node:
        """Element `place` of one of several arguments, shared."""
        key = ("entry", inputs, index, place)
        node = self.memo.get(key) or self._rare.get(key)
        if node is None:
            known = self.memo if self.rare is None else self._rare
            node = known[key] = self._place("entry", (index,), inputs.dtype, (inputs, place))
            node.uniform = index.uniform and not inputs.batched
        return node

    def load(self, buffer: Buffer, index: Node, offset: int = 0, deps: int = 0) -> Node:
        """Element ``index + offset`` of a buffer."""
        if buffer.kind == "const" and index.constant:
            return self.const(buffer.values[index.data + offset], buffer.dtype)
        if buffer.kind == "input" and index.constant:
            return self.element(buffer, index.data + offset, deps)
        uniform = index.uniform and not buffer.batched
        node = self.effect("load", (index,), buffer.dtype, (buffer, offset), uniform=uniform)
        node.deps |= deps
        return node

    def store(self, buffer: Buffer, index: Node, offset: int, value: Node) -> None:
        """Write one element of scratch."""
        self.effect("store", (index, value), value.dtype, (buffer, offset))

    def scratch(self, dtype: str, size: int, *, final: bool = False) -> Buffer:
        """A new scratch buffer, in use from the current region on."""
        return Buffer("scratch", dtype, size, region=self.region, final=final)

    # Loops

    def loop(
        self,
        count: int | None,
        inits: Sequence[Node],
        trace: Body,
        deps: Sequence[int] | None = None,
        *,
        until: bool = False,
        recallable: bool = True,
    ) -> list[Node]:
        """Run a body `count` times, or until no sample continues; return the final carries.

        Args:
            count: number of iterations, or the largest number; None if there is no bound.
            inits: initial carries.
            trace: traces the body.
            deps: bits that each carry depends on besides those of its initial value.
            until: whether the last carry is an i1 that says which samples continue (the body itself
                masks the others), so that the loop ends when none does.
            recallable: whether an adjoint may leave the trace out and load the results.
        """
        if self.recall is not None and self.recall.region is self.region:
            kept = next(self.recall.loops)
            if kept.recallable:
                return self._recalled(kept, inits, trace)
        around = self.open[-1] if self.open else None
        loop = self.open_loop(count, inits, trace, deps)
        given = list(loop.params)
        if until:
            loop.going = len(inits) - 1
        if self.active and count is not None:
            self._save(loop, around)
            if until:
                self.carry(loop, self.const(0, "i64"), uniform=True)
        loop.outs, writes = trace(loop.counter, given)
        if len(loop.params) > len(given):
            loop.outs.append(self.op("add", loop.counter, self.const(1, "i64")))
        loop.written = tuple(dict.fromkeys(buffer for buffer, *_ in writes))
        for buffer, index, offset, value in writes:
            if self.replay is None or _depth(buffer.region) >= self.replay.depth:
                self.store(buffer, index, offset, value)
        results = self.close_loop(loop, loop.outs)
        if len(results) > len(given):
            loop.reached = results.pop()
        if around is not None and around.body is self.region:
            around.inner.append(loop)
            loop.recallable = recallable and loop.origin is not None and not writes
            if loop.recallable and around.count is not None:
                for r in results:
                    buffer = Buffer("scratch", r.dtype, around.count, region=around.body.parent)
                    self.store(buffer, around.counter, 0, r)
                    loop.results.append(buffer)
        return results

    def _save(self, loop: Loop, around: Loop | None) -> None:
        """Save the carries at the start of each iteration.

        A short loop has room for all iterations of the enclosing loop (`SHORT`, `KEPT`).
        """
        assert loop.count is not None
        size, index, region = loop.count, loop.counter, loop.body.parent
        beside = around is not None and around.count is not None and around.body is region
        short = beside and loop.going is None and loop.count <= SHORT
        if short and loop.count * around.count <= KEPT:  # pyright: ignore
            assert around is not None and around.count is not None
            size, region = loop.count * around.count, around.body.parent
            loop.origin = self.op("mul", around.counter, self.const(loop.count, "i64"))
            index = self.op("add", loop.origin, index)
        for p in loop.params:
            buffer = Buffer("scratch", p.dtype, size, region=region)
            self.store(buffer, index, 0, p)
            loop.saves.append(buffer)

    def _recalled(self, kept: Loop, inits: Sequence[Node], trace: Body) -> list[Node]:
        """The results of a loop that ran in the forward pass, loaded instead of run again."""
        assert self.recall is not None and kept.count is not None
        origin = self.op("mul", self.recall.index, self.const(kept.count, "i64"))
        loop = Loop(kept.body, kept.counter, kept.params, list(inits), kept.count, trace)
        loop.saves, loop.origin, loop.outs = kept.saves, origin, kept.outs
        node = self.effect("recall", (), "i1", loop)
        results = []
        for k, (buffer, out) in enumerate(zip(kept.results, kept.outs, strict=True)):
            deps = out.deps | kept.params[k].deps
            value = self.load(buffer, self.recall.index)
            result = Node("recalled", (value,), out.dtype, self.region, False, deps, (node, k))
            self.region.nodes.append(result)
            results.append(result)
        return results

    def open_loop(
        self,
        count: int | None,
        inits: Sequence[Node],
        trace: Body,
        deps: Sequence[int] | None = None,
        *,
        times: Node | None = None,
    ) -> Loop:
        """Begin a loop; its body is the current region until `close_loop`."""
        self.region = Region(self.region)
        counter = Node("param", (), "i64", self.region, True, 0)
        loop = Loop(self.region, counter, [], [], count, trace, times=times, equation=self.equation)
        for k, x in enumerate(inits):
            self.carry(loop, x, deps[k] if deps else 0)
        self.open.append(loop)
        return loop

    def carry(self, loop: Loop, init: Node, deps: int = 0, *, uniform: bool = False) -> Node:
        """Add a carry; returns its value in the body."""
        loop.inits.append(init)
        param = Node("param", (), init.dtype, loop.body, uniform, init.deps | deps)
        loop.params.append(param)
        return param

    def close_loop(self, loop: Loop, outs: Sequence[Node]) -> list[Node]:
        """End a loop; returns its results."""
        closed = self.open.pop()
        assert closed is loop and loop.body.parent is not None
        loop.outs = list(outs)
        self.region = loop.body.parent
        node = self.effect("loop", tuple(loop.inits), "i1", loop)
        results = []
        for k, (out, p) in enumerate(zip(loop.outs, loop.params, strict=True)):
            assert out.dtype == p.dtype, (out, p)
            deps = out.deps | p.deps
            result = Node("result", (node,), out.dtype, self.region, p.uniform, deps, k)
            node.deps |= result.deps
            self.region.nodes.append(result)
            results.append(result)
        return results


CHECKS: list[Callable[[Graph], None]] = []
"""Called with each graph once it is built: tests verify all of them."""


def built(write: Callable[[Graph], None]) -> Graph:
    """The graph that `write` builds; cleared if `write` raises."""
    g = Graph()
    try:
        write(g)
        for check in CHECKS:
            check(g)
    except BaseException:
        g.clear()
        raise
    return g


def _depth(region: Region | None) -> int:
    return -1 if region is None else region.depth


def live_nodes(graph: Graph) -> set[Node]:
    """The nodes that the outputs depend on, through loop carries and memory too."""
    writers: dict[Buffer, list[Node]] = {}
    loop_of: dict[Node, tuple[Node, int]] = {}
    owner: dict[Region, Node] = {}
    for region in (graph.prologue, graph.base):
        _index(region, writers, loop_of, owner)
    live: set[Node] = set()
    read: set[Buffer] = {b for b in writers if b.kind == "output"}
    todo = [n for _, row in graph.outputs for n in row]
    todo += [n for b in read for n in writers[b]]
    while todo:
        n = todo.pop()
        if n.constant or n in live:
            continue
        live.add(n)
        if n.region in owner:  # a live node keeps its loop alive
            todo.append(owner[n.region])
        if n.op == "result":
            todo += [n.args[0], n.args[0].data.params[n.data]]
        elif n.op == "param":
            node, k = loop_of.get(n, (None, -1))
            if node is not None and k >= 0:
                todo += [node.data.outs[k], node.data.inits[k]]
        elif n.op == "loop":
            if n.data.going is not None:
                todo.append(n.data.params[n.data.going])
            if n.data.times is not None:
                todo.append(n.data.times)
        else:
            todo.extend(reads(n))
            if n.op == "load" and n.data[0] not in read:
                read.add(n.data[0])
                todo.extend(writers.get(n.data[0], ()))
    return live


def _index(
    region: Region,
    writers: dict[Buffer, list[Node]],
    loop_of: dict[Node, tuple[Node, int]],
    owner: dict[Region, Node],
) -> None:
    for n in region.nodes:
        if n.op in WRITERS:
            writers.setdefault(n.data[0], []).append(n)
        elif n.op == "loop":
            owner[n.data.body] = n
            loop_of[n.data.counter] = (n, -1)
            loop_of.update({p: (n, k) for k, p in enumerate(n.data.params)})
            _index(n.data.body, writers, loop_of, owner)
