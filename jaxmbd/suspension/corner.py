"""The roles of a suspension corner's parts and points, named once for all its characteristics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxmbd.model import GROUND, Mechanism, is_concrete
from jaxmbd.observe import as_point, model_point, unknown_point
from jaxmbd.plumbing import refuse, unknown

Place = Any
"""A point by name or coordinates, or ``(body, point)`` where it is not on the expected body."""

_LARGEST = 2.0
"""Radius up to which a wheel is believed to be given in metres [m]."""
_LIKELY = 100.0
"""How far from the wheel centre a corner's points are believed to be, in radii of its tyre."""
_SHORTEST = 1e-6
"""Length that a spring or a spindle is believed to have, in radii of the tyre."""


@dataclass(frozen=True)
class Corner:
    """What is what in a mechanism that is, or has, one wheel suspension.

    World axes are those of ISO 8855: x forward, y left, z up; the car's middle plane is y = 0. The
    wheel does not turn relative to the upright in kinematics. Points are names of the mechanism's
    points, or drawn coordinates (3,) [m]; ``(body, point)`` names another body than the usual one.

    Attributes:
        upright: the body that carries the wheel.
        wheel_centre: point of the upright.
        tyre_radius: from the wheel centre to the ground contact, in the wheel's middle plane [m].
        side: "left" (y positive) or "right".
        spindle: the wheel's axis as drawn: two points (inner, outer) of the upright, or a direction
            outwards (3,); by default the axis of the upright's wheel bearing
            (`jaxmbd.observe.angles.wheel_axis`), along y where there is none.
        steering: the joint that steers: a rack (`Prismatic`), whose travel `steer` is [m]; the
            pitman arm of a relay linkage (`Revolute`), of which it is the angle [rad]; or a track
            rod (`Rod`) whose length stands in for one in an instantaneous steering motion; None for
            an unsteered wheel.
        kingpin: two points (lower, upper) of the steering axis, by default on the upright; for a
            strut the upper one is on the chassis, ``("ground", "strut_top")``. None where there is
            no such line: the steering axis is then the instantaneous one alone.
        upper_arm, lower_arm: (front, rear, ball) points of an arm's plane, the first two on the
            chassis, the ball on the upright.
        strut: two points of a strut's line, the lower on the upright, the upper on the chassis; it
            takes the place of the upper arm.
        spring: name of the spring, a force element with a length.
        chassis: the body that the points of the chassis are on.
        hold: joints that are held where they are drawn, as that of a chassis on its own springs.
        axle: "front" or "rear".
        wheelbase: [m], for anti-dive and its like, Ackermann error and turning circle.
        cg_height: of the car's centre of mass over the ground [m].
        brakes: "outboard" (their torque acts on the upright) or "inboard" (on the chassis).
        drive: "inboard" (by half-shafts) or "outboard" (a motor on the upright).
        brake_share: of the whole braking force that acts on this axle; by default 0.6 in front and
            0.4 at the rear.
        drive_share: of the whole driving force that acts on this axle.
        steering_gear: travel of the rack per angle of the steering wheel [m/rad], or angle of the
            pitman arm [rad/rad]; for the steering wheel's torque and the steering ratio.
        held_in_steering: what keeps its place in the motion whose instantaneous axis is the virtual
            steering axis: "wheel_centre" (its height), "spring" (its length) or "lower_ball" (the
            height of the lower kingpin point or of the lower arm's ball, and so the arm).

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import Corner
        >>> corner = Corner("upright", "wheel_centre", tyre_radius=0.33)
        >>> corner.problems(mbd.zoo.double_wishbone())
        []
    """

    upright: str
    wheel_centre: Place
    tyre_radius: float
    side: str = "left"
    spindle: Any = None
    steering: str | None = None
    kingpin: tuple[Place, Place] | None = None
    upper_arm: tuple[Place, Place, Place] | None = None
    lower_arm: tuple[Place, Place, Place] | None = None
    strut: tuple[Place, Place] | None = None
    spring: str | None = None
    chassis: str = GROUND
    hold: tuple[str, ...] = ()
    axle: str = "front"
    wheelbase: float | None = None
    cg_height: float | None = None
    brakes: str = "outboard"
    drive: str = "inboard"
    brake_share: float | None = None
    drive_share: float = 1.0
    steering_gear: float | None = None
    held_in_steering: str = "wheel_centre"

    def __post_init__(self) -> None:
        object.__setattr__(self, "wheel_centre", _plain(self.wheel_centre))
        object.__setattr__(self, "tyre_radius", float(self.tyre_radius))
        object.__setattr__(self, "hold", tuple(self.hold))
        for name in ("kingpin", "upper_arm", "lower_arm", "strut"):
            points = getattr(self, name)
            if points is not None:
                object.__setattr__(self, name, tuple(_plain(x) for x in points))
        if self.spindle is not None:
            spindle = tuple(self.spindle)
            pair = len(spindle) == 2
            kept = tuple(map(_plain, spindle)) if pair else tuple(map(float, spindle))
            object.__setattr__(self, "spindle", kept)
        if self.brake_share is None:
            object.__setattr__(self, "brake_share", 0.6 if self.axle == "front" else 0.4)

    @property
    def sign(self) -> float:
        """+1 for a left, −1 for a right wheel."""
        return 1.0 if self.side == "left" else -1.0

    def placed(self, role: str, place: Place) -> tuple[str, Any]:
        """(body, point) of a point in a role: "upright" or "chassis" says where it usually is."""
        if isinstance(place, tuple) and isinstance(place[0], str):
            return place[0], place[1]
        return (self.upright if role == "upright" else self.chassis), place

    @property
    def lower_ball(self) -> Place:
        """The lower point of the steering axis, or the ball of the lower arm; None without both."""
        if self.kingpin is not None:
            return self.kingpin[0]
        return None if self.lower_arm is None else self.lower_arm[2]

    def points(self) -> Iterator[tuple[str, str, Any]]:
        """(role, body, point) of every point with a role."""
        yield "wheel_centre", *self.placed("upright", self.wheel_centre)
        if self.spindle is not None and len(self.spindle) == 2:
            yield from (("spindle", *self.placed("upright", x)) for x in self.spindle)
        yield from (("kingpin", *self.placed("upright", x)) for x in self.kingpin or ())
        for name in ("upper_arm", "lower_arm"):
            for i, x in enumerate(getattr(self, name) or ()):
                yield name, *self.placed("upright" if i == 2 else "chassis", x)
        for i, x in enumerate(self.strut or ()):
            yield "strut", *self.placed("chassis" if i else "upright", x)

    def problems(self, mech: Mechanism) -> list[str]:
        """Everything that does not fit the mechanism, each with its remedy.

        What the drawing contradicts, as a wheel on the other side, is found where its numbers are
        known, not while it is traced.
        """
        return self.name_problems(mech) or self._drawn_problems(mech)

    def name_problems(self, mech: Mechanism) -> list[str]:
        """Roles whose parts and points the mechanism does not have, and contradictory roles."""
        if mech.structure.planar:
            return ["the mechanism is planar; a corner has three dimensions"]
        found = self._own_problems()
        bodies = (*mech.structure.bodies, GROUND)
        for role in ("upright", "chassis"):
            found += [f"{role}: {t}" for t in unknown("body", getattr(self, role), bodies)]
        for role, body, point in self.points():
            found += [f"{role}: {t}" for t in unknown_point(mech, body, point)]
        joints = [e.name for e in mech.structure.joints]
        for name in self.hold:
            found += [f"hold: {t}" for t in unknown("joint", name, joints)]
        if self.steering is not None:
            found += [f"steering: {t}" for t in unknown("joint", self.steering, joints)]
            if self.steering in joints:
                found += self._steering_problems(mech)
        if self.spring is not None:
            forces = mech.structure.forces
            found += [f"spring: {t}" for t in unknown("force element", self.spring, forces)]
            element = mech.forces.get(self.spring)
            if element is not None and not {"at_a", "at_b"} <= element.points.keys():
                found.append(
                    f"spring: {self.spring!r} is a {type(element).__name__}, which has no length; "
                    "name a SpringDamper"
                )
        return list(dict.fromkeys(found))

    def _steering_problems(self, mech: Mechanism) -> list[str]:
        driven = [d[0] for d in mech.structure.drives if d[1] == self.steering]
        if driven:
            return [
                f"steering: the drive {driven[0]!r} moves joint {self.steering!r}; remove the "
                "drive, so that the rack can be held and moved here"
            ]
        carries = self.turns(mech) and self._carries_upright(mech)
        if (self.slides(mech) or self.is_rod(mech)) and not carries:
            return []
        kind = type(mech.joint(str(self.steering))).__name__
        kind += " of an arm that carries the upright" if carries else ""
        return [
            f"steering: joint {self.steering!r} is a {kind}; name a rack (Prismatic), a pitman arm "
            "(Revolute) or a track rod (Rod)"
        ]

    def _carries_upright(self, mech: Mechanism) -> bool:
        """Whether the steering joint is on a body that more than a rod joins to the upright."""
        joint = mech.joint(str(self.steering))
        ends = {joint.a, joint.b}
        others = [e for e in mech.structure.joints if e.kind.can_be_in_tree]
        return any(self.upright in (e.a, e.b) and ends & {e.a, e.b} - {GROUND} for e in others)

    def slides(self, mech: Mechanism) -> bool:
        """Whether the steering is a rack or a pitman arm: a joint with one travel or angle."""
        speeds = None if self.steering is None else mech.joint(self.steering).speeds
        return speeds in (("travel",), ("angle",))

    def turns(self, mech: Mechanism) -> bool:
        """Whether it is a pitman arm, so that `steer` is an angle [rad]."""
        return self.steering is not None and mech.joint(self.steering).speeds == ("angle",)

    def is_rod(self, mech: Mechanism) -> bool:
        """Whether the steering is a track rod, a joint that is one condition."""
        if self.steering is None:
            return False
        joint = mech.joint(self.steering)
        return not joint.can_be_in_tree and len(joint.rows) == 1

    def _drawn_problems(self, mech: Mechanism) -> list[str]:
        def drawn(*places: Place) -> list[np.ndarray]:
            points = [self.placed("upright", x)[1] for x in places]
            found = [mech.point(model_point(x)) for x in points]
            return [np.asarray(x) for x in found] if all(map(is_concrete, found)) else []

        found = []
        if (centre := drawn(self.wheel_centre)) and self.sign * centre[0][1] < 0.0:
            found.append(
                f"side={self.side!r}: the wheel centre is drawn at y = {centre[0][1]:g} m, and y "
                f"is positive to the left; give side={'right' if self.sign > 0.0 else 'left'!r}"
            )
        elif self.spindle is not None and len(self.spindle) == 2 and (ends := drawn(*self.spindle)):
            length = float(np.linalg.norm(ends[1] - ends[0]))
            if not length > _SHORTEST * self.tyre_radius:
                found.append(
                    f"spindle={self.spindle}: both points are drawn at one place ({length:.3g} m "
                    "apart), so the wheel has no axis; correct one of them, or give a direction"
                )
            elif not self.sign * (ends[1] - ends[0])[1] > 0.0:
                found.append(
                    f"spindle={self.spindle}: it points inwards on the {self.side} side; give "
                    "(inner, outer)"
                )
        for name in ("kingpin", "strut"):
            places = getattr(self, name)
            if places is not None and (ends := drawn(*places)) and not ends[1][2] > ends[0][2]:
                found.append(
                    f"{name}={places}: the upper point is drawn at z = {ends[1][2]:g} m, not "
                    f"above the lower one at {ends[0][2]:g} m; give (lower, upper)"
                )
        return found + self._scale_problems(mech) + self._spring_problems(mech)

    def _scale_problems(self, mech: Mechanism) -> list[str]:
        """Whether the drawing has the size of its tyre."""
        points = [mech.points[name] for name in mech.structure.points]
        centre = mech.point(model_point(self.placed("upright", self.wheel_centre)[1]))
        if not all(map(is_concrete, (*points, centre))):
            return []
        apart = np.linalg.norm(np.reshape(points, (-1, 3)) - np.asarray(centre), axis=1)
        apart = apart[apart > 0.0]
        size = float(np.median(apart)) if len(apart) > 2 else self.tyre_radius
        if 1.0 / _LIKELY < size / self.tyre_radius < _LIKELY:
            return []
        small = size < self.tyre_radius
        read, given = ("metres", "millimetres") if small else ("millimetres", "metres")
        return [
            f"the points are drawn {size:.3g} m from the wheel centre (the median), and the tyre's "
            f"radius is {self.tyre_radius:g} m: were {read} read as {given}? All lengths are in "
            f"metres; for a table give units={'m' if small else 'mm'!r} to read_hardpoints"
        ]

    def _spring_problems(self, mech: Mechanism) -> list[str]:
        """Whether the spring is drawn with a length."""
        if self.spring is None:
            return []
        refs = [mech.forces[self.spring].points[end] for end in ("at_a", "at_b")]
        ends = [mech.point(ref) for ref in refs]
        if not all(map(is_concrete, ends)):
            return []
        length = float(np.linalg.norm(np.asarray(ends[1]) - np.asarray(ends[0])))
        if length > _SHORTEST * self.tyre_radius:
            return []
        names = [getattr(ref, "name", str(ref)) for ref in refs]
        return [
            f"spring={self.spring!r}: its ends {' and '.join(map(repr, names))} are drawn at one "
            f"place ({length:.3g} m apart): it has no direction, motion ratio or rate; correct "
            "one of them, or leave spring= out of the Corner"
        ]

    def _own_problems(self) -> list[str]:
        choices = {
            "side": ("left", "right"),
            "axle": ("front", "rear"),
            "brakes": ("outboard", "inboard"),
            "drive": ("outboard", "inboard"),
            "held_in_steering": ("wheel_centre", "spring", "lower_ball"),
        }
        found = [
            f"{name}={getattr(self, name)!r}; give {' or '.join(map(repr, allowed))}"
            for name, allowed in choices.items()
            if getattr(self, name) not in allowed
        ]
        for name in ("tyre_radius", "wheelbase", "cg_height"):
            x = getattr(self, name)
            if x is not None and not x > 0.0:
                found.append(f"{name}={x!r}; give a positive length [m]")
        if self.steering_gear is not None and not self.steering_gear:
            found.append("steering_gear=0; give the rack's travel [m] per radian of the wheel")
        if self.tyre_radius > _LARGEST:
            found.append(f"tyre_radius={self.tyre_radius!r}: no tyre is as large; give metres")
        sizes = {"kingpin": 2, "upper_arm": 3, "lower_arm": 3, "strut": 2}
        found += [
            f"{name} has {len(points)} points; give {size}"
            for name, size in sizes.items()
            if (points := getattr(self, name)) is not None and len(points) != size
        ]
        if self.held_in_steering == "spring" and self.spring is None:
            found.append("held_in_steering='spring': name the spring, spring=")
        if self.held_in_steering == "lower_ball" and self.lower_ball is None:
            found.append("held_in_steering='lower_ball': name the kingpin's points or lower_arm=")
        if self.spindle is not None:
            if len(self.spindle) not in (2, 3):
                found.append("spindle: give two points (inner, outer), or a direction (3,)")
            elif len(self.spindle) == 3 and not self.sign * self.spindle[1] > 0.0:
                found.append(f"spindle={self.spindle}: it points inwards on the {self.side} side")
        return found

    def check(self, mech: Mechanism) -> None:
        """Raise a ValueError with all problems."""
        refuse("Corner", self.problems(mech))


