"""Published suspension corners: the left one, on a fixed chassis, in ISO 8855 axes and SI units.

x is forward, y left, z up. `points` is a dictionary of the hardpoints that differ from the
published ones; all are `points` of the mechanism, and axes through two of them follow both.

*With masses, springs and dampers*: Project Chrono (BSD-3), projectchrono/chrono at commit
7689fbc02d12c5419fa6acad8791100fd89979dd, ``data/vehicle/generic/suspension/*.json``; axes of
joints and bodies from its suspension templates. The track rod is a massless `Rod`, the tyre is
replaced by a vertical force at the wheel's centre, the inertia of the drive shaft is left out. Each
corner has two degrees of freedom, the wheel's travel and its spin; as drawn it is not in static
equilibrium. Centres of mass and inertias stay as published.

*For kinematics*: the example geometries of suspension-explorer-core,
suspension-explorer/suspension-explorer-core at commit 9843fa7d5625e9eb6c4e4fb92cc464cd8ea98250,
``tests/data/*geometry.yaml``; only their hardpoints are taken. The wheel's offset is zero, so its
centre is `axle_outboard`; `axle_inboard` and `axle_outboard` are points of the upright, and
`camber_angle`, `toe_angle` of the vector between them are the wheel's angles. The rack moves along
y by the joint `rack` (positive to the left). The source gives no masses: those here are our own and
do not matter for kinematics.

*A quarter car* with the cut joints of Attia's paper: H. A. Attia, "A recursive algorithm for
generating the equations of motion of spatial mechanical systems with application to the five-point
suspension", tables A1 to A3: masses and inertias, spring and damper, tyre. Its hardpoints are only
in a figure and are replaced by those of `five_link_kinematic` (the five-link corner of
suspension-explorer-core). There `strut_bottom` lies on the lower rear link at nine tenths of its
length, so that this link corresponds to the paper's lower link, which carries the spring.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxmbd.model import (
    Body,
    Cylindrical,
    Free,
    Mechanism,
    PointForce,
    Prismatic,
    Revolute,
    Rod,
    Spherical,
    SpringDamper,
    Tyre,
    Universal,
)
from jaxmbd.zoo.drawing import (
    downward,
    functions_for,
    middle,
    moved,
    published,
    published_body,
    published_points,
    unit_vector,
)

_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
_LINKS = ("upper_front_link", "upper_rear_link", "lower_front_link", "lower_rear_link")


def _rod(a: str, b: str, name: str) -> Rod:
    """A rod between two points of its name."""
    return Rod(a, b, at_a=f"{name}_inboard", at_b=f"{name}_outboard")


def _hinge(body: str, arm: str) -> Revolute:
    """An arm's hinge through its two inboard points."""
    return Revolute("ground", body, at=f"{arm}_front", axis=(f"{arm}_rear", f"{arm}_front"))


def _wheel_and_track_rod() -> dict[str, Any]:
    return {
        "tierod": _rod("ground", "upright", "tierod"),
        "rev_spindle": Revolute("upright", "spindle", at="wheel_centre", axis=_Y),
    }


def _forces(
    body: str,
    rate: Any,
    free_length: Any,
    damping: Any,
    load: Any,
    spring: tuple[str, str] = ("spring_top", "spring_bottom"),
    shock: tuple[str, str] = ("shock_top", "shock_bottom"),
) -> dict[str, Any]:
    """Spring and shock absorber from the chassis to a body, and the load on the wheel."""
    return {
        "spring": SpringDamper("ground", body, *spring, stiffness=rate, free_length=free_length),
        "shock": SpringDamper("ground", body, *shock, damping=damping),
        "wheel_load": PointForce("spindle", at="wheel_centre", force=(0.0, 0.0, load)),
    }


