"""Laws of rise: the share of a rise over the share of its cam angle.

A law is a function y(x) with y(0) = 0 and y(1) = 1. Formulas are those of R. L. Norton, Cam Design
and Manufacturing Handbook (2nd ed., 2009), chapters 2 to 4; constants are derived, not rounded.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array

Law = Callable[[Array], Array]
"""``law(x)`` → the share of the rise at the share x of its angle, elementwise."""

_PI = float(np.pi)


def _uniform(x: Array) -> Array:
    """Constant velocity; impacts at both ends."""
    return x


def _parabolic(x: Array) -> Array:
    """Constant acceleration, then constant deceleration."""
    return _symmetric(x, lambda u: 2.0 * u**2)


def _harmonic(x: Array) -> Array:
    """``y'' ∝ cos πx``: the acceleration jumps at both ends."""
    return 0.5 * (1.0 - jnp.cos(_PI * x))


def _cycloidal(x: Array) -> Array:
    """``y'' ∝ sin 2πx``."""
    return x - jnp.sin(2.0 * _PI * x) / (2.0 * _PI)


def _polynomial_345(x: Array) -> Array:
    """Velocity and acceleration vanish at both ends."""
    return x**3 * (10.0 + x * (-15.0 + 6.0 * x))


def _polynomial_4567(x: Array) -> Array:
    """Velocity, acceleration and jerk vanish at both ends."""
    return x**4 * (35.0 + x * (-84.0 + x * (70.0 - 20.0 * x)))


def _modified_sine(x: Array) -> Array:
    """``y'' = C sin 4πx`` up to x = 1/8, then ``C sin (4πx + π)/3``, ``C = 4π²/(4 + π)``."""
    scale = 1.0 / (4.0 + _PI)

    def first_half(u: Array) -> Array:
        start = _PI * u - 0.25 * jnp.sin(4.0 * _PI * u)
        middle = 2.0 + _PI * u - 2.25 * jnp.sin((4.0 * _PI * u + _PI) / 3.0)
        return scale * jnp.where(u < 0.125, start, middle)

    return _symmetric(x, first_half)


def _modified_trapezoidal(x: Array) -> Array:
    """``y'' = A sin 4πx`` up to x = 1/8, A up to 3/8, ``A cos 4π(x − 3/8)``, ``A = 8π/(2 + π)``."""
    a = 8.0 * _PI / (2.0 + _PI)
    v1 = a / (4.0 * _PI)
    y1 = v1 * (0.125 - 0.25 / _PI)
    v2, y2 = v1 + 0.25 * a, y1 + 0.25 * v1 + a / 32.0

    def first_half(u: Array) -> Array:
        start = v1 * (u - jnp.sin(4.0 * _PI * u) / (4.0 * _PI))
        flat = y1 + (u - 0.125) * (v1 + 0.5 * a * (u - 0.125))
        w = u - 0.375
        end = y2 + v2 * w + a * (1.0 - jnp.cos(4.0 * _PI * w)) / (16.0 * _PI**2)
        return jnp.where(u < 0.125, start, jnp.where(u < 0.375, flat, end))

    return _symmetric(x, first_half)


def _symmetric(x: Array, first_half: Law) -> Array:
    """The law with ``y(1 − x) = 1 − y(x)``, from its first half."""
    late = x >= 0.5
    y = first_half(jnp.where(late, 1.0 - x, x))
    return jnp.where(late, 1.0 - y, y)


RISE_LAWS: dict[str, Law] = {
    "uniform": _uniform,
    "parabolic": _parabolic,
    "harmonic": _harmonic,
    "cycloidal": _cycloidal,
    "3-4-5": _polynomial_345,
    "4-5-6-7": _polynomial_4567,
    "modified sine": _modified_sine,
    "modified trapezoidal": _modified_trapezoidal,
}
"""The laws by name."""
