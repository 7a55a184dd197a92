"""Characteristics of the steering axis: caster, kingpin inclination, trails, offsets.

Each exists for the *kingpin*, the line through two points of the upright, and, with the prefix
``virtual_``, for the *instantaneous* steering axis. That is the screw axis of the upright's motion
as the rack moves, while the wheel centre keeps its height (or the spring its length, or the lower
ball its height: `Corner.held_in_steering`). With T_t, T_s the twists of the travel and steering
motions and h_t, h_s the rates of what is held, the upright's twist is ``T_s − (h_s / h_t) T_t``.
Where all arms stand still in it, both axes of a double wishbone are one.

The axis has the direction d, upwards, and meets the ground (the contact point's height) in g and
the wheel centre's height in w; c is the contact point, m the wheel centre; σ = +1 on the left, −1
on the right. Trails and offsets are along the car's axes x and y; ``wheel_trail`` and
``wheel_scrub`` are along the wheel's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from jaxmbd.model import distance
from jaxmbd.spatial import cross, unit
from jaxmbd.suspension.wheel_characteristics import Instant, characteristic


class Line(NamedTuple):
    """A line in space.

    Attributes:
        point: one of its points (3,) [m].
        direction: unit vector (3,), upwards.
    """

    point: Array
    direction: Array

    def at_height(self, z: Array) -> Array:
        """Where it passes a height (3,) [m]."""
        return self.point + (z - self.point[2]) / self.direction[2] * self.direction


def screw_axis(twist: Array, centre: Array) -> Line:
    """The screw axis of a twist ``[ω; v]`` at `centre`: ``ω / |ω|`` through ``c + ω × v / |ω|²``.

    Its direction is upwards (ω_z is not negative); its point is the one nearest `centre`.
    """
    w, v = twist[:3], twist[3:]
    square = w @ w
    up = jnp.where(w[2] < 0.0, -1.0, 1.0)
    return Line(centre + cross(w, v) / square, up * w / jnp.sqrt(square))


def kingpin_line(at: Instant) -> Line:
    """The line through the two kingpin points."""
    points = at.state.kingpin
    assert points is not None
    return Line(points[0], unit(points[1] - points[0]))


def virtual_line(at: Instant) -> Line:
    """The instantaneous steering axis."""
    s = at.state
    assert s.steer is not None and s.held is not None
    return screw_axis(s.steer - s.held[1] / s.held[0] * s.travel, s.centre)


_Function = Callable[[Instant, Line], Array]
_OF_AXIS: list[tuple[_Function, str, str]] = []
"""Functions of an instant and a steering axis, with unit and text."""


def _of_axis(unit: str, text: str) -> Callable[[_Function], _Function]:
    """Declare a function under its own name for the kingpin, with ``virtual_`` for the other."""

    def declared(fn: _Function) -> _Function:
        _OF_AXIS.append((fn, unit, text))
        return fn

    return declared


def _ground_offset(at: Instant, axis: Line) -> Array:
    """G − c (3,)."""
    c = at.contact
    return axis.at_height(c[2]) - c


def _centre_offset(at: Instant, axis: Line) -> Array:
    """W − m (3,)."""
    m = at.state.centre
    return axis.at_height(m[2]) - m


def _heading(at: Instant) -> Array:
    """The wheel's heading (2,), horizontal and forward: its axis turned by a right angle."""
    s = at.corner.sign * at.state.spin[:2]
    return jnp.stack([s[1], -s[0]]) / jnp.sqrt(s @ s)


@_of_axis("rad", "caster [rad], positive: top rearwards")
def caster(at: Instant, axis: Line) -> Array:
    """``atan2(−d_x, d_z)``."""
    return jnp.arctan2(-axis.direction[0], axis.direction[2])


@_of_axis("rad", "kingpin inclination [rad], positive: top inwards")
def kingpin_inclination(at: Instant, axis: Line) -> Array:
    """``atan2(−σ d_y, d_z)``."""
    return jnp.arctan2(-at.corner.sign * axis.direction[1], axis.direction[2])


