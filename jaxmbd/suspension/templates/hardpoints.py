"""Hardpoints given to a template: whether they are all there and draw what it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxmbd.model import UNITS, TablePoints, is_concrete, number
from jaxmbd.plumbing import meant, refuse
from jaxmbd.suspension.templates.parts import Parts

_SMALLEST, _LARGEST, _USUAL = 0.2, 20.0, 2.5
"""Sizes of a corner's drawing that are believed, and a usual one, in radii of its tyre."""
_APART = 1e-4
"""How far apart the ends of one part are believed to be, in radii of the tyre."""


def checked(
    template: str, points: Mapping[str, Any], parts: Sequence[Parts], radius: Any
) -> dict[str, Any]:
    """The points (3,) [m] of a template by name.

    Args:
        template: its name.
        points: as they were given.
        parts: what it draws.
        radius: of the tyre [m].

    Raises:
        ValueError: lists all that is wrong: names that are missing or unknown, what is no point,
            another unit, ends of one part at one place.
    """
    found = _name_problems(points, parts)
    known = {name for part in parts for name in part.points}
    p = {name: number(x) for name, x in points.items() if name in known}
    wrong = [name for name, x in p.items() if not _is_point(x)]
    found += [f"{name!r} is {points[name]!r:.60}; give three finite numbers [m]" for name in wrong]
    drawn = {
        name: np.asarray(x, float) for name, x in p.items() if name not in wrong and is_concrete(x)
    }
    scale = _scale_problems(points, drawn, float(radius)) if is_concrete(radius) else []
    if not scale and is_concrete(radius):
        found += _drawn_problems(parts, drawn, _APART * float(radius))
    refuse(f"template {template!r}, hardpoints", found + scale)
    return p


def is_given(part: Parts, points: Iterable[str]) -> bool:
    """Whether a part is drawn: it is needed, or one of its points is given."""
    return not part.optional or bool(set(part.points) & set(points))


def _name_problems(points: Mapping[str, Any], parts: Sequence[Parts]) -> list[str]:
    every = dict.fromkeys(name for part in parts for name in part.points)
    found = [
        f"there is no hardpoint {name!r} here{meant(name, every)}"
        for name in points
        if name not in every
    ]
    for part in parts:
        lost = [name for name in part.points if name not in points]
        if part.optional and lost and is_given(part, points):
            found.append(f"{lost} belong to {[*part.points]}: give all of these, or none")
    lost = [n for part in parts if not part.optional for n in part.points if n not in points]
    if lost := list(dict.fromkeys(lost)):
        found.append(f"{lost} are missing: add them, or name theirs in [names] of the mapping")
    if found:
        needed = dict.fromkeys(n for part in parts if not part.optional for n in part.points)
        more = [n for n in every if n not in needed]
        found.append(f"hardpoints are {', '.join(needed)}; they may be {', '.join(more) or 'none'}")
    return found


def _is_point(x: Any) -> bool:
    return getattr(x, "shape", None) == (3,) and not (
        is_concrete(x) and not np.all(np.isfinite(np.asarray(x, float)))
    )


def _scale_problems(
    points: Mapping[str, Any], drawn: Mapping[str, np.ndarray], radius: float
) -> list[str]:
    """Whether the drawing has the size of its tyre, and the unit in which it would."""
    if len(drawn) < 3 or not radius > 0.0:
        return []
    size = float(np.linalg.norm(np.ptp(np.stack([*drawn.values()]), axis=0)))
    ratio = size / radius
    if _SMALLEST < ratio < _LARGEST:
        return []
    if size == 0.0:
        return ["all points are at one place"]
    read = points.unit if isinstance(points, TablePoints) else "m"
    off = {u: abs(np.log(ratio * x / UNITS[read] / _USUAL)) for u, x in UNITS.items()}
    unit = min(off, key=lambda u: off[u])
    return [
        f"they are {size:.3g} m apart, and the tyre's radius is {radius:g} m: they were read as "
        f"{read}, and in {unit} they would fit. Give units={unit!r} to read_hardpoints (in the "
        f"command --units {unit}), or the tyre's radius in metres"
    ]


def _drawn_problems(
    parts: Sequence[Parts], drawn: Mapping[str, np.ndarray], near: float
) -> list[str]:
    """The wheel on the other side, parts without length or lever, and what parts find."""
    found = []
    centre = drawn.get("wheel_centre")
    if centre is not None and not centre[1] > 0.0:
        found.append(
            f"'wheel_centre' is drawn at y = {centre[1]:g} m, and y is positive to the left: draw "
            "the left side, or give mirrored = true in the mapping of read_hardpoints"
        )
    for part in parts:
        for names in part.apart:
            if all(name in drawn for name in names):
                found += _apart(names, [drawn[name] for name in names], near)
        if part.problems is not None and all(name in drawn for name in part.points):
            found += part.problems({name: drawn[name] for name in part.points})
    return list(dict.fromkeys(found))


def _apart(names: Sequence[str], x: Sequence[np.ndarray], near: float) -> list[str]:
    """Two ends at one place, or a third point on the line through two."""
    length = float(np.linalg.norm(x[1] - x[0]))
    if not length > near:
        return [f"{names[0]!r} and {names[1]!r} coincide: draw them apart"]
    if len(x) == 3:
        off = float(np.linalg.norm(np.cross(x[1] - x[0], x[2] - x[0]))) / length
        if not off > near:
            return [
                f"{names[2]!r} is on the line through {names[0]!r} and {names[1]!r}: it has no "
                "lever about it; correct one of them"
            ]
    return []
