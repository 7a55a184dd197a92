"""Spanning tree and cut joints of least maximal cumulative joint freedom."""

from __future__ import annotations

import heapq
import itertools
import math

from jaxmbd.model.mechanism import Edge, Structure
from jaxmbd.model.numbers import GROUND

# Choices of cut joints that are searched whole (a fraction of a second).
_SEARCHED = 2000

Tree = dict[str, Edge]
"""Body to the joint that carries it."""


def spanning_tree(structure: Structure) -> Tree:
    """Choose which joints carry the bodies; the others are cut.

    A branch's cumulative degree of freedom (CDOF) is the sum of its joints' (Hanzaki et al.
    2009, section 3.1). The largest CDOF is made least; of such trees the one with fewest
    constraint rows is taken, and of those the one that cuts the joints declared last. Small graphs
    are searched whole. In large ones the tree of shortest paths from the ground, weighted by joint
    freedom, makes the largest CDOF least, and exchanges of one joint for another then lower the
    number of rows. Joints that are driven or coupled are kept in the tree before all this.

    Raises:
        ValueError: where the user's `cut` leaves a loop or cuts a body off.
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
    """Couplings and drives, each with a joint whose coordinate it takes."""
    coupled = [(name, joint) for name, terms in structure.couplings for joint, _ in terms]
    return coupled + [(name, joint) for name, joint, _ in structure.drives if joint is not None]


def _best_of_all(structure: Structure, edges: list[Edge], size: int, held: set[str]) -> Tree:
    """The best tree of all, by going through every choice of cut joints."""

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
    """Take the held joints into the tree, each for the joint that leaves the least CDOF."""
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
    """CDOF of each body: the freedom of all joints between it and the ground."""
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
    """Dijkstra's tree; of paths of equal CDOF the joint of least freedom, then declared first."""
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
    """Exchange tree joints for ones of less freedom while the largest CDOF stays."""
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
