"""The planar joint."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.joints.base import Joint, wrench_columns
from jaxmbd.model.numbers import direction, is_concrete, point
from jaxmbd.spatial.rotations import (
    alignment,
    angle_about,
    axis_rotation,
    cross,
    perpendicular_pair,
    unit,
)


class Planar(Joint):
    """Motion in the plane through `at` normal to `normal`: q = (angle [rad], x [m], y [m]).

    x is measured along `x_axis` (made perpendicular to the normal), y along ``normal × x_axis``,
    both fixed in a. As a cut joint: one force row (the normal), two moment rows. In a planar
    mechanism the plane is xy, without `normal`, and it has no rows: the body moves freely.

    Attributes:
        a, b: names of the connected bodies.
        at: a point of the plane, (3,) [m] as drawn or the name of a point; `at_b` where b's half
            is drawn apart.
        normal: direction as drawn, (3,), or the names of two points (from, to).
        x_axis: direction (3,) of the first translation; by default the global axis x, or y where
            x is within 26° of the normal. A traced normal needs it given.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Planar("ground", "puck", at=(0, 0, 0), normal=(0, 0, 1)).nv
        3
    """

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
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

    def _basis(self) -> tuple[Array, Array, Array]:
        n = unit(jnp.asarray(self.normal))
        x = jnp.asarray(self.x_axis, n.dtype)
        x = unit(x - (n @ x) * n)
        return n, x, cross(n, x)

    def rotation(self, q: Array) -> Array | None:
        return axis_rotation(self._basis()[0], q[0])

    def translation(self, q: Array) -> Array | None:
        _, x, y = self._basis()
        return q[1] * x + q[2] * y

    def subspace(self, q: Array) -> tuple[Array, Array]:
        n, x, y = self._basis()
        zero = jnp.zeros_like(n)
        return jnp.stack([n, zero, zero], axis=1), jnp.stack([zero, x, y], axis=1)

    def coordinates(self, r: Array, d: Array) -> Array:
        n, x, y = self._basis()
        return jnp.stack([angle_about(n, r), x @ d, y @ d])

    def _frame(self, r_a: Array) -> tuple[Array, Array, Array]:
        n = unit(jnp.asarray(self.normal))
        e1, e2 = perpendicular_pair(n)
        return r_a @ n, r_a @ e1, r_a @ e2

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        n, e1, e2 = self._frame(r_a)
        rho = alignment(n, r_b @ unit(jnp.asarray(self.normal)))
        return jnp.stack([n @ d, e1 @ rho, e2 @ rho])

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        n, e1, e2 = self._frame(r_a)
        zero = jnp.zeros_like(n)
        return wrench_columns([zero, e1, e2], [n, zero, zero])
