"""Stops: one-sided progressive springs with dissipation, between points or at a joint's ends.

With x the depth of penetration, the contact force is that of Hunt and Crossley (Coefficient of
restitution interpreted as damping in vibroimpact, 1975),

    F = E'(x) max(0, 1 + d ẋ),   E(x) = ½ k x² + ⅓ p x³   for x > 0,   F = 0 otherwise.

It starts from zero at any speed of impact, so that F is continuous (and once differentiable for
k = 0), it never pulls, and it dissipates ``E'(x) max(d ẋ, −1) ẋ ≥ 0``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.forces.base import (
    Effort,
    ElementMotion,
    ForceElement,
    Load,
    Measure,
    coordinate_units,
    effort_along,
)
from jaxmbd.model.forces.spring_damper import distance
from jaxmbd.model.numbers import Units, is_concrete, number, optional_number, point


class _Stop(ForceElement):
    """Base of the stops: the contact law for the fields that they have in common."""

    def contacts(self, motion: ElementMotion) -> list[tuple[Array, Array]]:
        """Depth of penetration of each stop [m or rad], negative before contact, and its rate."""
        raise TypeError(f"{type(self).__name__} defines no contacts")

    def energy(self, motion: ElementMotion) -> Array | float:
        return sum((_energy(self, depth) for depth, _ in self.contacts(motion)), 0.0)

    def lost_power(self, motion: ElementMotion) -> Array | float:
        """Power dissipated in the contacts [W], never negative."""
        return sum((_lost(self, *contact) for contact in self.contacts(motion)), 0.0)


def _energy(stop: Any, depth: Array) -> Array:
    """``E(x)``."""
    x = jnp.maximum(depth, 0.0)
    return (0.5 * stop.stiffness + stop.progression * x / 3.0) * x * x


def _elastic(stop: Any, depth: Array) -> Array:
    """``E'(x)``."""
    x = jnp.maximum(depth, 0.0)
    return (stop.stiffness + stop.progression * x) * x


def _push(stop: Any, depth: Array, rate: Array) -> Array:
    """F."""
    return _elastic(stop, depth) * jnp.maximum(1.0 + stop.dissipation * rate, 0.0)


def _lost(stop: Any, depth: Array, rate: Array) -> Array:
    """``E'(x) max(d ẋ, −1) ẋ``."""
    return _elastic(stop, depth) * jnp.maximum(stop.dissipation * rate, -1.0) * rate


class BumpStop(_Stop):
    """A stop between two points, which pushes them apart when they come too close.

    The depth is ``(drawn distance − gap) − distance``; with ``rebound=True`` it is
    ``distance − (drawn distance + gap)``, and the stop pulls the points together when they are too
    far apart. The module docstring has the law. For a joint coordinate see `JointLimit`.

    Attributes:
        a, b: names of the bodies.
        at_a, at_b: its ends, (3,) [m] as drawn or names of points.
        gap: travel from the drawn distance to contact [m].
        stiffness: k [N/m].
        progression: p [N/m²]: the rate grows by 2 p for each metre of depth.
        dissipation: d [s/m]: at ``ẋ = 1/d`` inwards the force is twice the elastic one.
        rebound: whether it limits the distance from above.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.BumpStop(
        ...     "chassis", "arm", (0, 0.8, 0.6), (0, 0.8, 0.2), gap=0.05, stiffness=1e5
        ... ).rebound
        False
    """

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    at_a: Any = eqx.field(converter=point)
    at_b: Any = eqx.field(converter=point)
    gap: Any = eqx.field(converter=number, default=0.0)
    stiffness: Any = eqx.field(converter=number, default=0.0)
    progression: Any = eqx.field(converter=number, default=0.0)
    dissipation: Any = eqx.field(converter=number, default=0.0)
    rebound: bool = eqx.field(static=True, default=False)

    units: ClassVar[Units] = {
        "gap": "m",
        "stiffness": "N/m",
        "progression": "N/m²",
        "dissipation": "s/m",
    }

    @property
    def _sign(self) -> float:
        return 1.0 if self.rebound else -1.0

    def contacts(self, motion: ElementMotion) -> list[tuple[Array, Array]]:
        x_a, v_a = motion.point(self.a, self.at_a)
        x_b, v_b = motion.point(self.b, self.at_b)
        length, along = distance(x_b - x_a)
        drawn, _ = distance(motion.drawn(self.at_b) - motion.drawn(self.at_a))
        beyond = self._sign * (length - drawn) - self.gap
        return [(beyond, self._sign * (along @ (v_b - v_a)))]

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        x_a, _ = motion.point(self.a, self.at_a)
        x_b, _ = motion.point(self.b, self.at_b)
        _, along = distance(x_b - x_a)
        [(depth, rate)] = self.contacts(motion)
        force = self._sign * _push(self, depth, rate) * along
        none = jnp.zeros_like(force)
        return [Load(self.a, x_a, force, none), Load(self.b, x_b, -force, none)]

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        [(depth, rate)] = self.contacts(motion)
        acts = "pulls the ends together" if self.rebound else "pushes the ends apart"
        return {
            "force": Measure(_push(self, depth, rate), "N", f"force, never negative: {acts}"),
            "depth": Measure(depth, "m", "depth of penetration, negative before contact"),
            "rate": Measure(rate, "m/s", "rate of the depth"),
        }


