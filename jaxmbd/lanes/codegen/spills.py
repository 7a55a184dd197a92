"""Spill planning ahead of LLVM's register allocation.

The value with the farthest next use is evicted (Belady 1966), with a preference for values that
have a copy in memory already: a store costs as much as two products, a load next to nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

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
        flushed: for each cut, the spills (value, slot) that precede it.
    """

    def __init__(
        self,
        order: Sequence[int],
        args: Sequence[Sequence[int]],
        kept: Sequence[bool],
        extra: Sequence[int],
        room: int,
        slot: dict[int, int] | None = None,
        cuts: Collection[int] = (),
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
            cuts: steps before which all registers are emptied.
        """
        self.args, self.extra, self.room = args, extra, room
        self.uses = self._positions(order, kept)
        self.registers: set[int] = set()
        self.slot, self.slots, self.stores = dict(slot or {}), 0, 0
        self.unused: list[int] = []
        self.flushed: dict[int, list[tuple[int, int]]] = {}
        self.steps: list[Step] = []
        for i, x in enumerate(order):
            if i in cuts:
                self.flushed[i] = self._flush()
            self.steps.append(self._step(i, x))

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

    def _flush(self) -> list[tuple[int, int]]:
        stores = []
        for a in sorted(self.registers):
            if a not in self.slot:
                self.slot[a] = self._new_slot()
                stores.append((a, self.slot[a]))
        self.registers.clear()
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
