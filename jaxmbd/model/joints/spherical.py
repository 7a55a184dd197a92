"""The spherical (ball) joint."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.joints.base import Bearing, Closing, Elementary, Joint
from jaxmbd.model.numbers import point
from jaxmbd.spatial import (
    normalize_quaternion,
    quaternion_difference,
    quaternion_from_matrix,
    quaternion_rate,
    quaternion_spin,
    quaternion_step,
    rotation_matrix,
)


class Spherical(Joint):
    """Three rotations about `at`: q the unit quaternion from b's axes to a's, scalar first.

    The speeds are the relative angular velocity in a's axes [rad/s], ``q̇ = ½ (0, v) ∘ q``. They
    are regular at every orientation, whereas the rates of the Euler parameters' vector part
    (Hanzaki et al. 2009, (13)) are singular at ``e0 = 0``.
    As a cut joint: three force rows, world axes.

    Attributes:
        a, b: names of the connected bodies.
        at: centre of the ball, (3,) [m] as drawn or the name of a point; `at_b` if b's half is
            drawn elsewhere.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Spherical("crank", "coupler", at=(0.1, 0, 0)).nq
        4
    """

    at: Any = eqx.field(converter=point)
    at_b: Any = eqx.field(converter=point, default=None, kw_only=True)

    nq: ClassVar[int] = 4
    nv: ClassVar[int] = 3
    speeds: ClassVar[tuple[str, ...]] = ("angle",) * 3
    rows: ClassVar[tuple[str, ...]] = ("force",) * 3
    coordinates_text: ClassVar[str] = "quaternion e0 e1 e2 e3"
    closing: ClassVar[Closing | None] = "points"
    scalar_coordinates: ClassVar[bool] = False
    ball: ClassVar[bool] = True
    bearing: ClassVar[Bearing | None] = "ball"

    def neutral(self) -> np.ndarray:
        return np.array([1.0, 0.0, 0.0, 0.0])

    def rotation(self, q: Array) -> Array | None:
        return rotation_matrix(q)

    def subspace(self, q: Array) -> tuple[Array, Array]:
        return jnp.eye(3, dtype=q.dtype), jnp.zeros((3, 3), q.dtype)

    def rate(self, q: Array, v: Array) -> Array:
        return quaternion_rate(q, v)

    def step(self, q: Array, change: Array) -> Array:
        return quaternion_step(q, change)

    def speeds_of_rate(self, q: Array, rate: Array) -> Array:
        return quaternion_spin(q, rate)

    def change(self, start: Array, q: Array) -> Array:
        return quaternion_difference(start, q)

    def normalized(self, q: Array) -> Array:
        return normalize_quaternion(q)

    def elementary(self) -> list[Elementary]:
        return [Elementary("ball", 0)]

    def coordinates(self, r: Array, d: Array) -> Array:
        return quaternion_from_matrix(r)

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        return d

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        eye = jnp.eye(3, dtype=d.dtype)
        return jnp.concatenate([jnp.zeros_like(eye), eye])
