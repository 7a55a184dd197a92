"""The replacement model of a joint: springs and dampers instead of its constraint rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.forces.base import ElasticConnection, ElementMotion, Measure
from jaxmbd.model.joints.base import Joint, with_directions
from jaxmbd.model.numbers import Reflection, Units, changed, number

_OPENINGS = {"force": ("gap", "m"), "moment": ("tilt", "rad")}


class SoftJoint(ElasticConnection):
    """A joint whose constraint rows are springs and dampers; motions it allows remain free.

    The deformation is the closure error φ of the joint's rows in the axes of a, force rows [m]
    first, then moment rows [rad]: the replacement model of Urbaś (2016, section 2), whose
    directional springs impose a joint's constraints softly. Unlike there, the springs turn with a,
    so that a rigid motion of both bodies together is not damped. φ is exact for any joint angle,
    so that a hinge may turn without limit. All force rows have the same stiffness, and so have all
    moment rows.

    Attributes:
        replaced: the joint between a and b; it is not one of the mechanism's joints.
        stiffness: a number for all rows, or (2,) ``[N·m/rad; N/m]`` for moment and force rows.
        damping: a number for all rows, or (2,) ``[N·m·s/rad; N·s/m]``.

    Example:
        >>> import jaxmbd as mbd
        >>> hinge = mbd.Revolute("ground", "arm", at=(0, 0, 0), axis=(0, 0, 1))
        >>> mbd.SoftJoint(hinge, stiffness=(1e4, 1e6)).bodies
        ('ground', 'arm')
    """

    replaced: Joint
    stiffness: Any = eqx.field(converter=number)
    damping: Any = eqx.field(converter=number, default=0.0)

    serves_in_plane: ClassVar[bool] = False
    joins: ClassVar[bool] = True
    units: ClassVar[Units] = {
        "stiffness": ("N m/rad", "N/m"),
        "damping": ("N m s/rad", "N s/m"),
    }

    @property
    def replaced_joint(self) -> Joint:
        return self.replaced

    @property
    def a(self) -> str:
        return self.replaced.a

    @property
    def b(self) -> str:
        return self.replaced.b

    @property
    def at(self) -> Any:
        return getattr(self.replaced, "at", None)

    @property
    def at_a(self) -> Any:
        return getattr(self.replaced, "at_a", None)

    @property
    def at_b(self) -> Any:
        return getattr(self.replaced, "at_b", None)

    @property
    def connected(self) -> tuple[str, Any, str, Any]:
        joint = self.replaced
        return joint.a, joint.point_a, joint.b, joint.point_b

    def shapes(self, joints: dict[str, Any]) -> dict[str, tuple[tuple[int, ...], ...]]:
        """One number, or one for moment rows and one for force rows."""
        return {"stiffness": ((), (2,)), "damping": ((), (2,))}

    def measure_pose(self, motion: ElementMotion, r_a: Array, r_b: Array, d: Array) -> Array:
        joint = with_directions(self.replaced, motion.drawn)
        drawn = motion.drawn(joint.point_b) - motion.drawn(joint.point_a)
        eye = jnp.eye(3, dtype=d.dtype)
        return joint.residual(eye, r_a.T @ r_b, r_a.T @ d, drawn)

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        delta, rate = self.deformation(motion)
        effort = self.resistance(delta, rate)
        found, count = {}, {"force": 0, "moment": 0}
        for i, kind in enumerate(self.replaced.rows):
            count[kind] += 1
            k, (opening, length) = count[kind], _OPENINGS[kind]
            unit = "N" if kind == "force" else "N m"
            found[f"{kind}_{k}"] = Measure(effort[i], unit, f"{kind} on {self.b} along its row {k}")
            found[f"{opening}_{k}"] = Measure(delta[i], length, f"{opening} along its row {k}")
        return found

    def mirror_image(self, reflection: Reflection) -> Self:
        return changed(self, replaced=self.replaced.mirror_image(reflection))

    def elastic(self, deformation: Array) -> Array:
        return self._along_rows(self.stiffness) * deformation

    def viscous(self, rate: Array) -> Array:
        return self._along_rows(self.damping) * rate

    def _along_rows(self, coefficients: Any) -> Array:
        c = jnp.asarray(coefficients)
        if c.ndim == 0:
            return c
        return jnp.stack([c[1] if kind == "force" else c[0] for kind in self.replaced.rows])
