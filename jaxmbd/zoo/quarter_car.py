"""The five-point suspension of a quarter car, with the cut joints of Attia's paper.

Source: H. A. Attia, "A recursive algorithm for generating the equations of motion of spatial
mechanical systems with application to the five-point suspension", tables A1 to A3: masses and
inertias, spring and damper, tyre. Its hardpoints are only in a figure and are replaced by those of
`five_link_kinematic` (the five-link corner of suspension-explorer-core). There `strut_bottom` lies
on the lower rear link at nine tenths of its length, so that this link corresponds to the paper's
lower link, which carries the spring.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxmbd.model import (
    Body,
    Mechanism,
    Prismatic,
    Revolute,
    Rod,
    Spherical,
    SpringDamper,
    Tyre,
    Universal,
)
from jaxmbd.zoo.drawing import downward, functions_for, middle, moved, published_points, unit_vector

RODS = {
    "upper_front_link": "upper_front_link",
    "upper_rear_link": "upper_rear_link",
    "lower_front_link": "lower_front_link",
    "steering_rod": "trackrod",
}
"""The four cut links, each with its hardpoints."""

_Z = (0.0, 0.0, 1.0)
_FREE_LENGTH = 0.3512


def _hardpoints() -> dict[str, Any]:
    """Published hardpoints [m], and the chassis end of the unstressed spring."""
    p = published_points("five_link_kinematic")
    strut = unit_vector(p["strut_top"] - p["strut_bottom"])
    return p | {"spring_top": p["strut_bottom"] + _FREE_LENGTH * strut}


def five_point(
    points: Mapping[str, Any] | None = None,
    chassis_mass: Any = 456.0,
    knuckle_mass: Any = 11.8,
    wheel_mass: Any = 25.0,
    spring_rate: Any = 5.11e4,
    free_length: Any = _FREE_LENGTH,
    damping: Any = 1.6e3,
    tyre_stiffness: Any = 6.0e6,
    tyre_damping: Any = 1.0e4,
    tyre_radius: Any = 0.35,
    road: Any = -0.034,
    gravity: Any = 9.81,
) -> Mechanism:
    """A quarter car on a five-point suspension: chassis, massless lower link, knuckle and wheel.

    Source: Attia (see the module docstring), tables A1 to A3. The chassis slides vertically
    (`chassis`); the lower link is attached to it by a universal joint (`link`) and carries the
    knuckle by a ball (`ball`); the wheel turns on the knuckle (`bearing`). The four other links are
    cut `Rod` joints, as in the paper: `upper_front_link`, `upper_rear_link`, `lower_front_link`,
    `steering_rod`. Forces: `spring` and `damper` between chassis and lower link, `tyre` between
    wheel and road.

    Three degrees of freedom, as in the paper: the chassis, the suspension, the wheel's spin. Not
    printed in the paper, and our own: hardpoints, centres of mass and axes; the chassis end of
    spring and damper, `spring_top`, on the line of the strut, with the spring unstressed as drawn;
    the road, with the tyre unloaded as drawn. From rest as drawn the car settles on its springs, as
    in the paper's figures 5 and 6. The wheel's inertia of 2 kg m² is about its axis.

    Args:
        points: hardpoints (3,) [m] in place of those published, by name.
        chassis_mass: [kg].
        knuckle_mass: [kg].
        wheel_mass: [kg].
        spring_rate: [N/m].
        free_length: of the spring [m].
        damping: of the damper [N·s/m].
        tyre_stiffness: [N/m].
        tyre_damping: [N·s/m].
        tyre_radius: unloaded radius [m].
        road: height of the road [m].
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of three degrees of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.topology(mbd.zoo.five_point()).cut
        ('upper_front_link', 'upper_rear_link', 'lower_front_link', 'steering_rod')
    """
    p = moved(_hardpoints(), points)
    ends = dict(at_a="spring_top", at_b="strut_bottom")
    tyre = dict(stiffness=tyre_stiffness, damping=tyre_damping, radius=tyre_radius, road=road)
    return Mechanism(
        bodies=_bodies(p, chassis_mass, knuckle_mass, wheel_mass),
        joints=_joints(p),
        forces={
            "spring": SpringDamper(
                "chassis", "lower_link", **ends, stiffness=spring_rate, free_length=free_length
            ),
            "damper": SpringDamper("chassis", "lower_link", **ends, damping=damping),
            "tyre": Tyre("wheel", at="axle_outboard", **tyre),
        },
        points=p,
        gravity=downward(gravity, 2),
    )


def _bodies(p: dict[str, Any], chassis: Any, knuckle: Any, wheel: Any) -> dict[str, Body]:
    """Bodies of these masses; the knuckle's centre of mass is the mean of its hardpoints."""
    upright = [p[f"{name}_outboard"] for name in (*RODS.values(), "lower_rear_link")]
    link = middle(p["lower_rear_link_inboard"], p["lower_rear_link_outboard"])
    return {
        "chassis": Body(chassis, (0.0, 0.0, 0.5), inertia=(570.0, 2320.0, 2715.0)),
        "lower_link": Body(0.0, link, inertia=(0.0, 0.0, 0.0)),
        "knuckle": Body(knuckle, middle(*upright, p["axle_outboard"]), inertia=(0.5, 0.5, 0.5)),
        "wheel": Body(wheel, "axle_outboard", inertia=(1.0, 2.0, 1.0)),
    }


def _joints(p: dict[str, Any]) -> dict[str, Any]:
    """The tree joints, then the cut rods."""
    xp = functions_for(p)
    link = p["lower_rear_link_outboard"] - p["lower_rear_link_inboard"]
    across = unit_vector(xp.cross(link, xp.asarray(_Z)))
    rods = {
        name: Rod("chassis", "knuckle", at_a=f"{link}_inboard", at_b=f"{link}_outboard")
        for name, link in RODS.items()
    }
    return {
        "chassis": Prismatic("ground", "chassis", at=(0.0, 0.0, 0.5), axis=_Z),
        "link": Universal(
            "chassis",
            "lower_link",
            at="lower_rear_link_inboard",
            axis_a=across,
            axis_b=unit_vector(xp.cross(across, link)),
        ),
        "ball": Spherical("lower_link", "knuckle", at="lower_rear_link_outboard"),
        "bearing": Revolute(
            "knuckle", "wheel", at="axle_outboard", axis=("axle_inboard", "axle_outboard")
        ),
        **rods,
    }
