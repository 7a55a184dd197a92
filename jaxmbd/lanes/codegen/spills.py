"""Spills of long pieces of straight-line code, planned before LLVM.

With a thousand live values LLVM spills more than necessary. Storing a whole vector costs about as
much as two vector products, and a reload next to nothing, so the goal is few spilled values rather
than few reloads. The value with the farthest next use is evicted (Belady 1966), with a preference
for values that have a copy in memory already. Spills and reloads are written explicitly, as
volatile accesses that LLVM does not move.

Operations keep the order in which they are first needed. Arranging them for few live values made
kernels 2 to 12 % faster, for a sixth to a quarter of the time of compiling
(`benchmarks/results/lanes_ablation.json`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from jaxmbd.lanes.codegen.memory import block_start
from jaxmbd.lanes.codegen.uses import readers_of
from jaxmbd.lanes.codegen.writer import Slot, Writer
from jaxmbd.lanes.ir.nodes import Node
from jaxmbd.lanes.ir.table import OPERATIONS, root

SOON = 12
"""A reloaded value stays in a register if it is used again within this many steps."""
DEAR = 3
"""Factor on the distance to the next use of a value that has a copy in memory."""
NEVER = 1 << 30


class Step(NamedTuple):
    """A node and the spills and reloads (value, slot) that precede it."""

    node: int
    stores: list[tuple[int, int]]
    loads: list[tuple[int, int]]


class Plan:
    """Simulates the register file along a schedule.

    Attributes:
        steps: the plan.
        slot: the stack slots of spilled live-out values, which stay there.
        slots: number of stack slots used; stores: number of spills.
    """

    def __init__(
        self,
        order: Sequence[int],
        args: Sequence[Sequence[int]],
        kept: Sequence[bool],
        extra: Sequence[int],
        room: int,
        slot: Mapping[int, Any] | None = None,
    ):
        """Plan a schedule.

        Args:
            order: the nodes' numbers.
            args: numbers of the values that each node needs.
            kept: whether a value is live-out.
            extra: registers that each node needs besides those of its operands and its result.
            room: number of registers.
            slot: slots of values that have been computed before; these are live-out. By default
                there are none.
        """
        self.args, self.extra, self.room = args, extra, room
        self.uses = self._positions(order, kept)
        self.registers: set[int] = set()
        self.slot: dict[int, Any] = dict(slot or {})
        self.slots, self.stores = 0, 0
        self.unused: list[int] = []
        self.steps = [self._step(i, x) for i, x in enumerate(order)]

    def _positions(self, order: Sequence[int], kept: Sequence[bool]) -> list[list[int]]:
        """Positions of each value's uses, in descending order."""
        uses: list[list[int]] = [[NEVER] if k else [] for k in kept]
        for i in range(len(order) - 1, -1, -1):
            for a in self.args[order[i]]:
                uses[a].append(i)
        return uses

    def _step(self, i: int, x: int) -> Step:
        needs, uses = self.args[x], self.uses
        missing = [a for a in needs if a not in self.registers]
        loads = [(a, self.slot[a]) for a in missing]
        for a in needs:
            uses[a].pop()
        stay = [a for a in missing if uses[a] and uses[a][-1] - i < SOON]
        passing = max(self.extra[x], min(1, len(missing) - len(stay)))
        ends = [a for a in needs if a in self.registers and not uses[a]]
        wanted = len(stay) + 1 + passing - len(ends)
        stores = self._make_room(i, wanted, set(needs))
        for a in ends:
            self.registers.discard(a)
        for a in needs:
            if not uses[a] and a in self.slot:
                self.unused.append(self.slot.pop(a))
        self.registers.update(stay)
        if uses[x]:
            self.registers.add(x)
        return Step(x, stores, loads)

    def _make_room(self, i: int, wanted: int, needs: set[int]) -> list[tuple[int, int]]:
        stores = []
        while len(self.registers) + wanted > self.room:
            out = self._farthest(i, needs)
            if out is None:
                break
            self.registers.discard(out)
            if out not in self.slot:
                stores.append((out, self._new_slot()))
                self.slot[out] = stores[-1][1]
        self.stores += len(stores)
        return stores

    def _farthest(self, i: int, needs: set[int]) -> int | None:
        """The value in a register, not among `needs`, with the farthest next use."""
        uses, slot, found, most = self.uses, self.slot, None, (-1, -1)
        for a in self.registers:
            if a not in needs:
                distance = (uses[a][-1] - i) * (DEAR if a in slot else 1)
                if (distance, a) > most:
                    found, most = a, (distance, a)
        return found

    def _new_slot(self) -> int:
        if self.unused:
            return self.unused.pop()
        self.slots += 1
        return self.slots - 1


