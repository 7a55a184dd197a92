"""Instruction scheduling of straight-line code for low register pressure.

Storing a whole vector costs about as much as two vector products, and a reload next to nothing, so
the goal is few spilled values rather than few reloads. The schedule is greedy: of the operations
that could be completed next, each together with the operands it still needs, it takes the one that
ends the most live ranges of recently used values and starts the fewest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

REACH = 40
"""Most nodes computed in one step, unless no step scores well enough."""
AT_HAND = 24
"""Number of most recently used values that are assumed to be in registers ("at hand")."""
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
    """

    def __init__(
        self,
        args: Sequence[Sequence[int]],
        kept: Sequence[bool],
        free: Sequence[bool],
        least: float,
    ):
        n = len(args)
        self.args, self.free, self.least = args, free, least
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

    def run(self) -> list[int]:
        """The schedule of all nodes."""
        for start in range(len(self.args)):
            while not self.done[start]:
                self._compute(self._choose() or self._needs([start], len(self.args)))
        return self.order

    def _choose(self) -> list[int]:
        """The best step, or none; cached scores are recomputed only for the leading candidates."""
        if not self.at_hand:
            return []
        seen: set[int] = set()
        score = self.scores.__getitem__
        while True:
            value = max(self.at_hand, key=score)
            if value in seen:
                return self.best[value] if score(value) >= self.least else []
            seen.add(value)
            self._look(value)

    def _look(self, value: int) -> None:
        """Find the best step that computes one of a value's users, or all of them.

        The search stops at the first goal that needs more than `REACH` nodes.
        """
        users = [u for u in self.users[value] if not self.done[u]]
        now = len(self.order)
        goals = [(u, [u]) for u in users[:CHOICES]]
        if 1 < len(users) and all(self.far[u] <= now for u in users):
            goals.append((~value, users))
        best, highest = [], -math.inf
        for name, goal in goals:
            if self.far[goal[0]] > now:
                continue
            step = self._missing(name, goal)
            if not step:
                if len(goal) == 1:
                    self.far[goal[0]] = now + REACH // 2
                break
            score = self._score(step)
            if score > highest:
                best, highest = step, score
        self.best[value], self.scores[value] = best, highest

    def _missing(self, name: int, goal: Sequence[int]) -> list[int]:
        """The nodes still to be computed for a goal; empty if there are over `REACH`.

        What was once found to be needed is the same later, less the nodes that have been computed.
        """
        known = self.reach.get(name)
        if known is None:
            found = self._needs(goal, REACH)
        else:
            done = self.done
            found = [x for x in known if not done[x]]
        if found:
            self.reach[name] = found
        return found

    def _needs(self, goal: Sequence[int], most: int) -> list[int]:
        """The nodes still to be computed for a goal, in order; empty if there are over `most`."""
        done, args, out = self.done, self.args, []
        seen: set[int] = set()
        stack = list(goal)
        while stack:
            x = stack.pop()
            if x < 0:
                out.append(~x)
            elif x not in seen:
                seen.add(x)
                if len(seen) > most:
                    return []
                missing = [a for a in args[x] if not done[a]]
                if missing:
                    stack.append(~x)
                    stack += missing
                else:
                    out.append(x)
        return out

    def _score(self, step: list[int]) -> float:
        """Live ranges of values at hand that end, less those that start and outlast the step."""
        reads: dict[int, int] = {}
        for x in step:
            for a in self.args[x]:
                reads[a] = reads.get(a, 0) + 1
        left, at_hand = self.left, self.at_hand
        score = -DELAY * len(step)
        for x in step:
            if left[x] > reads.pop(x, 0) and not self.free[x]:
                score -= 1.0
        for a, count in reads.items():
            if left[a] == count and a in at_hand:
                score += 1.0
        return score

    def _compute(self, step: list[int]) -> None:
        touched: dict[int, None] = {}
        for x in step:
            self.done[x] = True
            self.order.append(x)
            for a in (*self.args[x], x):
                if a != x:
                    self.left[a] -= 1
                self.at_hand.pop(a, None)
                if self.left[a] and not self.free[a]:
                    self.at_hand[a] = None
                    touched[a] = None
        for old in list(self.at_hand)[: max(0, len(self.at_hand) - AT_HAND)]:
            del self.at_hand[old]
        for a in touched:
            if a in self.at_hand:
                self._look(a)


def arrange(
    args: Sequence[Sequence[int]], kept: Sequence[bool], free: Sequence[bool], least: float
) -> list[int]:
    """A schedule of nodes with low register pressure.

    Args:
        args: distinct operands of each node, all with lower numbers than its own.
        kept: whether its value is live-out.
        free: whether its value occupies none of the registers in question.
        least: `LOOP` or `STRAIGHT`.

    Returns:
        the nodes' numbers, each after its operands.
    """
    return Scheduler(args, kept, free, least).run()
