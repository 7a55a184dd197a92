"""The free joint: six degrees of freedom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.joints.axes import X, Z
from jaxmbd.model.joints.base import Elementary, Joint, Look
from jaxmbd.model.joints.planar import Planar, PlanarInPlane
from jaxmbd.model.joints.spherical import QuaternionJoint
from jaxmbd.model.numbers import GROUND, ComRef
from jaxmbd.spatial import quaternion_from_matrix, rotation_matrix


class Free(QuaternionJoint):
    """No constraint at all: q = (quaternion, displacement of b's centre of mass [m]) in a's axes.

    The speeds are ``[ω; v]`` in a's axes [rad/s, m/s]. As a cut joint it has no rows.

    Attributes:
        a, b: names of the bodies; b floats relative to a.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Free("ground", "satellite").nv
        6
    """

    nq: ClassVar[int] = 7
    nv: ClassVar[int] = 6
    speeds: ClassVar[tuple[str, ...]] = ("angle",) * 3 + ("travel",) * 3
    rows: ClassVar[tuple[str, ...]] = ()
    coordinates_text: ClassVar[str] = "quaternion, displacement of the COM [m]"
    can_be_cut: ClassVar[bool] = False

    @property
    def point_a(self) -> Any:
        return ComRef(self.b)

    @property
    def point_b(self) -> Any:
        return ComRef(self.b)

    def problems(self, points: Mapping[str, Any]) -> list[str]:
        if self.b != GROUND:
            return []
        return [f"it floats the ground; write Free('ground', '{self.a}')"]

    def in_plane(self) -> Joint | None:
        return PlanarInPlane(self.a, self.b, ComRef(self.b), None, None, at_b=None)

    def in_space(self) -> Joint:
        """`Planar`: b stays in the plane."""
        return self if self.b == GROUND else Planar(self.a, self.b, ComRef(self.b), Z, X)

    def looks(self) -> tuple[Look, ...]:
        return ()

    def rotation(self, q: Array) -> Array | None:
        return rotation_matrix(q[:4])

    def translation(self, q: Array) -> Array | None:
        return q[4:]

    def subspace(self, q: Array) -> tuple[Array, Array]:
        eye, zero = jnp.eye(3, dtype=q.dtype), jnp.zeros((3, 3), q.dtype)
        return jnp.concatenate([eye, zero], axis=1), jnp.concatenate([zero, eye], axis=1)

    def elementary(self) -> list[Elementary]:
        if self.a == GROUND:
            return [Elementary("free", 0)]
        travels = [
            Elementary("travel", 4 + i, np.eye(3)[i], suffix=f".along_{axis}")
            for i, axis in enumerate("xyz")
        ]
        return [*travels, Elementary("ball", 0)]

    def coordinates(self, r: Array, d: Array) -> Array:
        return jnp.concatenate([quaternion_from_matrix(r), d])

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        return d[:0]

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        return jnp.zeros((6, 0), d.dtype)
