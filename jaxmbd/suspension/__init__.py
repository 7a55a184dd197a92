"""Kinematics and compliance of wheel suspensions."""

# These register their characteristics, in the order of the tables' columns.
from jaxmbd.suspension import steering_axis, travel_motion  # noqa: F401
from jaxmbd.suspension.adjusters import AdjustableLength, Shim, adjusted, adjusted_roles
from jaxmbd.suspension.axle_characteristics import (
    AXLE_CHARACTERISTICS,
    AxleCharacteristic,
    axle_available,
)
from jaxmbd.suspension.axle_table import AxleSweep, axle_kinematics, axle_sweep
from jaxmbd.suspension.both_sides import axle, axle_corners
from jaxmbd.suspension.carried_load import preloaded
from jaxmbd.suspension.compliance_matrix import Compliance, compliance
from jaxmbd.suspension.corner import Corner, find_corner, zoo_corner
from jaxmbd.suspension.corner_sweep import GRADIENTS, TRAVEL, CornerSweep, kinematics_sweep
from jaxmbd.suspension.kinematics_table import Kinematics, kinematics, number, write_csv
from jaxmbd.suspension.load_table import (
    LoadSweep,
    LoadTable,
    load_cases,
    load_sensitivities,
    load_sweep,
    member_loads,
)
from jaxmbd.suspension.motion_map import KinematicsMap, kinematics_map
from jaxmbd.suspension.motions import CornerState, contact_point, corner_state, drawn_wheel
from jaxmbd.suspension.reachable_travel import Reach
from jaxmbd.suspension.rig import RIG, on_rig
from jaxmbd.suspension.roles_file import load_with_roles, save_with_roles
from jaxmbd.suspension.sensitivity_table import Sensitivities, hardpoint_sensitivities
from jaxmbd.suspension.setup_solution import Setup, solve_setup
from jaxmbd.suspension.steering_geometry import Steering, steering, steering_curves
from jaxmbd.suspension.templates import (
    TEMPLATES,
    TemplateNumbers,
    double_wishbone_corner,
    example_hardpoints,
    five_link_corner,
    macpherson_corner,
    rigid_axle,
    semi_trailing_arm_corner,
    template_axle,
    trailing_arm_corner,
    twist_beam,
)
from jaxmbd.suspension.wheel_characteristics import (
    CHARACTERISTICS,
    Characteristic,
    Definition,
    Instant,
    available,
    characteristic,
    characteristics,
    instant,
    texts,
)
from jaxmbd.suspension.wheel_loads import WHEEL_LOADS, read_load_cases
from jaxmbd.suspension.wheel_reach import reach

__all__ = [
    "AXLE_CHARACTERISTICS",
    "AdjustableLength",
    "AxleCharacteristic",
    "AxleSweep",
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
    "LoadSweep",
    "LoadTable",
    "KinematicsMap",
    "RIG",
    "Reach",
    "Sensitivities",
    "Setup",
    "Shim",
    "Steering",
    "TEMPLATES",
    "TRAVEL",
    "WHEEL_LOADS",
    "TemplateNumbers",
    "adjusted",
    "adjusted_roles",
    "available",
    "axle",
    "axle_available",
    "axle_corners",
    "axle_kinematics",
    "axle_sweep",
    "characteristic",
    "characteristics",
    "compliance",
    "contact_point",
    "corner_state",
    "double_wishbone_corner",
    "example_hardpoints",
    "find_corner",
    "five_link_corner",
    "instant",
    "kinematics",
    "kinematics_map",
    "kinematics_sweep",
    "hardpoint_sensitivities",
    "load_cases",
    "load_sensitivities",
    "load_sweep",
    "load_with_roles",
    "member_loads",
    "read_load_cases",
    "macpherson_corner",
    "on_rig",
    "preloaded",
    "rigid_axle",
    "reach",
    "save_with_roles",
    "semi_trailing_arm_corner",
    "solve_setup",
    "steering",
    "steering_curves",
    "template_axle",
    "texts",
    "trailing_arm_corner",
    "twist_beam",
    "zoo_corner",
]