@_of_axis(
    "m", "caster trail [m], caster offset at the ground, along x, positive: axis ahead of contact"
)
def caster_trail(at: Instant, axis: Line) -> Array:
    """``(g − c)_x``."""
    return _ground_offset(at, axis)[0]


@_of_axis(
    "m", "mechanical trail [m], at right angles to the axis in side view, positive: axis ahead"
)
def mechanical_trail(at: Instant, axis: Line) -> Array:
    """``(g − c)_x cos(caster)``: the distance of contact and axis in side view."""
    return caster_trail(at, axis) * jnp.cos(caster(at, axis))


@_of_axis("m", "scrub radius [m], kingpin offset at the ground, along y, positive: axis inboard")
def scrub_radius(at: Instant, axis: Line) -> Array:
    """``−σ (g − c)_y``."""
    return -at.corner.sign * _ground_offset(at, axis)[1]


@_of_axis("m", "caster offset at the wheel centre [m], hub trail, along x, positive: axis ahead")
def caster_offset_wheel(at: Instant, axis: Line) -> Array:
    """``(w − m)_x``; "hub trail" has this magnitude, in some tools with the opposite sign."""
    return _centre_offset(at, axis)[0]


@_of_axis(
    "m", "kingpin offset at the wheel centre [m], spindle length, along y, positive: axis inboard"
)
def kingpin_offset_wheel(at: Instant, axis: Line) -> Array:
    """``−σ (w − m)_y``."""
    return -at.corner.sign * _centre_offset(at, axis)[1]


@_of_axis("m", "distance [m] of the contact point from where the steering axis meets the ground")
def steering_offset(at: Instant, axis: Line) -> Array:
    """``|g − c|``, which some tools call scrub radius."""
    return distance(_ground_offset(at, axis))[0]


@_of_axis("m", "trail [m] along the wheel's heading, positive: axis ahead of contact")
def wheel_trail(at: Instant, axis: Line) -> Array:
    """The component of g − c along the wheel's heading."""
    return _ground_offset(at, axis)[:2] @ _heading(at)


@_of_axis("m", "scrub radius [m] across the wheel's heading, positive: axis inboard")
def wheel_scrub(at: Instant, axis: Line) -> Array:
    """−σ times the component of g − c to the left of the wheel's heading."""
    h = _heading(at)
    left = jnp.stack([-h[1], h[0]])
    return -at.corner.sign * (_ground_offset(at, axis)[:2] @ left)


def _register(fn: _Function, unit: str, text: str, prefix: str, need: str) -> None:
    line = virtual_line if prefix else kingpin_line

    def of_instant(at: Instant) -> Array:
        if line not in at.shared:
            at.shared[line] = line(at)
        return fn(at, at.shared[line])

    of_instant.__name__ = prefix + fn.__name__
    characteristic(unit, prefix.replace("_", " ") + text, needs=(need,))(of_instant)


for _prefix, _need in (("", "kingpin"), ("virtual_", "steering")):
    for _entry in _OF_AXIS:
        _register(*_entry, _prefix, _need)


@characteristic(
    "rad/m",
    "steer angle per rack travel [rad/m] at a fixed wheel centre height, positive: to the left",
    needs=("steering",),
)
def steer_gain(at: Instant) -> Array:
    """``dδ/d(rack)`` in the steering motion."""
    assert at.state.steer is not None
    return spin_gain(at, at.state.steer)


def spin_gain(at: Instant, twist: Array) -> Array:
    """Rate of the steer angle δ in a motion of the upright (6,): ``ṡ = ω × s``, s to the left."""
    s = at.corner.sign * at.state.spin
    rate = cross(twist[:3], s)
    return (s[0] * rate[1] - s[1] * rate[0]) / (s[:2] @ s[:2])
