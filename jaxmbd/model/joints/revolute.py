"""The revolute joint."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.joints.base import AxisJoint, wrench_columns
from jaxmbd.model.numbers import direction
from jaxmbd.spatial.rotations import angle_about, axis_rotation


class Revolute(AxisJoint):
    """One rotation about `axis` through `at`: q is the angle [rad] of b relative to a.

    As a cut joint: three force rows (world axes), two moment rows (perpendicular to the axis). In
    a planar mechanism it turns about z, without `axis`, and has two force rows.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Revolute("ground", "arm", at=(0, 0, 0), axis=(0, 0, 1)).nv
        1
    """

    axis: Any = eqx.field(converter=direction, default=None)

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    speeds: ClassVar[tuple[str, ...]] = ("angle",)
    rows: ClassVar[tuple[str, ...]] = ("force",) * 3 + ("moment",) * 2
    coordinates_text: ClassVar[str] = "angle [rad]"

    def rotation(self, q: Array) -> Array | None:
        return self.turned(axis_rotation(self.unit_axis(), q[0]))

    def subspace(self, q: Array) -> tuple[Array, Array]:
        axis = self.unit_axis()
        return axis[:, None], jnp.zeros_like(axis)[:, None]

    def coordinates(self, r: Array, d: Array) -> Array:
        return angle_about(self.unit_axis(), self.unturned(r))[None]

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        _, e1, e2 = self.frame(r_a)
        rho = self.misalignment(r_a, r_b)
        return jnp.concatenate([d, jnp.stack([e1 @ rho, e2 @ rho])])

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        _, e1, e2 = self.frame(r_a)
        zero = jnp.zeros_like(e1)
        x, y, z = jnp.eye(3, dtype=e1.dtype)
        return wrench_columns([zero, zero, zero, e1, e2], [x, y, z, zero, zero])
