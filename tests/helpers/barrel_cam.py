"""A user-defined joint type in one file: a barrel cam, a drum with a groove."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

import jaxmbd as mbd
from jaxmbd.model.joints.axes import AxisJoint, wrench_columns
from jaxmbd.model.joints.base import Bearing
from jaxmbd.model.numbers import number
from jaxmbd.spatial.rotations import angle_about, axis_rotation


@mbd.register_type
class BarrelCam(AxisJoint):
    """A turn q about `axis` and with it the travel ``s(q) = lift · sin(q)`` along it.

    A screw whose pitch ``s'(q)`` changes with the angle: ``S = [u; s' u]``.
    """

    lift: Any = eqx.field(converter=number)

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    speeds: ClassVar[tuple[str, ...]] = ("angle",)
    rows: ClassVar[tuple[str, ...]] = ("force",) * 3 + ("moment",) * 2
    coordinates_text: ClassVar[str] = "angle [rad]"
    moving_subspace: ClassVar[bool] = True
    bearing: ClassVar[Bearing | None] = "journal"
    numbers: ClassVar[tuple[str, ...]] = ("lift",)

    def rotation(self, q: Array) -> Array | None:
        return self.turned(axis_rotation(self.unit_axis(), q[0]))

    def translation(self, q: Array) -> Array | None:
        return self.lift * jnp.sin(q[0]) * self.unit_axis()

    def subspace(self, q: Array) -> tuple[Array, Array]:
        axis = self.unit_axis()
        return axis[:, None], (self.lift * jnp.cos(q[0]) * axis)[:, None]

    def effort_columns(self, q: Array) -> tuple[Array, Array]:
        axis = self.unit_axis()
        return axis[:, None], jnp.zeros_like(axis)[:, None]

    def coordinates(self, r: Array, d: Array) -> Array:
        return angle_about(self.unit_axis(), self.unturned(r))[None]

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        axis, e1, e2 = self.frame(r_a)
        rho = self.misalignment(r_a, r_b)
        angle = self.coordinates(r_a.T @ r_b, d)[0]
        travel = axis @ d - self.lift * jnp.sin(angle)
        return jnp.stack([e1 @ d, e2 @ d, travel, e1 @ rho, e2 @ rho])

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        axis, e1, e2 = self.frame(r_a)
        pitch = self.lift * jnp.cos(self.coordinates(r_a.T @ r_b, d)[0])
        zero = jnp.zeros_like(axis)
        return wrench_columns([zero, zero, -pitch * axis, e1, e2], [e1, e2, axis, zero, zero])
