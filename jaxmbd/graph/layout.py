"""`Topology`: spanning tree, cut joints and their loops, layout of coordinates and rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from jaxmbd.graph.elimination import Elimination, elimination, loop_blocks
from jaxmbd.graph.spanning_tree import (
    Tree,
    cumulative_freedom,
    held_coordinates,
    one_by_one,
    serial_runs,
    spanning_tree,
)
from jaxmbd.model import GROUND, Edge, Mechanism, Structure
from jaxmbd.numerics import Sparsity
from jaxmbd.plumbing import meant


class Place(NamedTuple):
    """Slices of a joint: `q` and `v` of a tree joint, constraint `rows` of a cut one.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.topology(mbd.zoo.rssr()).layout["crank"].q
        slice(0, 1, None)
    """

    q: slice | None
    v: slice | None
    rows: slice | None


@dataclass(frozen=True, eq=False)
class Topology:
    """Topology and layout, derived once from a mechanism's structure alone; hashable, printable.

    Attributes:
        bodies: names in tree order: parents before children, each branch consecutive.
        parent: index of each body's parent in `bodies`, -1 for the ground.
        tree: names of the joints from parent to body, in the same order.
        reversed_: whether the joint was declared with the child as a and the parent as b.
        cut: joints that are constraint rows (rods among them), in order of declaration.
        couplings: names of the couplings, whose rows follow those of the cut joints.
        drives: names of the drives, whose rows come last.
        layout: `Place` of each joint, coupling and drive, by name.
        nq, nv, nc: numbers of coordinates, speeds and constraint rows.
        support: for each body the indices in v of the joints between it and the ground.
        cdof: cumulative degree of freedom of each body (see `spanning_tree`).
        row_names, row_kinds: of each constraint row; kinds are "force" or "moment".
        row_speeds: for each constraint row the indices in v of the speeds that it can depend on.
        row_groups: the constraint rows, those together that depend on common speeds; no row of one
            group is a combination of rows of others.
        subtree_rows: for each body the constraint rows that depend on its speeds or on those of a
            descendant.
        speed_names, speed_kinds: of each speed; kinds are "travel" or "angle".
        elimination: which way the mass matrix is factored.
        loop_blocks: the blocks of J and M, None if they are treated as full.
        runs: the bodies in runs of equal joints, which recursions visit in loops.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.topology(mbd.zoo.rssr()).layout["rocker"].v
        slice(4, 5, None)
    """

    bodies: tuple[str, ...]
    parent: tuple[int, ...]
    tree: tuple[str, ...]
    reversed_: tuple[bool, ...]
    cut: tuple[str, ...]
    couplings: tuple[str, ...]
    drives: tuple[str, ...]
    layout: Mapping[str, Place]
    nq: int
    nv: int
    nc: int
    support: tuple[tuple[int, ...], ...]
    cdof: Mapping[str, int]
    row_names: tuple[str, ...]
    row_kinds: tuple[str, ...]
    row_speeds: tuple[tuple[int, ...], ...]
    row_groups: tuple[tuple[int, ...], ...]
    subtree_rows: tuple[tuple[int, ...], ...]
    speed_names: tuple[str, ...]
    speed_kinds: tuple[str, ...]
    elimination: Elimination
    loop_blocks: Sparsity | None
    runs: tuple[range, ...]

    def index(self, body: str) -> int:
        """Index of a body in `bodies`, -1 for the ground.

        Raises:
            ValueError: there is no body of that name.
        """
        if body != GROUND and body not in self.bodies:
            raise ValueError(f"there is no body {body!r}{meant(body, self.bodies)}")
        return -1 if body == GROUND else self.bodies.index(body)

    def columns(self, body: str) -> tuple[int, ...]:
        """Indices of the speeds in v that move `body`."""
        return () if body == GROUND else self.support[self.index(body)]

    def __str__(self) -> str:
        lines = [f"{len(self.bodies)} bodies, nq = {self.nq}, nv = {self.nv}, nc = {self.nc}"]
        for i, body in enumerate(self.bodies):
            parent = GROUND if self.parent[i] < 0 else self.bodies[self.parent[i]]
            place = self.layout[self.tree[i]]
            q = "-" if place.q is None else f"q[{place.q.start}:{place.q.stop}]"
            freedoms = self.cdof[body]
            lines.append(
                f"  {i + 1:2d} {parent} -> {body} by {self.tree[i]} {q}, {freedoms} joint "
                f"freedom{'s' * (freedoms != 1)} from the ground"
            )
        kinds = (("cut", self.cut), ("coupling", self.couplings), ("drive", self.drives))
        for kind, name in ((k, n) for k, names in kinds for n in names):
            rows = self.layout[name].rows
            assert rows is not None
            lines.append(f"  {kind} {name}: rows[{rows.start}:{rows.stop}]")
        lines.append(f"  {self.elimination}")
        for run in self.runs:
            if len(run) > 1:
                lines.append(f"  {self.bodies[run[0]]} to {self.bodies[run[-1]]} in a loop")
        return "\n".join(lines)


def topology(mech: Mechanism) -> Topology:
    """Spanning tree, cut joints and coordinate layout of a mechanism.

    Cached by structure, so that it is not derived again when parameter values change.

    Raises:
        ValueError: the user's `cut` does not leave a tree, or cuts a driven or coupled joint, or
            one with an armature.
        TypeError: it is no mechanism.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.topology(mbd.zoo.rssr()).cut
        ('B',)
    """
    if not isinstance(mech, Mechanism):
        cure = "its .mechanism" if hasattr(mech, "mechanism") else "a jaxmbd.Mechanism"
        raise TypeError(f"{type(mech).__name__} is no mechanism; give {cure}")
    return _topology(mech.structure)


@cache
def _topology(structure: Structure) -> Topology:
    tree = spanning_tree(structure)
    bodies = _number(structure, tree)
    edges = [tree[b] for b in bodies]
    parents = [e.a if e.b == b else e.b for b, e in zip(bodies, edges, strict=True)]
    parent = tuple(-1 if p == GROUND else bodies.index(p) for p in parents)
    layout, nq, nv = _tree_layout(edges)
    carried = {e.name for e in edges}
    cut = tuple(e for e in structure.joints if e.name not in carried)
    nc = 0
    for edge in cut:
        layout[edge.name] = Place(None, None, slice(nc, nc + len(edge.kind.rows)))
        nc += len(edge.kind.rows)
    _check_carried(structure, carried, [e.name for e in cut])
    row_names, row_kinds = _row_names(cut), tuple(k for e in cut for k in e.kind.rows)
    for name, kind in _coordinate_rows(structure, edges):
        layout[name] = Place(None, None, slice(nc, nc + 1))
        row_names, row_kinds, nc = (*row_names, name), (*row_kinds, kind), nc + 1
    support = _support(parent, edges, layout)
    row_speeds = _row_speeds(structure, cut, layout, dict(zip(bodies, support, strict=True)))
    speeds = [v for e in edges if (v := layout[e.name].v) is not None]
    reversed_ = tuple(e.a == b for b, e in zip(bodies, edges, strict=True))
    rows = _subtree_rows(parent, speeds, row_speeds)
    runs = serial_runs(
        parent,
        [
            (e.kind, r, c) if e.kind.nv else i
            for i, (e, r, c) in enumerate(zip(edges, reversed_, rows, strict=True))
        ],
    )
    factored = elimination(parent, speeds, row_speeds, runs, planar=structure.planar)
    if not factored.is_recursive:
        runs = one_by_one(len(bodies))
        factored = elimination(parent, speeds, row_speeds, runs, planar=structure.planar)
    held = [r for place in layout.values() if (r := place.rows) is not None and r.stop > r.start]
    return Topology(
        bodies=bodies,
        parent=parent,
        tree=tuple(e.name for e in edges),
        reversed_=reversed_,
        cut=tuple(e.name for e in cut),
        couplings=tuple(name for name, _ in structure.couplings),
        drives=tuple(name for name, _, _ in structure.drives),
        layout=MappingProxyType(layout),
        nq=nq,
        nv=nv,
        nc=nc,
        support=support,
        cdof=MappingProxyType(cumulative_freedom(tree)),
        row_names=row_names,
        row_kinds=row_kinds,
        row_speeds=row_speeds,
        row_groups=_row_groups(row_speeds),
        subtree_rows=rows,
        speed_names=tuple(
            e.name if e.kind.nv == 1 else f"{e.name}[{i}]" for e in edges for i in range(e.kind.nv)
        ),
        speed_kinds=tuple(k for e in edges for k in e.kind.speeds),
        elimination=factored,
        loop_blocks=loop_blocks(parent, speeds, row_speeds, held),
        runs=runs,
    )


def _row_groups(row_speeds: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    groups: list[tuple[set[int], list[int]]] = []
    for row, speeds in enumerate(row_speeds):
        near = [g for g in groups if not g[0].isdisjoint(speeds)]
        groups = [g for g in groups if g not in near]
        speeds_of_all = set(speeds).union(*(g[0] for g in near))
        groups.append((speeds_of_all, [*(r for g in near for r in g[1]), row]))
    return tuple(sorted(tuple(sorted(rows)) for _, rows in groups))


def _subtree_rows(
    parent: tuple[int, ...], speeds: list[slice], row_speeds: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], ...]:
    found = [
        {c for c, row in enumerate(row_speeds) if not set(row).isdisjoint(range(v.start, v.stop))}
        for v in speeds
    ]
    for i in range(len(parent) - 1, -1, -1):
        if parent[i] >= 0:
            found[parent[i]] |= found[i]
    return tuple(tuple(sorted(rows)) for rows in found)


def _check_carried(structure: Structure, carried: set[str], cut: list[str]) -> None:
    """Raise an error for drives, couplings and armatures of cut joints."""
    for name, joint in held_coordinates(structure):
        if joint not in carried:
            kinds = (("coupling", structure.couplings), ("armature", structure.armatures))
            kind = next((kind for kind, parts in kinds if name in dict(parts)), "drive")
            raise ValueError(
                f"{kind} '{name}' is on the cut joint '{joint}'; in cut={cut} replace '{joint}' by "
                "another joint of its loop"
            )


def _coordinate_rows(structure: Structure, edges: list[Edge]) -> Iterator[tuple[str, str]]:
    """Name and kind of the rows of couplings and drives: "moment" if the coordinate is an angle."""
    speeds = {e.name: e.kind.speeds for e in edges}
    last = [(name, *terms[-1]) for name, terms in structure.couplings]
    for name, joint, index in [*last, *structure.drives]:
        angle = joint is not None and speeds[joint][index] == "angle"
        yield name, "moment" if angle else "force"


def neutral(mech: Mechanism) -> np.ndarray:
    """Coordinates q (nq,) of the drawn configuration: zeros, and identity quaternions.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.neutral(mbd.zoo.double_pendulum())
        array([0., 0.])
    """
    top = topology(mech)
    parts = [mech.joint(name).neutral() for name in top.tree]
    return np.concatenate([*parts, np.zeros(0)]).astype(mech.dtype)


def _number(structure: Structure, tree: Tree) -> tuple[str, ...]:
    """Bodies depth-first from the ground, children in the order of declaration of their joints."""
    order = {e.name: i for i, e in enumerate(structure.joints)}
    children: dict[str, list[str]] = {}
    for body, edge in sorted(tree.items(), key=lambda item: order[item[1].name]):
        children.setdefault(edge.a if edge.b == body else edge.b, []).append(body)
    numbered: list[str] = []
    stack = children.get(GROUND, [])[::-1]
    while stack:
        body = stack.pop()
        numbered.append(body)
        stack.extend(children.get(body, [])[::-1])
    return tuple(numbered)


def _tree_layout(edges: list[Edge]) -> tuple[dict[str, Place], int, int]:
    layout: dict[str, Place] = {}
    nq = nv = 0
    for edge in edges:
        q, v = slice(nq, nq + edge.kind.nq), slice(nv, nv + edge.kind.nv)
        layout[edge.name] = Place(q, v, None)
        nq, nv = q.stop, v.stop
    return layout, nq, nv


def _support(
    parent: tuple[int, ...], edges: list[Edge], layout: dict[str, Place]
) -> tuple[tuple[int, ...], ...]:
    support: list[tuple[int, ...]] = []
    for p, edge in zip(parent, edges, strict=True):
        v = layout[edge.name].v
        assert v is not None
        support.append((support[p] if p >= 0 else ()) + tuple(range(v.start, v.stop)))
    return tuple(support)


def _row_names(cut: tuple[Edge, ...]) -> tuple[str, ...]:
    names = []
    for edge in cut:
        if edge.kind.row_texts:
            names += [f"{edge.name} {text}" for text in edge.kind.row_texts]
            continue
        count = {"force": 0, "moment": 0}
        for kind in edge.kind.rows:
            count[kind] += 1
            names.append(f"{edge.name} {kind} {count[kind]}")
    return tuple(names)


def _row_speeds(
    structure: Structure,
    cut: tuple[Edge, ...],
    layout: Mapping[str, Place],
    support: Mapping[str, tuple[int, ...]],
) -> tuple[tuple[int, ...], ...]:
    """Of a cut joint those that move one of its bodies and not the other."""
    rows: list[tuple[int, ...]] = []
    for edge in cut:
        moved = set(support.get(edge.a, ())) ^ set(support.get(edge.b, ()))
        rows += [tuple(sorted(moved))] * len(edge.kind.rows)

    def speed(joint: str, index: int) -> int:
        place = layout[joint].v
        assert place is not None
        return place.start + index

    rows += [tuple(sorted({speed(*term) for term in terms})) for _, terms in structure.couplings]
    every = tuple(sorted({k for speeds in support.values() for k in speeds}))
    return (
        *rows,
        *(every if joint is None else (speed(joint, i),) for _, joint, i in structure.drives),
    )


class Loop(NamedTuple):
    """The fundamental circuit of a cut joint: the way through the tree between its two bodies.

    Attributes:
        cut: name of the cut joint.
        bodies: from the joint's body b through the tree to its body a; ``"ground"`` among them if
            the way passes it.
        joints: the tree joints between these bodies, in the same order.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.graph import loops
        >>> loops(mbd.zoo.four_bar())[0].bodies
        ('rocker', 'ground', 'crank', 'coupler')
    """

    cut: str
    bodies: tuple[str, ...]
    joints: tuple[str, ...]

    def __str__(self) -> str:
        ways = zip(self.joints, self.bodies[1:], strict=True)
        return f"{self.bodies[0]} " + "".join(f"–{j}– {b} " for j, b in ways) + f"–{self.cut}–"


def loops(mech: Mechanism) -> tuple[Loop, ...]:
    """The independent loops, one for each cut joint, in the order of their rows.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.graph import loops
        >>> print(*loops(mbd.zoo.rssr()))
        rocker –rocker– ground –crank– crank –A– coupler –B–
    """
    top = topology(mech)
    ends = {e.name: (e.a, e.b) for e in mech.structure.joints}
    return tuple(_loop(top, cut, *ends[cut]) for cut in top.cut)


def _loop(top: Topology, cut: str, a: str, b: str) -> Loop:
    up, down = _to_ground(top, b), _to_ground(top, a)
    while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
        up, down = up[:-1], down[:-1]
    bodies = (*up, *down[-2::-1])
    between = (_joint(top, x, y) for x, y in zip(bodies, bodies[1:], strict=False))
    return Loop(cut, bodies, tuple(between))


def _to_ground(top: Topology, body: str) -> list[str]:
    """The body, its parent and so on."""
    way = [body]
    while way[-1] != GROUND:
        parent = top.parent[top.index(way[-1])]
        way.append(GROUND if parent < 0 else top.bodies[parent])
    return way


def _joint(top: Topology, x: str, y: str) -> str:
    """The tree joint between a body and its parent, given in either order."""
    i, j = top.index(x), top.index(y)
    return top.tree[i if i >= 0 and top.parent[i] == j else j]
