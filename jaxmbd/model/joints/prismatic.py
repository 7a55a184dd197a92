"""The prismatic joint."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from jaxmbd.model.joints.axes import AxisJoint, across, small_angle, unit_vectors, wrench_columns
from jaxmbd.model.joints.base import Bearing, Elementary, Joint, Look
from jaxmbd.model.numbers import vector_in_space
from jaxmbd.spatial import gibbs_vector, unit


class Prismatic(AxisJoint):
    """One translation along `axis`: q is the travel [m] of b relative to a.

    As a cut joint: two force rows (perpendicular to the axis), three moment rows (world axes). In
    a planar mechanism `axis` is (2,), and it has one force row and one moment row.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Prismatic("ground", "slider", at=(0, 0, 0), axis=(1, 0, 0)).nv
        1
    """

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    speeds: ClassVar[tuple[str, ...]] = ("travel",)
    rows: ClassVar[tuple[str, ...]] = ("force",) * 2 + ("moment",) * 3
    coordinates_text: ClassVar[str] = "travel [m]"
    bearing: ClassVar[Bearing | None] = "guide"
    directions_in_plane: ClassVar[tuple[str, ...]] = AxisJoint.directions

    def in_plane(self) -> Joint | None:
        halves = {"at_b": self.at_b, "axis_b": self.axis_b}
        return PrismaticInPlane(self.a, self.b, self.at, self.axis, **halves)

    def rotation(self, q: Array) -> Array | None:
        return self.turned(None)

    def looks(self) -> tuple[Look, ...]:
        return self.pair_of_looks("block", "bar")

    def translation(self, q: Array) -> Array | None:
        return q[0] * self.unit_axis()

    def subspace(self, q: Array) -> tuple[Array, Array]:
        axis = self.unit_axis()
        return jnp.zeros_like(axis)[:, None], axis[:, None]

    def elementary(self) -> list[Elementary]:
        return [Elementary("travel", 0, self.unit_axis())]

    def coordinates(self, r: Array, d: Array) -> Array:
        return (self.unit_axis() @ d)[None]

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        _, e1, e2 = self.frame(r_a)
        rho = r_a @ gibbs_vector(self.unturned(r_a.T @ r_b))
        return jnp.concatenate([jnp.stack([e1 @ d, e2 @ d]), rho])

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        _, e1, e2 = self.frame(r_a)
        zero = jnp.zeros_like(e1)
        x, y, z = jnp.eye(3, dtype=e1.dtype)
        return wrench_columns([zero, zero, x, y, z], [e1, e2, zero, zero, zero])


class PrismaticInPlane(Prismatic):
    """`Prismatic` in the plane; as a cut joint a force row across `axis` and a moment row."""

    rows: ClassVar[tuple[str, ...]] = ("force", "moment")

    def unit_axis(self) -> Array:
        return unit(vector_in_space(self.axis))

    def unit_axis_b(self) -> Array:
        return self.unit_axis() if self.axis_b is None else unit(vector_in_space(self.axis_b))

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        drawn_turn = self.drawn_turn()
        r_b = r_b if drawn_turn is None else r_b @ drawn_turn.T
        return jnp.stack([across(r_a @ self.unit_axis()) @ d, small_angle(r_a, r_b)])

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        _, _, z, zero = unit_vectors(d)
        return wrench_columns([zero, z], [across(r_a @ self.unit_axis()), zero])
