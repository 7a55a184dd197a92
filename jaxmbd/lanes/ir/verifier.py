"""Checks a graph: every node is well-formed, and known wherever it is read.

What is checked: arity and types by the table of operations; that nodes, loops and memory are used
inside the regions they belong to, and after they are known; carries of loops; places in memory.
It takes about a fifth of the time that tracing takes, so it is off unless `enabled` is set.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.liveness import live_nodes
from jaxmbd.lanes.ir.nodes import DTYPES, FLOATS, Buffer, Loop, Node, Region
from jaxmbd.lanes.ir.operation import Kind, Result
from jaxmbd.lanes.ir.table import OPERATIONS, WRITERS, reads

enabled = False
"""Whether every kernel's graph is verified once it is made."""
_SHORTS = frozenset(DTYPES.values())
_KINDS = {"load": ("input", "const", "scratch"), "row": ("output",)}


class Broken(AssertionError):
    """A graph breaks a rule: an error of lanes itself. The message names the node."""


def verify(graph: Graph) -> None:
    """Check a whole graph.

    Raises:
        Broken: it breaks a rule.
    """
    _Verifier(graph).run()


class _Verifier:
    """One check.

    Attributes:
        place: of each node in its region; of a region, its loop's node.
        given: carries and counters of loops, by the region in which they are known.
        written: buffers that something writes to.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.place: dict[Node, int] = {}
        self.owner: dict[Region, Node] = {}
        self.given: dict[Node, Region] = {}
        self.written: set[Buffer] = set()

    def run(self) -> None:
        g = self.graph
        self._require(g.base.parent is g.prologue, "the base lies in the prologue")
        for region in (g.prologue, g.base):
            self._collect(region)
        for n in self.place:
            self._well_formed(n)
        self.live = live_nodes(g)
        for n in self.live:
            self._placed(n)
        for n in self.place:
            if n in self.live:
                self._known(n)
        self._results()

    def _require(
        self, truth: bool, rule: str, n: Node | None = None, about: Node | None = None
    ) -> None:
        if not truth:
            what = "the graph" if n is None else f"{n}, of {list(n.args)}"
            which = "" if about is None else f" (here {about})"
            raise Broken(f"broken graph: {what}: not so: {rule}{which}")

    # Structure

    def _collect(self, region: Region) -> None:
        """Note the places of a region's nodes, and of those of the loops in it."""
        depth = 0 if region.parent is None else region.parent.depth + 1
        self._require(region.depth == depth, "a region is one deeper than its parent")
        for k, n in enumerate(region.nodes):
            self._require(n.region is region, "a node stands in its own region", n)
            self._require(n not in self.place, "a node stands in one place", n)
            self.place[n] = k
            if n.op in WRITERS:
                self.written.add(n.data[0])
            if n.op == "loop":
                loop: Loop = n.data
                self._require(loop.body.parent is region, "a loop's body lies where it runs", n)
                self._require(loop.body not in self.owner, "a body belongs to one loop", n)
                self.owner[loop.body] = n
                self.given |= dict.fromkeys((loop.counter, *loop.params), loop.body)
                self._collect(loop.body)

    def _inside(self, inner: Region | None, outer: Region | None) -> bool:
        while inner is not None and inner is not outer:
            inner = inner.parent
        return inner is outer

    # Nodes by themselves

    def _well_formed(self, n: Node) -> None:
        self._require(n.op in OPERATIONS, "the operation is in the table", n)
        self._require(n.dtype in _SHORTS, "the type is known", n)
        entry = OPERATIONS[n.op]
        self._require(entry.arity in (None, len(n.args)), "as many arguments as it has", n)
        if entry.kind in (Kind.VALUE, Kind.ALIAS):
            shared = all(a.uniform for a in reads(n))
            self._require(shared or not n.uniform, "what is shared reads only what is shared", n)
        if n.region is self.graph.prologue:
            self._require(n.uniform, "what runs once a call is the same in all samples", n)
        if entry.kind is Kind.ALIAS:
            self._require(bool(n.args) and n.args[0].dtype == n.dtype, "an alias keeps the type", n)
        elif entry.operands != "mixed":
            self._types(n)
        elif n.op == "select":
            mask, *values = n.args
            self._require(mask.dtype == "i1", "what chooses is boolean", n)
            self._require(all(a.dtype == n.dtype for a in values), "both have the type", n)
        special = _SPECIAL.get(n.op)
        if special is not None:
            special(self, n)
        for a in n.args:
            if a.constant:
                self._constant(a)

    def _types(self, n: Node) -> None:
        entry, types = OPERATIONS[n.op], {a.dtype for a in n.args}
        self._require(len(types) <= 1, "arguments of one type", n)
        if entry.result is Result.LAST:
            self._require(types == {n.dtype}, "the type of its arguments", n)
        if entry.result is Result.BOOLEAN:
            self._require(n.dtype == "i1", "a boolean", n)
        if entry.operands == "float":
            self._require(types <= set(FLOATS), "floating arguments", n)
        if entry.operands == "integer":
            self._require(not types & set(FLOATS), "integers or booleans", n)

    def _constant(self, n: Node) -> None:
        x: Any = n.data
        if n.dtype in FLOATS:
            fits = isinstance(x, float) and (n.dtype == "f64" or _same(x, float(np.float32(x))))
        elif n.dtype == "i1":
            fits = isinstance(x, bool)
        else:
            fits = isinstance(x, int) and not isinstance(x, bool)
        self._require(fits and n.region is None and n.uniform, "a number of its type", n)

    def element(self, n: Node) -> None:
        buffer, index = n.data
        self._require(buffer.kind == "input" and buffer.dtype == n.dtype, "of an argument", n)
        self._require(0 <= index < buffer.size, "inside the argument", n)
        self._require(n.uniform is not buffer.batched, "shared where the argument is", n)

    def load(self, n: Node) -> None:
        buffer, offset = n.data
        self._access(n, n.args[0], buffer, offset)
        self._require(n.dtype == buffer.dtype, "the type of what is loaded", n)
        shared = n.args[0].uniform and not buffer.batched
        self._require(shared or not n.uniform, "what is shared reads only what is shared", n)
        if buffer.kind == "const":
            self._require(len(buffer.values) == buffer.size, "as many numbers as it has", n)
        if buffer.kind == "scratch":
            self._require(buffer in self.written, "what is read was written", n)

    def store(self, n: Node) -> None:
        buffer, offset = n.data
        self._access(n, n.args[0], buffer, offset)
        self._require(n.args[1].dtype == buffer.dtype, "the type of what it is written to", n)

    def accumulate(self, n: Node) -> None:
        self.store(n)
        self._require(n.data[0].dtype in FLOATS, "sums are of floating numbers", n)

    def row(self, n: Node) -> None:
        buffer = n.data[0]
        self._access(n, n.args[0], buffer, 0)
        self._require(0 < len(n.args) - 1 <= buffer.size, "no longer than the result", n)
        self._require(all(a.dtype == buffer.dtype for a in n.args[1:]), "type of the result", n)

    def _access(self, n: Node, index: Node, buffer: Buffer, offset: int) -> None:
        kinds = _KINDS.get(n.op, ("scratch",))
        self._require(buffer.kind in kinds, "memory of a kind that it may use", n)
        self._require(index.dtype == "i64", "an index of 64 bits", n)
        if index.constant:
            self._require(0 <= index.data + offset < buffer.size, "inside the memory", n)
        if buffer.region is not None:
            self._require(self._inside(n.region, buffer.region), "where the memory is", n)

    def loop(self, n: Node) -> None:
        loop: Loop = n.data
        self._require(loop.count is None or loop.count > 0, "at least one pass", n)
        self._require(n.args == tuple(loop.inits), "its arguments begin its carries", n)
        same = len(loop.inits) == len(loop.params) == len(loop.outs)
        self._require(same, "each carry has a beginning and an end", n)
        for p, init, out in zip(loop.params, loop.inits, loop.outs, strict=True):
            self._require(p.op == "param" and p.region is loop.body, "carries are its own", n)
            self._require(init.dtype == p.dtype == out.dtype, "carries keep their types", n)
        self._require(loop.counter.dtype == "i64" and loop.counter.uniform, "it counts in i64", n)
        if loop.count is None:
            ends = bool(loop.outs) and loop.outs[-1].dtype == "i1"
            self._require(ends, "its last carry says who goes on", n)

    def result(self, n: Node) -> None:
        whole = n.args[0].op == "loop" and n.data < len(n.args[0].data.params)
        self._require(whole, "of a loop that has so many carries", n)
        self._require(n.args[0].region is n.region, "where its loop runs", n)
        self._require(n.args[0].data.params[n.data].dtype == n.dtype, "its carry's type", n)

    # Order

    def _placed(self, n: Node) -> None:
        if n.op == "param":
            self._require(n in self.given, "a carry belongs to a loop", n)
        else:
            self._require(n in self.place, "what is needed stands in a region", n)

    def _known(self, n: Node) -> None:
        """That what a live node reads is known before it."""
        if n.op == "loop":
            loop: Loop = n.data
            for p, init, out in zip(loop.params, loop.inits, loop.outs, strict=True):
                if p in self.live:
                    self._before(init, n, self.place[n], n.region)
                    self._before(out, n, len(loop.body.nodes), loop.body)
            if loop.count is None:
                self._before(loop.outs[-1], n, len(loop.body.nodes), loop.body)
        else:
            for a in reads(n):
                self._before(a, n, self.place[n], n.region)

    def _before(self, a: Node, n: Node, place: int, region: Region | None) -> None:
        """That a is known in a region at a place."""
        if a.region is region and self.place.get(a, place) < place or a.op == "const":
            return  # most are
        self._require(self._inside(region, a.region), "what is read is known there", n, a)
        if a in self.given:
            return
        while region is not a.region:
            assert region is not None and region.parent is not None
            # The base runs after the whole prologue, a body where its loop stands.
            owner = self.owner.get(region)
            place = self.place[owner] if owner is not None else len(region.parent.nodes)
            region = region.parent
        self._require(self.place.get(a, place) < place, "what is read is known before", n, a)

    def _results(self) -> None:
        seen: set[int] = set()
        for buffer, row in self.graph.outputs:
            self._require(buffer.kind == "output", "a result is written to a result")
            self._require(buffer.position not in seen, "each result once")
            seen.add(buffer.position)
            self._require(len(row) == buffer.size, "a result has all its elements")
            for n in row:
                self._require(n.dtype == buffer.dtype, "a result has its type", n)
                self._before(n, n, len(self.graph.base.nodes), self.graph.base)


_SPECIAL = {
    "element": _Verifier.element, "load": _Verifier.load, "store": _Verifier.store,
    "accumulate": _Verifier.accumulate, "row": _Verifier.row, "loop": _Verifier.loop,
    "result": _Verifier.result,
}  # fmt: skip
"""What holds for some operations beside what the table says."""


def _same(a: float, b: float) -> bool:
    return a == b or (a != a and b != b)