def double_wishbone(
    points: Mapping[str, Any] | None = None,
    spring_rate: Any = 369149.0,
    free_length: Any = 0.339,
    damping: Any = 22459.0,
    wheel_load: Any = 8000.0,
    gravity: Any = 9.81,
) -> Mechanism:
    """A double-wishbone corner: upper arm `uca`, lower arm `lca`, `upright`, `spindle`.

    Source: Project Chrono, ``DoubleWishbone.json`` (the module's text names the commit). Joints:
    `rev_uca`, `rev_lca` (hinges on the chassis), `sph_uca`, `sph_lca` (balls on the upright),
    `tierod`, `rev_spindle`; forces: `spring` and `shock` between chassis and lower arm,
    `wheel_load`. The published inertias of both arms break the triangle inequality, of which
    building it warns.

    Args:
        points: hardpoints (3,) [m] in place of the published ones, by name.
        spring_rate: [N/m].
        free_length: of the spring [m].
        damping: of the shock absorber [N·s/m].
        wheel_load: vertical force on the wheel's centre [N].
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of two degrees of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.zoo.double_wishbone(points={"wheel_centre": (0, 1.1, 0)}).points["wheel_centre"]
        array([0. , 1.1, 0. ])
    """
    data = published("double_wishbone")
    p, bodies = moved(data["points"], points), data["bodies"]
    return Mechanism(
        bodies={name: published_body(body) for name, body in bodies.items()},
        joints={
            "rev_uca": _hinge("uca", "upper_arm"),
            "rev_lca": _hinge("lca", "lower_arm"),
            "sph_uca": Spherical("uca", "upright", at="upper_arm_ball"),
            "sph_lca": Spherical("lca", "upright", at="lower_arm_ball"),
            **_wheel_and_track_rod(),
        },
        forces=_forces("lca", spring_rate, free_length, damping, wheel_load),
        points=p,
        gravity=downward(gravity, 2),
    )


def multi_link(
    points: Mapping[str, Any] | None = None,
    spring_rate: Any = 120000.0,
    free_length: Any = 0.339,
    damping: Any = 12000.0,
    wheel_load: Any = 8000.0,
    gravity: Any = 9.81,
) -> Mechanism:
    """A multi-link corner: `upper_arm`, `lateral` and `trailing` links, `upright`, `spindle`.

    Source: Project Chrono, ``MultiLink.json`` (the module's text names the commit). Joints:
    `rev_ua` (hinge of the upper arm), `univ_lat`, `univ_tl` (universal joints of the two links on
    the chassis, declared from link to ground), `sph_ua`, `sph_lat`, `sph_tl` (balls on the
    upright), `tierod`, `rev_spindle`; forces: `spring` and `shock` between chassis and trailing
    link, `wheel_load`. The axes of the universal joints stay as published.

    Args:
        points: hardpoints (3,) [m] in place of the published ones, by name.
        spring_rate: [N/m].
        free_length: of the spring [m].
        damping: of the shock absorber [N·s/m].
        wheel_load: vertical force on the wheel's centre [N].
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of two degrees of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.zoo.multi_link().joints["univ_lat"].b
        'ground'
    """
    data = published("multi_link")
    p, axes = moved(data["points"], points), data["joint_axes"]
    return Mechanism(
        bodies={name: published_body(body) for name, body in data["bodies"].items()},
        joints={
            "rev_ua": _hinge("upper_arm", "upper_arm"),
            "sph_ua": Spherical("upper_arm", "upright", at="upper_arm_ball"),
            "univ_lat": Universal("lateral", "ground", "lateral_inboard", *axes["univ_lat"]),
            "sph_lat": Spherical("lateral", "upright", at="lateral_ball"),
            "univ_tl": Universal("trailing", "ground", "trailing_inboard", *axes["univ_tl"]),
            "sph_tl": Spherical("trailing", "upright", at="trailing_ball"),
            **_wheel_and_track_rod(),
        },
        forces=_forces("trailing", spring_rate, free_length, damping, wheel_load),
        points=p,
        gravity=downward(gravity, 2),
    )


