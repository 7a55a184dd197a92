"""The fixed joint (a weld)."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.joints.axes import small_angle, unit_vectors, wrench_columns
from jaxmbd.model.joints.base import Closing, Elementary, Joint, Look
from jaxmbd.model.numbers import point
from jaxmbd.spatial import gibbs_vector


class Fixed(Joint):
    """b is welded to a as drawn. As a cut joint: three force and three moment rows, world axes.

    Attributes:
        a, b: names of the connected bodies.
        at: where the reaction is reported, (3,) [m] as drawn or the name of a point; give `at_b`
            if b's half is drawn elsewhere: the weld brings it to `at`.

    Example:
        >>> import jaxmbd as mbd
        >>> len(mbd.Fixed("frame", "bracket", at=(0, 0, 0)).rows)
        6
    """

    at: Any = eqx.field(converter=point)
    at_b: Any = eqx.field(converter=point, default=None, kw_only=True)

    nq: ClassVar[int] = 0
    nv: ClassVar[int] = 0
    speeds: ClassVar[tuple[str, ...]] = ()
    rows: ClassVar[tuple[str, ...]] = ("force",) * 3 + ("moment",) * 3
    coordinates_text: ClassVar[str] = "none"
    closing: ClassVar[Closing | None] = "bodies"

    def in_plane(self) -> Joint | None:
        return FixedInPlane(self.a, self.b, self.at, at_b=self.at_b)

    def looks(self) -> tuple[Look, ...]:
        return (Look("cube", "a"),)

    def rotation(self, q: Array) -> Array | None:
        return None

    def subspace(self, q: Array) -> tuple[Array, Array]:
        return jnp.zeros((3, 0), q.dtype), jnp.zeros((3, 0), q.dtype)

    def elementary(self) -> list[Elementary]:
        return []

    def coordinates(self, r: Array, d: Array) -> Array:
        return d[:0]

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        return jnp.concatenate([d, r_a @ gibbs_vector(r_a.T @ r_b)])

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        eye = jnp.eye(3, dtype=d.dtype)
        zero = jnp.zeros_like(eye)
        return jnp.block([[zero, eye], [eye, zero]])


class FixedInPlane(Fixed):
    """`Fixed` in the plane: as a cut joint two force rows, along x and y, and a moment row."""

    rows: ClassVar[tuple[str, ...]] = ("force", "force", "moment")

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        return jnp.stack([d[0], d[1], small_angle(r_a, r_b)])

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        x, y, z, zero = unit_vectors(d)
        return wrench_columns([zero, zero, z], [x, y, zero])