def _plain(x: Place) -> Place:
    """A point, or a body and a point, as plain values that can be compared and hashed."""
    if not isinstance(x, str) and len(x) == 2:
        return str(x[0]), as_point(x[1])
    return as_point(x)


_TOP = ("ground", "strut_top")
_AXLE = ("axle_inboard", "axle_outboard")


def _wishbone(name: str) -> tuple[str, str, str]:
    return (f"{name}_inboard_front", f"{name}_inboard_rear", f"{name}_outboard")


def _arm(name: str) -> tuple[str, str, str]:
    return (f"{name}_arm_front", f"{name}_arm_rear", f"{name}_arm_ball")


_KINEMATIC = Corner(
    "upright",
    "axle_outboard",
    0.3136,
    spindle=_AXLE,
    steering="rack",
    wheelbase=2.5,
    cg_height=0.45,
)
_CHRONO = Corner(
    "upright",
    "wheel_centre",
    0.33,
    steering="tierod",
    spring="spring",
    wheelbase=2.8,
    cg_height=0.6,
)
_CORNERS = {
    "double_wishbone_kinematic": replace(
        _KINEMATIC,
        kingpin=("lower_wishbone_outboard", "upper_wishbone_outboard"),
        upper_arm=_wishbone("upper_wishbone"),
        lower_arm=_wishbone("lower_wishbone"),
    ),
    "macpherson_kinematic": replace(
        _KINEMATIC,
        kingpin=("lower_wishbone_outboard", _TOP),
        lower_arm=_wishbone("lower_wishbone"),
        strut=("lower_wishbone_outboard", "strut_top"),
    ),
    "five_link_kinematic": replace(_KINEMATIC, tyre_radius=0.31595, wheelbase=2.7, cg_height=0.52),
    "double_wishbone": replace(
        _CHRONO,
        kingpin=("lower_arm_ball", "upper_arm_ball"),
        upper_arm=_arm("upper"),
        lower_arm=_arm("lower"),
    ),
    "macpherson": replace(
        _CHRONO,
        kingpin=("lower_arm_ball", _TOP),
        lower_arm=_arm("lower"),
        strut=("strut_bottom", "strut_top"),
    ),
    "multi_link": replace(_CHRONO, axle="rear", brake_share=0.4),
    "five_point": Corner(
        "knuckle",
        "axle_outboard",
        0.35,
        spindle=_AXLE,
        steering="steering_rod",
        spring="spring",
        chassis="chassis",
        hold=("chassis",),
        wheelbase=2.7,
        cg_height=0.52,
    ),
}


