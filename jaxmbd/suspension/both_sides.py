"""An axle from one corner: the other side is its mirror image."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmbd.model import (
    GROUND,
    AntiRollBar,
    Body,
    CheckedPoints,
    ComRef,
    Mechanism,
    PointRef,
    Reflection,
    TorsionBar,
    changed,
    is_concrete,
    mirror,
    renamed,
    used_points,
)
from jaxmbd.plumbing import unknown
from jaxmbd.suspension.corner import Corner
from jaxmbd.variables import order_of

SIDES = ("left", "right")


def axle(
    corner: Mechanism,
    shared: Sequence[str] = (),
    *,
    anti_roll_bar: AntiRollBar | TorsionBar | None = None,
    bar_name: str = "anti_roll_bar",
) -> Mechanism:
    """Both wheels of an axle from the mechanism of one: the other is its image in the plane xz.

    Names get the prefix ``left_`` or ``right_``. Bodies that both sides have in common, a rack or a
    chassis, are named in `shared`: they, the joints between them and the ground, what acts on them
    alone, and points that nothing else uses keep their names. Their masses are those of the whole,
    their centres of mass and inertias the symmetric part of those drawn. The image of a joint has
    the same coordinates (`jaxmbd.mirror` tells the exceptions). ``jaxmbd.mirrored(axle)`` are the
    variables of an axle that stays symmetric.

    Args:
        corner: one side, x forward, y left, z up. It is the left one if its points lie at y > 0
            on average, or where they are traced.
        shared: names of the bodies that both sides have in common.
        anti_roll_bar: a bar between the two sides, in the corner's names: of an `AntiRollBar` the
            first body and point are those of the left side, the second those of the right; a
            `TorsionBar` may be given one joint twice, and is free of load in equal travel.
        bar_name: name of the bar.

    Raises:
        ValueError: `shared` names no body, a coupling joins a side to what is shared, or the corner
            has no mirror image (`jaxmbd.mirror`).

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> car = suspension.axle(mbd.zoo.five_link_kinematic(), shared=["rack"])
        >>> car.structure.bodies
        ('rack', 'left_upright', 'right_upright')
        >>> [float(car.points[f"{side}_axle_outboard"][1]) for side in ("left", "right")]
        [0.875, -0.875]
    """
    s, names = corner.structure, order_of(corner)
    if problems := [text for n in shared for text in unknown("body", n, s.bodies)]:
        raise ValueError(f"shared={list(shared)}: {problems[0]}")
    common = _common(corner, shared, names)
    first, second = SIDES if _is_left(corner) else SIDES[::-1]
    halves = {first: corner, second: mirror(corner, "y")}
    own = {
        side: {k: {n: f"{side}_{n}" for n in x if n not in common[k]} for k, x in names.items()}
        for side in SIDES
    }

    def on(side: str, part: Any) -> Any:
        """A part that refers to what is on its side."""
        # A part refers to bodies or to joints; one name for both cannot be meant for one only.
        return renamed(part, own[side]["joints"] | own[side]["bodies"], own[side]["points"])

    parts: dict[str, dict[str, Any]] = {}
    for kind in names:
        drawn = getattr(corner, kind)
        if kind == "points":
            parts[kind] = {n: drawn[n] for n in common[kind]}
        else:
            parts[kind] = {n: on(first, _symmetric(drawn[n])) for n in common[kind]}
        for side in SIDES:
            for n, new in own[side][kind].items():
                part = getattr(halves[side], kind)[n]
                parts[kind][new] = part if kind == "points" else on(side, part)
    if anti_roll_bar is not None:
        left, right = (on(side, anti_roll_bar) for side in SIDES)
        ends = ("joint_b",) if isinstance(anti_roll_bar, TorsionBar) else ("b", "at_b")
        parts["forces"][bar_name] = changed(left, **{end: getattr(right, end) for end in ends})
    cut = None
    if s.cut is not None:
        cut = tuple(dict.fromkeys(own[side]["joints"].get(n, n) for side in SIDES for n in s.cut))
    points = CheckedPoints(parts.pop("points"), image=True)
    return Mechanism(**parts, points=points, gravity=corner.gravity, cut=cut)


def _is_left(corner: Mechanism) -> bool:
    known = [np.asarray(x)[1] for x in corner.points.values() if is_concrete(x)]
    return not known or float(np.mean(known)) >= 0.0


def _symmetric(part: Any) -> Any:
    """Of a body, the symmetric part of its centre of mass and inertia; other parts as they are."""
    if not isinstance(part, Body):
        return part
    com, reflection = part.com, Reflection(1)
    if not isinstance(com, (PointRef, ComRef)):
        com = 0.5 * (com + reflection.polar(com))
    return Body(part.mass, com, 0.5 * (part.inertia + reflection.tensor(part.inertia)))


def _common(
    corner: Mechanism, shared: Sequence[str], order: dict[str, tuple[str, ...]]
) -> dict[str, list[str]]:
    """Names of what both sides have in common, by kind."""
    s, bodies = corner.structure, {GROUND, *shared}
    names = {"bodies": [n for n in s.bodies if n in bodies]}
    names["joints"] = [e.name for e in s.joints if {e.a, e.b} <= bodies]
    joints = set(names["joints"])
    names["forces"] = [
        n
        for n, force in ((n, corner.forces[n]) for n in s.forces)
        if {*force.bodies} <= bodies and {*force.joints} <= joints
    ]
    names["drives"] = [
        n
        for n, joint, _ in s.drives
        if (joint in joints if joint else getattr(corner.drives[n], "body", "") in bodies)
    ]
    names["couplings"] = [n for n, terms in s.couplings if {j for j, _ in terms} <= joints]
    for name, terms in s.couplings:
        if name not in names["couplings"] and {j for j, _ in terms} & joints:
            raise ValueError(
                f"coupling '{name}' joins one side to a shared joint, which moves the other "
                "way in the mirror; take it out and add one for each side to the axle"
            )

    def used(of_both: bool) -> Any:
        kinds = ("bodies", "joints", "forces", "drives")
        chosen = ((k, n) for k in kinds for n in order[k] if (n in names[k]) == of_both)
        return used_points([getattr(corner, k)[n] for k, n in chosen])

    both, one = used(True), used(False)
    names["points"] = [n for n in s.points if n in both and n not in one]
    return names


def axle_corners(car: Mechanism, corner: Corner) -> tuple[Corner, Corner]:
    """The roles of the left and the right wheel of an axle, from those of the corner it is made of.

    Args:
        car: the axle, from `axle`.
        corner: the roles in the corner's names.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> car = suspension.axle(mbd.zoo.five_link_kinematic(), shared=["rack"])
        >>> roles = suspension.axle_corners(car, suspension.zoo_corner("five_link_kinematic"))
        >>> roles[1].upright, roles[1].steering, roles[1].side
        ('right_upright', 'rack', 'right')
    """
    s = car.structure
    known = {*s.bodies, *s.forces, *s.points, GROUND, *(e.name for e in s.joints)}

    def named(x: Any, side: str) -> Any:
        if isinstance(x, str):
            return x if x in known else f"{side}_{x}"
        if isinstance(x, tuple):
            return tuple(named(y, side) for y in x)
        return x

    def on(side: str) -> Corner:
        changes: dict[str, Any] = {
            field: named(getattr(corner, field), side)
            for field in (
                *("upright", "wheel_centre", "spindle", "steering", "kingpin", "upper_arm"),
                *("lower_arm", "strut", "spring", "chassis", "hold"),
            )
        }
        numbers = isinstance(corner.spindle, tuple) and len(corner.spindle) == 3
        if numbers and side != corner.side:
            x, y, z = corner.spindle
            changes["spindle"] = (x, -y, z)
        return dataclasses.replace(corner, side=side, **changes)

    return on("left"), on("right")
