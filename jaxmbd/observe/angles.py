"""Observables of angles: joint coordinates, directions, camber and toe, angles between axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxmbd.model import GROUND, Mechanism, coordinate_units, distance
from jaxmbd.observe.observable import Observable, Output, unknown_coordinate
from jaxmbd.observe.snapshot import Snapshot
from jaxmbd.plumbing import unknown
from jaxmbd.spatial import cross, unit


@dataclass(frozen=True)
class Coordinate(Observable):
    """A joint coordinate [rad or m]; an angle of a cut joint is in (-π, π].

    Example:
        >>> from jaxmbd.observe import Coordinate
        >>> Coordinate("crank").index
        0
    """

    joint: str
    index: int = 0

    def value(self, at: Snapshot) -> Array:
        return at.motion.joint(self.joint)[0][self.index]

    def about(self, mech: Mechanism) -> Output:
        return Output(self._units(mech)[0], f"coordinate {self.index} of {self.joint}")

    def _units(self, mech: Mechanism) -> tuple[str, str, str]:
        joint = mech.joint(self.joint)
        if not joint.scalar_coordinates:
            return "", "", ""  # an element of a quaternion, or what stands beside it
        return coordinate_units({self.joint: joint}, self.joint, self.index)

    def problems(self, mech: Mechanism) -> list[str]:
        return unknown_coordinate(mech, self.joint, self.index)


@dataclass(frozen=True)
class CoordinateRate(Observable):
    """A joint's speed [rad/s or m/s].

    Example:
        >>> from jaxmbd.observe import CoordinateRate
        >>> CoordinateRate("crank").peak().how
        'peak'
    """

    joint: str
    index: int = 0

    def value(self, at: Snapshot) -> Array:
        return at.motion.joint(self.joint)[1][self.index]

    def about(self, mech: Mechanism) -> Output:
        joint = mech.joint(self.joint)
        rate = coordinate_units({self.joint: joint}, self.joint, self.index)[1]
        return Output(rate, f"speed {self.index} of {self.joint}")

    def problems(self, mech: Mechanism) -> list[str]:
        found = unknown_coordinate(mech, self.joint, 0)
        if not found and not 0 <= self.index < mech.joint(self.joint).nv:
            found.append(f"joint {self.joint!r} has {mech.joint(self.joint).nv} speeds")
        return found


def as_direction(x: Any) -> tuple[float, ...]:
    """A direction as a tuple, which can be compared and hashed."""
    return tuple(float(y) for y in x)


def _direction_problems(direction: tuple[float, ...]) -> list[str]:
    if len(direction) == 3 and any(direction):
        return []
    return [f"the direction {direction} needs three components that are not all zero"]


def _turned(at: Snapshot, body: str, direction: Any) -> Array:
    """A direction of a body, given as drawn, now."""
    return at.motion.rotation(body) @ jnp.asarray(direction, at.q.dtype)


def wheel_axis(mech: Mechanism, body: str, outward: Any) -> Array:
    """The axis (3,) of the wheel on a body, as drawn: a unit vector, towards `outward`.

    It is the body's half of its bearing: of the one `Revolute` that joins it with a body that has
    no other joint (or, of the wheel itself, with its carrier). Without one it is `outward`.

    Args:
        mech: the mechanism.
        body: the body that carries the wheel, or the wheel.
        outward: direction (3,), along y on the left.
    """
    outward = unit(jnp.asarray(outward, mech.dtype))
    every = mech.structure.joints
    ends = [end for e in every for end in (e.a, e.b)]
    bearings = [
        e.name
        for e in every
        if body in (e.a, e.b)
        and GROUND not in (e.a, e.b)
        and mech.joint(e.name).bearing == "journal"
        and 1 in (ends.count(e.a), ends.count(e.b))
    ]
    if len(bearings) != 1 or mech.structure.planar:
        return outward
    joint: Any = mech.joint(bearings[0])
    axis = joint.unit_axis() if joint.a == body else joint.unit_axis_b()
    return jnp.asarray(jnp.where(axis @ outward < 0.0, -axis, axis), mech.dtype)


@dataclass(frozen=True)
class DirectionAngle(Observable):
    """``atan2(d · up, d · along)`` [rad] of a direction d that is fixed in a body.

    Attributes:
        body: name of the body.
        direction: d as drawn, global components (3,); None for the axis of the wheel that the body
            carries (`wheel_axis`).
        up, along: fixed directions (3,); the angle is positive towards `up`, zero along `along`.
        text: what the angle is called.
        sign: what a positive angle means.

    Example:
        >>> from jaxmbd.observe import DirectionAngle
        >>> pitch = DirectionAngle("chassis", (1, 0, 0), up=(0, 0, -1), along=(1, 0, 0))
        >>> pitch.up
        (0.0, 0.0, -1.0)
    """

    body: str
    direction: Any
    up: Any
    along: Any
    text: str = "angle"
    sign: str = ""

    def __post_init__(self) -> None:
        for name in ("direction", "up", "along"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_direction(getattr(self, name)))

    def value(self, at: Snapshot) -> Array:
        drawn = self.direction
        if drawn is None:
            drawn = wheel_axis(at.mech, self.body, self.along)
        d = _turned(at, self.body, drawn)
        return jnp.arctan2(jnp.asarray(self.up) @ d, jnp.asarray(self.along) @ d)

    def about(self, mech: Mechanism) -> Output:
        sign = f" (positive: {self.sign})" if self.sign else ""
        return Output("rad", f"{self.text} of {self.body}{sign}")

    def problems(self, mech: Mechanism) -> list[str]:
        found = unknown("body", self.body, (*mech.structure.bodies, GROUND))
        for x in (self.direction, self.up, self.along):
            found += [] if x is None else _direction_problems(x)
        return found


def _along_y(side: str) -> tuple[float, float, float]:
    """The direction outwards of a left or a right wheel."""
    if side not in ("left", "right"):
        raise ValueError(f"side={side!r}; give 'left' (y positive) or 'right'")
    return (0.0, 1.0 if side == "left" else -1.0, 0.0)


def Camber(body: str, side: str = "left", spindle: Any = None) -> DirectionAngle:
    """Camber [rad] of a wheel, positive where its top leans outward (ISO 8855 axes).

    Args:
        body: the body that carries the spindle, or the wheel.
        side: "left" (y positive) or "right".
        spindle: its direction outwards as drawn (3,); by default the axis of the body's wheel
            bearing, along y where there is none (`wheel_axis`).

    Example:
        >>> from jaxmbd.observe import Camber
        >>> Camber("upright").along
        (0.0, 1.0, 0.0)
    """
    up, along = (0, 0, -1), _along_y(side)
    return DirectionAngle(body, spindle, up, along, "camber", "top leans outward")


def Toe(body: str, side: str = "left", spindle: Any = None) -> DirectionAngle:
    """Toe [rad] of a wheel, positive where its front points inward (ISO 8855 axes).

    Args:
        body: the body that carries the spindle, or the wheel.
        side: "left" (y positive) or "right".
        spindle: its direction outwards as drawn (3,); by default the axis of the body's wheel
            bearing, along y where there is none (`wheel_axis`).

    Example:
        >>> from jaxmbd.observe import Toe
        >>> Toe("upright", "right").along
        (0.0, -1.0, 0.0)
    """
    return DirectionAngle(body, spindle, (1, 0, 0), _along_y(side), "toe", "toe-in")


@dataclass(frozen=True)
class AngleBetween(Observable):
    """The angle [rad], 0 to π, between a direction of one body and one of another.

    Attributes:
        a, b: names of the bodies; "ground" for a fixed direction.
        direction_a, direction_b: as drawn, global components (3,).

    Example:
        >>> from jaxmbd.observe import AngleBetween
        >>> AngleBetween("ground", (0, 0, 1), "arm", (0, 0, 1)).max().how
        'max'
    """

    a: str
    direction_a: Any
    b: str
    direction_b: Any

    def __post_init__(self) -> None:
        for name in ("direction_a", "direction_b"):
            object.__setattr__(self, name, as_direction(getattr(self, name)))

    def value(self, at: Snapshot) -> Array:
        x = unit(_turned(at, self.a, self.direction_a))
        y = unit(_turned(at, self.b, self.direction_b))
        return jnp.arctan2(distance(cross(x, y))[0], x @ y)

    def about(self, mech: Mechanism) -> Output:
        return Output("rad", f"angle between {self.a} and {self.b}")

    def problems(self, mech: Mechanism) -> list[str]:
        known = (*mech.structure.bodies, GROUND)
        found = unknown("body", self.a, known) + unknown("body", self.b, known)
        return found + _direction_problems(self.direction_a) + _direction_problems(self.direction_b)
