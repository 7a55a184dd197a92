"""Friction in joints: of given size (drag), and Coulomb friction by the joint's reaction."""

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
    RubbingElement,
    effort_measures,
    sign_problems,
)
from jaxmbd.model.forces.spring_damper import distance
from jaxmbd.model.joints.base import Bearing
from jaxmbd.model.numbers import Units, number, optional_number
from jaxmbd.spatial import cross


class JointDrag(ForceElement):
    """Dry and viscous friction of given size in a joint: ``−dry tanh(v / velocity_scale) − c v``.

    It acts along each speed by itself, for example as the friction loss of a gear or a seal.
    `JointFriction` is for friction that grows with the joint's load. The smooth sign takes the
    place of sticking: a joint that real friction would hold creeps at less than `velocity_scale`,
    and an explicit integrator must resolve the slope ``dry / velocity_scale``.

    Attributes:
        joint: name of the joint.
        dry: one number for each speed, or for all [N·m or N].
        viscous: c, one number for each speed, or for all [N·m·s/rad or N·s/m].
        velocity_scale: speed at which the smooth sign is 0.76 [rad/s or m/s].

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> m = m.replace(forces={"drag": mbd.JointDrag("hinge", dry=0.2, viscous=0.1)})
        >>> hanging = mbd.neutral(m) + jnp.pi / 2
        >>> round(float(mbd.bias(m, hanging, jnp.ones(1))[0]), 6)
        0.3
    """

    joint: str = eqx.field(static=True)
    dry: Any = eqx.field(converter=number, default=0.0)
    viscous: Any = eqx.field(converter=number, default=0.0)
    velocity_scale: Any = eqx.field(converter=number, default=1e-2)

    per_speed: ClassVar[tuple[str, ...]] = ("dry", "viscous")
    units: ClassVar[Units] = {
        "dry": "effort",
        "viscous": "effort s/coordinate",
        "velocity_scale": "coordinate/s",
    }

    def problems(self, joints: dict[str, Any]) -> list[str]:
        """Negative dry friction, or a velocity scale that is not positive."""
        return sign_problems(self, ("velocity_scale",), ("dry",))

    def _parts(self, motion: ElementMotion) -> tuple[Array, Array]:
        _, v = motion.joint(self.joint)
        return -self.dry * jnp.tanh(v / self.velocity_scale), -self.viscous * v

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        dry, viscous = self._parts(motion)
        return [Effort(self.joint, dry + viscous)]

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        found: dict[str, Measure] = {}
        dry, viscous = self._parts(motion)
        for what, effort in (("effort", dry + viscous), ("dry", dry), ("viscous", viscous)):
            found |= effort_measures(self.joint, effort, joints, what)
        return found


