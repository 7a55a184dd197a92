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
    speeds_of_rates,
    step_coordinates,
)
from jaxmbd.kinematics.propagation import (
    Accelerations,
    Columns,
    propagate_accelerations,
    propagate_velocities,
)
from jaxmbd.kinematics.recursion import PerBody, Static, by_joint, each, inward, outward
from jaxmbd.kinematics.scales import (
    OwnRows,
    digit_doubt,
    mechanism_length,
    own_jacobian,
    own_rows,
    placed_numbers,
    row_doubt,
    row_scale,
    speed_units,
    stored_jacobian,
)

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
