"""Runs of equal joints: bodies in a row, each on the one before, that recursions visit in a loop.

Straight-line code for a long chain is longer than a processor's instruction cache, and so is the
time to compile it. A loop over its bodies is neither.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

SHORTEST = 6
"""Least number of bodies of a run; fewer are visited one by one."""


def serial_runs(parent: Sequence[int], marks: Sequence[Hashable]) -> tuple[range, ...]:
    """The bodies 0 … n − 1 in runs; a run of one body is no loop.

    Each body of a run is the only child of the one before and has the same mark, for example its
    type of joint. The parent of the first one is a body as well, so that all have a parent.
    """
    children = [0] * len(parent)
    for p in parent:
        if p >= 0:
            children[p] += 1
    out: list[range] = []
    for i, p in enumerate(parent):
        last = out[-1] if out else range(0)
        follows = p == i - 1 and p in last and parent[last[0]] >= 0
        if follows and children[p] == 1 and marks[i] == marks[p]:
            out[-1] = range(last.start, i + 1)
        else:
            out.append(range(i, i + 1))
    return tuple(part for run in out for part in _long_enough(run))


def one_by_one(bodies: int) -> tuple[range, ...]:
    """Runs of one body each."""
    return tuple(range(i, i + 1) for i in range(bodies))


def _long_enough(run: range) -> list[range]:
    return [run] if len(run) >= SHORTEST else [range(i, i + 1) for i in run]
