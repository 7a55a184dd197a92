"""Uses of a graph's values: broadcasts, shared reciprocals, function pairs, captures of loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Call, Loop, Node
from jaxmbd.lanes.ir.table import ALIASES, OPERATIONS, WRITERS, reads, root

Pair = tuple[str, Node]
"""The name of a function that computes two others together ("sincos"), and its operand."""


class Uses:
    """Uses of the live nodes of a graph.

    Attributes:
        live: live nodes.
        spread: operands of vector operations; the uniform ones are broadcast to all lanes.
        inverted: denominators whose reciprocal is computed once, for several quotients or for a
            quotient in a deeper region.
        exact: the function's quotients by denominators that would be none of those if it were
            neither differentiated nor used in part, so that it gives the same bits in all programs.
    """

    def __init__(self, graph: Graph, live: set[Node]):
        self.live, self.graph = live, graph
        self.spread: set[Node] = set()
        own = _shared(graph.quotients)
        self.exact = {n for n in graph.quotients if root(n.args[1]) not in own}
        free = [n for n in live if may_invert(n) and n not in self.exact]
        self.inverted = _shared(free) | own.intersection(root(n.args[1]) for n in free)
        self._captured: dict[Loop, list[Node]] = {}
        calls: dict[Pair, set[str]] = {}
        for n in live:
            if n.op == "loop":
                self.spread.update(root(x) for c in self.carried(n.data) for x in c[1:])
            elif n.op in WRITERS:
                self.spread.update(map(root, n.args[1:]))
            elif not n.uniform:
                self.spread.update(map(root, reads(n)))
            pair = _pair(n)
            if pair is not None:
                calls.setdefault(pair, set()).add(n.op)
        for _, row in graph.outputs:
            self.spread.update(map(root, row))
        self._both = {pair for pair, ops in calls.items() if len(ops) == 2}

    def pair(self, n: Node) -> Pair | None:
        """The pair that a node is computed by, if both functions of the pair are used."""
        pair = _pair(n)
        return pair if pair in self._both else None

    @cached_property
    def readers(self) -> Counter[Node]:
        """Number of uses of each node by live nodes and results; aliases are none."""
        found = readers_of(self.live)
        for n in self.live:
            if n.op == "loop":
                found.update({root(x) for c in self.carried(n.data) for x in c[1:]})
        found.update(root(n) for _, row in self.graph.outputs for n in row)
        return found

    def carried(self, loop: Loop) -> list[tuple[Node, Node, Node]]:
        """The live carries: (value in the body, initial value, next value) of each.

        Initial and next values of dead carries need not be computed.
        """
        whole = zip(loop.params, loop.inits, loop.outs, strict=True)
        return [carry for carry in whole if carry[0] in self.live]

    def captured(self, loop: Loop) -> list[Node]:
        """Live nodes defined outside a loop that its body uses."""
        found = self._captured.get(loop)
        if found is None:
            found = []
            for n in loop.body.nodes:
                if n not in self.live:
                    continue
                if n.op == "loop":
                    found.extend(init for _, init, _ in self.carried(n.data))
                    found.extend(self.captured(n.data))
                else:
                    found.extend(reads(n))
            found.extend(out for _, _, out in self.carried(loop))
            found.extend([] if loop.times is None else [loop.times])
            found = [n for n in dict.fromkeys(found) if n.region is not loop.body]
            self._captured[loop] = found
        return found


def _pair(n: Node) -> Pair | None:
    llvm = OPERATIONS[n.op].llvm
    return (llvm.pair, n.args[0]) if isinstance(llvm, Call) and llvm.pair else None


def _shared(nodes: Iterable[Node]) -> set[Node]:
    """Denominators of several quotients among some nodes, or of one in a deeper region."""
    once, shared = set[Node](), set[Node]()
    for n in nodes:
        b = root(n.args[1]) if may_invert(n) else None
        if b is not None and not b.constant:
            assert n.region is not None and b.region is not None
            (shared if b in once or n.region.depth > b.region.depth else once).add(b)
    return shared


def may_invert(n: Node) -> bool:
    """Whether a node is a division that may become a product with a shared reciprocal.

    The product costs up to one more ulp, so ratios of converted integers are excluded: k/n must be
    exactly 1 at the last of n steps.
    """
    if n.op != "div" or n.dtype[0] != "f" or n.args[1].constant:
        return False
    return not any(a.op == "convert" and a.args[0].dtype[0] != "f" for a in n.args)


def readers_of(nodes: Iterable[Node]) -> Counter[Node]:
    """Number of uses of each node by some nodes; by loops and aliases none."""
    found: Counter[Node] = Counter()
    for n in nodes:
        if n.op != "loop" and n.op not in ALIASES:
            for a in {root(a) for a in n.args}:
                found[a] += 1
    return found
