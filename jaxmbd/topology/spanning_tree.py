"""Spanning tree and cut joints of least maximal cumulative joint freedom."""

from __future__ import annotations

import heapq

from jaxmbd.model.mechanism import Edge, Structure
from jaxmbd.model.numbers import GROUND

Tree = dict[str, Edge]
"""Body to the joint that carries it."""


def spanning_tree(structure: Structure) -> Tree:
    """Choose which joints carry the bodies; the others are cut.

    A branch's cumulative degree of freedom (CDOF) is the sum of its joints' (Hanzaki et al.
    2009, section 3.1). The tree of shortest paths from the ground, weighted by joint freedom,
    makes the largest CDOF least. Exchanges that keep that maximum then lower the number of
    constraint rows, and ties cut the joint declared last.

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
    return _fewer_rows(_shortest_paths(structure, edges), edges)


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


def _fewer_rows(tree: Tree, edges: list[Edge]) -> Tree:
    """Swap carrying joints for ones of less freedom while the largest CDOF stays."""
    largest = max(cumulative_freedom(tree).values())
    improved = True
    while improved:
        improved = False
        for edge in edges:
            for body in (edge.b, edge.a):
                if body == GROUND or edge in tree.values() or edge.kind.nv >= tree[body].kind.nv:
                    continue
                trial = {**tree, body: edge}
                if not _is_tree(trial) or max(cumulative_freedom(trial).values()) > largest:
                    continue
                tree, improved = trial, True
    return tree


def _is_tree(tree: Tree) -> bool:
    for body in tree:
        seen = set()
        while body != GROUND:
            if body in seen:
                return False
            seen.add(body)
            body = _other(tree[body], body)
    return True