def _steering_axle(side: str) -> Corner:
    p = f"{side}_"
    return Corner(
        f"{p}upright",
        f"{p}wheel_centre",
        0.33,
        side=side,
        steering="rack",
        kingpin=(f"{p}arm_ball", ("ground", f"{p}strut_top")),
        lower_arm=(f"{p}arm_front", f"{p}arm_rear", f"{p}arm_ball"),
        strut=(f"{p}strut_bottom", f"{p}strut_top"),
        spring=f"{p}spring",
        wheelbase=2.7,
        cg_height=0.55,
    )


_CORNERS["macpherson_steering"] = _steering_axle("left")


def zoo_corner(name: str, side: str = "left") -> Corner:
    """The roles in a corner of the zoo.

    Tyre radius, wheelbase and height of the centre of mass of the three kinematic corners are those
    that their source publishes with the hardpoints; those of the others are our own.

    Args:
        name: of the function in `jaxmbd.zoo`.
        side: "right" for the right wheel of `macpherson_steering` (to be made with
            ``amplitude=None``, so that the rack is free).

    Raises:
        ValueError: the zoo has no corner of this name.

    Example:
        >>> from jaxmbd.suspension import zoo_corner
        >>> zoo_corner("macpherson").kingpin
        ('lower_arm_ball', ('ground', 'strut_top'))
    """
    if name not in _CORNERS:
        raise ValueError(f"zoo_corner({name!r}): the corners of the zoo are {list(_CORNERS)}")
    if side == "left":
        return _CORNERS[name]
    if name != "macpherson_steering":
        raise ValueError(f"zoo_corner: {name} is a left corner; it has no {side} wheel")
    return _steering_axle(side)


def find_corner(mech: Mechanism) -> Corner:
    """The roles in a mechanism whose parts and points are named as in a corner of the zoo.

    Its side is where the wheel centre is drawn, the left one while that is traced.

    Args:
        mech: a corner of the zoo, or one with the same names.

    Raises:
        ValueError: no corner of the zoo, or more than one, has these names.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import find_corner
        >>> find_corner(mbd.zoo.five_link_kinematic()).steering
        'rack'
    """
    found = [n for n, corner in _CORNERS.items() if not corner.name_problems(mech)]
    if not found:
        raise ValueError(
            "find_corner: no corner of the zoo has these names; name the roles by "
            f"suspension.Corner(...). Points are {list(mech.structure.points)}"
        )
    # A corner with fewer roles fits wherever one with more does.
    corner = max((_CORNERS[n] for n in found), key=lambda c: len(list(c.points())))
    y = mech.point(corner.wheel_centre)[1]
    return replace(corner, side="right") if is_concrete(y) and y < 0.0 else corner
