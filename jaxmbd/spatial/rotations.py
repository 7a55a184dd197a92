"""Rotations: matrices, Euler parameters, axis and angle, and bases for joints.

Euler parameters are scalar first, ``p = (e0, e1, e2, e3)``; ``rotation_matrix(p)`` transforms
components of a vector from the rotated frame to the reference frame.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from jaxmbd.lanes import traced_once
from jaxmbd.numerics import AnyArray, tolerances

# An orthonormal basis in general position: `perpendicular_pair` is singular only at -_OFF_AXIS,
# a direction that is unlikely in any model.
_OFF_AXIS = np.array([0.5391, 0.3217, 0.7783])
_OFF_AXIS /= np.linalg.norm(_OFF_AXIS)
_OFF_1 = np.cross(_OFF_AXIS, [1.0, 0.0, 0.0])
_OFF_1 /= np.linalg.norm(_OFF_1)
_OFF_2 = np.cross(_OFF_AXIS, _OFF_1)

# ã_ij = _SKEW[i, j, k] a_k: minus the permutation symbol.
_SKEW = np.zeros((3, 3, 3))
_SKEW[[0, 1, 2], [1, 2, 0], [2, 0, 1]] = -1.0
_SKEW[[1, 2, 0], [0, 1, 2], [2, 0, 1]] = 1.0

_CONJUGATE = np.array([1.0, -1.0, -1.0, -1.0])


@traced_once
def cross(a: Array, b: Array) -> Array:
    """Cross product over the last axis: (a1, a2, a0) (b2, b0, b1) − (a2, a0, a1) (b1, b2, b0)."""
    aa = jnp.concatenate([a, a], axis=-1)
    bb = jnp.concatenate([b, b], axis=-1)
    return aa[..., 1:4] * bb[..., 2:5] - aa[..., 2:5] * bb[..., 1:4]


@traced_once
def skew(a: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """The cross-product matrix ``ã``, with ``ã b = a × b`` (Hanzaki et al. 2009, (4))."""
    return jnp.asarray(_SKEW, a.dtype) @ a


@traced_once
def vee(m: Float[Array, "3 3"]) -> Float[Array, "3"]:
    """The vector of the skew part of `m`: ``vee(skew(a)) = a``."""
    return jnp.tensordot(m, jnp.asarray(0.5 * _SKEW, m.dtype), 2)


class UnitVector(NamedTuple):
    """A vector of which it is known that its length is one."""

    components: Float[Array, "3"]


@traced_once
def unit(a: Float[AnyArray, "3"] | UnitVector) -> Float[Array, "3"]:
    """`a` divided by its length, which must not be zero."""
    if isinstance(a, UnitVector):
        return a.components
    return jnp.divide(a, jnp.sqrt(jnp.sum(a * a)))


@traced_once
def axis_rotation(axis: Float[Array, "3"], angle: Float[Array, ""]) -> Float[Array, "3 3"]:
    """Rotation by `angle` [rad] about the unit vector `axis` (Rodrigues' formula)."""
    s, c = jnp.sin(angle), jnp.cos(angle)
    eye = jnp.eye(3, dtype=axis.dtype)
    return c * eye + skew(s * axis) + (1.0 - c) * jnp.outer(axis, axis)


@traced_once
def rotation_between(a: Float[Array, "3"], b: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """The rotation of least angle from unit vector `a` to `b`; singular only at ``b = -a``."""
    k = skew(cross(a, b))
    return jnp.eye(3, dtype=k.dtype) + k + (k @ k) / (1.0 + jnp.dot(a, b))


@traced_once
def perpendicular_pair(axis: Float[Array, "3"]) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
    """Two unit vectors that complete the unit vector `axis` to a right-handed basis.

    A fixed basis in general position is rotated to `axis` by the rotation of least angle, so the
    pair is a smooth function of `axis` and does not jump between samples of a batch.
    """
    r = rotation_between(jnp.asarray(_OFF_AXIS, axis.dtype), axis)
    return r @ jnp.asarray(_OFF_1, axis.dtype), r @ jnp.asarray(_OFF_2, axis.dtype)


@traced_once
def quaternion_product(p: Float[AnyArray, "4"], q: Float[AnyArray, "4"]) -> Float[Array, "4"]:
    """Hamilton's product ``p ∘ q``; ``rotation_matrix(p ∘ q) = rotation_matrix(p) @ (q)``."""
    p0, p1, p2, p3 = p
    q0, q1, q2, q3 = q
    return jnp.stack(
        [
            p0 * q0 - p1 * q1 - p2 * q2 - p3 * q3,
            p0 * q1 + p1 * q0 + p2 * q3 - p3 * q2,
            p0 * q2 - p1 * q3 + p2 * q0 + p3 * q1,
            p0 * q3 + p1 * q2 - p2 * q1 + p3 * q0,
        ]
    )


@traced_once
def rotation_matrix(p: Float[Array, "4"]) -> Float[Array, "3 3"]:
    """``B = (2 e0² − 1) 1 + 2 (e eᵀ + e0 ẽ)`` for unit Euler parameters (Hanzaki 2009, (3)).

    Parameters that are not of unit length are normalised: 2 is replaced by ``2/(e0² + e·e)``.
    """
    e0, e = p[0], p[1:]
    eye = jnp.eye(3, dtype=p.dtype)
    two = 2.0 / (e0 * e0 + jnp.sum(e * e))
    return (two * e0 * e0 - 1.0) * eye + two * (jnp.outer(e, e) + e0 * skew(e))


@traced_once
def quaternion_rate(p: Float[Array, "4"], omega: Float[Array, "3"]) -> Float[Array, "4"]:
    """``ṗ = ½ (0, ω) ∘ p`` for `omega` [rad/s] in the reference frame's axes."""
    return 0.5 * quaternion_product(jnp.concatenate([jnp.zeros_like(omega[:1]), omega]), p)


@traced_once
def quaternion_step(p: Float[Array, "4"], turn: Float[Array, "3"]) -> Float[Array, "4"]:
    """Rotate `p` by a small rotation vector `turn` [rad] (reference axes), to first order in it.

    The result is normalised, and its sign is not changed.
    """
    return normalize_quaternion(p + quaternion_rate(p, turn))


@traced_once
def quaternion_spin(p: Float[Array, "4"], rate: Float[Array, "4"]) -> Float[Array, "3"]:
    """The ω (3,) [rad/s] with ``ṗ = ½ (0, ω) ∘ p``: the vector part of ``2 ṗ ∘ p̄`` for unit p."""
    return 2.0 * quaternion_product(rate, jnp.asarray(_CONJUGATE, p.dtype) * p)[1:]


@traced_once
def quaternion_difference(start: Float[Array, "4"], end: Float[Array, "4"]) -> Float[Array, "3"]:
    """The `turn` (3,) [rad] with which `quaternion_step` takes `start` to ±`end`.

    It is ``2 e/e0`` of ``end ∘ start̄``, to first order the rotation vector; zero only if both are
    the same rotation.
    """
    e = quaternion_product(end, jnp.asarray(_CONJUGATE, end.dtype) * start)
    return 2.0 * e[1:] / jnp.where(jnp.abs(e[0]) > 1e-6, e[0], 1e-6)


@traced_once
def normalize_quaternion(p: Float[Array, "4"]) -> Float[Array, "4"]:
    """`p` divided by its length, sign unchanged."""
    return p / jnp.sqrt(jnp.sum(p * p))


@traced_once
def quaternion_from_matrix(r: Float[Array, "3 3"]) -> Float[Array, "4"]:
    """Unit Euler parameters of a rotation matrix, with ``e0 >= 0``.

    The column of the 4×4 matrix ``4 p pᵀ`` (linear in `r`) with the largest diagonal element is
    normalised (Shepperd 1978), so there is no singular angle of rotation.
    """
    t = r[0, 0] + r[1, 1] + r[2, 2]
    diagonal = jnp.stack(
        [1.0 + t, 1.0 + 2.0 * r[0, 0] - t, 1.0 + 2.0 * r[1, 1] - t, 1.0 + 2.0 * r[2, 2] - t]
    )
    w = 2.0 * vee(r)
    s = r + r.T
    table = jnp.stack(
        [
            jnp.stack([diagonal[0], w[0], w[1], w[2]]),
            jnp.stack([w[0], diagonal[1], s[0, 1], s[0, 2]]),
            jnp.stack([w[1], s[0, 1], diagonal[2], s[1, 2]]),
            jnp.stack([w[2], s[0, 2], s[1, 2], diagonal[3]]),
        ]
    )
    p = normalize_quaternion(table[jnp.argmax(diagonal)])
    return jnp.where(p[0] < 0.0, -p, p)


@traced_once
def gibbs_vector(r: Float[Array, "3 3"]) -> Float[Array, "3"]:
    """``2 tan(angle/2)`` along the axis of `r`: zero only if `r` is the identity.

    To first order it is the rotation vector; unlike the skew part of `r` it is not zero at π.
    """
    return _unless_opposed(4.0 * vee(r), 1.0 + r[0, 0] + r[1, 1] + r[2, 2])


@traced_once
def rotation_vector(r: Float[Array, "3 3"]) -> Float[Array, "3"]:
    """Angle in [0, π] along the axis of `r`: ``2 arctan2(|e|, e0) e/|e|`` of its Euler parameters.

    Smooth for angles below π; at π the sign of the axis is arbitrary.
    """
    p = quaternion_from_matrix(r)
    square = p[1:] @ p[1:]
    small = square < 1e-8
    size = jnp.sqrt(jnp.where(small, 1.0, square))
    # arcsin(s)/s = 1 + s²/6 + 3 s⁴/40 + …
    ratio = jnp.where(
        small, 2.0 + square / 3.0 + 0.15 * square * square, 2.0 * jnp.arctan2(size, p[0]) / size
    )
    return ratio * p[1:]


@traced_once
def alignment(a: Float[Array, "3"], b: Float[Array, "3"]) -> Float[Array, "3"]:
    """``2 tan(angle/2)`` along ``a × b`` for unit vectors: zero only if they are equal."""
    return _unless_opposed(2.0 * cross(a, b), 1.0 + jnp.dot(a, b))


@traced_once
def _unless_opposed(numerator: Array, denominator: Array) -> Array:
    """The ratio; a large vector at a half turn, where both operands are rounding error."""
    opposed = denominator < tolerances.rounding(numerator.dtype, 1e4)
    return jnp.where(opposed, 1e6, numerator / jnp.where(opposed, 1.0, denominator))


@traced_once
def angle_about(axis: Float[Array, "3"], r: Float[Array, "3 3"]) -> Float[Array, ""]:
    """Angle in (-π, π] of a rotation `r` about the unit vector `axis`, which `r` leaves fixed."""
    return jnp.arctan2(2.0 * jnp.dot(axis, vee(r)), jnp.trace(r) - 1.0)
