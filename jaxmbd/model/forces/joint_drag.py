"""Joint drag: friction along a joint's speeds that does not depend on its reaction."""

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
    effort_measures,
    sign_problems,
)
from jaxmbd.model.numbers import Units, number


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
