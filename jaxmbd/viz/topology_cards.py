"""What a topology diagram says of each body and each cut joint, and which is drawn below which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from jaxmbd.analysis import Redundancy
from jaxmbd.graph import Topology, loops, topology
from jaxmbd.model import Mechanism
from jaxmbd.model.numbers import GROUND

_LETTERS = {
    "Revolute": "R",
    "Prismatic": "P",
    "Helical": "H",
    "Cylindrical": "C",
    "Universal": "U",
    "Spherical": "S",
    "Planar": "E",
    "Free": "6",
    "Fixed": "0",
    "Rod": "L",
}
"""Of joint types, as usual in the theory of mechanisms (E: ebene, plane)."""


class Card(NamedTuple):
    """A body with the tree joint above it, or a cut joint.

    Attributes:
        title: name of the body, or of the cut joint.
        type: name of the joint's type.
        lines: what else is written.
        loops: numbers of the loops that the joint is in, from 1.
        rows: of a cut joint, for each row whether it is redundant; of a body None.
        other: of a cut joint the body that it is connected to, beside the one that it is below.
        idle: whether the body spins idly.
    """

    title: str
    type: str
    lines: tuple[str, ...]
    loops: tuple[int, ...]
    rows: tuple[bool, ...] | None = None
    other: str | None = None
    idle: bool = False


def letter(kind: str) -> str:
    """One or two letters for a joint type."""
    return _LETTERS.get(kind, kind[:2])


def cards(
    mech: Mechanism, found: Redundancy | None = None
) -> tuple[dict[str, Card], dict[str, list[str]]]:
    """The cards by key, and the keys below each key; ``"ground"`` is the root and has no card.

    Args:
        mech: the mechanism.
        found: redundant rows and idle spins to mark, if any.
    """
    top = topology(mech)
    kinds = {e.name: e.kind.__name__.removesuffix("InPlane") for e in mech.structure.joints}
    numbers: dict[str, tuple[int, ...]] = {}
    for k, loop in enumerate(loops(mech), 1):
        for joint in (*loop.joints, loop.cut):
            numbers[joint] = (*numbers.get(joint, ()), k)
    redundant = set(found.mobility.redundant) if found else set()
    idle = found.idle if found else {}
    all_cards: dict[str, Card] = {}
    below: dict[str, list[str]] = {}
    for i, (body, joint) in enumerate(zip(top.bodies, top.tree, strict=True)):
        below.setdefault(GROUND if top.parent[i] < 0 else top.bodies[top.parent[i]], []).append(
            body
        )
        lines = (f"{joint}  {_slice('q', top.layout[joint].q)}", *_held(mech, top, joint))
        lines += ("spins idly",) if body in idle else ()
        all_cards[body] = Card(body, kinds[joint], lines, numbers.get(joint, ()), idle=body in idle)
    for edge in mech.structure.joints:
        if edge.name not in top.cut:
            continue
        near, far = sorted((edge.a, edge.b), key=lambda body: -_depth(top, body))
        rows = top.layout[edge.name].rows
        assert rows is not None
        marks = tuple(name in redundant for name in top.row_names[rows])
        below.setdefault(near, []).append(_key(edge.name))
        all_cards[_key(edge.name)] = Card(
            edge.name,
            kinds[edge.name],
            (_slice("rows", rows),),
            numbers[edge.name],
            marks,
            far,
        )
    return all_cards, below


def links(cards: Mapping[str, Card]) -> list[tuple[str, str]]:
    """The cut joints between two bodies: the card's key, and the other body."""
    return [(key, card.other) for key, card in cards.items() if card.other not in (None, GROUND)]  # type: ignore[misc]


def _key(cut: str) -> str:
    return f"cut joint {cut}"  # a body may have the same name


def _depth(top: Topology, body: str) -> int:
    depth, i = 0, top.index(body)
    while i >= 0:
        depth, i = depth + 1, top.parent[i]
    return depth


def _slice(name: str, place: slice | None) -> str:
    if place is None or place.stop == place.start:
        return "no coordinates"
    last = place.stop - 1
    return (
        f"{name}[{place.start}]" if last == place.start else f"{name}[{place.start}:{place.stop}]"
    )


def _held(mech: Mechanism, top: Topology, joint: str) -> tuple[str, ...]:
    """The drives and couplings of a joint's coordinates, with their rows."""
    names = [f"drive {n}" for n, j, _ in mech.structure.drives if j == joint]
    for name, terms in mech.structure.couplings:
        if any(j == joint for j, _ in terms):
            names.append(f"coupling {name}")
    return tuple(f"{n}  {_slice('row', top.layout[n.split(' ', 1)[1]].rows)}" for n in names)
