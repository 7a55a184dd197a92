"""Ready-made mechanisms, each with its source; the arguments are their numbers.

Every argument may be traced, so a function of this package can be called inside `jax.jit`,
`jax.vmap` and `jax.grad`. All numbers are in SI units.
"""

from jaxmbd.zoo.corners import (
    double_wishbone,
    double_wishbone_kinematic,
    five_link_kinematic,
    five_point,
    macpherson,
    macpherson_kinematic,
    multi_link,
)
from jaxmbd.zoo.deployables import bennett, bennett_angle, sarrus, scissors
from jaxmbd.zoo.drawing import camber_angle, toe_angle
from jaxmbd.zoo.iftomm import andrews_squeezer, bricard, flyball_governor
from jaxmbd.zoo.parallel_robots import agile_wrist, delta_robot, stewart_gough
from jaxmbd.zoo.planar import (
    double_parallel_crank,
    double_pendulum,
    five_bar,
    five_bar_angles,
    four_bar,
    n_four_bar,
    quick_return,
    simple_pendulum,
    slider_crank,
)
from jaxmbd.zoo.spatial_linkages import (
    RampedDrive,
    rsrrp,
    rssr,
    rssr_revolutes,
    rssr_theta,
    spatial_slider_crank,
)
from jaxmbd.zoo.steered_axle import macpherson_steering, rack_sine

__all__ = [
    "RampedDrive",
    "agile_wrist",
    "andrews_squeezer",
    "bennett",
    "bennett_angle",
    "bricard",
    "camber_angle",
    "delta_robot",
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
    "sarrus",
    "scissors",
    "simple_pendulum",
    "slider_crank",
    "spatial_slider_crank",
    "stewart_gough",
    "toe_angle",
]