class JointFriction(RubbingElement):
    """Coulomb friction in a joint's bearings due to its reaction, with drag and viscous friction.

    Let f and m be the reaction's force and moment at the joint point, u the axis and f⊥ the part of
    f perpendicular to it. Two bearings at a distance `length`, with the joint point midway, carry
    ``N = |½ f⊥ + u × m / length| + |½ f⊥ − u × m / length|``; without `length`, ``N = |f⊥|``.
    With the smooth sign ``s(v) = tanh(v / velocity_scale)`` the effort along the coordinate is

    * of a `Revolute` ``−s(v) (coefficient (radius N + thrust_radius |f·u|) + drag) − viscous v``;
    * of a `Prismatic` ``−s(v) (coefficient (N + |m·u| / radius) + drag) − viscous v``, with the two
      sides of the guide at the distance `radius` from the axis (without it m·u has no effect);
    * of a `Cylindrical` a force ``coefficient N + drag`` against the sliding
      ``(radius θ̇, travel rate)`` of its surface, as a torque at `radius` and a force;
    * of a `Spherical` a torque ``coefficient radius |f| + drag`` against the angular velocity.

    The reaction depends in turn on the friction: forward and inverse dynamics solve for both
    together (`jaxmbd.dynamics.friction`); `bias` contains the viscous part only. If redundant
    constraints leave the reaction indeterminate, that of least norm is used. A joint that real
    friction would hold creeps at less than `velocity_scale`; an explicit integrator must resolve
    the slope ``coefficient N / velocity_scale`` of friction over speed.

    Attributes:
        joint: name of the joint, in the tree or cut.
        coefficient: of friction.
        radius: of the journal or ball [m].
        length: distance of the two bearings [m].
        thrust_radius: effective radius of a revolute's thrust bearing [m].
        drag: load-independent friction, for example of a seal [N·m for a revolute and a ball,
            else N].
        viscous: one number for each speed, or for all [N·m·s/rad or N·s/m].
        velocity_scale: speed at which the smooth sign is 0.76 [rad/s for a revolute and a ball,
            else m/s].

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.JointFriction("hinge", coefficient=0.1, radius=0.01).joint
        'hinge'
    """

    coefficient: Any = eqx.field(converter=number, default=0.0)
    radius: Any = eqx.field(converter=optional_number, default=None)
    length: Any = eqx.field(converter=optional_number, default=None)
    thrust_radius: Any = eqx.field(converter=number, default=0.0)
    drag: Any = eqx.field(converter=number, default=0.0)
    viscous: Any = eqx.field(converter=number, default=0.0)
    velocity_scale: Any = eqx.field(converter=number, default=1e-2)

    per_speed: ClassVar[tuple[str, ...]] = ("viscous",)
    units: ClassVar[Units] = {
        "coefficient": "",
        "radius": "m",
        "length": "m",
        "thrust_radius": "m",
        "drag": "effort",
        "viscous": "effort s/coordinate",
        "velocity_scale": "coordinate/s",
    }

    def kinds(self, joints: dict[str, Any]) -> tuple[str, ...]:
        # A sleeve's drag and speed are those of its surface, its first coordinate is an angle.
        joint = joints[self.joint]
        return ("travel",) if joint.bearing == "sleeve" else joint.speeds[:1]

    def problems(self, joints: dict[str, Any]) -> list[str]:
        """A joint type without friction, or a missing radius."""
        joint = joints.get(self.joint)
        if joint is None:
            return []
        kind = type(joint).__name__
        if joint.bearing is None:
            return [
                f"friction acts on '{self.joint}', a {kind}; give it to a Revolute, Prismatic, "
                "Cylindrical or Spherical joint"
            ]
        if self.radius is None and joint.bearing != "guide":
            return [f"the {kind} joint '{self.joint}' needs radius=, that of its journal [m]"]
        positive = ("radius", "length", "velocity_scale")
        return sign_problems(self, positive, ("coefficient", "thrust_radius", "drag"))

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        """The viscous part, which does not depend on the reaction."""
        return [Effort(self.joint, self.viscous_effort(motion.joint(self.joint)[1]))]

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        """The viscous part; the dry part needs the reaction."""
        effort = self.viscous_effort(motion.joint(self.joint)[1])
        return effort_measures(self.joint, effort, joints, "viscous")

    def viscous_effort(self, v: Array) -> Array:
        return -self.viscous * v

    def rubbing(
        self, bearing: Bearing | None, columns: tuple[Array, Array], v: Array, wrench: Array
    ) -> Array:
        moment, force = wrench[:3], wrench[3:]
        radius = 0.0 if self.radius is None else self.radius
        if bearing == "ball":
            size = self.coefficient * radius * distance(force)[0] + self.drag
            return -size * self._against(v)
        u = columns[1][:, 0] if bearing == "guide" else columns[0][:, 0]
        load = self._bearing_load(u, moment, force)
        if bearing == "journal":
            torque = radius * load + self.thrust_radius * jnp.abs(u @ force)
            return -(self.coefficient * torque + self.drag) * self._against(v)
        if bearing == "guide":
            twist = 0.0 if self.radius is None else jnp.abs(u @ moment) / radius
            return -(self.coefficient * (load + twist) + self.drag) * self._against(v)
        lever = jnp.stack([jnp.asarray(radius, v.dtype), jnp.ones((), v.dtype)])
        return -(self.coefficient * load + self.drag) * lever * self._against(lever * v)

    def _bearing_load(self, u: Array, moment: Array, force: Array) -> Array:
        across = force - (u @ force) * u
        if self.length is None:
            return distance(across)[0]
        couple = cross(u, moment) / self.length
        return distance(0.5 * across + couple)[0] + distance(0.5 * across - couple)[0]

    def _against(self, slide: Array) -> Array:
        """``s(|v|) v/|v|`` (n,), smooth at rest."""
        x = slide / self.velocity_scale
        if x.shape == (1,):
            return jnp.tanh(x)
        square = x @ x
        moves = square > 1e-12  # below it tanh(s)/s is one to rounding
        s = jnp.sqrt(jnp.asarray(jnp.where(moves, square, 1.0)))
        return jnp.where(moves, jnp.tanh(s) / s, 1.0) * x
