"""Units of the numbers of a mechanism's parts, from what each type says of its fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_COORDINATE = {"angle": "rad", "travel": "m"}
_EFFORT = {"angle": "N m", "travel": "N"}


def field_units(
    part: Any, field: str, shape: tuple[int, ...], joints: Mapping[str, Any], owner: Any = None
) -> tuple[str, ...]:
    """Units of the components of a field: one for all of them, or one for each in row-major order.

    Args:
        part: a body, joint, force element, coupling or law.
        field: the name of one of its fields.
        shape: of the field's numbers.
        joints: name to joint type, for parts that act on coordinates.
        owner: the element that a law belongs to.
    """
    size = 1
    for n in shape:
        size *= n
    if field in getattr(part, "points", {}):
        return ("m",)
    if field in getattr(part, "directions", ()):
        return ("",)
    spec = getattr(part, "units", {}).get(field, "")
    if not isinstance(spec, str):
        return _along(tuple(spec), size)
    acting = part if owner is None else owner
    kinds = acting.kinds(joints) if hasattr(acting, "kinds") else ()
    single = getattr(acting, "joint", None)
    speeds = joints[single].speeds if isinstance(single, str) else ()
    if size > 1 and len(speeds) == size:
        return tuple(resolved(spec, (kind,)) for kind in speeds)
    return (resolved(spec, kinds),)


def _along(units: tuple[str, ...], size: int) -> tuple[str, ...]:
    """One unit for each of `size` components, of which there may be several in a row."""
    if size % len(units) == 0 and size <= 3 * len(units):
        return tuple(u for u in units for _ in range(size // len(units)))
    return ("; ".join(dict.fromkeys(u or "1" for u in units)),)


def resolved(spec: str, kinds: tuple[str, ...]) -> str:
    """A unit with the words ``coordinate``, ``effort`` and ``ratio`` replaced.

    Args:
        spec: the unit.
        kinds: "angle" or "travel" of the coordinate acted on, then of the one it is compared with;
            a travel where there is none.

    Example:
        >>> from jaxmbd.variables.field_units import resolved
        >>> resolved("effort s/coordinate", ("angle",)), resolved("ratio", ("travel", "angle"))
        ('N m s/rad', 'm/rad')
    """
    first = kinds[0] if kinds else "travel"
    if spec == "ratio":
        pair = [_COORDINATE[k] for k in (first, kinds[1] if len(kinds) > 1 else first)]
        return "" if pair[0] == pair[1] else "/".join(pair)
    spec = re.sub("coordinate", _COORDINATE[first], spec)
    return re.sub("effort", _EFFORT[first], spec)
