"""Exponential functions, logarithms, powers and roots.

*Exponentials.* x = n ln 2 + r with an integer n and |r| ≤ ln 2/2, reduced by Cody and Waite's
method (1980); then eˣ = 2ⁿ eʳ. n is rounded by adding a number so large that the last bit of the
sum has the value 1; its low bits, shifted to the exponent field, are the float 2ⁿ.

*Logarithms.* x = 2ᵏ m with √½ ≤ m < √2 and f = m − 1; with s = f/(2 + f), log m = 2 artanh s is
f − f²/2 + s (f²/2 + s² P(s²)), whose first two terms are nearly exact (Tang, ACM TOMS 16, 1990;
Muller, Elementary Functions, ch. 4).

*Powers.* x^y = e^(y log x) needs log x in more than working precision: y log x may be as large as
745, and an absolute error in it is a relative error of the result. For doubles the logarithm is
therefore a sum of two doubles, accurate to about 68 bits (Muller, Elementary Functions, ch. 11);
floats use doubles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from jaxmbd.lanes.elementary.body import (
    Value,
    bits_of,
    clamped,
    copysign,
    difference,
    flip,
    fma,
    format_of,
    from_pattern,
    horner,
    magnitude,
    pattern,
    resized,
    sign_bit,
    sqrt,
    truncated,
    two_product,
    two_sum,
    where,
)
from jaxmbd.lanes.elementary.coefficients import (
    BINARY_EXPONENTIAL,
    EXPONENTIAL,
    HYPERBOLIC_SINE,
    INVERSE_CUBE_ROOT,
    LN2,
    LOGARITHM,
    POWER_LOGARITHM,
    nearest,
    parts,
)

BOUNDS = {64: (-746.0, 711.0), 32: (-104.0, 90.0)}
"""Beyond these e^x is 0 or overflows; within, 2ⁿ is a product of two normal numbers."""
BINARY_BOUNDS = {64: (-1076.0, 1025.0), 32: (-151.0, 129.0)}


@dataclass(frozen=True)
class Reduced:
    """x = n ln 2 + r + rest.

    Attributes:
        n: an integer, as a float.
        shifted: n plus the magic number and twice the exponent bias.
        r: the remainder, rounded.
        rest: the rounding error of r, if requested; else None.
    """

    n: Value
    shifted: Value
    r: Value
    rest: Value | None = None

    def moved(self, by: Value) -> Reduced:
        """The reduction of x + by, for `by` of a few ulp of x."""
        assert self.rest is not None
        r, rest = two_sum(self.r, self.rest + by)
        return Reduced(self.n, self.shifted, r, rest)


def exp(x: Value) -> Value:
    """e^x."""
    reduced = reduce(clamped(x, *BOUNDS[x.bits]))
    return scaled(exp_of_remainder(reduced), reduced)


def exp2(x: Value) -> Value:
    """2^x."""
    x = clamped(x, *BINARY_BOUNDS[x.bits])
    magic = _magic(x)
    shifted = x + magic
    n = shifted - magic
    r = x - n
    high, low = parts(LN2, 2, x.bits)
    tail = fma(horner(r, BINARY_EXPONENTIAL[r.bits]), r * r, low * r)
    return scaled(fma(high, r, tail) + 1.0, Reduced(n, shifted, r))


def expm1(x: Value) -> Value:
    """e^x − 1 = 2^(n/2) (2^(n−n/2) (p + 1) − 2^(−n/2)), p = eʳ − 1."""
    form = format_of(x)
    reduced = reduce(clamped(x, -2.0 * form.digits, BOUNDS[x.bits][1]), rest=True)
    half, other = halves(reduced)
    inverse, other = power(2 * form.bias - half), power(other)
    y = fma(other, expm1_of_remainder(reduced), other - inverse)
    return copysign(power(half) * y, x)


def logistic(x: Value) -> Value:
    """1/(1 + e^(−x)), for x < 0 as e^x/(1 + e^x)."""
    e = exp(-magnitude(x))
    return where(x < 0.0, e, 1.0) / (e + 1.0)


def sinh(x: Value) -> Value:
    """Hyperbolic sine: a polynomial below 1, e^x/2 − e^(−x)/2 above."""
    a = magnitude(x)
    z = a * a
    near = fma(horner(z, HYPERBOLIC_SINE[z.bits]) * z, a, a)
    e = _half_exp(a)
    return copysign(where(a < 1.0, near, e - 0.25 / e), x)


def cosh(x: Value) -> Value:
    """Hyperbolic cosine."""
    e = _half_exp(magnitude(x))
    return e + 0.25 / e


def tanh(x: Value) -> Value:
    """Hyperbolic tangent of |x|: with e = e^(−2|x|), (1 − e)/(1 + e), or 1 − 2e/(1 + e) near 1."""
    form = format_of(x)
    a = magnitude(x)
    reduced = reduce(where(a > form.digits * 0.5, form.digits * 0.5, a) * -2.0, rest=True)
    scale = power(pattern(reduced.shifted) - form.bias)
    p = expm1_of_remainder(reduced)
    u = fma(scale, p, scale - 1.0)  # e − 1
    far = u < -0.75
    quotient = where(far, 2.0 * fma(scale, p, scale), -u) / (u + 2.0)
    return copysign(where(far, 1.0 - quotient, quotient), x)


def _half_exp(a: Value) -> Value:
    """e^a/2 for a ≥ 0, which overflows later than e^a."""
    reduced = reduce(where(a > BOUNDS[a.bits][1], BOUNDS[a.bits][1], a))
    y = exp_of_remainder(reduced)
    return scaled(y, Reduced(reduced.n - 1.0, reduced.shifted - 1.0, reduced.r))


def exp_of_remainder(reduced: Reduced) -> Value:
    """e^(r + rest)."""
    r = reduced.r
    p = horner(r, EXPONENTIAL[r.bits])
    if reduced.rest is None:
        return fma(p, r * r, r) + 1.0
    return (r + fma(p, r * r, reduced.rest)) + 1.0


def expm1_of_remainder(reduced: Reduced) -> Value:
    """e^(r + rest) − 1."""
    r, rest = reduced.r, reduced.rest
    assert rest is not None
    return r + fma(horner(r, EXPONENTIAL[r.bits]), r * r, rest)


def reduce(x: Value, rest: bool = False) -> Reduced:
    """The reduction of a clamped argument; x − n·(first part of ln 2) is exact."""
    magic = _magic(x)
    shifted = fma(x, nearest(1 / LN2, x.bits), magic)
    n = shifted - magic
    high, low = parts(LN2, 2, x.bits)
    first = fma(n, -high, x)
    r = fma(n, -low, first)
    return Reduced(n, shifted, r, fma(n, -low, first - r) if rest else None)


def scaled(y: Value, reduced: Reduced) -> Value:
    """The product y 2ⁿ, 2ⁿ in two factors, so that only the last product over- or underflows."""
    half, other = halves(reduced)
    return y * power(other) * power(half)


def halves(reduced: Reduced) -> tuple[Value, Value]:
    """n/2 rounded, and n minus that, as biased exponents."""
    form = format_of(reduced.n)
    half = pattern(fma(reduced.n, 0.5, form.magic + form.bias))
    return half, pattern(reduced.shifted) - half


def power(exponent: Value) -> Value:
    """The power of two with a biased exponent, whose upper bits are ignored."""
    return from_pattern(exponent << format_of(exponent).digits)


def _magic(x: Value) -> float:
    form = format_of(x)
    return form.magic + 2 * form.bias


def log(x: Value) -> Value:
    """Natural logarithm: −∞ at 0, NaN below."""
    k, m = exponent_and_significand(x)
    return logarithm_limits(x, logarithm(k, m - 1.0))


def log1p(x: Value) -> Value:
    """log(1 + x): −∞ at −1, NaN below."""
    u, rest = difference(x, x.constant(-1.0))
    return copysign(logarithm_limits(x, _log_of_sum(u, rest), least=-1.0), x)


def asinh(x: Value) -> Value:
    """Inverse hyperbolic sine, log(a + √(a² + 1)) with a = |x|."""
    a = magnitude(x)
    p, error = two_product(a, a)
    h, rest = difference(p, p.constant(-1.0))
    y = _log_of_sum_with_root(a, h, error + rest)
    return copysign(where(a < math.inf, y, a), x)


def acosh(x: Value) -> Value:
    """Inverse hyperbolic cosine, log(x + √(x² − 1)); NaN below 1."""
    p, error = two_product(x, x)
    h, rest = two_sum(p, x.constant(-1.0))
    y = _log_of_sum_with_root(x, h, error + rest)
    return where(x < math.inf, where(x < 1.0, math.nan, y), x)


def atanh(x: Value) -> Value:
    """Inverse hyperbolic tangent, log((1 + a)/(1 − a))/2 with a = |x|."""
    a = magnitude(x)
    one = a.constant(1.0)
    n, n_rest = two_sum(one, a)
    d, d_rest = two_sum(one, -a)
    q = n / d
    rest = (fma(-q, d, n) + fma(-q, d_rest, n_rest)) / d
    limit = where(a.equals(1.0), x.constant(math.inf), math.nan)
    return copysign(where(a < 1.0, 0.5 * _log_of_sum(q, rest), limit), x)


def _log_of_sum_with_root(x: Value, h: Value, rest: Value) -> Value:
    """log(x + √(h + rest)); log 2x for large x, where h might overflow."""
    root = sqrt(h)
    # the smallest normal number avoids 0/0
    root_rest = (fma(-root, root, h) + rest) / (2.0 * root + format_of(x).smallest)
    larger = root > x
    u, error = two_sum(where(larger, root, x), where(larger, x, root))
    large = x > 2.0 ** (format_of(x).bias // 2)
    u = where(large, x, u)
    return _log_of_sum(u, where(large, 0.0, error + root_rest), where(large, x.constant(1.0), 0.0))


def _log_of_sum(u: Value, rest: Value, k: Value | None = None) -> Value:
    """log(2ᵏ (u + rest)) for |rest| of an ulp of u at most."""
    exponent, m = exponent_and_significand(u)
    return logarithm(exponent if k is None else exponent + k, m - 1.0) + rest / u


def exponent_and_significand(x: Value) -> tuple[Value, Value]:
    """Exponent k, as a float, and m with x = 2ᵏ m and √½ ≤ m < √2; x > 0 may be denormal."""
    form = format_of(x)
    denormal = x < form.smallest
    lift = form.digits + 2
    x = where(denormal, x * 2.0**lift, x)
    root = bits_of(math.sqrt(0.5), x.bits)
    # positive for every x > 0: the biased exponent of √½ is bias − 1
    moved = pattern(x) - (root - (form.bias << form.digits))
    m = from_pattern((moved & (1 << form.digits) - 1) + root)
    # an integer in the low bits of the float 2^digits adds its value to it
    excess = from_pattern(moved >> form.digits | bits_of(2.0**form.digits, x.bits))
    unbias = 2.0**form.digits + form.bias
    return excess - where(denormal, x.constant(unbias + lift), x.constant(unbias)), m


def logarithm(k: Value, f: Value) -> Value:
    """The sum k ln 2 + log(1 + f)."""
    high, low = parts(LN2, 2, f.bits)
    s = f / (f + 2.0)
    z = s * s
    half_square = f * 0.5 * f
    bend = fma(s, fma(horner(z, LOGARITHM[z.bits]), z, half_square), k * low)
    return fma(k, high, f - (half_square - bend))


def logarithm_limits(x: Value, result: Value, least: float = 0.0) -> Value:
    """The result where least < x < ∞; −∞ at x = least, NaN below; x where it is ∞ or NaN."""
    result = where(x < math.inf, result, x)
    edge = where(x.equals(least), x.constant(-math.inf), math.nan)
    return where(x > least, result, edge)


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