class JointLimit(_Stop):
    """Stops at the ends of a joint coordinate's range; within it there is no force.

    The depths are ``lower − q`` and ``q − upper``. The module docstring has the law.

    Attributes:
        joint: name of the joint; an angle of a cut joint is taken in (-π, π].
        lower, upper: ends of the coordinate's range [rad or m]; None leaves that side free.
        stiffness: k [N·m/rad or N/m].
        progression: p [N·m/rad² or N/m²].
        dissipation: d [s/rad or s/m]: at ``ẋ = 1/d`` inwards the effort is twice the elastic one.
        index: which coordinate of the joint.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.JointLimit("hinge", lower=-0.5, upper=0.5, stiffness=1e3).joint
        'hinge'
    """

    joint: str = eqx.field(static=True)
    lower: Any = eqx.field(converter=optional_number, default=None)
    upper: Any = eqx.field(converter=optional_number, default=None)
    stiffness: Any = eqx.field(converter=number, default=0.0)
    progression: Any = eqx.field(converter=number, default=0.0)
    dissipation: Any = eqx.field(converter=number, default=0.0)
    index: int = eqx.field(static=True, default=0)

    units: ClassVar[Units] = {
        "lower": "coordinate",
        "upper": "coordinate",
        "stiffness": "effort/coordinate",
        "progression": "effort/coordinate²",
        "dissipation": "s/coordinate",
    }

    def _ends(self) -> list[tuple[float, Any]]:
        """Outward sign and position of each end that is given."""
        ends = ((-1.0, self.lower), (1.0, self.upper))
        return [(sign, end) for sign, end in ends if end is not None]

    def problems(self, joints: dict[str, Any]) -> list[str]:
        """A range that is empty or has no end."""
        ends = (self.lower, self.upper)
        if ends == (None, None):
            return ["it has neither lower nor upper; give at least one"]
        if all(x is not None and is_concrete(x) for x in ends) and self.lower > self.upper:
            return [f"lower={float(self.lower):g} is over upper={float(self.upper):g}"]
        return []

    def contacts(self, motion: ElementMotion) -> list[tuple[Array, Array]]:
        q, v = motion.joint(self.joint)
        x, rate = q[self.index], v[self.index]
        return [(sign * (x - end), sign * rate) for sign, end in self._ends()]

    def _effort(self, contacts: list[tuple[Array, Array]]) -> Array:
        effort = jnp.zeros((), contacts[0][0].dtype)
        for (sign, _), contact in zip(self._ends(), contacts, strict=True):
            effort = effort - sign * _push(self, *contact)
        return effort

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        length, _, unit = coordinate_units(joints, self.joint, self.index)
        contacts = self.contacts(motion)
        found = {"effort": Measure(self._effort(contacts), unit, "effort, positive along +q")}
        for (sign, _), (depth, _) in zip(self._ends(), contacts, strict=True):
            end = "lower" if sign < 0.0 else "upper"
            text = f"depth beyond the {end} end, negative within the range"
            found[f"depth_{end}"] = Measure(depth, length, text)
        return found

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        _, v = motion.joint(self.joint)
        effort = self._effort(self.contacts(motion))
        return [effort_along(self.joint, self.index, effort, v.shape[0])]
