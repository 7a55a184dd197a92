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


class QuaternionJoint(Joint):
    """A joint of which q begins with the unit quaternion, v with the angular velocity.

    What follows are coordinates whose rates are speeds.
    """

    scalar_coordinates: ClassVar[bool] = False

    def neutral(self) -> np.ndarray:
        return np.eye(1, self.nq)[0]

    def rate(self, q: Array, v: Array) -> Array:
        return _followed(quaternion_rate(q[:4], v[:3]), v[3:])

    def step(self, q: Array, change: Array) -> Array:
        return _followed(quaternion_step(q[:4], change[:3]), q[4:] + change[3:])

    def speeds_of_rate(self, q: Array, rate: Array) -> Array:
        return _followed(quaternion_spin(q[:4], rate[:4]), rate[4:])

    def change(self, start: Array, q: Array) -> Array:
        return _followed(quaternion_difference(start[:4], q[:4]), q[4:] - start[4:])

    def normalized(self, q: Array) -> Array:
        return _followed(normalize_quaternion(q[:4]), q[4:])


def _followed(first: Array, rest: Array) -> Array:
    return jnp.concatenate([first, rest]) if rest.size else first


class Spherical(QuaternionJoint):
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
    ball: ClassVar[bool] = True
    bearing: ClassVar[Bearing | None] = "ball"

    def rotation(self, q: Array) -> Array | None:
        return rotation_matrix(q)

    def subspace(self, q: Array) -> tuple[Array, Array]:
        return jnp.eye(3, dtype=q.dtype), jnp.zeros((3, 3), q.dtype)

    def elementary(self) -> list[Elementary]:
        return [Elementary("ball", 0)]

    def coordinates(self, r: Array, d: Array) -> Array:
        return quaternion_from_matrix(r)

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        return d

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        eye = jnp.eye(3, dtype=d.dtype)
        return jnp.concatenate([jnp.zeros_like(eye), eye])
