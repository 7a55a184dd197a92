"""Translational and torsional spring-dampers."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.forces.base import Effort, ForceElement, Load, Motion, law
from jaxmbd.model.forces.laws import law_energy
from jaxmbd.model.numbers import number, optional_number, point


def distance(d: Array) -> tuple[Array, Array]:
    """Length [m] of a vector (3,) and its unit direction, which is zero if the length is zero.

    Value and gradient stay finite where two ends coincide.
    """
    square = d @ d
    apart = square > 0.0
    length = jnp.sqrt(jnp.where(apart, square, 1.0))
    return jnp.where(apart, length, 0.0), jnp.where(apart, d / length, jnp.zeros_like(d))


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
        preload: tension at the free length [N].
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
    law: Any = eqx.field(converter=law, default=None)

    def _extension(self, motion: Motion) -> tuple[Array, Array, Array, Array, Array]:
        xa, va = motion.point(self.a, self.at_a)
        xb, vb = motion.point(self.b, self.at_b)
        length, direction = distance(xb - xa)
        free = self.free_length
        if free is None:
            free, _ = distance(motion.drawn(self.at_b) - motion.drawn(self.at_a))
        return xa, xb, direction, length - free, direction @ (vb - va)

    def loads(self, motion: Motion) -> list[Load | Effort]:
        xa, xb, direction, x, rate = self._extension(motion)
        tension = self.preload + self.stiffness * x + self.damping * rate
        if self.law is not None:
            tension = tension + self.law(x, rate)
        force = tension * direction
        none = jnp.zeros_like(force)
        return [Load(self.a, xa, force, none), Load(self.b, xb, -force, none)]

    def energy(self, motion: Motion) -> Array | float:
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
    law: Any = eqx.field(converter=law, default=None)
    index: int = eqx.field(static=True, default=0)

    def loads(self, motion: Motion) -> list[Load | Effort]:
        q, v = motion.joint(self.joint)
        x = q[self.index] - self.free_angle
        effort = self.stiffness * x + self.damping * v[self.index]
        if self.law is not None:
            effort = effort + self.law(x, v[self.index])
        parts = [-effort if i == self.index else jnp.zeros_like(effort) for i in range(v.shape[0])]
        return [Effort(self.joint, jnp.stack(parts))]

    def energy(self, motion: Motion) -> Array | float:
        x = motion.joint(self.joint)[0][self.index] - self.free_angle
        energy = 0.5 * self.stiffness * x * x
        return energy if self.law is None else energy + law_energy(self.law, x)
