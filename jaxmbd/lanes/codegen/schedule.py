"""The order of a straight piece of program: values should die young, for registers are few.

A store of a whole vector takes both multipliers of a core for a cycle, as long as two products, so
what counts is how many values outlive the registers, and not how often they are read again. The
order is found greedily: of what could be finished next, that which ends most values of those at
hand and begins fewest is computed, with all that it still needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

REACH = 40
"""Nodes that one step may compute at most, unless no step is good enough."""
AT_HAND = 24
"""How many of the values touched last are taken to be at hand."""
CHOICES = 4
"""Users of a value that are tried one by one, besides all of them together."""
DELAY = 0.05
"""What a step loses for each of its nodes, in values ended."""
LOOP, STRAIGHT = -0.5, -math.inf
"""Scores below which no step is taken, but the next node in the order as it was: what does best on
most bodies of loops, and on most kernels without."""


class Scheduler:
    """Arranges nodes 0 … n − 1.

    Attributes:
        args: nodes that each needs, without repetition; users: those that need it.
        left: how many users are still to come, one more where the value is needed afterwards.
        order: what was arranged.
        at_hand: values touched last, in the order of that, with the `best` step of each.
        far: until so many nodes are arranged, a node needs too much for one step.
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
        self.best: dict[int, tuple[float, list[int]]] = {}
        self.far = [0] * n

    def run(self) -> list[int]:
        """All nodes in their new order."""
        for start in range(len(self.args)):
            while not self.done[start]:
                self._compute(self._choose() or self._needs([start], len(self.args)))
        return self.order

    def _choose(self) -> list[int]:
        """The best step, from scores that are brought up to date where they seem best, or none."""
        if not self.at_hand:
            return []
        seen: set[int] = set()
        best = self.best
        while True:
            value = max(self.at_hand, key=lambda v: best[v][0])
            if value in seen:
                score, step = best[value]
                return step if score >= self.least else []
            seen.add(value)
            best[value] = self._step(value)

    def _step(self, value: int) -> tuple[float, list[int]]:
        """The best way to use a value: for one of its users, or for all of them.

        Users that come after one that needs too much are not tried.
        """
        users = [u for u in self.users[value] if not self.done[u]]
        now = len(self.order)
        goals = [[u] for u in users[:CHOICES]]
        if 1 < len(users) and all(self.far[u] <= now for u in users):
            goals.append(users)
        best: tuple[float, list[int]] = (-math.inf, [])
        for goal in goals:
            if self.far[goal[0]] > now:
                continue
            step = self._needs(goal, REACH)
            if not step:
                if len(goal) == 1:
                    self.far[goal[0]] = now + REACH // 2
                break
            score = self._score(step)
            if score > best[0]:
                best = score, step
        return best

    def _needs(self, goal: Sequence[int], most: int) -> list[int]:
        """What is still to be computed for a goal, in order; nothing if it is more than `most`."""
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
        """Values at hand that end, less those that begin and stay."""
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
                self.best[a] = self._step(a)


def arrange(
    args: Sequence[Sequence[int]], kept: Sequence[bool], free: Sequence[bool], least: float
) -> list[int]:
    """An order of nodes that needs few registers.

    Args:
        args: for each node the nodes that it needs, all before it and none twice.
        kept: whether its value is needed afterwards.
        free: whether its value takes no such register.
        least: `LOOP` or `STRAIGHT`.

    Returns:
        the nodes' numbers, each after those that it needs.
    """
    return Scheduler(args, kept, free, least).run()
