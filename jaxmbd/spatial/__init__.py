"""Rotations: pure functions of arrays, independent of mechanisms."""

from jaxmbd.spatial.euler_bryant import (
    Angles,
    bryant_angles,
    bryant_rates,
    bryant_rotation,
    bryant_velocity,
    euler_angles,
    euler_rates,
    euler_rotation,
    euler_velocity,
)
from jaxmbd.spatial.rotations import (
    UnitVector,
    alignment,
    angle_about,
    axis_rotation,
    cross,
    gibbs_vector,
    normalize_quaternion,
    perpendicular_pair,
    quaternion_difference,
    quaternion_from_matrix,
    quaternion_product,
    quaternion_rate,
    quaternion_spin,
    quaternion_step,
    rotation_between,
    rotation_matrix,
    rotation_vector,
    skew,
    unit,
    vee,
)

__all__ = [
    "Angles",
    "bryant_angles",
    "bryant_rates",
    "bryant_rotation",
    "bryant_velocity",
    "euler_angles",
    "euler_rates",
    "euler_rotation",
    "euler_velocity",
]