def macpherson(
    points: Mapping[str, Any] | None = None,
    spring_rate: Any = 369149.0,
    free_length: Any = 0.306,
    damping: Any = 22459.0,
    wheel_load: Any = 0.0,
    gravity: Any = 9.81,
) -> Mechanism:
    """A MacPherson corner: lower arm `lca`, `upright`, `strut`, `spindle`.

    Source: Project Chrono, ``MacPhersonStrut.json`` (the module's text names the commit). Joints:
    `rev_lca` (hinge of the arm), `sph_lca` (ball on the upright), `cyl_strut` (between upright and
    strut, along the line from `strut_bottom` to `strut_top`), `univ_strut` (on the chassis, at
    `strut_top`), `tierod`, `rev_spindle`; forces: `spring` and `shock` from `strut_top` on the
    chassis to `strut_bottom` on the upright, `wheel_load` (none as published). The strut's centre
    of mass lies midway between its ends; the universal joint's axes stay as published, and the
    direction of `cyl_strut` follows the two hardpoints through the argument `points`.

    Args:
        points: hardpoints (3,) [m] in place of the published ones, by name.
        spring_rate: [N/m].
        free_length: of the spring [m].
        damping: of the shock absorber [N·s/m].
        wheel_load: vertical force on the wheel's centre [N].
        gravity: [m/s²] along −z, or a vector (3,).

    Returns:
        The mechanism, of two degrees of freedom.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.zoo.macpherson().structure.bodies
        ('lca', 'upright', 'strut', 'spindle')
    """
    data = published("macpherson")
    p, axes = moved(data["points"], points), data["joint_axes"]
    strut = "strut_bottom", "strut_top"
    ends = "strut_top", "strut_bottom"
    coms = {"strut": middle(p["strut_top"], p["strut_bottom"])}
    return Mechanism(
        bodies={n: published_body(body, coms.get(n)) for n, body in data["bodies"].items()},
        joints={
            "rev_lca": _hinge("lca", "lower_arm"),
            "sph_lca": Spherical("lca", "upright", at="lower_arm_ball"),
            "cyl_strut": Cylindrical("upright", "strut", strut[0], axis=strut),
            "univ_strut": Universal("ground", "strut", "strut_top", *axes["univ_strut"]),
            **_wheel_and_track_rod(),
        },
        forces=_forces("upright", spring_rate, free_length, damping, wheel_load, ends, ends),
        points=p,
        gravity=downward(gravity, 2),
    )


def _gyrating(mass: float, radius: float, *points: Any) -> Body:
    """A body with its centre of mass in the middle of some points and a radius of gyration."""
    return Body(mass, com=middle(*points), inertia=(mass * radius**2,) * 3)


def _wishbone(p: Mapping[str, Any], name: str) -> tuple[Body, Revolute]:
    """A wishbone's body and its hinge through the two inboard points."""
    front, rear = p[f"{name}_inboard_front"], p[f"{name}_inboard_rear"]
    body = _gyrating(2.0, 0.15, front, rear, p[f"{name}_outboard"])
    return body, _hinge(name, f"{name}_inboard")


