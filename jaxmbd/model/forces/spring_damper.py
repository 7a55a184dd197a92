"""Translational and torsional spring-dampers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.lanes import flagged, traced_once
from jaxmbd.model.forces.base import (
    Effort,
    ElementMotion,
    ForceElement,
    Load,
    Measure,
    coordinate_units,
    effort_along,
)
from jaxmbd.model.forces.laws import law_energy
from jaxmbd.model.numbers import Units, functions_static, number, optional_number, point


@traced_once
def distance(d: Array) -> tuple[Array, Array]:
    """Length [m] of a vector (3,) and its unit direction, which is zero if the length is zero.

    Value and gradient stay finite where two ends coincide. Of known numbers, as NumPy arrays, it
    gives NumPy arrays, without compiling anything.
    """
    xp: Any = np if isinstance(d, np.ndarray) else jnp
    square = d @ d
    apart = square != 0.0  # also where it is NaN
    length = xp.sqrt(xp.where(apart, square, 1.0))
    return xp.where(apart, length, 0.0), xp.where(apart, d / length, xp.zeros_like(d))


@jax.custom_jvp
def directed(tension: Array, slope: Array, d: Array) -> Array:
    """``T n`` with n the direction of d (3,): zero where d is zero, and n is none.

    There the force still has a derivative if T vanishes with the length: ``slope·ḋ``, for a spring
    that is free at no length. Otherwise it jumps with the direction, and the derivative is NaN: in
    both modes if T is not zero, in forward mode along changes that make T so.
    """
    del slope
    return tension * distance(d)[1]


@directed.defjvp
def _directed_jvp(primals: Any, tangents: Any) -> Any:
    tension, slope, d = primals
    d_tension, _, d_dot = tangents
    apart = d @ d > 0.0
    length, n = distance(jnp.asarray(d))
    across = d_dot - n * (n @ d_dot)
    turned = d_tension * n + tension * across / jnp.where(apart, length, 1.0)
    jumps = ~apart & (tension != 0.0)
    limit = flagged(
        slope * d_dot,
        jnp.where(apart, 0.0, jnp.reshape(d_tension, (1,))),
        jnp.zeros(1, d.dtype),
        1.0,
    )
    limit = limit * jnp.where(jumps, jnp.asarray(jnp.nan, d.dtype), 1.0)
    return tension * n, jnp.where(apart, turned, limit)


class SpringDamper(ForceElement):
    """A spring-damper between two points.

    With x the extension over `free_length`, the tension is
    ``preload + stiffness·x + damping·ẋ + law(x, ẋ)``.

    Attributes:
        a, b: names of the bodies.
        at_a, at_b: its ends, each (3,) [m] as drawn or the name of a point.
        stiffness: [N/m].
        damping: [N·s/m].
        free_length: [m]; by default the drawn distance of the ends.
        preload: tension at the free length [N], negative if it pushes.
        law: a function of (extension [m], rate [m/s]) giving further tension [N].

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.SpringDamper("ground", "arm", (0, 0, 1), (0, 0, 0), stiffness=2e4).stiffness
        array(20000.)
    """

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    at_a: Any = eqx.field(converter=point)
    at_b: Any = eqx.field(converter=point)
    stiffness: Any = eqx.field(converter=number, default=0.0)
    damping: Any = eqx.field(converter=number, default=0.0)
    free_length: Any = eqx.field(converter=optional_number, default=None)
    preload: Any = eqx.field(converter=number, default=0.0)
    law: Any = eqx.field(converter=functions_static, default=None)

    joins: ClassVar[bool] = True
    of_time: ClassVar[bool] = False
    units: ClassVar[Units] = {
        "stiffness": "N/m",
        "damping": "N s/m",
        "free_length": "m",
        "preload": "N",
    }

    def implied(self, drawn: Callable[[Any], Array]) -> dict[str, Any]:
        return {"free_length": distance(drawn(self.at_b) - drawn(self.at_a))[0]}

    def _extension(self, motion: ElementMotion) -> tuple[Array, Array, Array, Array, Array]:
        xa, va = motion.point(self.a, self.at_a)
        xb, vb = motion.point(self.b, self.at_b)
        length, direction = distance(xb - xa)
        free = self.free_length
        if free is None:
            free, _ = distance(motion.drawn(self.at_b) - motion.drawn(self.at_a))
        return xa, xb, direction, length - free, direction @ (vb - va)

    def _tension(self, x: Array, rate: Array) -> Array:
        tension = self.preload + self.stiffness * x + self.damping * rate
        return tension if self.law is None else tension + self.law(x, rate)

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        xa, xb, _, x, rate = self._extension(motion)
        tension, slope = self._tension(x, rate), self.stiffness
        if self.law is not None:
            one = jnp.ones_like(x)
            slope = slope + jax.jvp(lambda y: self.law(y, rate), (x,), (one,))[1]
        force = directed(tension, jnp.asarray(slope, x.dtype), xb - xa)
        none = jnp.zeros_like(force)
        return [Load(self.a, xa, force, none), Load(self.b, xb, -force, none)]

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        xa, xb, _, x, rate = self._extension(motion)
        force, spring = self._tension(x, rate), self._tension(x, jnp.zeros_like(rate))
        return {
            "force": Measure(force, "N", "force, positive in tension"),
            "spring": Measure(spring, "N", "force at rest, positive in tension"),
            "damper": Measure(force - spring, "N", "force due to the rate, positive in tension"),
            "length": Measure(distance(xb - xa)[0], "m", "distance of the ends"),
            "extension": Measure(x, "m", "extension over the free length"),
            "rate": Measure(rate, "m/s", "rate of extension"),
        }

    def energy(self, motion: ElementMotion) -> Array | float:
        _, _, _, x, _ = self._extension(motion)
        energy = self.preload * x + 0.5 * self.stiffness * x * x
        return energy if self.law is None else energy + law_energy(self.law, x)


class TorsionSpring(ForceElement):
    """A spring-damper on one coordinate of a joint.

    With x the coordinate minus `free_angle`, the effort along the coordinate is
    ``−(stiffness·x + damping·ẋ + law(x, ẋ))``.

    Attributes:
        joint: name of the joint; the angle of a cut joint is taken in (-π, π].
        stiffness: [N·m/rad] ([N/m] on a translation).
        damping: [N·m·s/rad].
        free_angle: [rad]; zero is the drawn configuration.
        law: a function of (deflection, rate) giving further effort.
        index: which coordinate of the joint.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.TorsionSpring("hinge", stiffness=50.0, damping=0.1).joint
        'hinge'
    """

    joint: str = eqx.field(static=True)
    stiffness: Any = eqx.field(converter=number, default=0.0)
    damping: Any = eqx.field(converter=number, default=0.0)
    free_angle: Any = eqx.field(converter=number, default=0.0)
    law: Any = eqx.field(converter=functions_static, default=None)
    index: int = eqx.field(static=True, default=0)

    of_time: ClassVar[bool] = False
    units: ClassVar[Units] = {
        "stiffness": "effort/coordinate",
        "damping": "effort s/coordinate",
        "free_angle": "coordinate",
    }

    def _resistance(self, x: Array, rate: Array) -> Array:
        effort = self.stiffness * x + self.damping * rate
        return effort if self.law is None else effort + self.law(x, rate)

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        q, v = motion.joint(self.joint)
        x, rate = q[self.index] - self.free_angle, v[self.index]
        effort, spring = self._resistance(x, rate), self._resistance(x, jnp.zeros_like(rate))
        length, speed, unit = coordinate_units(joints, self.joint, self.index)
        return {
            "effort": Measure(-effort, unit, "effort, positive along +q"),
            "spring": Measure(-spring, unit, "effort at rest, positive along +q"),
            "damper": Measure(spring - effort, unit, "effort due to the rate, positive along +q"),
            "deflection": Measure(x, length, "coordinate minus its free value"),
            "rate": Measure(rate, speed, "rate of the coordinate"),
        }

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        q, v = motion.joint(self.joint)
        effort = self._resistance(q[self.index] - self.free_angle, v[self.index])
        return [effort_along(self.joint, self.index, -effort, v.shape[0])]

    def energy(self, motion: ElementMotion) -> Array | float:
        x = motion.joint(self.joint)[0][self.index] - self.free_angle
        energy = 0.5 * self.stiffness * x * x
        return energy if self.law is None else energy + law_energy(self.law, x)