SHORT, LONG = 150, 12_000
"""Pieces with fewer nodes than `SHORT` are left to LLVM, ones longer than `LONG` are split."""
RESERVE = 3
"""Registers reserved for constants and temporaries."""
WORDS = ("f64", "f32", "i64", "u64", "i32", "u32")
"""Types that occupy whole vector registers; masks have registers of their own."""


Compute = Callable[[Node], None]
"""Writes one node's instructions."""


def write_piece(
    w: Writer,
    nodes: Sequence[Node],
    wanted: Sequence[Node],
    registers: int,
    compute: Compute,
    *,
    asleep: bool,
    homes: Mapping[Node, Slot],
) -> None:
    """Write a piece of straight-line code for a given number of vector registers.

    Args:
        w: the writer.
        nodes: the piece, each node after its operands.
        wanted: live-out nodes.
        registers: vector registers of the processor.
        compute: writes one node's instructions.
        asleep: whether spilled live-out values stay in memory until they are used.
        homes: where some of them stay.
    """
    for start in range(0, len(nodes), LONG):
        part = nodes[start : start + LONG]
        last = start + LONG >= len(nodes)
        piece = Piece(w, part, {root(n) for n in wanted}, registers - RESERVE, compute, homes)
        piece.write(asleep or not last)


class Piece:
    """One piece: its numbered values and their dependencies.

    Attributes:
        values: the nodes; a value's number is its index here.
        given: operands that wait in a stack slot from before; their numbers follow.
        args: numbers of each value's operands.
        kept: whether a value is live-out.
    """

    def __init__(
        self,
        w: Writer,
        nodes: Sequence[Node],
        wanted: set[Node],
        room: int,
        compute: Compute,
        homes: Mapping[Node, Slot],
    ):
        self.w, self.values, self.room, self.compute = w, list(nodes), room, compute
        self.homes = homes
        inside = readers_of(nodes)
        outside = {n for n in nodes if w.uses.readers[n] > inside[n]} | wanted
        operands = [[root(a) for a in n.args] for n in nodes]
        given = (a for some in operands for a in some if w.asleep(a))
        self.given = list(dict.fromkeys(given))
        number = {n: k for k, n in enumerate([*self.values, *self.given])}
        self.args = [
            list(dict.fromkeys(number[a] for a in some if a in number)) for some in operands
        ]
        self.kept = [n in outside for n in self.values]

    def write(self, asleep: bool) -> None:
        """Write the piece; spilled live-out values are reloaded, or stay asleep."""
        w, values = self.w, [*self.values, *self.given]
        free = [self._free(n) for n in values]
        args = [[a for a in needs if not free[a]] for needs in self.args]
        kept = [k and not f for k, f in zip(self.kept, free, strict=False)]
        extra = [OPERATIONS[n.op].registers for n in self.values]
        count = len(self.values)
        slots = {count + k: w.slot_of(n) for k, n in enumerate(self.given)}
        kept += [True] * len(self.given)
        plan = Plan(self._gathered(), args, kept, extra, self.room, slots)
        left = {v: slot for v, slot in plan.slot.items() if v < count and kept[v]}
        own: dict[Any, Slot] = {}
        if asleep:
            own = {k: self.homes.get(values[v]) or w.hold() for v, k in left.items()}
        for step in plan.steps:
            for value, slot in step.stores:
                w.store(values[value], own.get(slot, slot))
            for value, _ in step.loads:
                w.load(values[value])
            self.compute(values[step.node])
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

    def _gathered(self) -> list[int]:
        """The numbers of the values, those that are computed together made adjacent."""
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
        for k in range(len(self.values)):
            out.update(dict.fromkeys([k, *groups.get(keys.get(k), ())]))
        return list(out)
