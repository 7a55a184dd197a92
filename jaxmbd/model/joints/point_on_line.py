"""The point-on-line constraint."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.joints.axes import across, frame_about, wrench_columns
from jaxmbd.model.joints.base import Closing, Condition, Joint, Look
from jaxmbd.model.numbers import direction, point, vector_in_space
from jaxmbd.spatial import unit


class PointOnLine(Condition):
    """A point of b stays on a line fixed in a: two force rows; never a tree joint.

    ``e1 · d = e2 · d = 0`` for the vector d from `at` to b's point, with e1 and e2 fixed in a,
    perpendicular to the line. In a plane normal to the line it is a revolute joint without the
    three rows that are redundant there.

    Attributes:
        a, b: names of the connected bodies.
        at: a point of the line, (3,) [m] as drawn or the name of a point; also b's point, unless
            `at_b` is given.
        axis: direction of the line as drawn, (3,), or the names of two points (from, to).
        at_b: b's point as drawn, if different.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.PointOnLine("ground", "pin", at=(0.1, 0, 0), axis=(1, 0, 0)).rows
        ('force', 'force')
    """

    at: Any = eqx.field(converter=point)
    axis: Any = eqx.field(converter=direction)
    at_b: Any = eqx.field(converter=point, default=None, kw_only=True)

    nv: ClassVar[int] = 4
    rows: ClassVar[tuple[str, ...]] = ("force",) * 2
    closing: ClassVar[Closing | None] = "point on line"
    directions: ClassVar[tuple[str, ...]] = ("axis",)
    directions_in_plane: ClassVar[tuple[str, ...]] = ("axis",)

    def looks(self) -> tuple[Look, ...]:
        return Look("rail", "a", self.axis), Look("ball", "b")

    def in_plane(self) -> Joint | None:
        return PointOnLineInPlane(self.a, self.b, self.at, self.axis, at_b=self.at_b)

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        _, e1, e2 = frame_about(unit(jnp.asarray(self.axis)), r_a)
        return jnp.stack([e1 @ d, e2 @ d])

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        _, e1, e2 = frame_about(unit(jnp.asarray(self.axis)), r_a)
        return wrench_columns([jnp.zeros_like(e1)] * 2, [e1, e2])


class PointOnLineInPlane(PointOnLine):
    """`PointOnLine` in the plane (a pin in a slot): one force row, across the line."""

    nv: ClassVar[int] = 2
    rows: ClassVar[tuple[str, ...]] = ("force",)

    def _across(self, r_a: Array) -> Array:
        return across(r_a @ unit(vector_in_space(self.axis)))

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        return (self._across(r_a) @ d)[None]

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        return wrench_columns([jnp.zeros(3, d.dtype)], [self._across(r_a)])
