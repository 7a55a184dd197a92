"""Corners of independent suspensions: the left one, on a chassis that stands still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxmbd.model import (
    Free,
    Mechanism,
    Prismatic,
    Revolute,
    Spherical,
    SpringDamper,
    TorsionBar,
)
from jaxmbd.plumbing import unknown, warn_user
from jaxmbd.suspension.both_sides import axle, axle_corners
from jaxmbd.suspension.carried_load import preloaded
from jaxmbd.suspension.corner import Corner
from jaxmbd.suspension.plausible import doubtful_rate, warn_of_doubts
from jaxmbd.suspension.templates.hardpoints import checked
from jaxmbd.suspension.templates.parts import (
    GROUND,
    SPRING,
    STEERING,
    STEERING_BODIES,
    Parts,
    TemplateNumbers,
    Y,
    arm,
    bar,
    link,
    mechanism,
    rocker,
    spring,
    spring_link,
    steering,
    wheel,
    with_wheel_axis,
)

Made = tuple[Mechanism, Corner]
LINKS = ("upper_front_link", "upper_rear_link", "lower_front_link", "lower_rear_link")
_TOP = (GROUND, "strut_top")
_SPINDLE = ("axle_inboard", "wheel_centre")
_RODS = {"pushrod": "lower_arm", "pullrod": "upper_arm"}
"""What a rod to the rocker starts from, unless another body is named."""


def _made(
    template: str,
    points: Mapping[str, Any],
    parts: Sequence[Parts],
    n: TemplateNumbers,
    upright: str = "upright",
    **roles: Any,
) -> Made:
    """The mechanism and its roles, after all checks."""
    p = with_wheel_axis(checked(template, points, parts, n.tyre_radius), n)
    mech = mechanism(template, parts, p, n)
    named = {"spindle": _SPINDLE, "spring": "spring" if "spring" in mech.forces else None}
    corner = Corner(upright, "wheel_centre", **named, **n.roles(), **roles)
    warn_of_doubts(p, n)
    corner.check(mech)
    if n.wheel_load is not None:
        mech = preloaded(mech, corner, n.wheel_load)
    return mech, corner


def _one_of(what: str, given: Any, known: Sequence[str]) -> None:
    if problems := unknown(what, given, known):
        raise ValueError(problems[0])


def double_wishbone_corner(
    points: Mapping[str, Any],
    *,
    spring_by: str | None = "lower_arm",
    rod_on: str | None = None,
    steering_by: str = "rack",
    droplink_on: str = "lower_arm",
    **numbers: Any,
) -> Made:
    """A double wishbone: two A-arms, an upright, a track rod; a spring on an arm or by a rocker.

    Hardpoints: `upper_arm_front`, `upper_arm_rear`, `upper_arm_ball`, `lower_arm_front`,
    `lower_arm_rear`, `lower_arm_ball`, `tierod_inboard`, `tierod_outboard`, `wheel_centre`. With a
    spring on an arm: `spring_top` (chassis), `spring_bottom`, and `shock_top`, `shock_bottom` where
    the damper has its own. With a rocker: `pushrod_outboard`, `pushrod_inboard` (or `pullrod_…`),
    `rocker_pivot_front`, `rocker_pivot_rear` (two points of its axis), `spring_rocker`,
    `spring_chassis`, and `heave_spring` (rocker) for an axle with a spring between both sides. Of
    the wheel's axis `axle_inboard`, in place of camber and toe. For an anti-roll bar `bar_axis`
    (its axis runs along y), `droplink_inboard` (bar), `droplink_outboard`.

    With relay steering the track rod's inboard end is on a relay rod from `pitman_ball` to
    `idler_ball`; the pitman arm turns about the line from `pitman_pivot` to `pitman_axis`, the
    idler about that from `idler_pivot` to `idler_axis`. These six are given where they are, on
    either side, and are there once in an axle. Its input is the pitman arm's angle [rad],
    right-handed about its axis.

    Bodies are `upper_arm`, `lower_arm`, `upright`, which has the wheel fixed to it, `rack` or
    `pitman`, `idler`, `relay`, further `rocker`, `bar_arm`; joints are named as bodies, rods and
    balls are. One degree of freedom is the wheel's travel, another the rack's or pitman arm's.

    Args:
        points: hardpoints (3,) [m] by name: x forward, y left, z up.
        spring_by: "lower_arm", "upper_arm", "upright", "pushrod", "pullrod", or None without one.
        rod_on: the body that the pushrod (by default the lower arm) or pullrod (upper arm) is on.
        steering_by: "rack", "relay", or "fixed": a track rod on the chassis.
        droplink_on: the body that a bar's drop link is on, one of the arms, "upright" or "rocker".
        **numbers: `TemplateNumbers`.

    Returns:
        the mechanism and its roles.

    Raises:
        ValueError: lists all that is wrong with the hardpoints, or an argument is.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> points = suspension.example_hardpoints("double_wishbone", spring_by="pushrod")
        >>> mech, roles = suspension.double_wishbone_corner(points, spring_by="pushrod")
        >>> table = suspension.kinematics(mech, roles, travel=[-0.03, 0.0, 0.03])
        >>> round(float(table["motion_ratio"][1]), 2)
        0.6
    """
    template, n = "double_wishbone", TemplateNumbers.of("double_wishbone", numbers)
    bodies = ("lower_arm", "upper_arm", "upright")
    _one_of("place spring_by=", spring_by, (*bodies, *_RODS, None))  # type: ignore[arg-type]
    parts = [arm("upper_arm"), arm("lower_arm"), *wheel("upright"), steering(steering_by)]
    if spring_by in _RODS:
        _one_of("body rod_on=", rod_on or _RODS[spring_by], bodies)
        parts += rocker(spring_by, rod_on or _RODS[spring_by], n)
    elif spring_by is not None:
        parts += spring(spring_by, n, points)
    _one_of("body droplink_on=", droplink_on, [b for x in parts for b in x.bodies])
    return _made(
        template,
        points,
        [*parts, bar(droplink_on)],
        n,
        steering=STEERING[steering_by],
        kingpin=("lower_arm_ball", "upper_arm_ball"),
        upper_arm=("upper_arm_front", "upper_arm_rear", "upper_arm_ball"),
        lower_arm=("lower_arm_front", "lower_arm_rear", "lower_arm_ball"),
    )


def macpherson_corner(
    points: Mapping[str, Any],
    *,
    steering_by: str = "rack",
    droplink_on: str = "upright",
    **numbers: Any,
) -> Made:
    """A MacPherson strut: a lower A-arm, an upright that slides along its strut, a track rod.

    Hardpoints: `lower_arm_front`, `lower_arm_rear`, `lower_arm_ball`, `strut_bottom` (upright),
    `strut_top` (chassis), `tierod_inboard`, `tierod_outboard`, `wheel_centre`. The strut's axis
    runs through its two points. Spring and damper are along it, or from `spring_top` (chassis) to
    `spring_bottom` (upright) where these are given, a damper beside it from `shock_top` to
    `shock_bottom`; further ones as of `double_wishbone_corner`.

    Bodies are `lower_arm`, `strut`, `upright`, which has the wheel fixed to it, `rack`, `bar_arm`.

    Args:
        points: hardpoints (3,) [m] by name: x forward, y left, z up.
        steering_by: "rack", "relay", or "fixed": a track rod on the chassis.
        droplink_on: the body that a bar's drop link is on: "upright" or "lower_arm".
        **numbers: `TemplateNumbers`.

    Returns:
        the mechanism and its roles.

    Raises:
        ValueError: lists all that is wrong with the hardpoints, or an argument is.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> mech, roles = suspension.macpherson_corner(suspension.example_hardpoints("macpherson"))
        >>> int(mbd.mobility(mech).dof)  # travel and rack
        2
    """
    n = TemplateNumbers.of("macpherson", numbers)
    ends = "strut_top", "strut_bottom"
    strut = Parts(
        ends,
        (ends,),
        {"strut": ends},
        {
            "strut_top": Spherical(GROUND, "strut", at="strut_top"),
            "strut": Prismatic("strut", "upright", at="strut_bottom", axis=ends[::-1]),
        },
    )
    own = set(SPRING) & set(points)
    _one_of("body droplink_on=", droplink_on, ("upright", "lower_arm"))
    parts = [arm("lower_arm"), strut, *wheel("upright"), steering(steering_by)]
    parts += spring("upright", n, points, SPRING if own else ends)
    return _made(
        "macpherson",
        points,
        [*parts, Parts(SPRING, optional=True), bar(droplink_on)],
        n,
        steering=STEERING[steering_by],
        kingpin=("lower_arm_ball", _TOP),
        lower_arm=("lower_arm_front", "lower_arm_rear", "lower_arm_ball"),
        strut=("strut_bottom", "strut_top"),
    )


def five_link_corner(
    points: Mapping[str, Any],
    *,
    spring_by: str | None = "upright",
    steering_by: str = "fixed",
    droplink_on: str = "upright",
    **numbers: Any,
) -> Made:
    """A five-link: an upright on four links and a track rod, each with ball ends.

    Hardpoints: `…_inboard` (chassis) and `…_outboard` (upright) of `upper_front_link`,
    `upper_rear_link`, `lower_front_link`, `lower_rear_link` and `tierod`; `wheel_centre`. With a
    spring `spring_top` (chassis) and `spring_bottom`; further ones as of `double_wishbone_corner`.
    Links may run in any direction: two that are called front and rear may as well be a lateral and
    a trailing link.

    Bodies are `upright`, which has the wheel fixed to it, `rack`, `bar_arm`, and a link that has
    the spring.

    Args:
        points: hardpoints (3,) [m] by name: x forward, y left, z up.
        spring_by: "upright", or the link that has the spring; None without one.
        steering_by: "fixed": the track rod is on the chassis; "rack" or "relay".
        droplink_on: the body that a bar's drop link is on: "upright", or the link of the spring.
        **numbers: `TemplateNumbers`.

    Returns:
        the mechanism and its roles.

    Raises:
        ValueError: lists all that is wrong with the hardpoints, or an argument is.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> points = suspension.example_hardpoints("five_link")
        >>> mech, _ = suspension.five_link_corner(points, spring_by="lower_rear_link")
        >>> mech.structure.bodies
        ('lower_rear_link', 'upright', 'bar_arm')
    """
    n = TemplateNumbers.of("five_link", numbers)
    _one_of("place spring_by=", spring_by, ("upright", *LINKS, None))  # type: ignore[arg-type]
    parts = [spring_link(x) if x == spring_by else link(x) for x in LINKS]
    carrier = Parts((), joints={"upright": Free(GROUND, "upright")})
    parts += [*wheel("upright"), carrier, steering(steering_by)]
    if spring_by is not None:
        parts += spring(spring_by, n, points)
    _one_of("body droplink_on=", droplink_on, [b for x in parts for b in x.bodies])
    roles = {"steering": STEERING[steering_by]}
    return _made("five_link", points, [*parts, bar(droplink_on)], n, **roles)


def trailing_arm_corner(
    points: Mapping[str, Any], *, spring_by: str | None = "arm", **numbers: Any
) -> Made:
    """A trailing arm: it swings about an axis along y through `arm_pivot`.

    Hardpoints: `arm_pivot`, `wheel_centre`; `spring_top` (chassis), `spring_bottom` (arm); further
    ones as of `double_wishbone_corner`. Bodies are `arm`, which has the wheel fixed to it, and
    `bar_arm`.

    Args:
        points: hardpoints (3,) [m] by name: x forward, y left, z up.
        spring_by: "arm", or None without a spring.
        **numbers: `TemplateNumbers`; `axle` is "rear" by default.

    Returns:
        the mechanism and its roles.

    Raises:
        ValueError: lists all that is wrong with the hardpoints, or an argument is.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> points = suspension.example_hardpoints("trailing_arm")
        >>> mech, roles = suspension.trailing_arm_corner(points)
        >>> table = suspension.kinematics(mech, roles, travel=[0.0, 0.05], observe=["camber"])
        >>> float(abs(table["camber"]).max())  # an axis along y
        0.0
    """

    def problems(x: Mapping[str, Any]) -> list[str]:
        lever = (x["wheel_centre"] - x["arm_pivot"])[[0, 2]]
        if abs(lever).max() > 1e-3 * abs(x["wheel_centre"]).max():
            return []
        return ["'wheel_centre' is on the arm's axis, along y through 'arm_pivot': no travel"]

    hinge = Revolute(GROUND, "arm", at="arm_pivot", axis=Y)
    swing = Parts(("arm_pivot", "wheel_centre"), joints={"arm": hinge}, problems=problems)
    return _arm("trailing_arm", points, swing, spring_by, numbers)


def semi_trailing_arm_corner(
    points: Mapping[str, Any], *, spring_by: str | None = "arm", **numbers: Any
) -> Made:
    """A semi-trailing arm: it swings about the line through `arm_outer` and `arm_inner`.

    That line may have any direction: a trailing arm, a swing axle, and all between. Hardpoints:
    `arm_outer`, `arm_inner`, `wheel_centre`; `spring_top` (chassis), `spring_bottom` (arm); further
    ones as of `double_wishbone_corner`. Bodies as of `trailing_arm_corner`.

    Args:
        points: hardpoints (3,) [m] by name: x forward, y left, z up.
        spring_by: "arm", or None without a spring.
        **numbers: `TemplateNumbers`; `axle` is "rear" by default.

    Returns:
        the mechanism and its roles.

    Raises:
        ValueError: lists all that is wrong with the hardpoints, or an argument is.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> points = suspension.example_hardpoints("semi_trailing_arm")
        >>> mech, roles = suspension.semi_trailing_arm_corner(points)
        >>> table = suspension.kinematics(mech, roles, travel=[0.0, 0.05], observe=["camber"])
        >>> bool(table["camber"][1] < 0.0)  # camber is gained in bump
        True
    """
    hinge = Revolute(GROUND, "arm", at="arm_outer", axis=("arm_inner", "arm_outer"))
    swing = Parts(
        ("arm_outer", "arm_inner"), (("arm_outer", "arm_inner", "wheel_centre"),),
        joints={"arm": hinge},
    )  # fmt: skip
    return _arm("semi_trailing_arm", points, swing, spring_by, numbers)


def _arm(
    template: str,
    points: Mapping[str, Any],
    swing: Parts,
    spring_by: str | None,
    numbers: Mapping[str, Any],
) -> Made:
    n = TemplateNumbers.of(template, {"axle": "rear", **numbers})
    _one_of("place spring_by=", spring_by, ("arm", None))  # type: ignore[arg-type]
    parts = [*wheel("arm"), swing]
    if spring_by is not None:
        parts += spring("arm", n, points)
    return _made(template, points, [*parts, bar("arm")], n, "arm")


def template_axle(
    corner: Mechanism,
    roles: Corner,
    *,
    anti_roll_bar: Any = None,
    heave_spring: Any = None,
    heave_damping: Any = 0.0,
) -> tuple[Mechanism, tuple[Corner, Corner]]:
    """The axle of a template's corner: both wheels on one steering, with a bar and a heave spring.

    The bar is a `TorsionBar` between the `bar_arm` of both sides: its arms and drop links move as
    they are drawn. The heave spring joins the point `heave_spring` of both rockers. Both are free
    of load as drawn, so that a `wheel_load` of the corner is carried by the wheels' own springs.

    Args:
        corner: the left corner, from a template.
        roles: its roles.
        anti_roll_bar: torsional rate of the bar [N·m/rad]; None: no bar.
        heave_spring: rate of the heave spring [N/m], unloaded as drawn; None: none.
        heave_damping: of a damper beside it [N·s/m].

    Returns:
        the axle, and the roles of its left and right wheel.

    Raises:
        ValueError: a bar or a heave spring whose hardpoints were not given.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> points = suspension.example_hardpoints("macpherson")
        >>> car, pair = suspension.template_axle(
        ...     *suspension.macpherson_corner(points), anti_roll_bar=800.0)
        >>> [c.side for c in pair], "anti_roll_bar" in car.forces
        (['left', 'right'], True)
    """
    bodies, bar_ = corner.structure.bodies, None
    if anti_roll_bar is not None:
        if "bar_arm" not in bodies:
            raise ValueError(
                "anti_roll_bar= needs the hardpoints bar_axis, droplink_inboard, droplink_outboard"
            )
        bar_ = TorsionBar("bar_arm", "bar_arm", stiffness=anti_roll_bar)
    shared = [n for n in STEERING_BODIES if n in bodies]
    car = axle(corner, shared, anti_roll_bar=bar_)
    if heave_spring is not None:
        if "rocker" not in bodies or "heave_spring" not in corner.points:
            raise ValueError("heave_spring= needs a rocker with the hardpoint heave_spring")
        ends = [f"{side}_{x}" for x in ("rocker", "heave_spring") for side in ("left", "right")]
        for text in doubtful_rate("heave_spring", heave_spring, roles.tyre_radius):
            warn_user(text)
        between = SpringDamper(*ends, stiffness=heave_spring, damping=heave_damping)
        car = car.replace(forces={"heave_spring": between})
    return car, axle_corners(car, roles)
