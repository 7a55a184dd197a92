"""Changed, added and removed parts of a description, other names for them, and their types' names.

`register_type` makes types of joints, forces and couplings known to mechanism files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from jaxmbd.model.coupling import COUPLING_TYPES, BaseCoupling
from jaxmbd.model.forces import FORCE_TYPES, ForceElement
from jaxmbd.model.joints import JOINT_TYPES, Joint
from jaxmbd.model.numbers import ComRef, PointRef, Toward, changed
from jaxmbd.model.part import Part
from jaxmbd.model.points import used_points
from jaxmbd.plumbing import meant

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
        >>> from jaxmbd.model import renamed
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
    if isinstance(x, tuple) and x and all(isinstance(y, PointRef) for y in x):
        return tuple(_renamed_value(y, parts, points) for y in x)
    return x


T = TypeVar("T", bound=type)

TABLES: tuple[tuple[type, dict[str, type]], ...] = (
    (Joint, JOINT_TYPES),
    (ForceElement, FORCE_TYPES),
    (BaseCoupling, COUPLING_TYPES),
)


def register_type(cls: T) -> T:
    """Make a user-defined joint type, force element or coupling known to `save` and `load`.

    Raises:
        TypeError: the class is none of these.
        ValueError: another class has its name.

    Example:
        >>> import jaxmbd as mbd
        >>> @mbd.register_type
        ... class Bearing(mbd.Revolute):
        ...     "A revolute joint under a name of its own."
    """
    table = next((types for base, types in TABLES if issubclass(cls, base)), None)
    if table is None:
        raise TypeError(f"{cls.__name__} is no joint type, force element or coupling")
    old = table.get(cls.__name__, cls)
    if (old.__module__, old.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"the name {cls.__name__!r} is taken by {old!r}; choose another")
    table[cls.__name__] = cls
    return cls


def is_registered(element: object) -> bool:
    """Whether the type of a part can be saved and loaded by name."""
    for base, types in TABLES:
        if isinstance(element, base):
            return types.get(type(element).__name__) is type(element)
    return True
