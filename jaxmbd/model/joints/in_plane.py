"""What the joints of a planar mechanism are: the same motions, the rows of the plane alone.

In a mechanism whose points all have two coordinates (`Mechanism.structure.planar`), each joint
stands for its form here (`joint_in_plane`): it turns about z and slides in the plane xy, and as a
cut joint it has the rows of the lecture text's planar kinematics (section 3.1) and no others: none
is redundant. All that is zero or one by the plane is a literal here, so that it costs nothing.
"""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from jaxmbd.model.joints.base import Joint, wrench_columns
from jaxmbd.model.joints.fixed import Fixed
from jaxmbd.model.joints.free import Free
from jaxmbd.model.joints.planar import Planar
from jaxmbd.model.joints.point_on_line import PointOnLine
from jaxmbd.model.joints.prismatic import Prismatic
from jaxmbd.model.joints.revolute import Revolute
from jaxmbd.model.numbers import ComRef, vector_in_space
from jaxmbd.spatial.rotations import gibbs_vector, unit


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
    """The vector (3,) in the plane a quarter turn on from `x` (3,)."""
    return jnp.stack([-x[1], x[0], jnp.zeros_like(x[0])])


def small_angle(r_a: Array, r_b: Array) -> Array:
    """``2 tan(angle/2)`` of b relative to a about z."""
    return gibbs_vector(r_a.T @ r_b)[2]


def _axes(like: Array) -> tuple[Array, Array, Array, Array]:
    """Unit vectors x, y, z and zero, each (3,)."""
    return *jnp.eye(3, dtype=like.dtype), jnp.zeros(3, like.dtype)


class RevoluteInPlane(Revolute):
    """`Revolute` about z; as a cut joint two force rows, along x and y."""

    rows: ClassVar[tuple[str, ...]] = ("force",) * 2

    def rotation(self, q: Array) -> Array | None:
        return turn_in_plane(q[0])

    def subspace(self, q: Array) -> tuple[Array, Array]:
        _, _, z, zero = _axes(q)
        return z[:, None], zero[:, None]

    def coordinates(self, r: Array, d: Array) -> Array:
        return angle_in_plane(r)[None]

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        return d[:2]

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        x, y, _, zero = _axes(d)
        return wrench_columns([zero, zero], [x, y])


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
        _, _, z, zero = _axes(d)
        return wrench_columns([zero, z], [across(r_a @ self.unit_axis()), zero])


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


class FixedInPlane(Fixed):
    """`Fixed` in the plane: as a cut joint two force rows, along x and y, and a moment row."""

    rows: ClassVar[tuple[str, ...]] = ("force", "force", "moment")

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        return jnp.stack([d[0], d[1], small_angle(r_a, r_b)])

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        x, y, z, zero = _axes(d)
        return wrench_columns([zero, zero, z], [x, y, zero])


class PlanarInPlane(Planar):
    """`Planar`, and `Free`, in the plane: q = (angle [rad], x [m], y [m]), no rows at all."""

    rows: ClassVar[tuple[str, ...]] = ()

    def _basis(self, like: Array) -> tuple[Array, Array, Array]:
        x, y, z, _ = _axes(like)
        if self.x_axis is not None:
            x = unit(vector_in_space(self.x_axis))
            y = across(x)
        return z, x, y

    def rotation(self, q: Array) -> Array | None:
        return turn_in_plane(q[0])

    def translation(self, q: Array) -> Array | None:
        _, x, y = self._basis(q)
        return q[1] * x + q[2] * y

    def subspace(self, q: Array) -> tuple[Array, Array]:
        z, x, y = self._basis(q)
        zero = jnp.zeros_like(z)
        return jnp.stack([z, zero, zero], axis=1), jnp.stack([zero, x, y], axis=1)

    def coordinates(self, r: Array, d: Array) -> Array:
        _, x, y = self._basis(d)
        return jnp.stack([angle_in_plane(r), x @ d, y @ d])

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        return d[:0]

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        return jnp.zeros((6, 0), d.dtype)


def joint_in_plane(joint: Joint) -> Joint | None:
    """The form of a joint in a planar mechanism; None where its type has none."""
    match joint:
        case Revolute():
            return RevoluteInPlane(joint.a, joint.b, joint.at, at_b=joint.at_b)
        case Prismatic():
            halves = {"at_b": joint.at_b, "axis_b": joint.axis_b}
            return PrismaticInPlane(joint.a, joint.b, joint.at, joint.axis, **halves)
        case Fixed():
            return FixedInPlane(joint.a, joint.b, joint.at, at_b=joint.at_b)
        case Planar():
            return PlanarInPlane(joint.a, joint.b, joint.at, None, joint.x_axis, at_b=joint.at_b)
        case Free():
            return PlanarInPlane(joint.a, joint.b, ComRef(joint.b), None, None, at_b=None)
        case PointOnLine():
            return PointOnLineInPlane(joint.a, joint.b, joint.at, joint.axis, at_b=joint.at_b)
    return joint if joint.serves_in_plane else None
