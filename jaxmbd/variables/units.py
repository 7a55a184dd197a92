"""Quantities with units, such as "1 mm" or "20 N/mm", in SI units.

Those of a mechanism's numbers follow from what each type says of its fields.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from jaxmbd.plumbing import optional


@cache
def _registry() -> Any:
    pint = optional("pint", "campaign", "a quantity with a unit")
    return pint.UnitRegistry(preprocessors=[_plain], cache_folder=None)


def _plain(text: str) -> str:
    return text.replace("·", "*").replace("°", "deg").replace("%", "percent")


def in_si(quantity: str, unit: str, what: str = "it") -> float:
    """The number of a quantity in the unit of a variable, which is an SI unit.

    A number without a unit is taken as it is. Radians are numbers without unit and are understood
    where the variable has none.

    Args:
        quantity: for example ``"1 mm"``, ``"20 N/mm"``, ``"0.1 deg"``, ``"5 %"``.
        unit: of the variable, for example ``"N/m"``; empty for a pure number.
        what: the name of the variable, for messages.

    Raises:
        ValueError: it is no quantity, or its dimensions are others than the variable's.

    Example:
        >>> from jaxmbd.variables import in_si
        >>> in_si("20 N/mm", "N/m"), in_si("180 deg", "rad")
        (20000.0, 3.141592653589793)
    """
    try:
        return float(quantity)
    except ValueError:
        pass
    found = parsed(quantity, what)
    wanted = unit_of(unit, what)
    if found.dimensionality != wanted.dimensionality:
        pure = "a number without unit"
        kind = f"in {unit}" if unit else pure
        dimensions = str(found.dimensionality)
        given = pure if dimensions == "dimensionless" else f"a {dimensions}"
        raise ValueError(
            f"{what} is {kind}, but {quantity!r} is {given}; give a quantity like "
            f"'1 {unit}'".rstrip()
        )
    if _counts_cycles(found.units) != _counts_cycles(wanted):
        raise ValueError(
            f"{what} is in {unit}, but {quantity!r} has {found.units}: one of them counts cycles, "
            "of 2π rad; give a quantity in rad/s, deg/s or rpm for the one, in Hz for the other"
        )
    return float(found.to(wanted).magnitude)


def parsed(quantity: str, what: str) -> Any:
    """The quantity as pint reads it."""
    if "," in quantity:  # pint drops it: "1,5 mm" would be 15 mm
        raise ValueError(f"{what}: {quantity!r} has a comma; write decimals with a point, '0.5 mm'")
    registry = _registry()
    try:
        found = registry.Quantity(quantity)
        found.dimensionality  # noqa: B018, which looks the units up
    except Exception as error:  # pint raises what its tokenizer raises
        raise ValueError(f"{what}: {quantity!r} is no quantity with a unit: {error}") from None
    if not isinstance(found.magnitude, (int, float)):
        raise ValueError(f"{what}: {quantity!r} is no number with a unit")
    return found


def _counts_cycles(units: Any) -> bool:
    """Whether hertz is among the units, which pint takes for rad/s."""
    return any(name.endswith("hertz") for name in units._units)


def unit_of(unit: str, what: str = "it") -> Any:
    """A unit as pint reads it.

    Raises:
        ValueError: there is no such unit, or several for the components of one variable.
    """
    if "; " in unit:
        raise ValueError(f"{what} has components in different units ({unit}); give them one by one")
    try:
        return _registry().Quantity(1.0, unit or "dimensionless").units
    except Exception as error:
        raise ValueError(f"{what}: {unit!r} is no unit: {error}") from None


_SHOWN = {"rad": ("deg", 180.0 / math.pi), "m": ("mm", 1e3), "N/m": ("N/mm", 1e-3)}


def shown(unit: str) -> tuple[str, float]:
    """The unit in which a number is shown, and the factor from SI.

    Angles in degrees, lengths in millimetres, rates in N/mm; derivatives per metre, per degree.

    Example:
        >>> from jaxmbd.campaign import shown
        >>> shown("m"), shown("rad/m")[0], shown("m/m")[0]
        (('mm', 1000.0), 'deg/m', 'mm/m')
    """
    if unit in _SHOWN:
        return _SHOWN[unit]
    top, slash, below = unit.partition("/")
    name, factor = _SHOWN.get(top, (top, 1.0))
    if below == "rad":
        return f"{name}/deg", factor / _SHOWN["rad"][1]
    return f"{name}{slash}{below}", factor


_COORDINATE = {"angle": "rad", "travel": "m"}
_EFFORT = {"angle": "N m", "travel": "N"}


def field_units(
    part: Any,
    field: str,
    shape: tuple[int, ...],
    joints: Mapping[str, Any],
    owner: Any = None,
    turns: bool = False,
) -> tuple[str, ...]:
    """Units of the components of a field: one for all of them, or one for each in row-major order.

    Args:
        part: a body, joint, force element, coupling or law.
        field: the name of one of its fields.
        shape: of the field's numbers.
        joints: name to joint type, for parts that act on coordinates.
        owner: the element that a law belongs to.
        turns: whether the law is along a rotation of a bushing.
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
    kinds = ("angle",) if turns else kinds
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
        >>> from jaxmbd.variables.units import resolved
        >>> resolved("effort s/coordinate", ("angle",)), resolved("ratio", ("travel", "angle"))
        ('N m s/rad', 'm/rad')
    """
    first = kinds[0] if kinds else "travel"
    if spec == "ratio":
        pair = [_COORDINATE[k] for k in (first, kinds[1] if len(kinds) > 1 else first)]
        return "" if pair[0] == pair[1] else "/".join(pair)
    spec = re.sub("coordinate", _COORDINATE[first], spec)
    return re.sub("effort", _EFFORT[first], spec)
