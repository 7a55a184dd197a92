"""Suspensions that exist as an axle only: rigid axles and twist beams, on a chassis at rest.

Hardpoints of the left side are given, the right ones are their images; those of what an axle has
once, as a Panhard rod, are given as they are. In the mechanism the points, bodies, joints and
forces of a side have ``left_`` or ``right_`` before their names: `jaxmbd.mirrored` moves both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmbd.model import (
    Bushing,
    Free,
    Mechanism,
    PointOnLine,
    PointOnPlane,
    Revolute,
    Rod,
    Spherical,
    SpringDamper,
    TorsionBar,
    TorsionSpring,
)
from jaxmbd.plumbing import unknown
from jaxmbd.suspension.carried_load import preloaded
from jaxmbd.suspension.corner import Corner
from jaxmbd.suspension.plausible import warn_of_doubts
from jaxmbd.suspension.templates.hardpoints import checked
from jaxmbd.suspension.templates.parts import (
    GROUND,
    Parts,
    TemplateNumbers,
    Y,
    bar,
    link,
    mechanism,
    merged,
    sided,
    spring,
    wheel,
    with_wheel_axis,
)

Pair = tuple[Mechanism, tuple[Corner, Corner]]
SIDES = ("left", "right")
_MIRROR = np.array([1.0, -1.0, 1.0])


def _made(
    template: str,
    points: Mapping[str, Any],
    half: Sequence[Parts],
    whole: Sequence[Parts],
    n: TemplateNumbers,
    shared: Sequence[str],
    anti_roll_bar: Any,
    settle: bool = False,
) -> Pair:
    """The mechanism of two halves and of what is there once, and the roles of both wheels."""
    p = with_wheel_axis(checked(template, points, [*half, *whole], n.tyre_radius), n)
    own = merged(half, p)
    two = [sided(own, side, shared) for side in SIDES]
    placed = {name: p[name] for part in whole for name in part.points if name in p}
    for side, sign in zip(SIDES, (np.ones(3), _MIRROR), strict=True):
        placed |= {f"{side}_{name}": sign * p[name] for name in own.points}
    if anti_roll_bar is not None:
        if "bar_arm" not in own.bodies:
            raise ValueError(
                "anti_roll_bar= needs the hardpoints bar_axis, droplink_inboard, droplink_outboard"
            )
        bar_ = TorsionBar("left_bar_arm", "right_bar_arm", stiffness=anti_roll_bar)
        two.append(Parts((), forces={"anti_roll_bar": bar_}))
    mech = mechanism(template, [*two, *whole], placed, n)
    left, right = (_roles(mech, side, shared, n) for side in SIDES)
    warn_of_doubts(p, n)
    left.check(mech)
    right.check(mech)
    if n.wheel_load is not None:
        mech = preloaded(mech, (left, right), n.wheel_load, settle=settle)
    return mech, (left, right)


def _roles(mech: Mechanism, side: str, shared: Sequence[str], n: TemplateNumbers) -> Corner:
    centre, sprung = f"{side}_wheel_centre", f"{side}_spring"
    return Corner(
        shared[0] if shared else f"{side}_arm",
        centre,
        side=side,
        spindle=(f"{side}_axle_inboard", centre),
        spring=sprung if sprung in mech.forces else None,
        **n.roles(),
    )


def rigid_axle(
    points: Mapping[str, Any],
    *,
    links: str = "three",
    lateral: str | None = "panhard",
    spring_by: str | None = "axle",
    anti_roll_bar: Any = None,
    link_rate: Any = 5e6,
    **numbers: Any,
) -> Pair:
    """A rigid axle on trailing links, with a Panhard rod or a Watt's linkage.

    Hardpoints, of the left side: `lower_link_inboard` (chassis), `lower_link_outboard` (axle),
    `wheel_centre`; `spring_top` (chassis), `spring_bottom` (axle); further ones as of
    `double_wishbone_corner`. Of three links the third is `upper_link_inboard`,
    `upper_link_outboard` as given; of four these are of the left side. `panhard_inboard` (chassis),
    `panhard_outboard` (axle); or `watts_pivot` on the axle, about which a crank turns along x, with
    a rod to each side, `watts_left_inboard` (chassis), `watts_left_outboard` (crank),
    `watts_right_inboard`, `watts_right_outboard`.

    The axle has two degrees of freedom, heave and roll. Three links and a lateral one leave these,
    so do four links alone that are splayed (`lateral` None). Four links and a lateral one are one
    too many in roll: real ones give way in their bushings, and so do the upper links here, which
    are springs of `link_rate`: such an axle is to settle (``settle=True``). The differential is on
    the axle, which takes the driving torque; on the chassis, as a de Dion axle has it, it is
    ``drive="inboard"``. Steering and the driveshaft's torque about x are left out.

    Args:
        points: hardpoints (3,) [m] by name: x forward, y left, z up.
        links: "three" or "four".
        lateral: "panhard", "watts", or None for four splayed links.
        spring_by: "axle", or None without springs.
        anti_roll_bar: torsional rate of a bar between the drop links [N·m/rad]; None: no bar.
        link_rate: of an upper link with its bushings [N/m], of four links with a lateral one.
        **numbers: `TemplateNumbers`; `axle` is "rear" by default.

    Returns:
        the mechanism, and the roles of its left and right wheel.

    Raises:
        ValueError: lists all that is wrong with the hardpoints, or an argument is.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> car, pair = suspension.rigid_axle(suspension.example_hardpoints("rigid_axle"))
        >>> int(mbd.mobility(car).dof), pair[0].upright == pair[1].upright
        (2, True)
    """
    n = TemplateNumbers.of("rigid_axle", {"axle": "rear", "drive": "outboard", **numbers})
    found = unknown("number of links=", links, ("three", "four"))
    found += unknown("device lateral=", lateral, ("panhard", "watts", None))  # type: ignore[arg-type]
    found += unknown("place spring_by=", spring_by, ("axle", None))  # type: ignore[arg-type]
    if links == "three" and lateral is None:
        found.append("three links leave the axle free sideways: give lateral='panhard' or 'watts'")
    if found:
        raise ValueError("; ".join(found))
    upper = link("upper_link", b="axle")
    half = [*wheel("axle"), link("lower_link", b="axle"), bar("axle")]
    whole = [Parts((), joints={"axle": Free(GROUND, "axle")})]
    if spring_by is not None:
        half += spring("axle", n, points)
    if links == "three":
        whole.append(upper)
    elif lateral is None:
        half.append(upper)
    else:
        soft = SpringDamper(GROUND, "axle", *upper.points, stiffness=link_rate)
        half.append(upper._replace(joints={}, forces={"upper_link": soft}))
    if lateral == "panhard":
        whole.append(link("panhard", b="axle"))
    elif lateral == "watts":
        whole.append(_watts())
    both = [f"{side}_wheel_centre" for side in SIDES]
    whole.append(Parts((), bodies={"axle": tuple(both)}))
    soft_links = links == "four" and lateral is not None
    return _made("rigid_axle", points, half, whole, n, ("axle",), anti_roll_bar, soft_links)


def _watts() -> Parts:
    """A crank on the axle between two rods to the chassis."""
    names = ("watts_left", "watts_right")
    ends = [(f"{x}_inboard", f"{x}_outboard") for x in names]
    rods = {x: Rod(GROUND, "watts_crank", *e) for x, e in zip(names, ends, strict=True)}
    crank = Revolute("axle", "watts_crank", at="watts_pivot", axis=(1.0, 0.0, 0.0))
    return Parts(
        ("watts_pivot", *ends[0], *ends[1]),
        (*ends, ("watts_pivot", ends[0][1]), ("watts_pivot", ends[1][1])),
        {"watts_crank": ("watts_pivot",)},
        {"watts_crank": crank, **rods},
    )


def twist_beam(
    points: Mapping[str, Any],
    *,
    spring_by: str | None = "arm",
    torsion_rate: Any = 5e3,
    bending_rate: Any = None,
    anti_roll_bar: Any = None,
    **numbers: Any,
) -> Pair:
    """A twist beam: two trailing arms on a beam that twists between them.

    Hardpoints, of the left side: `arm_pivot`, `wheel_centre`; `spring_top` (chassis),
    `spring_bottom` (arm); further ones as of `double_wishbone_corner`; and `beam_centre`, at
    y = 0, a point of the beam's axis of twist, the line of its shear centres, which runs along y.

    Each arm is one body with its half of the beam. A hinge along y at `beam_centre` joins the
    halves, with the beam's torsional spring. To first order an arm then swings about the line
    through its pivot and `beam_centre` in opposite travel, about both pivots in parallel travel.
    The pivots slide along y, as their bushings let them: rigid ones would bind, since the arms
    spread as the beam twists. The beam's middle stays in the plane y = 0. Degrees of freedom are
    heave and roll.

    Left out: radial and axial rates of the bushings and the toe and the lateral shift that side
    forces cause by them; the beam's warping, and its shortening as it twists. Its bending is that
    of two springs of `bending_rate` about x and z in the middle, where a ball takes the hinge's
    place; such an axle is to settle (``settle=True``).

    Args:
        points: hardpoints (3,) [m] by name: x forward, y left, z up.
        spring_by: "arm", or None without springs.
        torsion_rate: of the whole beam [N·m/rad].
        bending_rate: moment per angle between the halves [N·m/rad]; None: they do not bend.
        anti_roll_bar: torsional rate of a bar between the drop links [N·m/rad]; None: no bar.
        **numbers: `TemplateNumbers`; `axle` is "rear" by default.

    Returns:
        the mechanism, and the roles of its left and right wheel.

    Raises:
        ValueError: lists all that is wrong with the hardpoints, or an argument is.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> car, pair = suspension.twist_beam(suspension.example_hardpoints("twist_beam"))
        >>> int(mbd.mobility(car).dof), [c.upright for c in pair]
        (2, ['left_arm', 'right_arm'])
    """
    n = TemplateNumbers.of("twist_beam", {"axle": "rear", **numbers})
    if found := unknown("place spring_by=", spring_by, ("arm", None)):  # type: ignore[arg-type]
        raise ValueError(found[0])
    slide = PointOnLine(GROUND, "arm", at="arm_pivot", axis=Y)
    half = [*wheel("arm"), Parts(("arm_pivot",), joints={"arm_pivot": slide}), bar("arm")]
    if spring_by is not None:
        half += spring("arm", n, points)
    beam = _beam(torsion_rate, bending_rate)
    bends = bending_rate is not None
    return _made("twist_beam", points, half, [beam], n, (), anti_roll_bar, bends)


def _beam(torsion: Any, bending: Any) -> Parts:
    """Its middle: a hinge with a spring, or a ball with springs about all axes."""

    def problems(x: Mapping[str, np.ndarray]) -> list[str]:
        y = x["beam_centre"][1]
        return [] if abs(y) < 1e-6 else [f"'beam_centre' is drawn at y = {y:g} m; give y = 0"]

    ends, at = ("left_arm", "right_arm"), "beam_centre"
    joints: dict[str, Any] = {
        "left_arm": Free(GROUND, "left_arm"),
        "beam": Revolute(*ends, at=at, axis=Y),
        "beam_middle": PointOnPlane(GROUND, "left_arm", at=at, normal=Y),
    }
    forces: dict[str, Any] = {"beam": TorsionSpring("beam", torsion)}
    if bending is not None:
        joints["beam"] = Spherical(*ends, at=at)
        forces["beam"] = Bushing(*ends, at, _rates(torsion, bending))
    return Parts((at,), joints=joints, forces=forces, problems=problems)


def _rates(torsion: Any, bending: Any) -> Any:
    """Rates (6,) about and along the axes."""
    about_x, about_y = np.eye(6)[0] + np.eye(6)[2], np.eye(6)[1]
    return bending * about_x + torsion * about_y
