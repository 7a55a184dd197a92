"""Graph verifier: every node is well-formed, and its definition dominates its uses.

It checks arity and types against the table of operations; that nodes, loops and buffers are used
only inside their regions and after their definition; loop carries; buffer bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph, live_nodes
from jaxmbd.lanes.ir.nodes import DTYPES, FLOATS, Buffer, Kind, Loop, Node, Region, Result, Routine
from jaxmbd.lanes.ir.table import OPERATIONS, WRITERS, reads

_SHORTS = frozenset(DTYPES.values())
_KINDS = {"load": ("input", "const", "scratch"), "row": ("output",)}


class Broken(AssertionError):
    """A graph is malformed: a bug in lanes itself. The message names the node and the rule."""


def verify(graph: Graph) -> None:
    """Check a whole graph.

    Raises:
        Broken: the graph violates a rule.
    """
    _Verifier(graph).run()


class _Verifier:
    """Verification of one graph.

    Attributes:
        place: index of each node in its region.
        owner: the loop node of each loop body.
        given: carries and counters of loops, with the loop body where they are defined.
        written: buffers that some node writes to.
        sound: operations, types and operands that have been checked; so have the constants.
        routine: the routine whose graph it is, if any; routines: those that it calls.
    """

    def __init__(self, graph: Graph, routine: Routine | None = None):
        self.graph, self.routine = graph, routine
        self.routines: set[Routine] = set()
        self.place: dict[Node, int] = {}
        self.owner: dict[Region, Node] = {}
        self.given: dict[Node, Region] = {}
        self.written: set[Buffer] = set()
        self.sound: set[Any] = set()
        self.constants: set[Node] = set()

    def run(self) -> None:
        g = self.graph
        self._require(g.base.parent is g.prologue, "the base is nested in the prologue")
        if self.routine is not None:
            self.given |= dict.fromkeys(self.routine.params, g.base)
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
        for routine in self.routines:
            _Verifier(routine.graph, routine).run()

    def _require(
        self, truth: bool, rule: str, n: Node | None = None, about: Node | None = None
    ) -> None:
        if not truth:
            what = "the graph" if n is None else f"{n}, of {list(n.args)}"
            which = "" if about is None else f" (operand {about})"
            raise Broken(f"broken graph: {what} violates: {rule}{which}")

    # Structure

    def _collect(self, region: Region) -> None:
        """Record the index of each node in a region, and in the loops inside it."""
        depth = 0 if region.parent is None else region.parent.depth + 1
        self._require(region.depth == depth, "a region is one deeper than its parent")
        for k, n in enumerate(region.nodes):
            self._require(n.region is region, "a node is listed in its own region", n)
            self._require(n not in self.place, "a node is listed once", n)
            self.place[n] = k
            if n.op in WRITERS:
                self.written.add(n.data[0])
            if n.op == "loop":
                loop: Loop = n.data
                self._require(loop.body.parent is region, "its body is nested in its region", n)
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
        operands = tuple([(a.dtype, a.uniform) for a in n.args])
        signature = (n.op, n.dtype, n.uniform, n.region is self.graph.prologue, operands)
        if signature not in self.sound:
            self._signature(n)
            self.sound.add(signature)
        special = _SPECIAL.get(n.op)
        if special is not None:
            special(self, n)
        for a in n.args:
            if a.constant and a not in self.constants:
                self._constant(a)
                self.constants.add(a)

    def _signature(self, n: Node) -> None:
        self._require(n.op in OPERATIONS, "the operation is in the table", n)
        self._require(n.dtype in _SHORTS, "the type is known", n)
        entry = OPERATIONS[n.op]
        self._require(entry.arity in (None, len(n.args)), "number of operands is the arity", n)
        if entry.kind in (Kind.VALUE, Kind.ALIAS):
            shared = all(a.uniform for a in reads(n))
            self._require(shared or not n.uniform, "operands of a uniform node are uniform", n)
        if n.region is self.graph.prologue:
            self._require(n.uniform, "nodes of the prologue are uniform", n)
        if entry.kind is Kind.ALIAS:
            self._require(bool(n.args) and n.args[0].dtype == n.dtype, "an alias keeps the type", n)
        elif entry.operands != "mixed":
            self._types(n)
        elif n.op == "select":
            mask, *values = n.args
            self._require(mask.dtype == "i1", "the condition is boolean", n)
            self._require(all(a.dtype == n.dtype for a in values), "both values have its type", n)

    def _types(self, n: Node) -> None:
        entry, types = OPERATIONS[n.op], {a.dtype for a in n.args}
        self._require(len(types) <= 1, "operands have one type", n)
        if entry.result is Result.LAST:
            self._require(types == {n.dtype}, "the result has the operands' type", n)
        if entry.result is Result.BOOLEAN:
            self._require(n.dtype == "i1", "the result is boolean", n)
        if entry.operands == "float":
            self._require(types <= set(FLOATS), "operands are floating-point", n)
        if entry.operands == "integer":
            self._require(not types & set(FLOATS), "operands are integer or boolean", n)

    def _constant(self, n: Node) -> None:
        x: Any = n.data
        if n.dtype in FLOATS:
            fits = isinstance(x, float) and (n.dtype == "f64" or _same(x, float(np.float32(x))))
        elif n.dtype == "i1":
            fits = isinstance(x, bool)
        else:
            fits = isinstance(x, int) and not isinstance(x, bool)
        self._require(fits and n.region is None and n.uniform, "a constant fits its type", n)

    def element(self, n: Node) -> None:
        buffer, index = n.data
        self._require(buffer.kind == "input" and buffer.dtype == n.dtype, "reads an argument", n)
        self._require(0 <= index < buffer.size, "index inside the argument", n)
        self._require(n.uniform is not buffer.batched, "uniform unless its argument is batched", n)

    def entry(self, n: Node) -> None:
        (inputs, place), index = n.data, n.args[0]
        self._require(inputs.kind == "inputs" and inputs.dtype == n.dtype, "reads arguments", n)
        self._require(0 <= place < inputs.size, "index inside the argument", n)
        self._require(index.dtype == "i64" and index.uniform, "which argument is a uniform i64", n)
        self._require(n.uniform is not inputs.batched, "uniform unless they are batched", n)

    def load(self, n: Node) -> None:
        buffer, offset = n.data
        self._access(n, n.args[0], buffer, offset)
        self._require(n.dtype == buffer.dtype, "the load has its buffer's type", n)
        shared = n.args[0].uniform and not buffer.batched
        self._require(shared or not n.uniform, "a uniform load has uniform index and buffer", n)
        if buffer.kind == "const":
            self._require(len(buffer.values) == buffer.size, "the table has `size` values", n)
        if buffer.kind == "scratch":
            self._require(buffer in self.written, "some node writes to the loaded buffer", n)

    def store(self, n: Node) -> None:
        buffer, offset = n.data
        self._access(n, n.args[0], buffer, offset)
        self._require(n.args[1].dtype == buffer.dtype, "the stored value has its buffer's type", n)

    def accumulate(self, n: Node) -> None:
        self.store(n)
        self._require(n.data[0].dtype in FLOATS, "accumulates in a floating-point buffer", n)

    def row(self, n: Node) -> None:
        buffer = n.data[0]
        self._access(n, n.args[0], buffer, 0)
        self._require(0 < len(n.args) - 1 <= buffer.size, "no longer than the result's row", n)
        self._require(all(a.dtype == buffer.dtype for a in n.args[1:]), "has the result's type", n)

    def _access(self, n: Node, index: Node, buffer: Buffer, offset: int) -> None:
        kinds = _KINDS.get(n.op, ("scratch",))
        self._require(buffer.kind in kinds, "the operation may access buffers of this kind", n)
        self._require(index.dtype == "i64", "the index is an i64", n)
        if index.constant:
            self._require(0 <= index.data + offset < buffer.size, "index inside the buffer", n)
        if buffer.region is not None:
            self._require(self._inside(n.region, buffer.region), "inside the buffer's region", n)

    def loop(self, n: Node) -> None:
        loop: Loop = n.data
        self._require(loop.count is None or loop.count > 0, "at least one iteration", n)
        self._require(n.args == tuple(loop.inits), "its operands are its initial carries", n)
        same = len(loop.inits) == len(loop.params) == len(loop.outs)
        self._require(same, "each carry has an initial and a next value", n)
        for p, init, out in zip(loop.params, loop.inits, loop.outs, strict=True):
            self._require(p.op == "param" and p.region is loop.body, "carries are in its body", n)
            self._require(init.dtype == p.dtype == out.dtype, "carries keep their types", n)
        i64 = loop.counter.dtype == "i64"
        self._require(i64 and loop.counter.uniform, "its counter is a uniform i64", n)
        if loop.going is not None:
            ends = loop.going < len(loop.outs) and loop.outs[loop.going].dtype == "i1"
            self._require(ends, "it carries the mask of samples that continue", n)
        else:
            self._require(loop.count is not None, "it ends", n)
        if loop.times is not None:
            counts = loop.times.dtype == "i64" and loop.times.uniform
            self._require(counts, "the number of its iterations is a uniform i64", n)

    def result(self, n: Node) -> None:
        whole = n.args[0].op == "loop" and n.data < len(n.args[0].data.params)
        self._require(whole, "the result's index is that of a carry of its loop", n)
        self._require(n.args[0].region is n.region, "in the region of its loop", n)
        self._require(n.args[0].data.params[n.data].dtype == n.dtype, "has its carry's type", n)

    def call(self, n: Node) -> None:
        routine, given, found = n.data
        places = routine.places
        self._require(len(n.args) == len(places) == len(routine.params), "all operands", n)
        for a, p, (buffer, k) in zip(n.args, routine.params, places, strict=True):
            self._require(a.dtype == p.dtype, "operands have the types of parameters", n)
            self._require(k < given[buffer].size, "an operand's place is in its buffer", n)
            if buffer:
                there = a.op == "returned" and a.data == k
                self._require(there and a.args[0].data.found is given[buffer], "lies there", n)
        self._require(found.size == len(routine.results), "has room for all results", n)
        self.routines.add(routine)

    def returned(self, n: Node) -> None:
        call = n.args[0]
        self._require(call.op == "call" and call.region is n.region, "beside its call", n)
        self._require(call.data.routine.results[n.data].dtype == n.dtype, "the result's type", n)

    # Order

    def _placed(self, n: Node) -> None:
        if n.op == "param":
            self._require(n in self.given, "a carry belongs to a loop", n)
        else:
            self._require(n in self.place, "a live node is listed in a region", n)

    def _known(self, n: Node) -> None:
        """Check that the operands of a live node are defined before it."""
        if n.op == "loop":
            loop: Loop = n.data
            for p, init, out in zip(loop.params, loop.inits, loop.outs, strict=True):
                if p in self.live:
                    self._before(init, n, self.place[n], n.region)
                    self._before(out, n, len(loop.body.nodes), loop.body)
            if loop.going is not None:
                self._before(loop.outs[loop.going], n, len(loop.body.nodes), loop.body)
            if loop.times is not None:
                self._before(loop.times, n, self.place[n], n.region)
        else:
            for a in reads(n):
                self._before(a, n, self.place[n], n.region)

    def _before(self, a: Node, n: Node, place: int, region: Region | None) -> None:
        """Check that operand a of n is defined before index `place` of a region."""
        if a.region is region and self.place.get(a, place) < place or a.op == "const":
            return  # fast path: most operands
        self._require(self._inside(region, a.region), "the operand is in scope", n, a)
        if a in self.given:
            return
        while region is not a.region:
            assert region is not None and region.parent is not None
            # The base runs after the whole prologue, a loop body at the position of its loop.
            owner = self.owner.get(region)
            place = self.place[owner] if owner is not None else len(region.parent.nodes)
            region = region.parent
        self._require(self.place.get(a, place) < place, "the operand is defined before use", n, a)

    def _results(self) -> None:
        seen: set[int] = set()
        kind = "output" if self.routine is None else "scratch"
        for buffer, row in self.graph.outputs:
            self._require(buffer.kind == kind, "results are stored to output buffers")
            self._require(buffer.position not in seen, "each result is stored once")
            seen.add(buffer.position)
            self._require(len(row) == buffer.size, "a result has all its elements")
            for n in row:
                of_type = self.routine is not None or n.dtype == buffer.dtype
                self._require(of_type, "a result has its buffer's type", n)
                self._before(n, n, len(self.graph.base.nodes), self.graph.base)


_SPECIAL = {
    "element": _Verifier.element, "entry": _Verifier.entry, "load": _Verifier.load,
    "store": _Verifier.store, "accumulate": _Verifier.accumulate, "row": _Verifier.row,
    "loop": _Verifier.loop, "result": _Verifier.result, "call": _Verifier.call,
    "returned": _Verifier.returned,
}  # fmt: skip
"""Checks of single operations beyond what the table says."""


def _same(a: float, b: float) -> bool:
    return a == b or (a != a and b != b)
