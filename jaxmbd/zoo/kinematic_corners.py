"""Suspension corners for kinematics: hardpoints, a steering rack, and plausible masses.

Source: the example geometries of suspension-explorer-core,
suspension-explorer/suspension-explorer-core at commit 9843fa7d5625e9eb6c4e4fb92cc464cd8ea98250,
``tests/data/*geometry.yaml``; only their hardpoints are taken. ISO 8855 axes (x forward, y left,
z up), left corner, metres here. The wheel's offset is zero, so its centre is `axle_outboard`;
`axle_inboard` and `axle_outboard` are points of the upright, and `camber_angle`, `toe_angle` of the
vector between them are the wheel's angles. The rack moves along y by the joint `rack` (positive to
the left). The source gives no masses: those here are our own and do not matter for kinematics.

`points` is a dictionary of the hardpoints that differ from the published ones. An axis through
hardpoints (a wishbone's two inboard points, a strut's line) follows them only if they are changed
by this argument: in the mechanism the axis has its own numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxmbd.model import (
    Body,
    Cylindrical,
    Free,
    Mechanism,
    Prismatic,
    Revolute,
    Rod,
    Spherical,
    Universal,
)
from jaxmbd.zoo.drawing import downward, middle, moved, published

_X = (1.0, 0.0, 0.0)
_Y = (0.0, 1.0, 0.0)
_STRUT = ("lower_wishbone_outboard", "strut_top")
_LINKS = ("upper_front_link", "upper_rear_link", "lower_front_link", "lower_rear_link")


def _hardpoints(name: str, overrides: Mapping[str, Any] | None) -> dict[str, Any]:
    millimetres = published(name)["points_mm"]
    return moved({n: [x / 1000.0 for x in p] for n, p in millimetres.items()}, overrides)


def _body(mass: float, radius: float, *points: Any) -> Body:
    """A body with its centre of mass in the middle of some points and a radius of gyration."""
    return Body(mass, com=middle(*points), inertia=(mass * radius**2,) * 3)


def _wishbone(p: Mapping[str, Any], name: str) -> tuple[Body, Revolute]:
    """A wishbone's body and its hinge through the two inboard points."""
    front, rear = p[f"{name}_inboard_front"], p[f"{name}_inboard_rear"]
    ends = (f"{name}_inboard_rear", f"{name}_inboard_front")
    hinge = Revolute("ground", name, at=ends[1], axis=ends)
    return _body(2.0, 0.15, front, rear, p[f"{name}_outboard"]), hinge


def _steering() -> dict[str, Any]:
    return {
        "rack": Prismatic("ground", "rack", at="trackrod_inboard", axis=_Y),
        "trackrod": Rod("rack", "upright", at_a="trackrod_inboard", at_b="trackrod_outboard"),
    }


def double_wishbone_kinematic(
    points: Mapping[str, Any] | None = None, gravity: Any = 9.81
) -> Mechanism:
    """Two wishbones, an upright, a track rod and a rack.

    Source: suspension-explorer-core, ``geometry.yaml`` (the module's text names the commit).
    Bodies `lower_wishbone`, `upper_wishbone`, `upright`, `rack`; joints `lower_wishbone`,
    `upper_wishbone` (hinges through the two inboard points), `lower_ball`, `upper_ball`, `rack`,
    `trackrod`.

    Args:
        points: hardpoints (3,) [m] in place of the published ones, by name.
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of two degrees of freedom: the wheel's travel and the rack.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.zoo.double_wishbone_kinematic().points["axle_outboard"]
        array([-0.02    ,  0.95    ,  0.313426])
    """
    p = _hardpoints("double_wishbone_kinematic", points)
    lower, lower_hinge = _wishbone(p, "lower_wishbone")
    upper, upper_hinge = _wishbone(p, "upper_wishbone")
    upright_points = [p[f"{s}_wishbone_outboard"] for s in ("lower", "upper")]
    return Mechanism(
        bodies={
            "lower_wishbone": lower,
            "upper_wishbone": upper,
            "upright": _body(10.0, 0.12, *upright_points, p["axle_outboard"]),
            "rack": _body(2.0, 0.1, p["trackrod_inboard"]),
        },
        joints={
            "lower_wishbone": lower_hinge,
            "upper_wishbone": upper_hinge,
            "lower_ball": Spherical("lower_wishbone", "upright", at="lower_wishbone_outboard"),
            "upper_ball": Spherical("upper_wishbone", "upright", at="upper_wishbone_outboard"),
            **_steering(),
        },
        points=p,
        gravity=downward(gravity, 2),
    )


