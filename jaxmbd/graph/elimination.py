"""How M and the rows J are factored: densely, recursively or by blocks, by counted operations.

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

The trees that hang from the ground move independently, so that M has a block for each, and the
Gram matrix ``J M⁻¹ Jᵀ`` has a block only for constraints that touch a common tree. In a long chain
of loops that is the case for neighbours only, and the work is proportional to the number of loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jaxmbd.numerics import Pattern, Sparsity, filled, normal_pattern

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
            return f"mass matrix by recursion: {self.recursive} operations (dense {self.dense})"
        return f"mass matrix dense: {self.dense} operations (by recursion {self.recursive})"


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


WORTH_IT = 0.6
"""Multiplications with blocks, relative to those without, below which blocks are used."""
TOO_MANY_ZEROS = 0.125
"""The same, if zeros count as well: compiling takes time for what is not in the program."""


def loop_blocks(
    parent: Sequence[int],
    speeds: Sequence[slice],
    row_speeds: Sequence[Sequence[int]],
    constraints: Sequence[slice],
) -> Sparsity | None:
    """The blocks of rows, or None if the matrices are to be treated as full.

    Constraints whose columns of the factor of the Gram matrix would have entries in the same rows
    make one block.

    Args:
        parent: index of each body's parent, -1 for the ground.
        speeds: the speeds of each body's joint to its parent.
        row_speeds: for each constraint row the speeds that it depends on.
        constraints: the rows of each, consecutive.
    """
    trees = _trees(parent, speeds)
    of_speed = [t for t, tree in enumerate(trees) for _ in tree]
    touched: list[set[int]] = []
    for rows in constraints:
        found = {of_speed[k] for row in row_speeds[rows.start : rows.stop] for k in row}
        # One of no speeds goes with the constraint before it.
        touched.append(found or (touched[-1] if touched else {0}))
    single = _gram([rows.stop - rows.start for rows in constraints], touched)
    blocks: list[list[int]] = []
    for k in range(len(constraints)):
        if blocks and single.below[k - 1] == single.front(k):
            blocks[-1].append(k)
        else:
            blocks.append([k])
    rows = tuple(range(constraints[b[0]].start, constraints[b[-1]].stop) for b in blocks)
    together = [set().union(*(touched[k] for k in b)) for b in blocks]
    gram = _gram([len(r) for r in rows], together)
    if not _are_worth_it(gram):
        return None
    return Sparsity(trees, rows, tuple(tuple(sorted(t)) for t in together), gram)


def _are_worth_it(gram: Pattern) -> bool:
    """Whether multipliers of least norm, which cost the most, take much less work with blocks.

    Without blocks the vectors of the null space have entries in all rows that are connected.
    """
    work, connected = normal_pattern(gram).multiplications, list(gram.sizes)
    for k, below in enumerate(gram.below):
        if below:
            connected[below[0]] += connected[k]
            connected[k] = 0
    without, whole = (Pattern(tuple(n), ((),) * len(n)) for n in (connected, [sum(gram.sizes)]))
    most = WORTH_IT * without.multiplications, TOO_MANY_ZEROS * whole.multiplications
    return work < max(most)


def _trees(parent: Sequence[int], speeds: Sequence[slice]) -> tuple[range, ...]:
    """The speeds of each tree that hangs from the ground; those of bodies are consecutive."""
    starts = [place.start for p, place in zip(parent, speeds, strict=True) if p < 0]
    ends = [*starts[1:], speeds[-1].stop] if speeds else []
    pairs = zip(starts, ends, strict=True)
    return tuple(range(start, end) for start, end in pairs if end > start)


def _gram(sizes: Sequence[int], touched: Sequence[set[int]]) -> Pattern:
    """The pattern of the factor of the Gram matrix."""
    last: dict[int, list[int]] = {}
    for k, trees in enumerate(touched):
        for tree in trees:
            last.setdefault(tree, []).append(k)
    return filled(sizes, ((i, j) for rows in last.values() for i in rows for j in rows))
