"""Ready-made mechanisms, each with its source; the arguments are their numbers.

Every argument may be traced, so a function of this package can be called inside `jax.jit`,
`jax.vmap` and `jax.grad`. All numbers are in SI units.
"""

from jaxmbd.zoo.agile_wrist import (
    agile_eye_direct,
    agile_eye_inverse,
    agile_eye_jacobian,
    agile_eye_trivial_orientations,
    agile_wrist,
    agile_wrist_rotations,
)
from jaxmbd.zoo.corners import double_wishbone, macpherson, multi_link
from jaxmbd.zoo.delta_robot import delta_robot, delta_robot_angles
from jaxmbd.zoo.double_parallel_crank import double_parallel_crank
from jaxmbd.zoo.drawing import camber_angle, toe_angle
from jaxmbd.zoo.five_bar import five_bar, five_bar_angles
from jaxmbd.zoo.five_point import five_point
from jaxmbd.zoo.iftomm import andrews_squeezer, bricard, flyball_governor
from jaxmbd.zoo.kinematic_corners import (
    double_wishbone_kinematic,
    five_link_kinematic,
    macpherson_kinematic,
)
from jaxmbd.zoo.macpherson_steering import macpherson_steering, rack_sine
from jaxmbd.zoo.pendulum import double_pendulum, simple_pendulum
from jaxmbd.zoo.planar import four_bar, n_four_bar, slider_crank
from jaxmbd.zoo.quick_return import quick_return
from jaxmbd.zoo.rsrrp import RampedDrive, rsrrp
from jaxmbd.zoo.rssr import rssr, rssr_revolutes, rssr_theta
from jaxmbd.zoo.spatial_slider_crank import spatial_slider_crank
from jaxmbd.zoo.stewart_gough import stewart_gough, stewart_gough_lengths

__all__ = [
    "RampedDrive",
    "agile_eye_direct",
    "agile_eye_inverse",
    "agile_eye_jacobian",
    "agile_eye_trivial_orientations",
    "agile_wrist",
    "agile_wrist_rotations",
    "andrews_squeezer",
    "bricard",
    "camber_angle",
    "delta_robot",
    "delta_robot_angles",
    "double_parallel_crank",
    "double_pendulum",
    "double_wishbone",
    "double_wishbone_kinematic",
    "five_bar",
    "five_bar_angles",
    "five_link_kinematic",
    "five_point",
    "flyball_governor",
    "four_bar",
    "macpherson",
    "macpherson_kinematic",
    "macpherson_steering",
    "multi_link",
    "n_four_bar",
    "quick_return",
    "rack_sine",
    "rsrrp",
    "rssr",
    "rssr_revolutes",
    "rssr_theta",
    "simple_pendulum",
    "slider_crank",
    "spatial_slider_crank",
    "stewart_gough",
    "stewart_gough_lengths",
    "toe_angle",
]
