"""What joint types share: an axis fixed in both bodies, rows on directions only, the plane.

In a mechanism whose points all have two coordinates (`Mechanism.structure.planar`), a joint turns
about z and slides in the plane xy (`Joint.in_plane`), and as a cut joint it has only the rows of
the lecture text's planar kinematics (section 3.1), of which none is redundant. Components that are
zero or one in the plane are literals here, so that they cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.joints.base import Condition, Form, Joint, Look
from jaxmbd.model.numbers import GROUND, ComRef, changed, direction, is_concrete, point
from jaxmbd.spatial import (
    UnitVector,
    alignment,
    gibbs_vector,
    perpendicular_pair,
    rotation_between,
    unit,
)

_AROUND = np.stack(
    [
        np.sqrt(2.0 / 3.0) * np.cos([0.0, 2.0 * np.pi / 3.0, 4.0 * np.pi / 3.0]),
        np.sqrt(2.0 / 3.0) * np.sin([0.0, 2.0 * np.pi / 3.0, 4.0 * np.pi / 3.0]),
        np.full(3, np.sqrt(1.0 / 3.0)),
    ],
    axis=1,
)
"""Three perpendicular directions, alike about the axis, in the axes (e1, e2, axis): across it any
two of them are far from parallel, and none is small."""


class AxisJoint(Joint):
    """A joint with one axis, fixed in both bodies.

    Attributes:
        a, b: names of the connected bodies; ``"ground"`` is the fixed one.
        at: the joint point, coordinates (3,) [m] as drawn or the name of a point.
        axis: direction as drawn, (3,), of any length, or the names of two points (from, to), which
            it then follows.
        at_b, axis_b: the half on `b`, if drawn different from that on `a`.
    """

    at: Any = eqx.field(converter=point)
    axis: Any = eqx.field(converter=direction)
    at_b: Any = eqx.field(converter=point, default=None, kw_only=True)
    axis_b: Any = eqx.field(converter=direction, default=None, kw_only=True)

    directions: ClassVar[tuple[str, ...]] = ("axis", "axis_b")

    def problems(self, points: Mapping[str, Any]) -> list[str]:
        return opposed_halves(self.axis, self.axis_b)

    def unit_axis(self) -> Array:
        """Unit axis in a's axes."""
        return unit(self.axis)

    def unit_axis_b(self) -> Array:
        """Unit axis in b's axes."""
        return self.unit_axis() if self.axis_b is None else unit(self.axis_b)

    def with_unit_axes(self) -> Self:
        if self.axis is None:
            return self
        both = {"axis": UnitVector(self.unit_axis())}
        if self.axis_b is not None:
            both["axis_b"] = UnitVector(self.unit_axis_b())
        return changed(self, **both)

    def bearing_axis(self) -> Array | None:
        return self.unit_axis()

    def pair_of_looks(self, on_a: Form, on_b: Form) -> tuple[Look, ...]:
        """Looks along the axis, one on either body."""
        return Look(on_a, "a", self.unit_axis()), Look(on_b, "b", self.unit_axis_b())

    def drawn_turn(self) -> Array | None:
        """Rotation of `b` that aligns its half of the axis with a's; None if they coincide."""
        if self.axis_b is None:
            return None
        return rotation_between(self.unit_axis_b(), self.unit_axis())

    def turned(self, r: Array | None) -> Array | None:
        """`r` after the drawn turn of `b`."""
        drawn = self.drawn_turn()
        if drawn is None or r is None:
            return r if drawn is None else drawn
        return r @ drawn

    def unturned(self, r: Array) -> Array:
        """The rotation `r` of b relative to a without the drawn turn of `b`."""
        drawn = self.drawn_turn()
        return r if drawn is None else r @ drawn.T

    def frame(self, r_a: Array) -> tuple[Array, Array, Array]:
        """World directions (axis, e1, e2) that turn with `a`."""
        return frame_about(self.unit_axis(), r_a)

    def load_directions(self, r_a: Array) -> Array | None:
        if self.rows[:3] != ("force",) * 3:
            return None
        axis, e1, e2 = self.frame(r_a)
        return jnp.asarray(_AROUND, axis.dtype) @ jnp.stack([e1, e2, axis])

    def misalignment(self, r_a: Array, r_b: Array) -> Array:
        """Rotation vector, to first order, from a's axis to b's, world axes."""
        return alignment(r_a @ self.unit_axis(), r_b @ self.unit_axis_b())


class AxesCondition(Condition):
    """Rows on directions only; its joint point is irrelevant."""

    @property
    def point_a(self) -> Any:
        return ComRef(self.a if self.b == GROUND else self.b)

    @property
    def point_b(self) -> Any:
        return self.point_a

    def looks(self) -> tuple[Look, ...]:
        return ()


def frame_about(axis: Array, r_a: Array) -> tuple[Array, Array, Array]:
    """A unit axis and two unit vectors perpendicular to it, in world axes; they turn with `a`."""
    e1, e2 = perpendicular_pair(axis)
    return r_a @ axis, r_a @ e1, r_a @ e2


def wrench_columns(moments: list[Array], forces: list[Array]) -> Array:
    """(6, len(moments)) from matching lists of moment and force directions."""
    return jnp.concatenate([jnp.stack(moments, axis=1), jnp.stack(forces, axis=1)])


def opposed_halves(axis: Any, axis_b: Any) -> list[str]:
    """The problem of an axis whose half on b is drawn more than 90° from that on a, if any."""
    if axis_b is None or not (is_concrete(axis) and is_concrete(axis_b)):
        return []
    if np.dot(axis, axis_b) >= 0.0:
        return []
    return ["axis and axis_b point apart by more than 90°; turn one round"]


def parallel_pair(joint: Joint, first: str, second: str) -> list[str]:
    """The problem of two directions of a joint (field names) that are parallel, if any."""
    a, b = getattr(joint, first), getattr(joint, second)
    if not (is_concrete(a) and is_concrete(b)):
        return []
    sine = np.linalg.norm(np.cross(a, b)) / (np.linalg.norm(a) * np.linalg.norm(b))
    return [f"{first} and {second} are parallel; they must span a plane"] if sine < 1e-6 else []


X, Z = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])


def turn_in_plane(angle: Array) -> Array:
    """Rotation (3, 3) by `angle` [rad] about z."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    zero = jnp.zeros_like(c)
    return jnp.stack(
        [
            jnp.stack([c, -s, zero]),
            jnp.stack([s, c, zero]),
            jnp.stack([zero, zero, jnp.ones_like(c)]),
        ]
    )


def angle_in_plane(r: Array) -> Array:
    """Angle in (-π, π] of a rotation about z."""
    return jnp.arctan2(r[1, 0], r[0, 0])


def across(x: Array) -> Array:
    """The vector `x` (3,) in the plane, turned by +90° about z."""
    return jnp.stack([-x[1], x[0], jnp.zeros_like(x[0])])


def small_angle(r_a: Array, r_b: Array) -> Array:
    """``2 tan(angle/2)`` of b relative to a about z."""
    return gibbs_vector(r_a.T @ r_b)[2]


def unit_vectors(like: Array) -> tuple[Array, Array, Array, Array]:
    """Unit vectors x, y, z and zero, each (3,)."""
    return *jnp.eye(3, dtype=like.dtype), jnp.zeros(3, like.dtype)
