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
