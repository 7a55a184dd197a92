"""Spanning tree and cut joints of least maximal cumulative joint freedom.

Runs of equal joints: bodies in a row, each on the one before, that recursions visit in a loop.

Straight-line code for a long chain is longer than a processor's instruction cache, and so is the
time to compile it. A loop over its bodies is neither.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Hashable, Sequence

from jaxmbd.model import GROUND, Edge, Structure

# Most choices of cut joints that are searched exhaustively (a fraction of a second).
_SEARCHED = 2000

Tree = dict[str, Edge]
"""The joint from each body to its parent, by the name of the body."""


def spanning_tree(structure: Structure) -> Tree:
    """Choose the tree joints; the others are cut.

    The cumulative degree of freedom (CDOF) of a body is the sum over the joints between it and the
    ground (Hanzaki et al. 2009, section 3.1). The tree minimises, in this order: the number of
    driven, coupled or geared joints that are cut, the largest CDOF, the number of constraint rows;
    ties cut the joints declared last. Small graphs are searched exhaustively. For large ones a
    heuristic starts from the tree of shortest paths from the ground, weighted by joint freedom,
    which minimises the largest CDOF; it takes the driven, coupled and geared joints into the tree,
    and then exchanges single joints to reduce the number of rows.

    Raises:
        ValueError: the user's `cut` leaves a loop or disconnects a body.
    """
    edges = [e for e in structure.joints if e.kind.can_be_in_tree]
    if structure.cut is not None:
        edges = [e for e in edges if e.name not in structure.cut]
        tree = _shortest_paths(structure, edges)
        loops = [e.name for e in edges if e not in tree.values()]
        off = [b for b in structure.bodies if b not in tree]
        if off or loops:
            raise ValueError(
                f"cut={list(structure.cut)} does not leave a tree: "
                + (f"bodies {off} are cut off from the ground; " if off else "")
                + (f"joints {loops} still close loops; cut one joint in each loop" if loops else "")
            )
        return tree
    tree = _shortest_paths(structure, edges)
    held = {joint for _, joint in held_coordinates(structure)}
    if math.comb(len(edges), len(tree)) <= _SEARCHED:
        return _best_of_all(structure, edges, len(tree), held)
    return _fewer_rows(structure, _with_held(structure, tree, edges, held), edges, held)


def held_coordinates(structure: Structure) -> list[tuple[str, str]]:
    """(name, joint) for each joint whose coordinate a coupling, drive or armature uses."""
    coupled = [(name, joint) for name, terms in structure.couplings for joint, _ in terms]
    driven = [(name, joint) for name, joint, _ in structure.drives if joint is not None]
    return [*coupled, *driven, *structure.armatures]


def _best_of_all(structure: Structure, edges: list[Edge], size: int, held: set[str]) -> Tree:
    """The best tree, by exhaustive search over the choices of tree joints."""

    def rank(kept: tuple[int, ...]) -> tuple[int, int, int, tuple[int, ...]] | None:
        tree = _shortest_paths(structure, [edges[i] for i in kept])
        if len(tree) < size:
            return None
        freedom = sum(edges[i].kind.nv for i in kept)
        lost = len(held) - sum(edges[i].name in held for i in kept)
        return lost, max(cumulative_freedom(tree).values()), freedom, kept

    ranks = filter(None, map(rank, itertools.combinations(range(len(edges)), size)))
    return _shortest_paths(structure, [edges[i] for i in min(ranks)[3]])


def _with_held(structure: Structure, tree: Tree, edges: list[Edge], held: set[str]) -> Tree:
    """Take the held joints into the tree, each in exchange for the joint that gives least CDOF."""
    for edge in edges:
        if edge.name not in held or edge in tree.values():
            continue
        trials = []
        for old in tree.values():
            kept = [e for e in edges if e == edge or (e in tree.values() and e != old)]
            trial = _shortest_paths(structure, kept)
            if old.name not in held and len(trial) == len(tree):
                trials.append(trial)
        if trials:
            tree = min(trials, key=lambda t: max(cumulative_freedom(t).values()))
    return tree


def cumulative_freedom(tree: Tree) -> dict[str, int]:
    """CDOF of each body: the sum of the freedoms of the joints between it and the ground."""
    total = {GROUND: 0}

    def freedom(body: str) -> int:
        if body not in total:
            edge = tree[body]
            total[body] = freedom(_other(edge, body)) + edge.kind.nv
        return total[body]

    for body in tree:
        freedom(body)
    return total


def _other(edge: Edge, body: str) -> str:
    return edge.a if edge.b == body else edge.b


def _shortest_paths(structure: Structure, edges: list[Edge]) -> Tree:
    """Dijkstra's tree of least CDOF; ties go to the joint of least freedom, then first declared."""
    order = {e.name: i for i, e in enumerate(structure.joints)}
    tree: Tree = {}
    queue: list[tuple[int, int, int, str, Edge | None]] = [(0, 0, 0, GROUND, None)]
    done: dict[str, int] = {}
    while queue:
        distance, _, _, body, edge = heapq.heappop(queue)
        if body in done:
            continue
        done[body] = distance
        if edge is not None:
            tree[body] = edge
        for e in edges:
            if body in (e.a, e.b) and _other(e, body) not in done:
                key = (distance + e.kind.nv, e.kind.nv, order[e.name], _other(e, body), e)
                heapq.heappush(queue, key)  # type: ignore[misc]
    return tree


def _fewer_rows(structure: Structure, tree: Tree, edges: list[Edge], held: set[str]) -> Tree:
    """Exchange tree joints for ones of less freedom without increasing the largest CDOF."""
    largest = max(cumulative_freedom(tree).values())
    improved = True
    while improved:
        improved = False
        carrying = list(tree.values())
        for edge in (e for e in edges if e not in carrying):
            loose = [e for e in carrying if e.kind.nv > edge.kind.nv and e.name not in held]
            for old in loose:
                kept = [e for e in edges if e == edge or (e in carrying and e != old)]
                trial = _shortest_paths(structure, kept)
                if len(trial) < len(tree) or max(cumulative_freedom(trial).values()) > largest:
                    continue
                tree, improved = trial, True
                break
            if improved:
                break
    return tree


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
