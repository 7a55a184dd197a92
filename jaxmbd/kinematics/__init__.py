"""Kinematics: propagation of motion along the tree, and loop closure."""

from jaxmbd.kinematics.closure import constraint_jacobian, constraint_residual, gamma
from jaxmbd.kinematics.motion import (
    MotionState,
    Pose,
    body_accelerations,
    body_velocities,
    coordinate_change,
    coordinate_rates,
    joint_coordinates,
    motion_state,
    point_position,
    point_velocity,
    poses,
    step_coordinates,
)

__all__ = [
    "MotionState",
    "Pose",
    "body_accelerations",
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