def macpherson_kinematic(points: Mapping[str, Any] | None = None, gravity: Any = 9.81) -> Mechanism:
    """A lower wishbone, an upright that slides along its strut, a track rod and a rack.

    Source: suspension-explorer-core, ``macpherson_geometry.yaml`` (the module's text names the
    commit). The strut's axis, fixed in the upright, runs as drawn from the lower ball to
    `strut_top` and always passes through `strut_top`. Bodies `lower_wishbone`, `upright`, `strut`,
    `rack`; joints `lower_wishbone` (hinge), `lower_ball`, `strut_top` (universal, so that the
    strut cannot spin freely), `strut` (cylindrical, upright to strut), `rack`, `trackrod`.
    `strut_bottom` is a point of the upright.

    Args:
        points: hardpoints (3,) [m] in place of the published ones, by name; a strut along x is
            not possible.
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of two degrees of freedom: the wheel's travel and the rack.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.zoo.macpherson_kinematic().joints["strut"].nv
        2
    """
    p = _hardpoints("macpherson_kinematic", points)
    arm, hinge = _wishbone(p, "lower_wishbone")
    ball, top = p["lower_wishbone_outboard"], p["strut_top"]
    line = top - ball
    across = (0.0, line[2], -line[1])  # line × x
    return Mechanism(
        bodies={
            "lower_wishbone": arm,
            "upright": _body(10.0, 0.12, ball, p["strut_bottom"], p["axle_outboard"]),
            "strut": _body(3.0, 0.1, p["strut_bottom"], top, top),
            "rack": _body(2.0, 0.1, p["trackrod_inboard"]),
        },
        joints={
            "lower_wishbone": hinge,
            "lower_ball": Spherical("lower_wishbone", "upright", at="lower_wishbone_outboard"),
            "strut_top": Universal("ground", "strut", at="strut_top", axis_a=_X, axis_b=across),
            "strut": Cylindrical("upright", "strut", at="strut_top", axis=_STRUT),
            **_steering(),
        },
        points=p,
        gravity=downward(gravity, 2),
    )


def five_link_kinematic(points: Mapping[str, Any] | None = None, gravity: Any = 9.81) -> Mechanism:
    """An upright on four links and a track rod, each a `Rod`, and a rack.

    Source: suspension-explorer-core, ``multi_link_geometry.yaml`` (the module's text names the
    commit); its layout follows Knapczyk and Maniowski, Archive of Mechanical Engineering 57(2),
    2010. Bodies `upright`, `rack`; joints `upright` (free), `upper_front_link`, `upper_rear_link`,
    `lower_front_link`, `lower_rear_link`, `rack`, `trackrod`. `strut_top` (chassis) and
    `strut_bottom` (upright) are the damper's ends.

    Args:
        points: hardpoints (3,) [m] in place of the published ones, by name.
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of two degrees of freedom: the wheel's travel and the rack.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.zoo.five_link_kinematic().structure.bodies
        ('upright', 'rack')
    """
    p = _hardpoints("five_link_kinematic", points)
    upright = [p[f"{link}_outboard"] for link in _LINKS]
    links = {
        link: Rod("ground", "upright", at_a=f"{link}_inboard", at_b=f"{link}_outboard")
        for link in _LINKS
    }
    return Mechanism(
        bodies={
            "upright": _body(10.0, 0.12, *upright, p["axle_outboard"]),
            "rack": _body(2.0, 0.1, p["trackrod_inboard"]),
        },
        joints={"upright": Free("ground", "upright"), **links, **_steering()},
        points=p,
        gravity=downward(gravity, 2),
    )
