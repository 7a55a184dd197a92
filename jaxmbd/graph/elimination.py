"""How the mass matrix M of a tree is factored: densely or recursively, by counted operations.

Densely M is formed from composite inertias and factored as ``Lᵀ D L``; its cost grows with the cube
of the lengths of branches. Recursively it is not formed (reverse Gaussian elimination), and the
cost is linear. With ``s_k`` the number of speeds between speed k and the ground and ``t_k`` the
number of constraint rows whose column of ``L⁻ᵀ Jᵀ`` has an entry k, the additions and
multiplications are

    dense:      ``31 n + Σ_k (47 + 17 s_k + s_k² + 2 s_k t_k)``
    recursive:  ``54 n − 95 n_leaves + Σ_k (185 + 24 t_k) − 100 n_first − 54 n_own
                + Σ_i (109 + 24 t_i)``

for n bodies, of which ``n_leaves`` carry none, ``n_first`` speeds of joints to the ground,
``n_own`` speeds of bodies with reference points of their own, and such bodies i other than the
first of a branch, each with ``t_i`` rows. In the plane most terms are zero:

    dense:      ``Σ_k (19 + 10 s_k + s_k² + 2 s_k t_k)``
    recursive:  ``Σ_k (72 + 12 t_k)``.

The terms are those of the formulas in `jaxmbd.dynamics.inertia` and
`jaxmbd.dynamics.reverse_gaussian_elimination`; for chains and trees of revolute, universal and
spherical joints kernels have as many operations to within 15 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LOOPED = 0.75
"""Cost of an operation in a loop over many bodies, compared with one of code that is longer than
the instruction cache; at 12 revolutes both ways cost the same."""
RUN = 4
"""Number of joints in a row whose bodies share a reference point."""


class Elimination(NamedTuple):
    """Which way M is factored, and why.

    Attributes:
        dense, recursive: operations.
        own_points: which bodies have reference points of their own in the recursion, at their
            joints to their parents; others have their parent's.
        looped: whether the recursion has loops over runs of bodies.
    """

    dense: int
    recursive: int
    own_points: tuple[bool, ...]
    looped: bool = False

    @property
    def is_recursive(self) -> bool:
        """Whether the recursion takes fewer operations, those in loops counted as `LOOPED`."""
        return self.recursive * (LOOPED if self.looped else 1.0) < self.dense

    def __str__(self) -> str:
        if self.is_recursive:
            return f"M factored recursively: {self.recursive} operations (dense: {self.dense})"
        return f"M factored densely: {self.dense} operations (recursive: {self.recursive})"


def elimination(
    parent: Sequence[int],
    speeds: Sequence[slice],
    row_speeds: Sequence[Sequence[int]],
    runs: Sequence[range],
    *,
    planar: bool,
) -> Elimination:
    """Count the operations.

    Args:
        parent: index of each body's parent, -1 for the ground.
        speeds: the speeds of each body's joint to its parent.
        row_speeds: for each constraint row the speeds that it depends on.
        runs: the bodies in runs; those of a loop have reference points of their own.
        planar: whether the mechanism is drawn in the plane.
    """
    own = _own_points(parent, speeds, runs)
    looped = any(len(run) > 1 for run in runs)
    below = _speeds_below(parent, speeds)
    rows = [0] * len(below)
    for touched in row_speeds:
        for k in set(touched).union(*(below[k] for k in touched)):
            rows[k] += 1
    s = [len(x) for x in below]
    if planar:
        dense = sum(19 + 10 * a + a * a + 2 * a * t for a, t in zip(s, rows, strict=True))
        return Elimination(dense, sum(72 + 12 * t for t in rows), own, looped)
    n = len(parent)
    dense = 31 * n + sum(47 + 17 * a + a * a + 2 * a * t for a, t in zip(s, rows, strict=True))
    recursive = 54 * n - 95 * len(set(range(n)) - set(parent)) + sum(185 + 24 * t for t in rows)
    for p, place, mine in zip(parent, speeds, own, strict=True):
        count = place.stop - place.start
        recursive -= count * (100 * (p < 0) + 54 * mine)
        if mine and p >= 0:
            recursive += 109 + 24 * max(rows[place], default=0)
    return Elimination(dense, recursive, own, looped)


def _own_points(
    parent: Sequence[int], speeds: Sequence[slice], runs: Sequence[range]
) -> tuple[bool, ...]:
    """A joint of three or more speeds is worth a point: its columns are shorter there."""
    own: list[bool] = []
    row: list[int] = []
    looped = {i for run in runs if len(run) > 1 for i in run}
    for i, (p, place) in enumerate(zip(parent, speeds, strict=True)):
        own.append(p < 0 or row[p] == RUN or place.stop - place.start > 2 or i in looped)
        row.append(1 if own[-1] else row[p] + 1)
    return tuple(own)


def _speeds_below(parent: Sequence[int], speeds: Sequence[slice]) -> list[tuple[int, ...]]:
    """For each speed those between it and the ground."""
    support: list[tuple[int, ...]] = []
    below: list[tuple[int, ...]] = []
    for p, place in zip(parent, speeds, strict=True):
        own = tuple(range(place.start, place.stop))
        support.append((support[p] if p >= 0 else ()) + own)
        below += [support[-1][: len(support[-1]) - len(own) + i] for i in range(len(own))]
    return below
