"""Templates: corners and axles as functions of named hardpoints.

Each returns the mechanism and the roles of its parts. Axes are those of ISO 8855: x forward, y
left, z up; the left side is given.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from jaxmbd.suspension.templates.axles import rigid_axle, twist_beam
from jaxmbd.suspension.templates.corners import (
    double_wishbone_corner,
    five_link_corner,
    macpherson_corner,
    semi_trailing_arm_corner,
    template_axle,
    trailing_arm_corner,
)
from jaxmbd.suspension.templates.examples import example_hardpoints
from jaxmbd.suspension.templates.parts import TemplateNumbers

TEMPLATES: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "double_wishbone": double_wishbone_corner,
        "macpherson": macpherson_corner,
        "five_link": five_link_corner,
        "trailing_arm": trailing_arm_corner,
        "semi_trailing_arm": semi_trailing_arm_corner,
        "rigid_axle": rigid_axle,
        "twist_beam": twist_beam,
    }
)
"""Templates by the names that the command `jaxmbd corner` has for them."""

__all__ = [
    "TEMPLATES",
    "TemplateNumbers",
    "double_wishbone_corner",
    "example_hardpoints",
    "five_link_corner",
    "macpherson_corner",
    "rigid_axle",
    "semi_trailing_arm_corner",
    "template_axle",
    "trailing_arm_corner",
    "twist_beam",
]
