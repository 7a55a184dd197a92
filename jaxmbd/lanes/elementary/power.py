"""Powers and cube roots.

x^y = e^(y log x) needs log x in more than working precision: y log x may be as large as 745, and an
absolute error in it is a relative error of the result. For doubles the logarithm is therefore a
sum of two doubles, accurate to about 68 bits (Muller, Elementary Functions, ch. 11); floats use
doubles.
"""

from __future__ import annotations

import math
from fractions import Fraction

from jaxmbd.lanes.elementary.body import Value
from jaxmbd.lanes.elementary.coefficients import INVERSE_CUBE_ROOT, POWER_LOGARITHM
from jaxmbd.lanes.elementary.constants import LN2, parts
from jaxmbd.lanes.elementary.exponential import BOUNDS, exp, exp_of_remainder, reduce, scaled
from jaxmbd.lanes.elementary.logarithmic import exponent_and_significand, log
from jaxmbd.lanes.elementary.operations import (
    clamped,
    copysign,
    flip,
    fma,
    format_of,
    from_pattern,
    horner,
    magnitude,
    pattern,
    resized,
    sign_bit,
    truncated,
    two_product,
    two_sum,
    where,
)


def pow(x: Value, y: Value) -> Value:  # noqa: A001 it is its name
    """x^y with the special values of C's pow; NaN for x < 0 and non-integer y."""
    a = magnitude(x)
    if x.bits == 64:
        result = _power(a, y)
    else:
        result = resized(exp(resized(y, 64) * log(resized(a, 64))), 32)
    integer = truncated(y).equals(y)
    half = y * 0.5
    even = truncated(half).equals(half)
    sign = where(even, pattern(y.constant(0.0)), where(integer, sign_bit(x), 0))
    result = flip(result, sign)
    defined = integer | (x >= 0.0) | a.equals(math.inf)
    result = where(defined, result, x * math.nan + y)
    certain = y.equals(0.0) | x.equals(1.0) | (a.equals(1.0) & magnitude(y).equals(math.inf))
    return where(certain, 1.0, result)


def cbrt(x: Value) -> Value:
    """Cube root of |x| = 2^(3q) m: m^(−1/3) by a polynomial and one third-order iteration.

    Then m^(1/3) = m (m^(−1/3))², corrected by its residual.
    """
    form = format_of(x)
    a = magnitude(x)
    k, m = exponent_and_significand(a)
    shifted = fma(k, 1.0 / 3.0, form.magic + form.bias)
    rest = fma(shifted - (form.magic + form.bias), -3.0, k)  # −1, 0 or 1
    w = horner(m, INVERSE_CUBE_ROOT[x.bits])
    error = fma(-m * w, w * w, 1.0)
    w = fma(w * error, fma(error, 2.0 / 9.0, 1.0 / 3.0), w)

    root = 2.0 ** (1.0 / 3.0)
    w = w * where(rest > 0.0, x.constant(1.0 / root), where(rest < 0.0, x.constant(root), 1.0))
    m = m * where(rest > 0.0, x.constant(2.0), where(rest < 0.0, x.constant(0.5), 1.0))
    square = w * w
    y = m * square
    y_square, low = two_product(y, y)
    residual = fma(-y, low, fma(-y, y_square, m))
    y = fma(residual, square * (1.0 / 3.0), y)
    result = y * from_pattern(pattern(shifted) << form.digits)
    return copysign(where((a > 0.0) & (a < math.inf), result, a), x)


def _power(a: Value, y: Value) -> Value:
    """a^y for a ≥ 0."""
    high, low = _logarithm_pair(a)
    finite = a < math.inf
    high = where(finite, where(a > 0.0, high, -math.inf), a)
    low = where(finite & (a > 0.0), low, 0.0)
    product = y * high
    rest = fma(y, low, fma(y, high, -product))
    inside = magnitude(product) < 2.0 * BOUNDS[a.bits][1]
    reduced = reduce(clamped(product, *BOUNDS[a.bits]), rest=True)
    reduced = reduced.moved(by=where(inside, rest, 0.0))
    return scaled(exp_of_remainder(reduced), reduced)


def _logarithm_pair(x: Value) -> tuple[Value, Value]:
    """Logarithm k ln 2 + 2 artanh s, s = f/(2 + f), as a sum of two doubles; 0 < x < ∞."""
    k, m = exponent_and_significand(x)
    f = m - 1.0
    d = f + 2.0
    inverse = 1.0 / d
    s = f * inverse
    s_low = fma(-s, f - (d - 2.0), fma(-s, d, f)) * inverse

    z, z_low = two_product(s, s)
    z_low = fma(2.0 * s, s_low, z_low)
    cube, cube_low = two_product(s, z)
    cube_low = fma(s, z_low, fma(s_low, z, cube_low))
    two_thirds, rest = parts(Fraction(2, 3), 2, x.bits)
    factor, factor_low = two_sum(
        x.constant(two_thirds), fma(z, horner(z, POWER_LOGARITHM[x.bits]), rest)
    )
    bend, bend_low = two_product(cube, factor)
    bend_low = fma(cube, factor_low, fma(cube_low, factor, bend_low))

    high, low = two_sum(2.0 * s, bend)
    low = low + fma(s_low, 2.0, bend_low)
    ln2, ln2_low = parts(LN2, 2, x.bits)
    whole, whole_low = two_product(k, k.constant(ln2))
    total, error = two_sum(whole, high)
    return two_sum(total, error + (low + fma(k, ln2_low, whole_low)))
