"""Ready mechanisms, each with its source; their arguments are their numbers.

Every argument may be traced, so a function of this package can be called inside `jax.jit`,
`jax.vmap` and `jax.grad`. All numbers are in SI units.
"""

from jaxmbd.zoo.corners import double_wishbone, macpherson, multi_link
from jaxmbd.zoo.kinematic_corners import (
    double_wishbone_kinematic,
    five_link_kinematic,
    macpherson_kinematic,
)
from jaxmbd.zoo.pendulum import double_pendulum, simple_pendulum
from jaxmbd.zoo.planar import four_bar, n_four_bar, slider_crank
from jaxmbd.zoo.rssr import rssr, rssr_revolutes, rssr_theta
from jaxmbd.zoo.wheel import camber_angle, toe_angle

__all__ = [
    "camber_angle",
    "double_pendulum",
    "double_wishbone",
    "double_wishbone_kinematic",
    "five_link_kinematic",
    "four_bar",
    "macpherson",
    "macpherson_kinematic",
    "multi_link",
    "n_four_bar",
    "rssr",
    "rssr_revolutes",
    "rssr_theta",
    "simple_pendulum",
    "slider_crank",
    "toe_angle",
]
