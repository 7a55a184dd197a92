"""Vectors and turns of the plane, for the joints of a planar mechanism (`Joint.in_plane`).

In a mechanism whose points all have two coordinates (`Mechanism.structure.planar`), a joint turns
about z and slides in the plane xy, and as a cut joint it has only the rows of the lecture text's
planar kinematics (section 3.1), of which none is redundant. Components that are zero or one in the
plane are literals here, so that they cost nothing.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.spatial import gibbs_vector

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
