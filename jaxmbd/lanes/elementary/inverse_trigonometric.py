"""Inverse trigonometric functions: odd polynomials after reduction of the argument.

asin and acos use asin a = π/2 − 2 asin √((1 − a)/2) above 1/2, with a correction for the rounding
error of the square root; atan2 divides the smaller coordinate by the larger one.
"""

from __future__ import annotations

from jaxmbd.lanes.elementary.body import Value
from jaxmbd.lanes.elementary.coefficients import ARCSINE, ARCTANGENT
from jaxmbd.lanes.elementary.constants import PI, parts
from jaxmbd.lanes.elementary.operations import (
    copysign,
    flip,
    fma,
    format_of,
    horner,
    magnitude,
    pattern,
    sign_bit,
    sqrt,
    two_sum,
    where,
)


def asin(x: Value) -> Value:
    """Inverse sine; NaN beyond ±1."""
    a = magnitude(x)
    near, s, rest = _arcsine_parts(a)
    quarter, quarter_rest = parts(PI / 2, 2, x.bits)
    far, error = two_sum(x.constant(quarter), -2.0 * s)
    far = far + (error - fma(rest, 2.0, -quarter_rest))
    return copysign(where(near, s + rest, far), x)


def acos(x: Value) -> Value:
    """Inverse cosine; NaN beyond ±1."""
    near, s, rest = _arcsine_parts(magnitude(x))
    sign = sign_bit(x)
    s, rest = flip(s, sign), flip(rest, sign)
    quarter, quarter_rest = parts(PI / 2, 2, x.bits)
    middle = quarter - (s + (rest - quarter_rest))
    # for x < 0: π − 2 asin √((1 − a)/2), by the signs of s and rest
    base = where(x < 0.0, x.constant(2.0 * quarter), 0.0)
    base_rest = where(x < 0.0, x.constant(2.0 * quarter_rest), 0.0)
    outer = base + (2.0 * s + fma(rest, 2.0, base_rest))
    return where(near, middle, outer)


def atan(x: Value) -> Value:
    """Inverse tangent."""
    a = magnitude(x)
    steep = a > 1.0
    t = where(steep, 1.0 / a, a)
    return copysign(_arctangent(t, steep, None), x)


def atan2(y: Value, x: Value) -> Value:
    """The angle of the point (x, y), with the special values of C's atan2."""
    a, b = magnitude(y), magnitude(x)
    steep = a > b
    low, high = where(steep, b, a), where(steep, a, b)
    t = where(low.equals(high), 1.0, low / high)  # also where both are infinite
    t = where(high.equals(0.0), low, t)
    return copysign(_arctangent(t, steep, x), y)


def _arcsine_parts(a: Value) -> tuple[Value, Value, Value]:
    """Whether a ≤ 1/2, and s, rest with s + rest = asin a there, else asin √((1 − a)/2)."""
    near = a <= 0.5
    z = where(near, a * a, 0.5 - 0.5 * a)
    root = sqrt(z)
    # the smallest normal number avoids 0/0
    error = fma(-root, root, z) / (2.0 * root + format_of(a).smallest)
    s = where(near, a, root)
    rest = fma(s * z, horner(z, ARCSINE[z.bits]), where(near, 0.0, error))
    return near, s, rest


def _arctangent(t: Value, steep: Value, x: Value | None) -> Value:
    """Arctangent of 0 ≤ t ≤ 1; where `steep`, π/2 minus that; where x < 0, π minus the result.

    The upper part of the polynomial is split into even and odd powers, which run in parallel.
    """
    quarter, rest = parts(PI / 2, 2, t.bits)
    sign = where(steep, pattern(t.constant(-0.0)), pattern(t.constant(0.0)))
    base = t.constant(0.0)
    if x is not None:
        left = sign_bit(x)
        sign = sign ^ left
        base = where(left < 0, t.constant(2.0 * quarter), base)
    base = where(steep, t.constant(quarter), base)

    z = t * t
    square = z * z
    lower, upper = ARCTANGENT[t.bits][:4], ARCTANGENT[t.bits][4:]
    p = fma(horner(square, upper[1::2]), z, horner(square, upper[::2]))
    p = horner(z, (*lower, p))
    t = flip(t, sign)
    return (base + t) + fma(p * z, t, base * (rest / quarter))
