"""Templates: corners and axles as functions of named hardpoints.

Each returns the mechanism and the roles of its parts. Axes are those of ISO 8855: x forward, y
left, z up; the left side is given.
"""

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
from jaxmbd.suspension.templates.registry import TEMPLATES

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
