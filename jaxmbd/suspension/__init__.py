"""Kinematics and compliance of wheel suspensions."""

# The modules of characteristics register them on import, in the order in which tables have them.
# isort: off
from jaxmbd.suspension import wheel_position  # noqa: F401
from jaxmbd.suspension import steering_axis  # noqa: F401
from jaxmbd.suspension import instant_centres  # noqa: F401
from jaxmbd.suspension import spring_rates  # noqa: F401

# isort: on
from jaxmbd.suspension.both_sides import axle, axle_corners
from jaxmbd.suspension.compliance_matrix import Compliance, compliance
from jaxmbd.suspension.corner import Corner
from jaxmbd.suspension.corner_sweep import GRADIENTS, TRAVEL, CornerSweep, kinematics_sweep
from jaxmbd.suspension.display import number, plain_table, shown
from jaxmbd.suspension.kinematics_table import Kinematics, kinematics
from jaxmbd.suspension.motions import CornerState, contact_point, corner_state, drawn_wheel
from jaxmbd.suspension.observables import Characteristic, characteristics, instant
from jaxmbd.suspension.registry import (
    CHARACTERISTICS,
    Definition,
    Instant,
    available,
    characteristic,
    texts,
)
from jaxmbd.suspension.sensitivity_table import Sensitivities, hardpoint_sensitivities
from jaxmbd.suspension.steering_geometry import Steering, steering, steering_curves
from jaxmbd.suspension.zoo_corners import find_corner, zoo_corner

__all__ = [
    "CHARACTERISTICS",
    "Characteristic",
    "Compliance",
    "Corner",
    "CornerState",
    "CornerSweep",
    "Definition",
    "GRADIENTS",
    "Instant",
    "Kinematics",
    "Sensitivities",
    "Steering",
    "TRAVEL",
    "available",
    "axle",
    "axle_corners",
    "characteristic",
    "characteristics",
    "compliance",
    "contact_point",
    "corner_state",
    "find_corner",
    "instant",
    "kinematics",
    "kinematics_sweep",
    "hardpoint_sensitivities",
    "steering",
    "steering_curves",
    "texts",
    "zoo_corner",
]
