"""Loops that do not touch one another: which blocks of J and of its Gram matrix are zero.

The trees that hang from the ground move independently, so that M has a block for each, and the
Gram matrix ``J M⁻¹ Jᵀ`` has a block only for constraints that touch a common tree. In a long chain
of loops that is the case for neighbours only, and the work is proportional to the number of loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbd.numerics import Pattern, Sparsity, filled, normal_pattern

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
