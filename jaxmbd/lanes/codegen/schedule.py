"""Scheduling and spills of long pieces of straight-line code, decided before LLVM.

LLVM largely keeps the instruction order that it is given, and with a thousand live values it spills
more than necessary. Storing a whole vector costs about as much as two vector products, and a reload
next to nothing, so the goal is few spilled values rather than few reloads. The schedule is greedy:
of the operations that could be completed next, each together with the operands it still needs, it
takes the one that ends the most live ranges of recently used values and starts the fewest.

Spills are planned ahead of LLVM's register allocation. The value with the farthest next use is
evicted (Belady 1966), with a preference for values that have a copy in memory already. Spills and
reloads are written explicitly, as volatile accesses that LLVM does not move.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from jaxmbd.lanes.codegen.memory import block_start
from jaxmbd.lanes.codegen.uses import readers_of
from jaxmbd.lanes.codegen.writer import Slot, Writer
from jaxmbd.lanes.ir.nodes import Node
from jaxmbd.lanes.ir.table import OPERATIONS, root

REACH = 40
"""Most nodes computed in one step, unless no step scores well enough."""
AT_HAND, AT_HAND_ON_GPU = 24, 48
"""Number of most recently used values that are assumed to be in registers ("at hand"). A thread of
a GPU has registers for 127 doubles."""
CHOICES = 4
"""Most users of a value that are tried one by one, besides all of them together."""
DELAY = 0.05
"""Penalty of each node of a step, in ended live ranges."""
LOOP, STRAIGHT = -0.5, -math.inf
"""Lowest acceptable score of a step; below it the next node of the original order is computed.
Measured to be best for most loop bodies, and for most code outside loops."""


class Scheduler:
    """Schedules nodes 0 … n − 1.

    Attributes:
        args: distinct operands of each node; users: the nodes that use it.
        left: number of users not yet scheduled, plus one if the value is live-out.
        order: the schedule so far.
        at_hand: most recently used live values, in order of use.
        best, scores: the best step of each of them, and its score.
        reach: the nodes that a goal was last found to need; a goal is a node, or for all users of
            a value the value's complement.
        far: schedule length below which a node is known to need too many nodes for one step.
        waiting: number of operands of each node not yet scheduled.
        needed: bit set of what each node needs, itself included; undone: of all not yet scheduled.
        looked: schedule length at which a value's best step was last found; −1 once it may differ.
    """

    def __init__(
        self,
        args: Sequence[Sequence[int]],
        kept: Sequence[bool],
        free: Sequence[bool],
        least: float,
        most_at_hand: int,
    ):
        n = len(args)
        self.args, self.free, self.least, self.most_at_hand = args, free, least, most_at_hand
        self.users: list[list[int]] = [[] for _ in range(n)]
        for node, needs in enumerate(args):
            for a in needs:
                self.users[a].append(node)
        self.left = [len(u) + bool(k) for u, k in zip(self.users, kept, strict=True)]
        self.done = bytearray(n)
        self.order: list[int] = []
        self.at_hand: dict[int, None] = {}
        self.best: dict[int, list[int]] = {}
        self.scores: dict[int, float] = {}
        self.reach: dict[int, list[int]] = {}
        self.far = [0] * n
        self.waiting = [len(needs) for needs in args]
        self.looked = [-1] * n
        self.needed: list[int] = []
        for node, needs in enumerate(args):
            bits = 1 << node
            for a in needs:
                bits |= self.needed[a]
            self.needed.append(bits)
        self.undone = (1 << n) - 1

    def run(self) -> list[int]:
        """The schedule of all nodes."""
        for start in range(len(self.args)):
            while not self.done[start]:
                self._compute(self._choose() or self._needs([start]))
        return self.order

    def _choose(self) -> list[int]:
        """The best step, or none; cached scores are recomputed only for the leading candidates."""
        if not self.at_hand:
            return []
        seen: set[int] = set()
        score, now = self.scores.__getitem__, len(self.order)
        while True:
            value = max(self.at_hand, key=score)
            if value in seen:
                return self.best[value] if score(value) >= self.least else []
            seen.add(value)
            if self.looked[value] != now:
                self._look(value)

    def _look(self, value: int) -> None:
        """Find the best step that computes one of a value's users, or all of them.

        The search stops at the first goal that needs more than `REACH` nodes.
        """
        done, far, now = self.done, self.far, len(self.order)
        users = [u for u in self.users[value] if not done[u]]
        best, highest = [], -math.inf
        for u in users[:CHOICES]:
            if far[u] > now:
                continue
            step = self._missing(u, (u,)) if self.waiting[u] else [u]
            if not step:
                far[u] = now + REACH // 2
                for a in self.args[u]:  # another look would pass over this user
                    self.looked[a] = -1
                break
            score = self._score(step)
            if score > highest:
                best, highest = step, score
        else:
            self.looked[value] = now
            if len(users) > 1 and all(far[u] <= now for u in users):
                step = self._missing(~value, users)
                score = self._score(step) if step else -math.inf
                if score > highest:
                    best, highest = step, score
        self.best[value], self.scores[value] = best, highest

    def _missing(self, name: int, goal: Sequence[int]) -> list[int]:
        """The nodes still to be computed for a goal; empty if there are over `REACH`.

        What was once found to be needed is the same later, less the nodes that have been computed.
        """
        known = self.reach.get(name)
        if known is None:
            bits = 0
            for x in goal:
                bits |= self.needed[x]
            few = (bits & self.undone).bit_count() <= REACH
            found = self._needs(goal) if few else []
        else:
            done = self.done
            found = [x for x in known if not done[x]]
        if found:
            self.reach[name] = found
        return found

    def _needs(self, goal: Sequence[int]) -> list[int]:
        """The nodes still to be computed for a goal, in order."""
        done, args, waiting, out = self.done, self.args, self.waiting, []
        seen: set[int] = set()
        stack = list(goal)
        while stack:
            x = stack.pop()
            if x < 0:
                out.append(~x)
            elif x not in seen:
                seen.add(x)
                if waiting[x]:
                    stack.append(~x)
                    stack += [a for a in args[x] if not done[a]]
                else:
                    out.append(x)
        return out

    def _score(self, step: list[int]) -> float:
        """Live ranges of values at hand that end, less those that start and outlast the step."""
        args, left, free, at_hand = self.args, self.left, self.free, self.at_hand
        score = -DELAY * len(step)
        if len(step) == 1:
            (x,) = step
            if left[x] and not free[x]:
                score -= 1.0
            for a in args[x]:
                if left[a] == 1 and a in at_hand:
                    score += 1.0
            return score
        reads: dict[int, int] = {}
        for x in step:
            for a in args[x]:
                reads[a] = reads[a] + 1 if a in reads else 1
        for x in step:
            if left[x] > reads.pop(x, 0) and not free[x]:
                score -= 1.0
        for a, count in reads.items():
            if left[a] == count and a in at_hand:
                score += 1.0
        return score

    def _compute(self, step: list[int]) -> None:
        at_hand, left, free, waiting = self.at_hand, self.left, self.free, self.waiting
        touched: dict[int, None] = {}
        for x in step:
            self.done[x] = True
            self.order.append(x)
            self.undone ^= 1 << x
            for u in self.users[x]:
                waiting[u] -= 1
            for a in self.args[x]:
                left[a] -= 1
            for a in (*self.args[x], x):
                at_hand.pop(a, None)
                if left[a] and not free[a]:
                    at_hand[a] = touched[a] = None
        if len(at_hand) > self.most_at_hand:
            for old in list(at_hand)[: len(at_hand) - self.most_at_hand]:
                del at_hand[old]
        for a in touched:
            if a in at_hand:
                self._look(a)


def arrange(
    args: Sequence[Sequence[int]],
    kept: Sequence[bool],
    free: Sequence[bool],
    least: float,
    most_at_hand: int = AT_HAND,
) -> list[int]:
    """A schedule of nodes with low register pressure.

    Args:
        args: distinct operands of each node, all with lower numbers than its own.
        kept: whether its value is live-out.
        free: whether its value occupies none of the registers in question.
        least: `LOOP` or `STRAIGHT`.
        most_at_hand: `AT_HAND` or `AT_HAND_ON_GPU`.

    Returns:
        the nodes' numbers, each after its operands.
    """
    return Scheduler(args, kept, free, least, most_at_hand).run()


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


SHORT, LONG, ENDLESS = 150, 12_000, 30_000
"""Pieces with fewer nodes than `SHORT` are left to LLVM, ones longer than `LONG` are split. Those
longer than `ENDLESS` keep their order: they spill in any, and arranging them took a fifth of
compiling."""
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
        piece.write(asleep or not last, arranged=len(nodes) <= ENDLESS)


class Piece:
    """One piece: its numbered values and their dependencies.

    Attributes:
        values: nodes that need a register; a value's number is its index here.
        given: operands that wait in a stack slot from before; their numbers follow.
        users: of each node, within the piece; args: numbers of each value's operands.
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
        self.w, self.nodes, self.room, self.compute = w, nodes, room, compute
        self.homes = homes
        inside = readers_of(nodes)
        outside = {n for n in nodes if w.uses.readers[n] > inside[n]} | wanted
        self.users: dict[Node, list[Node]] = {}
        for n in nodes:
            for a in dict.fromkeys(map(root, n.args)):
                self.users.setdefault(a, []).append(n)
        self.values = list(nodes)
        operands = [[root(a) for a in n.args] for n in nodes]
        given = (a for some in operands for a in some if w.asleep(a))
        self.given = list(dict.fromkeys(given))
        number = {n: k for k, n in enumerate([*self.values, *self.given])}
        self.args = [
            list(dict.fromkeys(number[a] for a in some if a in number)) for some in operands
        ]
        self.kept = [n in outside for n in self.values]

    def write(self, asleep: bool, *, arranged: bool) -> None:
        """Write the piece; spilled live-out values are reloaded, or stay asleep."""
        w, values = self.w, [*self.values, *self.given]
        free = [self._free(n) for n in values]
        args = [[a for a in needs if not free[a]] for needs in self.args]
        kept = [k and not f for k, f in zip(self.kept, free, strict=False)]
        extra = [OPERATIONS[n.op].registers for n in self.values]
        count = len(self.values)
        order = self._arranged(kept, free[:count]) if arranged else range(count)
        slots = {count + k: w.slot_of(n) for k, n in enumerate(self.given)}
        kept += [True] * len(self.given)
        plan = Plan(order, args, kept, extra, self.room, slots)
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

    def _arranged(self, kept: Sequence[bool], free: Sequence[bool]) -> Sequence[int]:
        """The order in which the values are computed."""
        w, count = self.w, len(self.values)
        # A few cheap spills are not worth the time to arrange a single sample.
        if w.width == 1 and not w.gpu:
            return range(count)
        region = self.nodes[0].region
        inner = region is not None and region.depth > 1 and not w.gpu
        least, at_hand = LOOP if inner else STRAIGHT, AT_HAND_ON_GPU if w.gpu else AT_HAND
        inside = [[a for a in needs if a < count] for needs in self.args]
        return self._gathered(arrange(inside, kept, free, least, at_hand))

    def _free(self, n: Node) -> bool:
        """Whether a value is not counted here: its register is left to LLVM."""
        if self.w.gpu:
            return n.dtype not in WORDS
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
