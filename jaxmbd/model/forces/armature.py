"""Armature: the inertia of a rotor that turns with a joint, geared up by its transmission."""

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
    sign_problems,
)
from jaxmbd.model.numbers import Units, number


class Armature(ForceElement):
    """Inertia along the speeds of a joint: the rotor of its motor, seen through the gear.

    A rotor of the inertia J_r that turns n times as fast as the joint adds ``a = n² J_r`` to the
    diagonal of M, so that the joint's effort has to be larger by ``a v̇``, and ``½ a v²`` to the
    kinetic energy. The rotor has no mass, and its gyroscopic moments are neglected, as is usual
    for n far above 1: the bodies that carry it have its mass. It is not part of the bias.

    The joint stays in the tree. Its reaction does not contain the effort ``−a v̇``, which acts
    along its own coordinates.

    Attributes:
        joint: name of the joint.
        inertia: a, one number for each speed, or for all [kg·m² for angles, kg for travels].

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> geared = m.replace(forces={"rotor": mbd.Armature("hinge", inertia=0.5)})
        >>> q = mbd.neutral(m)
        >>> round(float((mbd.mass_matrix(geared, q) - mbd.mass_matrix(m, q))[0, 0]), 12)
        0.5
    """

    joint: str = eqx.field(static=True)
    inertia: Any = eqx.field(converter=number)

    per_speed: ClassVar[tuple[str, ...]] = ("inertia",)
    units: ClassVar[Units] = {"inertia": "effort s²/coordinate"}

    def problems(self, joints: dict[str, Any]) -> list[str]:
        """A negative inertia, or a joint without speeds."""
        joint = joints.get(self.joint)
        if joint is not None and not (joint.can_be_in_tree and joint.nv):
            return [
                f"it turns with '{self.joint}', but a {type(joint).__name__} has no speeds; give "
                "it to a joint that moves"
            ]
        return sign_problems(self, (), ("inertia",))

    def along(self, nv: int) -> Array:
        """A for each of the joint's `nv` speeds."""
        return jnp.broadcast_to(jnp.asarray(self.inertia), (nv,))

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        """None: what it adds is part of the mass matrix."""
        return []

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        """Its kinetic energy."""
        _, v = motion.joint(self.joint)
        energy = 0.5 * jnp.sum(self.along(v.shape[0]) * v * v)
        return {"kinetic_energy": Measure(energy, "J", "kinetic energy of the rotor")}
