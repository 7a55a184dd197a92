"""Exponential functions.

x = n ln 2 + r with an integer n and |r| ≤ ln 2/2, reduced by Cody and Waite's method (1980); then
eˣ = 2ⁿ eʳ. n is rounded by adding a number so large that the last bit of the sum has the value 1;
its low bits, shifted to the exponent field, are the float 2ⁿ.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxmbd.lanes.elementary.body import Value
from jaxmbd.lanes.elementary.coefficients import (
    BINARY_EXPONENTIAL,
    EXPONENTIAL,
    HYPERBOLIC_SINE,
)
from jaxmbd.lanes.elementary.constants import LN2, nearest, parts
from jaxmbd.lanes.elementary.operations import (
    clamped,
    copysign,
    fma,
    format_of,
    from_pattern,
    horner,
    magnitude,
    pattern,
    two_sum,
    where,
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
