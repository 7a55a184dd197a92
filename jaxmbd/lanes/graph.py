"""The scalar expression graph that a function becomes before it is compiled.

Every element of every small array is a `Node`. Nodes are folded and shared as they are built
(`fold`), and stand in the outermost `Region` in which their arguments are known: what a loop does
not change is computed before it, what the batch does not vary before the batch.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

FLOATS = ("f64", "f32")
DTYPES = {
    "float64": "f64", "float32": "f32", "bool": "i1",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
NUMPY = {short: np.dtype(name) for name, short in DTYPES.items()}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
WRITERS = ("store", "accumulate", "clear", "row")
COMMUTATIVE = frozenset(("add", "mul", "and", "or", "xor", "eq", "ne"))


class Unsupported(NotImplementedError):
    """A function holds something that lanes cannot compile; the message names it and its place."""


_WARNED: set[str] = set()


def warn_once(text: str, instead: str) -> None:
    """Say, once, what cannot be compiled and what is used instead."""
    if text not in _WARNED:
        _WARNED.add(text)
        warnings.warn(f"{text}; {instead} is used instead", stacklevel=4)


class Region:
    """A straight piece of program: nodes in order, inside its parent.

    Depth 0 runs once a call, depth 1 once a vector of samples, deeper ones are loop bodies.
    """

    __slots__ = ("depth", "nodes", "parent")

    def __init__(self, parent: Region | None):
        self.parent = parent
        self.depth = 0 if parent is None else parent.depth + 1
        self.nodes: list[Node] = []


class Node:
    """One scalar value (or effect) of every sample.

    Attributes:
        op: what it does; `args` are its arguments, `data` what is not a node.
        dtype: "f64", "i32", "i1", …
        region: where it is computed; None for constants.
        uniform: whether it is the same in all samples.
        deps: bits of the differentiated inputs that it depends on.
        number: its place in the order of making.
    """

    __slots__ = ("args", "data", "deps", "dtype", "number", "op", "region", "uniform")
    _numbers = count()

    def __init__(
        self,
        op: str,
        args: tuple[Node, ...],
        dtype: str,
        region: Region | None,
        uniform: bool,
        deps: int,
        data: Any = None,
    ):
        self.op, self.args, self.dtype, self.region = op, args, dtype, region
        self.uniform, self.deps, self.data = uniform, deps, data
        self.number = next(Node._numbers)

    @property
    def constant(self) -> bool:
        """Whether its value, `data`, is known."""
        return self.op == "const"

    def __repr__(self) -> str:
        return f"{self.op}:{self.dtype}" + (f"={self.data}" if self.constant else "")


@dataclass(eq=False)
class Buffer:
    """Memory: an argument's rows, a result's rows, the kernel's own scratch, or a constant table.

    Attributes:
        kind: "input", "output", "scratch" or "const".
        size: elements of one sample.
        position: which argument or result of the kernel it is.
        values: a constant table's numbers.
        batched: whether it holds one row for each sample.
        region: where scratch begins to be used.
    """

    kind: str
    dtype: str
    size: int
    position: int = -1
    values: Any = None
    batched: bool = True
    region: Region | None = None


Write = tuple[Buffer, Node, int, Node]
"""Element ``index + offset`` of a buffer becomes a value: (buffer, index, offset, value)."""
Body = Callable[[Node, list[Node]], tuple[list[Node], list[Write]]]
"""(index, carries) → carries and what is written."""


@dataclass(eq=False)
class Loop:
    """A loop: `outs` of one pass are the `params` of the next.

    Attributes:
        count: number of passes; None for a while loop, whose last carry says which samples go on.
        saves: for reverse mode, where each carry is kept at the start of each pass.
        trace: builds the body anew.
    """

    body: Region
    counter: Node
    params: list[Node]
    inits: list[Node]
    count: int | None
    trace: Body
    outs: list[Node] = field(default_factory=list)
    saves: list[Buffer] = field(default_factory=list)


class Graph:
    """Builds nodes: folds, shares and places them.

    Attributes:
        outputs: (buffer, nodes) to be written at the end, each the whole row of a result.
        differentiable: whether loops keep what their adjoint needs.
        replay: while a loop's body is traced again for its adjoint, the region it goes to: what
            it wrote outside is not written again.
        built: operations asked for, before folding and sharing.
    """

    def __init__(self) -> None:
        from jaxmbd.lanes.fold import FOLDS

        self.prologue = Region(None)
        self.base = Region(self.prologue)
        self.region = self.base
        self.memo: dict[Any, Node] = {}
        self.folds = FOLDS
        self.outputs: list[tuple[Buffer, list[Node]]] = []
        self.differentiable = False
        self.replay: Region | None = None
        self.built = 0
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
        if dtype is None:
            dtype = "i1" if op in COMPARISONS else args[-1].dtype
        fold = self.folds.get(op)
        if fold is not None:
            folded = fold(self, dtype, *args)
            if folded is not None:
                return folded
        if op in COMMUTATIVE and args[0].number > args[1].number:
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

    def placeholder(self, dtype: str, deps: int = 0, *, uniform: bool = False) -> Node:
        """A value that is given from outside the region: a loop's counter, a tangent."""
        return Node("param", (), dtype, self.region, uniform, deps)

    def new_bit(self) -> int:
        """A fresh bit for `Node.deps`."""
        self.bits += 1
        return 1 << (self.bits - 1)

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
        loop = self.open_loop(count, inits, trace, deps)
        if self.differentiable and count is not None:
            loop.saves = [self.saved(p, loop) for p in loop.params]
        outs, writes = trace(loop.counter, loop.params)
        for buffer, index, offset, value in writes:
            if self.replay is None or _depth(buffer.region) >= self.replay.depth:
                self.store(buffer, index, offset, value)
        return self.close_loop(loop, outs)

    def open_loop(
        self,
        count: int | None,
        inits: Sequence[Node],
        trace: Body,
        deps: Sequence[int] | None = None,
    ) -> Loop:
        """Begin a loop: its body is the current region until `close_loop`."""
        self.region = Region(self.region)
        counter = self.placeholder("i64", uniform=True)
        loop = Loop(self.region, counter, [], [], count, trace)
        for k, x in enumerate(inits):
            self.carry(loop, x, deps[k] if deps else 0)
        return loop

    def carry(self, loop: Loop, init: Node, deps: int = 0) -> Node:
        """One more carry; its value in the body."""
        loop.inits.append(init)
        param = Node("param", (), init.dtype, loop.body, False, init.deps | deps)
        loop.params.append(param)
        return param

    def saved(self, param: Node, loop: Loop) -> Buffer:
        """Keep a carry at the start of each pass."""
        assert loop.count is not None
        buffer = Buffer("scratch", param.dtype, loop.count, region=loop.body.parent)
        self.store(buffer, loop.counter, 0, param)
        return buffer

    def close_loop(self, loop: Loop, outs: Sequence[Node]) -> list[Node]:
        """End a loop; its results."""
        assert loop.body.parent is not None
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


def _depth(region: Region | None) -> int:
    return -1 if region is None else region.depth


def live_nodes(graph: Graph) -> set[Node]:
    """The nodes that the outputs need."""
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
        if n.region in owner:  # a loop is kept for what is in it
            todo.append(owner[n.region])
        if n.op == "result":
            todo += [n.args[0], n.args[0].data.params[n.data]]
        elif n.op == "param":
            node, k = loop_of.get(n, (None, -1))
            if node is not None and k >= 0:
                todo += [node.data.outs[k], node.data.inits[k]]
        elif n.op == "loop":
            if n.data.count is None:
                todo.append(n.data.params[-1])
        else:
            todo.extend(n.args[:1] if n.op == "custom" else n.args)
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
