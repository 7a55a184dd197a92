"""Changed, added and removed parts of a description.

Parts may be given other names for the bodies, joints and points they refer to; which named points
the elements of a mechanism use is known here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import jax

from jaxmbd.model.numbers import ComRef, PointRef, Toward, changed
from jaxmbd.model.part import Part
from jaxmbd.plumbing import meant, warn_user


class CheckedPoints(dict[str, Any]):
    """Points of a mechanism that is made from another, for which much has been told.

    Attributes:
        earlier: the mechanism that is being changed: what looks wrong in it has been told.
        image: whether it is an image of that one, in which nothing else can look wrong.
    """

    def __init__(self, points: Mapping[str, Any], earlier: Any = None, image: bool = False):
        super().__init__(points)
        self.earlier = earlier
        self.image = image


def used_points(elements: Any) -> set[str]:
    """Names of the points that bodies, joints, forces, drives, … refer to."""

    def is_reference(x: Any) -> bool:
        return isinstance(x, (PointRef, Toward))

    found: set[str] = set()
    for leaf in jax.tree_util.tree_leaves(elements, is_leaf=is_reference):
        if isinstance(leaf, PointRef):
            found.add(leaf.name)
        elif isinstance(leaf, Toward):
            found |= {leaf.start, leaf.end}
    return found


def warn_of_new_points(names: Sequence[str], elements: Any) -> None:
    """One warning that names the points of a change that are new and that no element uses."""
    used = used_points(elements) if names else set()
    if unused := [name for name in names if name not in used]:
        warn_user(
            f"the points {unused} are new, and no element uses them: is a name misspelt? "
            f"Points in use: {sorted(used)}",
        )


Parts = Mapping[str, Mapping[str, Any]]
"""Kind of part ("bodies", "joints", …) to name to part."""


def merged(old: Parts, changes: Parts) -> dict[str, Any]:
    """The parts with changes by name, where None removes a part.

    A point made of an element's literal coordinates (``element.at``) goes with the element, unless
    another one refers to it or it is given anew.

    Raises:
        ValueError: a part to be removed is not there.
    """
    missing = [
        f"there is no {name!r} among the {key} to remove"
        f"{meant(name, old[key]) or f': {list(old[key])}'}"
        for key, parts in changes.items()
        for name, part in parts.items()
        if part is None and name not in old[key]
    ]
    if missing:
        raise ValueError("; ".join(missing))
    new = {key: {**parts, **changes[key]} for key, parts in old.items()}
    new = {key: {n: x for n, x in parts.items() if x is not None} for key, parts in new.items()}
    if orphans := _own_points(old, changes):
        used = used_points([parts for key, parts in new.items() if key != "points"])
        for name in orphans - used - changes["points"].keys():
            new["points"].pop(name, None)
    return new


def _own_points(old: Parts, changes: Parts) -> set[str]:
    """Points named after elements that are replaced or removed."""
    found = set()
    for key, parts in changes.items():
        for name in parts.keys() & old[key].keys():
            for field, ref in getattr(old[key][name], "points", {}).items():
                if isinstance(ref, PointRef) and ref.name == f"{name}.{field}":
                    found.add(ref.name)
    return found


P = TypeVar("P", bound=Part)


def renamed(part: P, parts: Mapping[str, str], points: Mapping[str, str]) -> P:
    """A body, joint, force, drive or coupling that refers to things by other names.

    Args:
        part: the part.
        parts: new names of bodies and joints by their old ones; others stay.
        points: new names of points.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.model.parts import renamed
        >>> rod = mbd.Rod("rack", "upright", at_a="inner", at_b="outer")
        >>> renamed(rod, {"upright": "left_upright"}, {"outer": "left_outer"})
        Rod(
          a='rack',
          b='left_upright',
          at_a=PointRef(name='inner'),
          at_b=PointRef(name='left_outer')
        )
    """
    attached = _attached(part)
    known = {old: new for old, new in parts.items() if old in attached}
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(part):  # pyright: ignore[reportArgumentType]
        old = getattr(part, field.name)
        static = field.metadata.get("static")
        new = _renamed_name(old, known) if static else _renamed_value(old, parts, points)
        if new is not old:
            changes[field.name] = new
    return changed(part, **changes)


def _attached(part: Part) -> set[str]:
    """Names of the bodies and joints that a part refers to."""
    found = {getattr(part, n, None) for n in ("a", "b", "body", "joint")}
    for several in ("bodies", "joints"):
        found |= {x for x in getattr(part, several, ()) if isinstance(x, str)}
    found |= {joint for joint, _ in getattr(part, "terms", ())}
    return {x for x in found if isinstance(x, str)}


def _renamed_name(x: Any, names: Mapping[str, str]) -> Any:
    if isinstance(x, str):
        return names.get(x, x)
    if isinstance(x, tuple) and not hasattr(x, "_fields"):
        return tuple(_renamed_name(y, names) for y in x)
    return x


def _renamed_value(x: Any, parts: Mapping[str, str], points: Mapping[str, str]) -> Any:
    if isinstance(x, PointRef):
        return PointRef(points.get(x.name, x.name))
    if isinstance(x, ComRef):
        return ComRef(parts.get(x.body, x.body))
    if isinstance(x, Toward):
        return Toward(points.get(x.start, x.start), points.get(x.end, x.end))
    if isinstance(x, Part) and _attached(x):
        return renamed(x, parts, points)
    return x
