"""Observables of points and lengths: positions, travels, velocities, accelerations, distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxmbd.kinematics import point_acceleration
from jaxmbd.model import Mechanism, distance
from jaxmbd.observe.observable import Observable, Output, as_point, model_point, unknown_point
from jaxmbd.observe.snapshot import Snapshot

AXES = ("x", "y", "z")


def component(x: Array, axis: str | None) -> Array:
    """One component of a vector, or all; "norm" for its length."""
    if axis is None:
        return x
    return distance(x)[0] if axis == "norm" else x[AXES.index(axis)]


def axis_problems(axis: str | None) -> list[str]:
    """A component that does not exist."""
    if axis in (None, "norm", *AXES):
        return []
    return [f"axis={axis!r}; give 'x', 'y', 'z', 'norm', or None for all three"]


def axis_dims(axis: str | None) -> tuple[str, ...]:
    """Dimensions of a vector or of a component."""
    return ("axis",) if axis is None else ()


def of_axis(text: str, axis: str | None) -> str:
    """The text of a component."""
    if axis is None:
        return text
    return f"magnitude of {text}" if axis == "norm" else f"{axis} of {text}"


@dataclass(frozen=True)
class _OfPoint(Observable):
    """Base of the observables of a point of a body.

    Attributes:
        body: name of the body.
        point: name of the point, or its drawn coordinates [m].
        axis: "x", "y", "z", "norm", or None for all three components.
    """

    body: str
    point: Any
    axis: str | None = None

    unit = "m"
    noun = "position"

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", as_point(self.point))

    def about(self, mech: Mechanism) -> Output:
        name = self.point if isinstance(self.point, str) else f"{self.point}"
        text = of_axis(f"{self.noun} of {name} on {self.body}", self.axis)
        return Output(self.unit, text, axis_dims(self.axis))

    def problems(self, mech: Mechanism) -> list[str]:
        return unknown_point(mech, self.body, self.point) + axis_problems(self.axis)


class Position(_OfPoint):
    """World position of a point [m].

    Example:
        >>> from jaxmbd.observe import Position
        >>> Position("upright", "wheel_centre", "z").axis
        'z'
    """

    def value(self, at: Snapshot) -> Array:
        return component(at.motion.position(self.body, model_point(self.point)), self.axis)


class Travel(_OfPoint):
    """World position of a point minus its drawn position [m].

    Example:
        >>> from jaxmbd.observe import Travel
        >>> Travel("upright", "wheel_centre", "z").last().how
        'last'
    """

    noun = "travel"

    def value(self, at: Snapshot) -> Array:
        m, point = at.motion, model_point(self.point)
        return component(m.position(self.body, point) - m.drawn(point), self.axis)


class Velocity(_OfPoint):
    """World velocity of a point [m/s].

    Example:
        >>> from jaxmbd.observe import Velocity
        >>> Velocity("upright", "wheel_centre", "norm").peak().how
        'peak'
    """

    unit = "m/s"
    noun = "velocity"

    def value(self, at: Snapshot) -> Array:
        return component(at.motion.point(self.body, model_point(self.point))[1], self.axis)


class Acceleration(_OfPoint):
    """World acceleration of a point [m/s²], by forward dynamics; gravity is not subtracted.

    Example:
        >>> from jaxmbd.observe import Acceleration
        >>> Acceleration("upright", "wheel_centre", "z").rms().how
        'rms'
    """

    unit = "m/s^2"
    noun = "acceleration"

    def value(self, at: Snapshot) -> Array:
        m, acc = at.motion, at.accelerations
        if m.top.index(self.body) < 0:
            return component(jnp.zeros_like(m.drawn(model_point(self.point))), self.axis)
        return component(point_acceleration(m, acc, self.body, model_point(self.point)), self.axis)


@dataclass(frozen=True)
class _OfTwoPoints(Observable):
    """Base of the observables of two points on bodies a and b."""

    a: str
    at_a: Any
    b: str
    at_b: Any

    def __post_init__(self) -> None:
        for name in ("at_a", "at_b"):
            object.__setattr__(self, name, as_point(getattr(self, name)))

    def problems(self, mech: Mechanism) -> list[str]:
        return unknown_point(mech, self.a, self.at_a) + unknown_point(mech, self.b, self.at_b)


class Distance(_OfTwoPoints):
    """Distance of two points [m], for example of a spring's ends.

    Example:
        >>> from jaxmbd.observe import Distance
        >>> Distance("ground", "spring_top", "trailing", "spring_bottom").min().how
        'min'
    """

    def value(self, at: Snapshot) -> Array:
        m = at.motion
        x_a, x_b = (
            m.position(self.a, model_point(self.at_a)),
            m.position(self.b, model_point(self.at_b)),
        )
        return distance(x_b - x_a)[0]

    def about(self, mech: Mechanism) -> Output:
        return Output("m", f"distance of {self.at_a} and {self.at_b}")


class DistanceRate(_OfTwoPoints):
    """Rate of the distance of two points [m/s], positive where they part.

    Example:
        >>> from jaxmbd.observe import DistanceRate
        >>> DistanceRate("ground", "shock_top", "trailing", "shock_bottom").peak().how
        'peak'
    """

    def value(self, at: Snapshot) -> Array:
        x_a, v_a = at.motion.point(self.a, model_point(self.at_a))
        x_b, v_b = at.motion.point(self.b, model_point(self.at_b))
        return distance(x_b - x_a)[1] @ (v_b - v_a)

    def about(self, mech: Mechanism) -> Output:
        return Output("m/s", f"rate of the distance of {self.at_a} and {self.at_b}")
