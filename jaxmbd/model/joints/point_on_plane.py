"""The point-on-plane constraint."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.joints.axes import wrench_columns
from jaxmbd.model.joints.base import Condition, Look
from jaxmbd.model.numbers import direction, point
from jaxmbd.spatial import unit


class PointOnPlane(Condition):
    """A point of b stays in a plane fixed in a: one force row, ``n · d = 0``; never a tree joint.

    The multiplier [N] is positive where a pushes b along the normal.

    Attributes:
        a, b: names of the connected bodies.
        at: a point of the plane, (3,) [m] as drawn or the name of a point; also b's point, unless
            `at_b` is given.
        normal: of the plane, as drawn, (3,), or the names of two points (from, to).
        at_b: b's point as drawn, if different.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.PointOnPlane("ground", "foot", at=(0, 0, 0), normal=(0, 0, 1)).rows
        ('force',)
    """

    at: Any = eqx.field(converter=point)
    normal: Any = eqx.field(converter=direction)
    at_b: Any = eqx.field(converter=point, default=None, kw_only=True)

    nv: ClassVar[int] = 5
    rows: ClassVar[tuple[str, ...]] = ("force",)
    directions: ClassVar[tuple[str, ...]] = ("normal",)

    def looks(self) -> tuple[Look, ...]:
        return Look("sheet", "a", self.normal), Look("ball", "b")

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        return ((r_a @ unit(jnp.asarray(self.normal))) @ d)[None]

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        normal = r_a @ unit(jnp.asarray(self.normal))
        return wrench_columns([jnp.zeros_like(normal)], [normal])
