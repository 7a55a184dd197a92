"""Parts of a description with other names for the bodies, joints and points they refer to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from jaxmbd.model.numbers import ComRef, PointRef, Toward, changed
from jaxmbd.model.part import Part

P = TypeVar("P", bound=Part)


def renamed(part: P, parts: Mapping[str, str], points: Mapping[str, str]) -> P:
    """A body, joint, force, drive or coupling that refers to things by other names.

    Args:
        part: the part.
        parts: new names of bodies and joints by their old ones; others stay.
        points: new names of points.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.model.renamed import renamed
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
