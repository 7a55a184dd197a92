"""Measures: the quantities of force elements that can be output by name, with unit and sign."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
from jax import Array

from jaxmbd.model.part import Part


class Measure(Part):
    """A quantity of a force element at an instant.

    Attributes:
        value: a number, or (3,) components.
        unit: SI unit.
        text: what it is, with its sign.

    Example:
        >>> from jaxmbd.model.forces.measure import Measure
        >>> Measure(250.0, "N", "force, positive in tension").unit
        'N'
    """

    value: Any
    unit: str = eqx.field(static=True)
    text: str = eqx.field(static=True)


def is_travel(joints: Mapping[str, Any], joint: str, index: int) -> bool:
    """Whether a joint coordinate is a travel [m] rather than an angle [rad]."""
    return joints[joint].speeds[index] == "travel"


def coordinate_units(joints: Mapping[str, Any], joint: str, index: int) -> tuple[str, str, str]:
    """Units of a joint coordinate, of its rate, and of the effort along it."""
    return ("m", "m/s", "N") if is_travel(joints, joint, index) else ("rad", "rad/s", "N m")


def effort_measures(
    joint: str, effort: Array, joints: Mapping[str, Any], what: str = "effort"
) -> dict[str, Measure]:
    """An effort (nv,) along a joint's coordinates, each by name."""
    found = {}
    for i in range(effort.shape[0]):
        along = joint if effort.shape[0] == 1 else f"coordinate {i} of {joint}"
        name = what if effort.shape[0] == 1 else f"{what}_{i}"
        unit = coordinate_units(joints, joint, i)[2]
        found[name] = Measure(effort[i], unit, f"{what} along {along}, positive along +q")
    return found
