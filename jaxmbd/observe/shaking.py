"""What a moving mechanism does to its ground as a whole: shaking force and shaking moment.

All that acts on the bodies changes their momentum: with p and h as in `momentum`, and the weights W
and loads L from outside,

    F = dp/dt = Σ (forces of the ground) + W + L ,   N = dh/dt = the same of the moments,

so that the mechanism acts on the ground with ``−F`` and ``−N`` beside weights and loads: the
*shaking force* and the *shaking moment* of machine design (Norton, Design of Machinery, 11.9).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxmbd.dynamics import momentum_rate
from jaxmbd.model import GROUND, Mechanism
from jaxmbd.observe.observable import Observable, Output, as_point, model_point, unknown_point
from jaxmbd.observe.points import axis_dims, axis_problems, component, of_axis
from jaxmbd.observe.snapshot import Snapshot
from jaxmbd.spatial import cross


def _on_ground(at: Snapshot, about: Array, weight: bool) -> Array:
    """Moment about a point and force (6,) of all inertia, and of all weights, on the ground."""
    m = at.motion
    found = -momentum_rate(m, at.accelerations, about)
    if not weight:
        return found
    for body, x in zip(m.top.bodies, m.pos.com, strict=True):
        pull = m.mech.bodies[body].mass * m.mech.field()
        found = found + jnp.concatenate([cross(x - about, pull), pull])
    return found


@dataclass(frozen=True)
class ShakingForce(Observable):
    """The force of the mechanism's inertia on its ground [N], ``−Σ m a`` over all bodies.

    With its weight it is the sum of all forces on the ground, if no other load comes from outside.

    Attributes:
        axis: "x", "y", "z", "norm", or None for all three components.
        weight: whether the weights count as well.

    Example:
        >>> from jaxmbd.observe import ShakingForce
        >>> ShakingForce("norm").peak().how
        'peak'
    """

    axis: str | None = None
    weight: bool = False

    def value(self, at: Snapshot) -> Array:
        found = _on_ground(at, jnp.zeros(3, at.q.dtype), self.weight)
        return component(found[3:], self.axis)

    def about(self, mech: Mechanism) -> Output:
        text = f"shaking force{' with weight' if self.weight else ''}"
        return Output("N", of_axis(text, self.axis), axis_dims(self.axis))

    def problems(self, mech: Mechanism) -> list[str]:
        return axis_problems(self.axis)


@dataclass(frozen=True)
class ShakingMoment(Observable):
    """The moment of the mechanism's inertia on its ground about a point at rest [N·m].

    It is ``−Σ I α + ω × I ω + (x − c) × m a`` over all bodies, with c the point and x the centres
    of mass; the spin of rotors (`Armature`), which have no place of their own, does not count.

    Attributes:
        point: name of a point, or its coordinates [m], fixed to the ground.
        axis: "x", "y", "z", "norm", or None for all three components.
        weight: whether the weights count as well.

    Example:
        >>> from jaxmbd.observe import ShakingMoment
        >>> ShakingMoment((0.0, 0.0, 0.0), "z").rms().how
        'rms'
    """

    point: Any
    axis: str | None = None
    weight: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", as_point(self.point))

    def value(self, at: Snapshot) -> Array:
        place = at.motion.position(GROUND, model_point(self.point))
        return component(_on_ground(at, place, self.weight)[:3], self.axis)

    def about(self, mech: Mechanism) -> Output:
        text = f"shaking moment{' with weight' if self.weight else ''} about {self.point}"
        return Output("N m", of_axis(text, self.axis), axis_dims(self.axis))

    def problems(self, mech: Mechanism) -> list[str]:
        return unknown_point(mech, GROUND, self.point) + axis_problems(self.axis)
