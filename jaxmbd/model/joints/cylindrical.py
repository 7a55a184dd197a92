"""The cylindrical joint."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from jaxmbd.model.joints.axes import AxisJoint, wrench_columns
from jaxmbd.model.joints.base import Bearing, Elementary, Look
from jaxmbd.spatial import angle_about, axis_rotation


class Cylindrical(AxisJoint):
    """A rotation about and a translation along `axis`: q = (angle [rad], travel [m]).

    As a cut joint: two force rows and two moment rows, all perpendicular to the axis.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Cylindrical("ground", "rod", at=(0, 0, 0), axis=(0, 0, 1)).nv
        2
    """

    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    speeds: ClassVar[tuple[str, ...]] = ("angle", "travel")
    reversed_in_mirror: ClassVar[tuple[int, ...]] = (0,)
    rows: ClassVar[tuple[str, ...]] = ("force",) * 2 + ("moment",) * 2
    coordinates_text: ClassVar[str] = "angle [rad], travel [m]"
    bearing: ClassVar[Bearing | None] = "sleeve"

    def looks(self) -> tuple[Look, ...]:
        return self.pair_of_looks("sleeve", "shaft")

    def rotation(self, q: Array) -> Array | None:
        return self.turned(axis_rotation(self.unit_axis(), q[0]))

    def translation(self, q: Array) -> Array | None:
        return q[1] * self.unit_axis()

    def subspace(self, q: Array) -> tuple[Array, Array]:
        axis = self.unit_axis()
        zero = jnp.zeros_like(axis)
        return jnp.stack([axis, zero], axis=1), jnp.stack([zero, axis], axis=1)

    def elementary(self) -> list[Elementary]:
        axis = self.unit_axis()
        return [Elementary("turn", 0, axis), Elementary("travel", 1, axis, suffix=".travel")]

    def coordinates(self, r: Array, d: Array) -> Array:
        axis = self.unit_axis()
        return jnp.stack([angle_about(axis, self.unturned(r)), axis @ d])

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        _, e1, e2 = self.frame(r_a)
        rho = self.misalignment(r_a, r_b)
        return jnp.stack([e1 @ d, e2 @ d, e1 @ rho, e2 @ rho])

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        _, e1, e2 = self.frame(r_a)
        zero = jnp.zeros_like(e1)
        return wrench_columns([zero, zero, e1, e2], [e1, e2, zero, zero])