def _steering() -> dict[str, Any]:
    return {
        "rack": Prismatic("ground", "rack", at="trackrod_inboard", axis=_Y),
        "trackrod": _rod("rack", "upright", "trackrod"),
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
    p = moved(published_points("double_wishbone_kinematic"), points)
    lower, lower_hinge = _wishbone(p, "lower_wishbone")
    upper, upper_hinge = _wishbone(p, "upper_wishbone")
    upright_points = [p[f"{s}_wishbone_outboard"] for s in ("lower", "upper")]
    return Mechanism(
        bodies={
            "lower_wishbone": lower,
            "upper_wishbone": upper,
            "upright": _gyrating(10.0, 0.12, *upright_points, p["axle_outboard"]),
            "rack": _gyrating(2.0, 0.1, p["trackrod_inboard"]),
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
    p = moved(published_points("macpherson_kinematic"), points)
    arm, hinge = _wishbone(p, "lower_wishbone")
    ball, top = p["lower_wishbone_outboard"], p["strut_top"]
    line = top - ball
    across = (0.0, line[2], -line[1])  # line × x
    strut = ("lower_wishbone_outboard", "strut_top")
    return Mechanism(
        bodies={
            "lower_wishbone": arm,
            "upright": _gyrating(10.0, 0.12, ball, p["strut_bottom"], p["axle_outboard"]),
            "strut": _gyrating(3.0, 0.1, p["strut_bottom"], top, top),
            "rack": _gyrating(2.0, 0.1, p["trackrod_inboard"]),
        },
        joints={
            "lower_wishbone": hinge,
            "lower_ball": Spherical("lower_wishbone", "upright", at="lower_wishbone_outboard"),
            "strut_top": Universal("ground", "strut", at="strut_top", axis_a=_X, axis_b=across),
            "strut": Cylindrical("upright", "strut", at="strut_top", axis=strut),
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
    p = moved(published_points("five_link_kinematic"), points)
    upright = [p[f"{link}_outboard"] for link in _LINKS]
    return Mechanism(
        bodies={
            "upright": _gyrating(10.0, 0.12, *upright, p["axle_outboard"]),
            "rack": _gyrating(2.0, 0.1, p["trackrod_inboard"]),
        },
        joints={
            "upright": Free("ground", "upright"),
            **{link: _rod("ground", "upright", link) for link in _LINKS},
            **_steering(),
        },
        points=p,
        gravity=downward(gravity, 2),
    )


RODS = {
    "upper_front_link": "upper_front_link",
    "upper_rear_link": "upper_rear_link",
    "lower_front_link": "lower_front_link",
    "steering_rod": "trackrod",
}
"""The four cut links, each with its hardpoints."""

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
    ends = p["lower_rear_link_inboard"], p["lower_rear_link_outboard"]
    knuckle = [p[f"{name}_outboard"] for name in (*RODS.values(), "lower_rear_link", "axle")]
    xp, link = functions_for(p), ends[1] - ends[0]
    across = unit_vector(xp.cross(link, xp.asarray(_Z)))
    axes = across, unit_vector(xp.cross(across, link))
    strut = dict(at_a="spring_top", at_b="strut_bottom")
    tyre = dict(stiffness=tyre_stiffness, damping=tyre_damping, radius=tyre_radius, road=road)
    return Mechanism(
        bodies={
            "chassis": Body(chassis_mass, (0.0, 0.0, 0.5), inertia=(570.0, 2320.0, 2715.0)),
            "lower_link": Body(0.0, middle(*ends), inertia=(0.0, 0.0, 0.0)),
            "knuckle": Body(knuckle_mass, middle(*knuckle), inertia=(0.5, 0.5, 0.5)),
            "wheel": Body(wheel_mass, "axle_outboard", inertia=(1.0, 2.0, 1.0)),
        },
        joints={
            "chassis": Prismatic("ground", "chassis", at=(0.0, 0.0, 0.5), axis=_Z),
            "link": Universal("chassis", "lower_link", "lower_rear_link_inboard", *axes),
            "ball": Spherical("lower_link", "knuckle", at="lower_rear_link_outboard"),
            "bearing": Revolute(
                "knuckle", "wheel", at="axle_outboard", axis=("axle_inboard", "axle_outboard")
            ),
            **{name: _rod("chassis", "knuckle", link) for name, link in RODS.items()},
        },
        forces={
            "spring": SpringDamper(
                "chassis", "lower_link", **strut, stiffness=spring_rate, free_length=free_length
            ),
            "damper": SpringDamper("chassis", "lower_link", **strut, damping=damping),
            "tyre": Tyre("wheel", at="axle_outboard", **tyre),
        },
        points=p,
        gravity=downward(gravity, 2),
    )
