"""Building the scalar expression graph that a function becomes before it is compiled.

Every element of every small array is a `Node`. Nodes are folded and shared as they are built
(`fold`), and stand in the outermost `Region` in which their arguments are known: what a loop does
not change is computed before it, what the batch does not vary before the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.lanes.ir.nodes import (
    FLOATS,
    Body,
    Buffer,
    Loop,
    Node,
    Region,
)
from jaxmbd.lanes.ir.operation import Result
from jaxmbd.lanes.ir.table import OPERATIONS

SHORT = 8
"""Loops of at most so many passes are kept in all passes of the loop around them …"""
KEPT = 1024
"""… as long as that is at most so many; the adjoint then need not run them again."""


class Recall(NamedTuple):
    """While an adjoint traces a body again: what the loops right inside it have kept.

    Attributes:
        region: where the body goes.
        index: which pass of the body it is.
        loops: the loops, in order.
    """

    region: Region
    index: Node
    loops: Iterator[Loop]


class Graph:
    """Builds nodes: folds, shares and places them.

    Attributes:
        outputs: (buffer, nodes) to be written at the end, each the whole row of a result.
        differentiable: whether loops keep what their adjoint needs.
        replay: while a loop's body is traced again for its adjoint, the region it goes to: what
            it wrote outside is not written again.
        recall: in the same case, what its short inner loops have kept.
        open: the loops that are being built.
        built: operations asked for, before folding and sharing.
        derivatives: the rules of calls with their own derivative, each traced once (by identity of
            the call's equation, which is kept beside it).
    """

    def __init__(self) -> None:
        self.prologue = Region(None)
        self.base = Region(self.prologue)
        self.region = self.base
        self.memo: dict[Any, Node] = {}
        self.outputs: list[tuple[Buffer, list[Node]]] = []
        self.differentiable = False
        self.replay: Region | None = None
        self.recall: Recall | None = None
        self.open: list[Loop] = []
        self.built = 0
        self.derivatives: dict[int, tuple[Any, Any]] = {}
        self.bits = 0

    # Values

    def const(self, value: Any, dtype: str) -> Node:
        """The constant of that value."""
        if dtype in FLOATS:
            value = float(value) if dtype == "f64" else float(np.float32(value))
            key = (dtype, "nan") if value != value else (dtype, value, math.copysign(1.0, value))
        else:
            value = bool(value) if dtype == "i1" else int(value)
            key = (dtype, value)
        node = self.memo.get(key)
        if node is None:
            node = self.memo[key] = Node("const", (), dtype, None, True, 0, value)
        return node

    def op(self, op: str, *args: Node, dtype: str | None = None) -> Node:
        """The node ``op(*args)``, folded where it can be and shared where it exists."""
        self.built += 1
        entry = OPERATIONS[op]
        if dtype is None:
            dtype = "i1" if entry.result is Result.BOOLEAN else args[-1].dtype
        if entry.fold is not None:
            folded = entry.fold(self, dtype, *args)
            if folded is not None:
                return folded
        if entry.commutative and args[0].number > args[1].number:
            args = (args[1], args[0])
        key = (op, dtype, *args)
        node = self.memo.get(key)
        if node is None:
            node = self.memo[key] = self._place(op, args, dtype)
        return node

    def _place(self, op: str, args: tuple[Node, ...], dtype: str, data: Any = None) -> Node:
        region, uniform, deps = self.prologue, True, 0
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
        """A node that must stay where it is, in order: memory, loops, custom derivatives."""
        deps = 0
        for a in args:
            deps |= a.deps
        node = Node(op, tuple(args), dtype, self.region, uniform, deps, data)
        self.region.nodes.append(node)
        return node

    def placeholder(self, dtype: str, deps: int) -> Node:
        """A value that is given from outside: a tangent."""
        return Node("param", (), dtype, self.region, False, deps)

    def all_bits(self) -> int:
        """All bits given so far: what may depend on anything."""
        return (1 << self.bits) - 1

    def new_bit(self) -> int:
        """A fresh bit for `Node.deps`."""
        self.bits += 1
        return 1 << (self.bits - 1)

    def clear(self) -> None:
        """Take the graph apart.

        Arrays of nodes are numpy's, which Python's garbage collector does not look into: circles
        of nodes, loops and arrays would stay for ever.
        """
        regions = [self.prologue, self.base]
        for region in regions:
            for n in region.nodes:
                if isinstance(n.data, Loop):
                    regions.append(n.data.body)
                n.args, n.data = (), None
            region.nodes.clear()
        self.memo.clear()
        self.outputs.clear()
        self.derivatives.clear()

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

    def scratch(self, dtype: str, size: int) -> Buffer:
        """Memory of the kernel's own."""
        return Buffer("scratch", dtype, size, region=self.region)

    # Loops

    def loop(
        self,
        count: int | None,
        inits: Sequence[Node],
        trace: Body,
        deps: Sequence[int] | None = None,
    ) -> list[Node]:
        """Run a body `count` times, or until no sample goes on; give the last carries.

        Args:
            count: number of passes; None for a while loop, whose last carry is an i1 that says
                which samples go on (the body masks the others itself).
            inits: first carries.
            trace: the body.
            deps: what each carry depends on, where that is more than its first value does.
        """
        if self.recall is not None and self.recall.region is self.region:
            kept = next(self.recall.loops)
            if kept.recallable:
                return self._recalled(kept, inits, trace)
        around = self.open[-1] if self.open else None
        loop = self.open_loop(count, inits, trace, deps)
        if self.differentiable and count is not None:
            self._save(loop, around)
        outs, writes = trace(loop.counter, loop.params)
        for buffer, index, offset, value in writes:
            if self.replay is None or _depth(buffer.region) >= self.replay.depth:
                self.store(buffer, index, offset, value)
        results = self.close_loop(loop, outs)
        if around is not None and around.body is self.region:
            around.inner.append(loop)
            loop.recallable = loop.origin is not None and not writes
            if loop.recallable and around.count is not None:
                for r in results:
                    buffer = Buffer("scratch", r.dtype, around.count, region=around.body.parent)
                    self.store(buffer, around.counter, 0, r)
                    loop.results.append(buffer)
        return results

    def _save(self, loop: Loop, around: Loop | None) -> None:
        """Keep the carries at the start of each pass, for a short loop in all passes around it."""
        assert loop.count is not None
        size, index, region = loop.count, loop.counter, loop.body.parent
        short = around is not None and around.count is not None and around.body is region
        if short and loop.count <= SHORT and loop.count * around.count <= KEPT:  # pyright: ignore
            assert around is not None and around.count is not None
            size, region = loop.count * around.count, around.body.parent
            loop.origin = self.op("mul", around.counter, self.const(loop.count, "i64"))
            index = self.op("add", loop.origin, index)
        for p in loop.params:
            buffer = Buffer("scratch", p.dtype, size, region=region)
            self.store(buffer, index, 0, p)
            loop.saves.append(buffer)

    def _recalled(self, kept: Loop, inits: Sequence[Node], trace: Body) -> list[Node]:
        """A loop that ran before, seen again: its results are loaded."""
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
    ) -> Loop:
        """Begin a loop: its body is the current region until `close_loop`."""
        self.region = Region(self.region)
        counter = Node("param", (), "i64", self.region, True, 0)
        loop = Loop(self.region, counter, [], [], count, trace)
        for k, x in enumerate(inits):
            self.carry(loop, x, deps[k] if deps else 0)
        self.open.append(loop)
        return loop

    def carry(self, loop: Loop, init: Node, deps: int = 0) -> Node:
        """One more carry; its value in the body."""
        loop.inits.append(init)
        param = Node("param", (), init.dtype, loop.body, False, init.deps | deps)
        loop.params.append(param)
        return param

    def close_loop(self, loop: Loop, outs: Sequence[Node]) -> list[Node]:
        """End a loop; its results."""
        closed = self.open.pop()
        assert closed is loop and loop.body.parent is not None
        loop.outs = list(outs)
        self.region = loop.body.parent
        node = self.effect("loop", tuple(loop.inits), "i1", loop)
        results = []
        for k, (out, p) in enumerate(zip(loop.outs, loop.params, strict=True)):
            assert out.dtype == p.dtype, (out, p)
            result = Node("result", (node,), out.dtype, self.region, False, out.deps | p.deps, k)
            node.deps |= result.deps
            self.region.nodes.append(result)
            results.append(result)
        return results


def built(write: Callable[[Graph], None]) -> Graph:
    """The graph that a function writes; taken apart where it raises."""
    g = Graph()
    try:
        write(g)
    except BaseException:
        g.clear()
        raise
    return g


def _depth(region: Region | None) -> int:
    return -1 if region is None else region.depth
