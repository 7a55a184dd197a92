"""Long pieces of straight-line code, with scheduling and spills decided before LLVM.

LLVM largely keeps the instruction order that it is given, and with a thousand live values it spills
more than necessary. So long pieces are scheduled here (`schedule`), and their spills and reloads
written explicitly, as volatile accesses that LLVM does not move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxmbd.lanes.codegen.rows import block_start
from jaxmbd.lanes.codegen.schedule import LOOP, STRAIGHT, Plan, arrange
from jaxmbd.lanes.codegen.uses import readers_of
from jaxmbd.lanes.codegen.writer import Writer
from jaxmbd.lanes.ir.nodes import Node
from jaxmbd.lanes.ir.table import OPERATIONS, root

SHORT, LONG = 150, 12_000
"""Pieces with fewer nodes than `SHORT` are left to LLVM; ones longer than `LONG` are split."""
RESERVE = 3
"""Registers reserved for constants and temporaries."""
WORDS = ("f64", "f32", "i64", "u64", "i32", "u32")
"""Types that occupy whole vector registers; masks have registers of their own."""


Compute = Callable[[Node], None]
"""Writes one node's instructions."""


def write(
    w: Writer,
    nodes: Sequence[Node],
    wanted: Sequence[Node],
    registers: int,
    compute: Compute,
    *,
    asleep: bool,
) -> None:
    """Write a piece of straight-line code for a given number of vector registers.

    Args:
        w: the writer.
        nodes: the piece, each node after its operands.
        wanted: live-out nodes.
        registers: vector registers of the processor.
        compute: writes one node's instructions.
        asleep: whether spilled live-out values stay in memory until they are used.
    """
    for start in range(0, len(nodes), LONG):
        part = nodes[start : start + LONG]
        last = start + LONG >= len(nodes)
        piece = Piece(w, part, {root(n) for n in wanted}, registers - RESERVE, compute)
        piece.write(asleep or not last)


class Piece:
    """One piece: its numbered values and their dependencies.

    Attributes:
        values: nodes that need a register; a value's number is its index here.
        given: operands that wait in a stack slot from before; their numbers follow.
        merged: products that are fused into an addition, and so are not values.
        users: of each node, within the piece; args: numbers of each value's operands.
        kept: whether a value is live-out.
    """

    def __init__(
        self, w: Writer, nodes: Sequence[Node], wanted: set[Node], room: int, compute: Compute
    ):
        self.w, self.nodes, self.room, self.compute = w, nodes, room, compute
        inside = readers_of(nodes)
        outside = {n for n in nodes if w.uses.readers[n] > inside[n]} | wanted
        self.users: dict[Node, list[Node]] = {}
        for n in nodes:
            for a in dict.fromkeys(map(root, n.args)):
                self.users.setdefault(a, []).append(n)
        self.merged = self._merged(outside)
        self.values = [n for n in nodes if n not in self.merged]
        operands = [self._operands(n) for n in self.values]
        given = (a for some in operands for a in some if w.asleep(a))
        self.given = list(dict.fromkeys(given))
        number = {n: k for k, n in enumerate([*self.values, *self.given])}
        self.args = [
            list(dict.fromkeys(number[a] for a in some if a in number)) for some in operands
        ]
        self.kept = [n in outside for n in self.values]

    def _merged(self, outside: set[Node]) -> set[Node]:
        """Products whose only use is one addition or subtraction; at most one for each of these."""
        here, merged = set(self.nodes), set[Node]()
        for n in self.nodes:
            if n.op in ("add", "sub") and n.dtype[0] == "f":
                for a in map(root, n.args):
                    alone = a in here and a not in outside and len(self.users[a]) == 1
                    if a.op == "mul" and alone and n.args[0] is not n.args[1]:
                        merged.add(a)
                        break
        return merged

    def _operands(self, n: Node) -> list[Node]:
        out: list[Node] = []
        for a in map(root, n.args):
            out.extend(map(root, a.args) if a in self.merged else (a,))
        return out

    def write(self, asleep: bool) -> None:
        """Write the piece; spilled live-out values are reloaded, or stay asleep."""
        w, values = self.w, [*self.values, *self.given]
        free = [self._free(n) for n in values]
        args = [[a for a in needs if not free[a]] for needs in self.args]
        kept = [k and not f for k, f in zip(self.kept, free, strict=False)]
        extra = [OPERATIONS[n.op].registers for n in self.values]
        region = self.nodes[0].region
        least = LOOP if region is not None and region.depth > 1 else STRAIGHT
        count = len(self.values)
        inside = [[a for a in needs if a < count] for needs in self.args]
        if w.width == 1:  # a few cheap spills are not worth the time to arrange a single sample
            order = range(count)
        else:
            order = self._gathered(arrange(inside, kept, free[:count], least))
        slots = {count + k: w.slot_of(n) for k, n in enumerate(self.given)}
        kept += [True] * len(self.given)
        plan = Plan(order, args, kept, extra, self.room, slots)
        left = {v: slot for v, slot in plan.slot.items() if v < count and kept[v]}
        own = {slot: w.hold() for slot in left.values()} if asleep else {}
        for step in plan.steps:
            for value, slot in step.stores:
                w.store(values[value], own.get(slot, slot))
            for value, _ in step.loads:
                w.load(values[value])
            self._value(values[step.node])
        for value in left:
            if asleep:
                w.forget(values[value])
            elif value not in plan.registers:
                w.load(values[value])
        for n in self.given:
            w.forget(n)
        for slot in set(range(plan.slots)) - set(own):
            w.vacate(slot)

    def _free(self, n: Node) -> bool:
        """Whether a value is not counted here: its register is left to LLVM."""
        if n.dtype not in WORDS or n in self.w.uses.inverted:
            return True
        return n.uniform or (self.w.width == 1 and n.dtype[0] != "f")

    def _gathered(self, order: Sequence[int]) -> list[int]:
        """The order with values that are computed together made adjacent."""
        groups: dict[object, list[int]] = {}
        keys: dict[int, object] = {}
        for k, n in enumerate(self.values):
            key: object = self.w.uses.pair(n)
            if n.op in ("element", "entry") and n.data[0].size >= self.w.width:
                key = (n.data[0], n.args, block_start(n, self.w.width))
            if key is not None:
                keys[k] = key
                groups.setdefault(key, []).append(k)
        out: dict[int, None] = {}
        for k in order:
            out.update(dict.fromkeys([k, *groups.get(keys.get(k), ())]))
        return list(out)

    def _value(self, n: Node) -> None:
        for a in map(root, n.args):
            if a in self.merged:
                self.compute(a)
        self.compute(n)
