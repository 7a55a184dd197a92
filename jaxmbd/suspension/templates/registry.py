"""All templates by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from jaxmbd.suspension.templates.axles import rigid_axle, twist_beam
from jaxmbd.suspension.templates.corners import (
    double_wishbone_corner,
    five_link_corner,
    macpherson_corner,
    semi_trailing_arm_corner,
    trailing_arm_corner,
)

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
