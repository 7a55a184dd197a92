"""The helical (screw) joint."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.joints.axes import AxisJoint, wrench_columns
from jaxmbd.model.joints.base import Elementary, Look
from jaxmbd.model.numbers import Reflection, Units, changed, number
from jaxmbd.spatial import angle_about, axis_rotation


class Helical(AxisJoint):
    """A rotation about `axis`, and a travel of `pitch` [m/rad] times its angle q [rad].

    As a cut joint: three force rows (two perpendicular to the axis, then ``axis − pitch·moment``)
    and two moment rows. As a cut joint it cannot count turns (its angle is taken in (-π, π]), so
    keep it in the tree if you can.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Helical("ground", "nut", at=(0, 0, 0), axis=(0, 0, 1), pitch=0.002).nv
        1
    """

    pitch: Any = eqx.field(converter=number)

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    speeds: ClassVar[tuple[str, ...]] = ("angle",)
    axial: ClassVar[tuple[str, ...]] = ("axis", "axis_b")
    rows: ClassVar[tuple[str, ...]] = ("force",) * 3 + ("moment",) * 2
    coordinates_text: ClassVar[str] = "angle [rad]"
    numbers: ClassVar[tuple[str, ...]] = ("pitch",)
    units: ClassVar[Units] = {"pitch": "m/rad"}

    def mirror_image(self, reflection: Reflection) -> Self:
        """A right-handed screw becomes a left-handed one."""
        return changed(super().mirror_image(reflection), pitch=-self.pitch)

    def looks(self) -> tuple[Look, ...]:
        return self.pair_of_looks("nut", "screw")

    def rotation(self, q: Array) -> Array | None:
        return self.turned(axis_rotation(self.unit_axis(), q[0]))

    def translation(self, q: Array) -> Array | None:
        return self.pitch * q[0] * self.unit_axis()

    def subspace(self, q: Array) -> tuple[Array, Array]:
        axis = self.unit_axis()
        return axis[:, None], (self.pitch * axis)[:, None]

    def effort_columns(self, q: Array) -> tuple[Array, Array]:
        """A pure torque: S adds lengths to angles."""
        axis = self.unit_axis()
        return axis[:, None], jnp.zeros_like(axis)[:, None]

    def elementary(self) -> list[Elementary]:
        axis = self.unit_axis()
        return [
            Elementary("turn", 0, axis),
            Elementary("travel", 0, axis, self.pitch, suffix=".travel"),
        ]

    def coordinates(self, r: Array, d: Array) -> Array:
        return angle_about(self.unit_axis(), self.unturned(r))[None]

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        axis, e1, e2 = self.frame(r_a)
        rho = self.misalignment(r_a, r_b)
        angle = self.coordinates(r_a.T @ r_b, d)[0]
        return jnp.stack([e1 @ d, e2 @ d, axis @ d - self.pitch * angle, e1 @ rho, e2 @ rho])

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        axis, e1, e2 = self.frame(r_a)
        zero = jnp.zeros_like(axis)
        return wrench_columns([zero, zero, -self.pitch * axis, e1, e2], [e1, e2, axis, zero, zero])
