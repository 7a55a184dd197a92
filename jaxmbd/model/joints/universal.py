"""The universal (Hooke, Cardan) joint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.joints.axes import parallel_pair, wrench_columns
from jaxmbd.model.joints.base import Elementary, Joint, Look
from jaxmbd.model.numbers import changed, direction, point
from jaxmbd.spatial import UnitVector, axis_rotation, cross, unit


class Universal(Joint):
    """Two rotations: about `axis_a`, fixed in a, then about `axis_b`, fixed in b; q in [rad].

    The axes intersect in `at` and keep their drawn angle; parallel axes are an error.
    As a cut joint: three force rows (world axes) and one moment row along the common
    perpendicular, ``axis_a · axis_b`` = its drawn value over the sine of that angle.

    Attributes:
        a, b: names of the connected bodies.
        at: the intersection, (3,) [m] as drawn or the name of a point; `at_b` if b's half is drawn
            elsewhere.
        axis_a, axis_b: directions as drawn, (3,), or pairs of point names (from, to).

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Universal("ground", "shaft", at=(0, 0, 0), axis_a=(1, 0, 0), axis_b=(0, 1, 0)).nv
        2
    """

    at: Any = eqx.field(converter=point)
    axis_a: Any = eqx.field(converter=direction)
    axis_b: Any = eqx.field(converter=direction)
    at_b: Any = eqx.field(converter=point, default=None, kw_only=True)

    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    speeds: ClassVar[tuple[str, ...]] = ("angle", "angle")
    rows: ClassVar[tuple[str, ...]] = ("force",) * 3 + ("moment",)
    coordinates_text: ClassVar[str] = "angle about axis_a, about axis_b [rad]"
    moving_subspace: ClassVar[bool] = True
    directions: ClassVar[tuple[str, ...]] = ("axis_a", "axis_b")
    axial: ClassVar[tuple[str, ...]] = ("axis_a", "axis_b")

    def problems(self, points: Mapping[str, Any]) -> list[str]:
        return parallel_pair(self, "axis_a", "axis_b")

    def _axes(self) -> tuple[Array, Array]:
        return unit(self.axis_a), unit(self.axis_b)

    def with_unit_axes(self) -> Self:
        first, second = (UnitVector(x) for x in self._axes())
        return changed(self, axis_a=first, axis_b=second)

    def looks(self) -> tuple[Look, ...]:
        return Look("cross", "a", self.axis_a), Look("cross", "b", self.axis_b)

    def rotation(self, q: Array) -> Array | None:
        a, b = self._axes()
        return axis_rotation(a, q[0]) @ axis_rotation(b, q[1])

    def subspace(self, q: Array) -> tuple[Array, Array]:
        a, b = self._axes()
        columns = jnp.stack([a, axis_rotation(a, q[0]) @ b], axis=1)
        return columns, jnp.zeros_like(columns)

    def elementary(self) -> list[Elementary]:
        a, b = self._axes()
        return [Elementary("turn", 0, a, suffix=".a"), Elementary("turn", 1, b, suffix=".b")]

    def coordinates(self, r: Array, d: Array) -> Array:
        # r b = A(q1) b and rᵀ a = B(-q2) a: each angle from the image of the other axis.
        a, b = self._axes()
        return jnp.stack([_angle(a, b, r @ b), -_angle(b, a, r.T @ a)])

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        a, b = self._axes()
        normal = cross(a, b)
        sine = jnp.sqrt(normal @ normal)
        row = ((r_a @ a) @ (r_b @ b) - a @ b) / sine
        return jnp.concatenate([d, row[None]])

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        a, b = self._axes()
        normal = cross(a, b)
        moment = cross(r_b @ b, r_a @ a) / jnp.sqrt(normal @ normal)
        zero = jnp.zeros_like(moment)
        x, y, z = jnp.eye(3, dtype=moment.dtype)
        return wrench_columns([zero, zero, zero, moment], [x, y, z, zero])


def _angle(axis: Array, start: Array, end: Array) -> Array:
    """Angle about `axis` that takes `start` to `end`, both off the axis."""
    s = start - (axis @ start) * axis
    return jnp.arctan2(axis @ cross(s, end), s @ end)
