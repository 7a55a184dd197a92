"""The planar joint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.joints.axes import (
    X,
    Z,
    across,
    angle_in_plane,
    frame_about,
    parallel_pair,
    turn_in_plane,
    unit_vectors,
    wrench_columns,
)
from jaxmbd.model.joints.base import Elementary, Joint, Look
from jaxmbd.model.numbers import changed, direction, is_concrete, point, vector_in_space
from jaxmbd.spatial import alignment, angle_about, axis_rotation, cross, unit


class Planar(Joint):
    """Motion in the plane through `at` normal to `normal`: q = (angle [rad], x [m], y [m]).

    x is measured along `x_axis` (made perpendicular to the normal), y along ``normal × x_axis``,
    both fixed in a. As a cut joint: one force row (the normal), two moment rows. In a planar
    mechanism the plane is xy, without `normal`, and it has no rows: the body moves freely.

    Attributes:
        a, b: names of the connected bodies.
        at: a point of the plane, (3,) [m] as drawn or the name of a point; `at_b` if b's half is
            drawn elsewhere.
        normal: direction as drawn, (3,), or the names of two points (from, to).
        x_axis: direction (3,) of the first translation; by default the global axis x, or y where
            x is within 26° of the normal. Required if the normal is traced.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Planar("ground", "puck", at=(0, 0, 0), normal=(0, 0, 1)).nv
        3
    """

    at: Any
    normal: Any
    x_axis: Any
    at_b: Any

    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3
    speeds: ClassVar[tuple[str, ...]] = ("angle", "travel", "travel")
    rows: ClassVar[tuple[str, ...]] = ("force",) + ("moment",) * 2
    coordinates_text: ClassVar[str] = "angle [rad], x [m], y [m]"
    directions: ClassVar[tuple[str, ...]] = ("normal", "x_axis")
    axial: ClassVar[tuple[str, ...]] = ("normal",)
    directions_in_plane: ClassVar[tuple[str, ...]] = ("x_axis",)
    optional: ClassVar[tuple[str, ...]] = ("x_axis", "at_b")

    def __init__(
        self, a: str, b: str, at: Any, normal: Any = None, x_axis: Any = None, *, at_b: Any = None
    ):
        self.a, self.b = a, b
        self.at, self.at_b = point(at), point(at_b)
        self.normal = direction(normal)
        if x_axis is None and normal is not None:
            if not is_concrete(self.normal):
                raise ValueError(
                    f"planar joint {a} - {b}: its normal is traced, so the direction of its first "
                    "translation cannot be chosen for you; give x_axis="
                )
            n = np.asarray(self.normal)
            x_axis = np.array([1.0, 0, 0]) if abs(n[0]) < 0.9 * np.linalg.norm(n) else [0, 1.0, 0]
        self.x_axis = direction(x_axis)

    def problems(self, points: Mapping[str, Any]) -> list[str]:
        return parallel_pair(self, "normal", "x_axis")

    def in_plane(self) -> Joint | None:
        return PlanarInPlane(self.a, self.b, self.at, None, self.x_axis, at_b=self.at_b)

    def problems_in_plane(self) -> list[str]:
        if self.normal is None:
            return []
        return ["the normal of a planar mechanism's plane is z; leave it out"]

    def in_space(self) -> Joint:
        joint = super().in_space()
        given = {"normal": Z, "x_axis": X}
        return changed(joint, **{f: x for f, x in given.items() if getattr(joint, f) is None})

    def _basis(self, like: Array) -> tuple[Array, Array, Array]:
        """The normal, x and y, unit vectors in a's axes."""
        n = unit(jnp.asarray(self.normal))
        x = jnp.asarray(self.x_axis, n.dtype)
        x = unit(x - (n @ x) * n)
        return n, x, cross(n, x)

    def looks(self) -> tuple[Look, ...]:
        return Look("sheet", "a", self.normal), Look("foot", "b", self.normal)

    def rotation(self, q: Array) -> Array | None:
        return axis_rotation(self._basis(q)[0], q[0])

    def translation(self, q: Array) -> Array | None:
        _, x, y = self._basis(q)
        return q[1] * x + q[2] * y

    def subspace(self, q: Array) -> tuple[Array, Array]:
        n, x, y = self._basis(q)
        zero = jnp.zeros_like(n)
        return jnp.stack([n, zero, zero], axis=1), jnp.stack([zero, x, y], axis=1)

    def elementary(self) -> list[Elementary]:
        n, x, y = self._basis(jnp.asarray(self.normal))
        travels = [Elementary("travel", 1, x, suffix=".x"), Elementary("travel", 2, y, suffix=".y")]
        return [*travels, Elementary("turn", 0, n)]

    def coordinates(self, r: Array, d: Array) -> Array:
        n, x, y = self._basis(d)
        return jnp.stack([angle_about(n, r), x @ d, y @ d])

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        n, e1, e2 = frame_about(unit(jnp.asarray(self.normal)), r_a)
        rho = alignment(n, r_b @ unit(jnp.asarray(self.normal)))
        return jnp.stack([n @ d, e1 @ rho, e2 @ rho])

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        n, e1, e2 = frame_about(unit(jnp.asarray(self.normal)), r_a)
        zero = jnp.zeros_like(n)
        return wrench_columns([zero, e1, e2], [n, zero, zero])


class PlanarInPlane(Planar):
    """`Planar`, and `Free`, in the plane: q = (angle [rad], x [m], y [m]), no rows at all."""

    rows: ClassVar[tuple[str, ...]] = ()

    def _basis(self, like: Array) -> tuple[Array, Array, Array]:
        x, y, z, _ = unit_vectors(like)
        if self.x_axis is not None:
            x = unit(vector_in_space(self.x_axis))
            y = across(x)
        return z, x, y

    def rotation(self, q: Array) -> Array | None:
        return turn_in_plane(q[0])

    def coordinates(self, r: Array, d: Array) -> Array:
        _, x, y = self._basis(d)
        return jnp.stack([angle_in_plane(r), x @ d, y @ d])

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        return d[:0]

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        return jnp.zeros((6, 0), d.dtype)
