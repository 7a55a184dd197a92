"""Applied forces and torques: at a point, between bodies, on a joint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

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
)
from jaxmbd.model.numbers import Reflection, Units, functions_static, number, point, vector_in_space


class PointForce(ForceElement):
    """A force on a point of a body, in world axes.

    Attributes:
        b: name of the body.
        at: the point, (3,) [m] as drawn or the name of a point.
        force: constant part (3,) [N], (2,) in a planar mechanism.
        law: a function of (t [s], position (3,) [m], velocity (3,) [m/s]) giving further force,
            (3,), or (2,) in the plane xy.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.PointForce("wheel", at=(0, 0.9, 0), force=(0, 0, 4000.0)).b
        'wheel'
    """

    b: str = eqx.field(static=True)
    at: Any = eqx.field(converter=point)
    force: Any = eqx.field(converter=number, default=(0.0, 0.0, 0.0))
    law: Any = eqx.field(converter=functions_static, default=None)

    vectors: ClassVar[tuple[str, ...]] = ("force",)
    units: ClassVar[Units] = {"force": "N"}

    def mirror_image(self, reflection: Reflection) -> Self:
        if self.law is not None:
            raise ValueError("its law gives a vector, whose mirror image has to be given")
        return super().mirror_image(reflection)

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        x, velocity = motion.point(self.b, self.at)
        force = vector_in_space(jnp.asarray(self.force))
        if self.law is not None:
            force = force + vector_in_space(jnp.asarray(self.law(motion.t, x, velocity)))
        return [Load(self.b, x, force, jnp.zeros_like(force))]

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        load: Any = self.loads(motion)[0]
        return {"force": Measure(load.force, "N", f"force on {self.b}, world axes")}

    def energy(self, motion: ElementMotion) -> Array | float:
        x, _ = motion.point(self.b, self.at)
        return -(vector_in_space(jnp.asarray(self.force)) @ x)


class Torque(ForceElement):
    """A torque from body a on body b, world axes; its reaction acts on a.

    Attributes:
        a, b: names of the bodies.
        torque: constant part (3,) [N·m], one number about z in a planar mechanism.
        law: a function of (t [s], relative angular velocity (3,) [rad/s]) giving further torque,
            (3,), or a number about z.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Torque("ground", "satellite", torque=(0, 0, 0.1)).a
        'ground'
    """

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    torque: Any = eqx.field(converter=number, default=(0.0, 0.0, 0.0))
    law: Any = eqx.field(converter=functions_static, default=None)

    vectors: ClassVar[tuple[str, ...]] = ("torque",)
    moments: ClassVar[tuple[str, ...]] = ("torque",)
    units: ClassVar[Units] = {"torque": "N m"}

    def mirror_image(self, reflection: Reflection) -> Self:
        if self.law is not None:
            raise ValueError("its law gives a vector, whose mirror image has to be given")
        return super().mirror_image(reflection)

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        torque = vector_in_space(jnp.asarray(self.torque))
        if self.law is not None:
            spin = motion.angular_velocity(self.b) - motion.angular_velocity(self.a)
            torque = torque + vector_in_space(jnp.asarray(self.law(motion.t, spin)))
        none = jnp.zeros_like(torque)
        return [Load(self.a, none, none, -torque), Load(self.b, none, none, torque)]

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        load: Any = self.loads(motion)[1]
        return {"torque": Measure(load.moment, "N m", f"torque on {self.b}, world axes")}


class JointTorque(ForceElement):
    """An effort along the coordinates of a joint, positive along +q.

    Attributes:
        joint: name of the joint.
        torque: constant part, a number or (nv,) [N·m for angles, N for travels].
        law: a function of (t [s], q (nq,), v (nv,)) giving further effort.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.JointTorque("crank", law=lambda t, q, v: -0.1 * v).joint
        'crank'
    """

    joint: str = eqx.field(static=True)
    torque: Any = eqx.field(converter=number, default=0.0)
    law: Any = eqx.field(converter=functions_static, default=None)

    per_speed: ClassVar[tuple[str, ...]] = ("torque",)
    units: ClassVar[Units] = {"torque": "effort"}

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        q, v = motion.joint(self.joint)
        effort = jnp.broadcast_to(jnp.asarray(self.torque, v.dtype), v.shape)
        if self.law is not None:
            effort = effort + self.law(motion.t, q, v)
        return [Effort(self.joint, effort)]

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        effort: Any = self.loads(motion)[0]
        return effort_measures(self.joint, effort.value, joints)
