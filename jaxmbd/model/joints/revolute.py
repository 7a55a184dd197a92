"""The revolute joint."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.joints.axes import (
    AxisJoint,
    Z,
    angle_in_plane,
    turn_in_plane,
    unit_vectors,
    wrench_columns,
)
from jaxmbd.model.joints.base import Bearing, Closing, Elementary, Joint, Look
from jaxmbd.model.numbers import changed, direction
from jaxmbd.spatial import angle_about, axis_rotation


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
    axial: ClassVar[tuple[str, ...]] = ("axis", "axis_b")
    rows: ClassVar[tuple[str, ...]] = ("force",) * 3 + ("moment",) * 2
    coordinates_text: ClassVar[str] = "angle [rad]"
    closing: ClassVar[Closing | None] = "axes"
    bearing: ClassVar[Bearing | None] = "journal"

    def looks(self) -> tuple[Look, ...]:
        return self.pair_of_looks("housing", "pin")

    def missing(self) -> list[str]:
        return super().missing() + (["axis"] if self.axis is None else [])

    def in_plane(self) -> Joint | None:
        return RevoluteInPlane(self.a, self.b, self.at, at_b=self.at_b)

    def problems_in_plane(self) -> list[str]:
        given = [f for f in self.directions if getattr(self, f) is not None]
        if not given:
            return []
        return [f"a Revolute of a planar mechanism turns about z; leave out {given}"]

    def in_space(self) -> Joint:
        joint = super().in_space()
        return changed(joint, axis=Z) if self.axis is None else joint

    def rotation(self, q: Array) -> Array | None:
        return self.turned(axis_rotation(self.unit_axis(), q[0]))

    def subspace(self, q: Array) -> tuple[Array, Array]:
        axis = self.unit_axis()
        return axis[:, None], jnp.zeros_like(axis)[:, None]

    def elementary(self) -> list[Elementary]:
        return [Elementary("turn", 0, self.unit_axis())]

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


class RevoluteInPlane(Revolute):
    """`Revolute` about z; as a cut joint two force rows, along x and y."""

    rows: ClassVar[tuple[str, ...]] = ("force",) * 2

    def bearing_axis(self) -> Array | None:
        return jnp.asarray(Z)

    def rotation(self, q: Array) -> Array | None:
        return turn_in_plane(q[0])

    def subspace(self, q: Array) -> tuple[Array, Array]:
        _, _, z, zero = unit_vectors(q)
        return z[:, None], zero[:, None]

    def coordinates(self, r: Array, d: Array) -> Array:
        return angle_in_plane(r)[None]

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        return d[:2]

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        x, y, _, zero = unit_vectors(d)
        return wrench_columns([zero, zero], [x, y])
