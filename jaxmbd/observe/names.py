"""Checks of the names in observables and experiments, with the nearest name that exists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jaxmbd.model.mechanism import Mechanism
from jaxmbd.model.numbers import GROUND
from jaxmbd.numerics.near_names import meant


def unknown(kind: str, name: Any, known: Iterable[str]) -> list[str]:
    """A problem if there is no part of that name."""
    known = list(known)
    if name in known:
        return []
    return [f"there is no {kind} {name!r}{meant(name, known) or f'; there are {known}'}"]


def unknown_point(mech: Mechanism, body: str, point: Any) -> list[str]:
    """Problems of a point of a body, given by name or coordinates."""
    found = unknown("body", body, (*mech.structure.bodies, GROUND))
    if isinstance(point, str):
        return found + unknown("point", point, mech.structure.points)
    if len(point) != (size := 2 if mech.structure.planar else 3):
        found.append(f"the point {point} has {len(point)} coordinates; give {size}, or a name")
    return found


def unknown_coordinate(mech: Mechanism, joint: str, index: int) -> list[str]:
    """Problems of a joint coordinate."""
    names = [e.name for e in mech.structure.joints if e.kind.can_be_in_tree]
    if found := unknown("joint with coordinates", joint, names):
        return found
    kind = mech.joint(joint)
    if 0 <= index < kind.nq:
        return []
    return [f"joint {joint!r} has {kind.nq} coordinates ({kind.coordinates_text}), not {index}"]


def as_point(x: Any) -> Any:
    """A point as a name or a tuple, which can be compared and hashed."""
    return x if isinstance(x, str) else tuple(float(y) for y in x)
