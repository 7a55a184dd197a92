"""Euler angles (z-x-z) and Bryant angles (x-y-z), their rates and singularities.

Lecture text "Multibody kinematics and dynamics", chapter 5. Both are angles of three successive
rotations about body-fixed axes, ``A = D C B``; A transforms components in the body's axes ξηζ to
the reference axes xyz. Where the first and third axes coincide (sin θ = 0, cos φ2 = 0), only the
sum or difference of the two rotations about them is defined. Each result comes with its
conditioning: with s = |sin θ| (or |cos φ2|) and c = √(1 − s²), the matrix E of ``ω = E · rates``
has the singular values √(1 + c), 1, √(1 − c), so its reciprocal condition number is
``s / (1 + c)``: 1 where the axes are orthogonal, 0 where the angles are singular.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jaxtyping import Bool, Float

from jaxmbd.numerics import tolerances

_EULER_CURE = (
    "Euler angles (z-x-z) are singular at θ = nπ, where ψ and φ turn about the same axis; use "
    "Euler parameters (jaxmbd.spatial.rotations.quaternion_from_matrix), or Bryant angles, "
    "which are singular elsewhere"
)
_BRYANT_CURE = (
    "Bryant angles (x-y-z) are singular at φ2 = π/2 + nπ, where φ1 and φ3 turn about the same "
    "axis; use Euler parameters (jaxmbd.spatial.rotations.quaternion_from_matrix), or Euler "
    "angles, which are singular elsewhere"
)


class Angles(NamedTuple):
    """Three angles, or their rates, with their conditioning.

    Attributes:
        values: (3,) [rad] or [rad/s], always finite.
        conditioning: reciprocal condition number of E in ``ω = E · rates``, from 0 (singular) to 1.
        singular: whether `conditioning` is below the square root of the rounding unit; the values
            are then one choice of many.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.spatial import euler_angles
        >>> bool(euler_angles(jnp.eye(3)).singular)
        True
    """

    values: Float[Array, "3"]
    conditioning: Float[Array, ""]
    singular: Bool[Array, ""]


def euler_rotation(angles: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """``A`` of the Euler angles (ψ, θ, φ) [rad]: about z, then ξ, then ζ (lecture text, (5.1)).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.spatial import euler_rotation
        >>> euler_rotation(jnp.array([0.0, jnp.pi / 2, 0.0])).round(6).tolist()[2]
        [0.0, 1.0, 0.0]
    """
    (s1, s2, s3), (c1, c2, c3) = _sines(angles)
    return _matrix(
        [
            [c1 * c3 - s1 * c2 * s3, -c1 * s3 - s1 * c2 * c3, s1 * s2],
            [s1 * c3 + c1 * c2 * s3, -s1 * s3 + c1 * c2 * c3, -c1 * s2],
            [s2 * s3, s2 * c3, c2],
        ]
    )


def bryant_rotation(angles: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """``A`` of the Bryant angles (φ1, φ2, φ3) [rad]: about x, then η, then ζ (lecture text, (5.5)).

    In the printed text the second terms of entries (2, 2) and (3, 1) have the wrong sign.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.spatial import bryant_rotation
        >>> bryant_rotation(jnp.array([jnp.pi / 2, 0.0, 0.0])).round(6).tolist()[2]
        [0.0, 1.0, 0.0]
    """
    (s1, s2, s3), (c1, c2, c3) = _sines(angles)
    return _matrix(
        [
            [c2 * c3, -c2 * s3, s2],
            [c1 * s3 + s1 * s2 * c3, c1 * c3 - s1 * s2 * s3, -s1 * c2],
            [s1 * s3 - c1 * s2 * c3, s1 * c3 + c1 * s2 * s3, c1 * c2],
        ]
    )


def euler_angles(r: Float[Array, "3 3"], *, throw: bool = False) -> Angles:
    """Euler angles (ψ, θ, φ) of a rotation matrix, θ in [0, π] (lecture text, (5.2)).

    ψ and θ follow from the third column, ``(sin ψ sin θ, −cos ψ sin θ, cos θ)``. The printed
    formula for φ also divides by sin θ; here φ follows from the first row of ``Dᵀ A = C B``,
    ``(cos φ, −sin φ, 0)``, which has no singularity: `euler_rotation` of the result is `r` even
    where the angles are singular. There ψ is set to zero.

    Args:
        r: rotation matrix (3, 3).
        throw: raise an error on the host if they are singular.

    Raises:
        ValueError: with `throw`, outside `jit`, where the angles are singular.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.spatial import euler_angles, euler_rotation
        >>> euler_angles(euler_rotation(jnp.array([0.5, 1.0, -2.0]))).values.round(6).tolist()
        [0.5, 1.0, -2.0]
    """
    r = jnp.asarray(r)
    first, apart = _guarded_angle(r[0, 2], -r[1, 2])
    s, c = jnp.sin(first), jnp.cos(first)
    second = jnp.arctan2(s * r[0, 2] - c * r[1, 2], r[2, 2])
    third = jnp.arctan2(-c * r[0, 1] - s * r[1, 1], c * r[0, 0] + s * r[1, 0])
    return _checked(jnp.stack([first, second, third]), apart, jnp.abs(r[2, 2]), throw, _EULER_CURE)


def bryant_angles(r: Float[Array, "3 3"], *, throw: bool = False) -> Angles:
    """Bryant angles (φ1, φ2, φ3) of a rotation matrix, φ2 in [−π/2, π/2] (lecture text, (5.6)).

    φ1 and φ2 follow from the third column, ``(sin φ2, −sin φ1 cos φ2, cos φ1 cos φ2)``, φ3 from
    the second row of ``Dᵀ A = C B``, ``(sin φ3, cos φ3, 0)``: `bryant_rotation` of the result is
    `r` even where the angles are singular. There φ1 is set to zero.

    Args:
        r: rotation matrix (3, 3).
        throw: raise an error on the host if they are singular.

    Raises:
        ValueError: with `throw`, outside `jit`, where the angles are singular.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.spatial import bryant_angles, bryant_rotation
        >>> bryant_angles(bryant_rotation(jnp.array([0.5, 1.0, -2.0]))).values.round(6).tolist()
        [0.5, 1.0, -2.0]
    """
    r = jnp.asarray(r)
    first, apart = _guarded_angle(-r[1, 2], r[2, 2])
    s, c = jnp.sin(first), jnp.cos(first)
    second = jnp.arctan2(r[0, 2], c * r[2, 2] - s * r[1, 2])
    third = jnp.arctan2(c * r[1, 0] + s * r[2, 0], c * r[1, 1] + s * r[2, 1])
    return _checked(jnp.stack([first, second, third]), apart, jnp.abs(r[0, 2]), throw, _BRYANT_CURE)


def euler_velocity(angles: Float[Array, "3"], rates: Float[Array, "3"]) -> Float[Array, "3"]:
    """Angular velocity [rad/s] in the body's axes of Euler angles and their rates (5.3).

    In the reference axes it is ``euler_rotation(angles) @ omega``.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.spatial import euler_velocity
        >>> euler_velocity(jnp.zeros(3), jnp.array([1.0, 2.0, 3.0])).tolist()
        [2.0, 0.0, 4.0]
    """
    (_, s2, s3), (_, c2, c3) = _sines(angles)
    d1, d2, d3 = jnp.asarray(rates)
    return jnp.stack([s2 * s3 * d1 + c3 * d2, s2 * c3 * d1 - s3 * d2, c2 * d1 + d3])


def bryant_velocity(angles: Float[Array, "3"], rates: Float[Array, "3"]) -> Float[Array, "3"]:
    """Angular velocity [rad/s] in the body's axes of Bryant angles and their rates (5.7).

    The first entry of the matrix is cos φ2 cos φ3 (misprinted in the text). In the reference axes
    the velocity is ``bryant_rotation(angles) @ omega``.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.spatial import bryant_velocity
        >>> bryant_velocity(jnp.zeros(3), jnp.array([1.0, 2.0, 3.0])).tolist()
        [1.0, 2.0, 3.0]
    """
    (_, s2, s3), (_, c2, c3) = _sines(angles)
    d1, d2, d3 = jnp.asarray(rates)
    return jnp.stack([c2 * c3 * d1 + s3 * d2, -c2 * s3 * d1 + c3 * d2, s2 * d1 + d3])


def euler_rates(
    angles: Float[Array, "3"], omega: Float[Array, "3"], *, throw: bool = False
) -> Angles:
    """Rates of the Euler angles from the angular velocity in the body's axes (5.4).

    Where the angles are singular (`singular` is set), the minimum-norm least-squares solution for
    `omega`: no rates produce its component out of the plane of the axes.

    Args:
        angles: (ψ, θ, φ) [rad].
        omega: (3,) [rad/s], in the body's axes.
        throw: raise an error on the host if they are singular.

    Raises:
        ValueError: with `throw`, outside `jit`, where the angles are singular.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.spatial import euler_rates
        >>> angles = jnp.array([0.0, jnp.pi / 2, 0.0])
        >>> euler_rates(angles, jnp.array([1.0, 2.0, 3.0])).values.tolist()
        [2.0, 1.0, 3.0]
    """
    (_, s2, s3), (_, c2, c3) = _sines(angles)
    w1, w2, w3 = jnp.asarray(omega)
    along, second = s3 * w1 + c3 * w2, c3 * w1 - s3 * w2
    return _rates(along, second, w3, s2, c2, throw, _EULER_CURE)


def bryant_rates(
    angles: Float[Array, "3"], omega: Float[Array, "3"], *, throw: bool = False
) -> Angles:
    """Rates of the Bryant angles from the angular velocity in the body's axes (5.8).

    Where the angles are singular (`singular` is set), the minimum-norm least-squares solution for
    `omega`: no rates produce its component out of the plane of the axes.

    Args:
        angles: (φ1, φ2, φ3) [rad].
        omega: (3,) [rad/s], in the body's axes.
        throw: raise an error on the host if they are singular.

    Raises:
        ValueError: with `throw`, outside `jit`, where the angles are singular.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.spatial import bryant_rates
        >>> bryant_rates(jnp.zeros(3), jnp.array([1.0, 2.0, 3.0])).values.tolist()
        [1.0, 2.0, 3.0]
    """
    (_, s2, s3), (_, c2, c3) = _sines(angles)
    w1, w2, w3 = jnp.asarray(omega)
    along, second = c3 * w1 - s3 * w2, s3 * w1 + c3 * w2
    return _rates(along, second, w3, c2, s2, throw, _BRYANT_CURE)


def _rates(
    along: Array, second: Array, axial: Array, apart: Array, share: Array, throw: bool, cure: str
) -> Angles:
    """Solve ``apart · d1 = along``, ``d2 = second``, ``share · d1 + d3 = axial``.

    `apart` and `share` are sine and cosine (in either order) of the angle between the first and
    the third axis; where `apart` vanishes, ``d1 = share · d3 = share · axial / 2``.
    """
    singular = _is_singular(apart, share)
    first = jnp.where(singular, 0.5 * share * axial, along / jnp.where(singular, 1.0, apart))
    third = jnp.where(singular, 0.5 * axial, axial - share * first)
    return _checked(jnp.stack([first, second, third]), apart, jnp.abs(share), throw, cure)


def _sines(angles: Array) -> tuple[Array, Array]:
    angles = jnp.asarray(angles)
    return jnp.sin(angles), jnp.cos(angles)


def _matrix(rows: list[list[Array]]) -> Array:
    return jnp.stack([jnp.stack(row) for row in rows])


def _guarded_angle(y: Array, x: Array) -> tuple[Array, Array]:
    """``atan2(y, x)`` and ``|(x, y)|``; zero with zero derivatives where both x and y vanish."""
    square = x * x + y * y
    here = square > tolerances.rounding(square.dtype) ** 2
    angle = jnp.arctan2(jnp.where(here, y, 0.0), jnp.where(here, x, 1.0))
    return angle, jnp.where(here, jnp.sqrt(jnp.where(here, square, 1.0)), 0.0)


def _is_singular(apart: Array, share: Array) -> Array:
    return jnp.abs(apart) < tolerances.agreement(apart.dtype) * (1.0 + jnp.abs(share))


def _checked(values: Array, apart: Array, share: Array, throw: bool, cure: str) -> Angles:
    conditioning, singular = jnp.abs(apart) / (1.0 + share), _is_singular(apart, share)
    if throw and not isinstance(singular, Tracer) and bool(np.asarray(singular)):
        raise ValueError(
            "these angles are singular: their reciprocal condition number is "
            f"{float(conditioning):.3g} (1 is best). {cure}"
        )
    return Angles(values, conditioning, singular)
