"""Kinematics: propagation of motion along the tree, and loop closure."""

from jaxmbd.kinematics.closure import (
    closure_gamma,
    closure_jacobian,
    closure_residual,
    closure_rows,
    closure_velocity,
    constraint_jacobian,
    constraint_residual,
    gamma,
    point_acceleration,
)
from jaxmbd.kinematics.motion import (
    MotionState,
    Pose,
    body_accelerations,
    body_jacobian,
    body_velocities,
    check_shape,
    coordinate_change,
    coordinate_rates,
    joint_coordinates,
    motion_state,
    point_position,
    point_velocity,
    poses,
    step_coordinates,
)
from jaxmbd.kinematics.propagation import (
    Accelerations,
    Columns,
    propagate_accelerations,
    propagate_velocities,
)
from jaxmbd.kinematics.recursion import Known, PerBody, by_joint, each, inward, outward
from jaxmbd.kinematics.row_units import (
    OwnRows,
    digit_doubt,
    own_jacobian,
    own_rows,
    row_doubt,
    stored_jacobian,
)
from jaxmbd.kinematics.scales import mechanism_length, placed_numbers, row_scale, speed_units

__all__ = [
    "MotionState",
    "Pose",
    "body_accelerations",
    "body_jacobian",
    "body_velocities",
    "coordinate_change",
    "constraint_jacobian",
    "constraint_residual",
    "coordinate_rates",
    "gamma",
    "joint_coordinates",
    "motion_state",
    "point_position",
    "point_velocity",
    "poses",
    "step_coordinates",
]
