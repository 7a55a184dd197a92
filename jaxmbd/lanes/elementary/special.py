"""The error function and its complement; the exact floating-point remainder (fmod).

erf a = a + a P(a²) below 1. The complement is e^(−a²) (1 + G(t))/(2a + 1), t = (a − 3)/(a + 3),
where G varies so little that one polynomial fits it and rounding of t does not matter (Shepherd and
Laframboise, Math. Comp. 36, 1981); a² is a sum of two doubles, so that e^(−a²) is accurate for
large a. Floats are computed as doubles.
"""

from __future__ import annotations

import math

from jaxmbd.lanes.elementary.body import (
    Value,
    copysign,
    fma,
    format_of,
    horner,
    magnitude,
    resized,
    sqrt,
    truncated,
    two_product,
    where,
)
from jaxmbd.lanes.elementary.coefficients import (
    ERROR,
    INVERSE_ERROR,
    INVERSE_ERROR_MIDDLE,
    INVERSE_ERROR_TAIL,
    SCALED_COMPLEMENT,
)
from jaxmbd.lanes.elementary.exponential import exp_of_remainder, log, reduce, scaled

LARGEST = 28.0
"""erfc is 0 in double precision for larger arguments."""
CENTRE = 3.0


def erf(x: Value) -> Value:
    """The error function."""
    wide = resized(x, 64)
    a = magnitude(wide)
    result = where(a < 1.0, _near_zero(a), 1.0 - _complement(a))
    return resized(copysign(result, wide), x.bits)


def erfc(x: Value) -> Value:
    """The complement 1 − erf x, without cancellation."""
    wide = resized(x, 64)
    a = magnitude(wide)
    far = _complement(a)
    far = where(wide < 0.0, 2.0 - far, far)
    result = where(a < 0.375, 1.0 - copysign(_near_zero(a), wide), far)
    return resized(result, x.bits)


def erf_inv(x: Value) -> Value:
    """The inverse of erf, x + x P(w) with w = −log(1 − x²) (Giles, GPU Computing Gems, 2011)."""
    wide = resized(x, 64)
    a = magnitude(wide)
    w = -log((1.0 - a) * (a + 1.0))
    root = sqrt(w)
    far = where(
        root < 4.0,
        horner(root - 3.25, INVERSE_ERROR_MIDDLE[64]),
        horner(root - 5.0, INVERSE_ERROR_TAIL[64]),
    )
    p = where(w < 6.25, horner(w - 3.125, INVERSE_ERROR[64]), far)
    result = where(a.equals(1.0), math.inf, fma(a, p, a))
    return resized(copysign(result, wide), x.bits)


def _near_zero(a: Value) -> Value:
    """The error function for 0 ≤ a ≤ 1."""
    return fma(horner(a * a, ERROR[64]), a, a)


def _complement(a: Value) -> Value:
    """The complementary error function for a ≥ 0.3."""
    a = where(a > LARGEST, LARGEST, a)
    square, square_low = two_product(a, a)
    reduced = reduce(-square, rest=True).moved(by=-square_low)
    e = exp_of_remainder(reduced)
    t = (a - CENTRE) / (a + CENTRE)
    return scaled(fma(e, horner(t, SCALED_COMPLEMENT[64]), e) / fma(a, 2.0, 1.0), reduced)


def rem(x: Value, y: Value) -> Value:
    """Remainder x − y trunc(x/y) without rounding, as C's fmod; it has the sign of x.

    For a quotient q < 2ᵈ with d significand digits, the computed trunc(q) is at most one too large,
    and x − trunc(q) y is exact. Larger quotients are reduced first by `reduce_quotient`.
    """
    a, b = magnitude(x), magnitude(y)
    (a,) = a.body.rarely(
        _unfinished(a, b), lambda: a.body.call("reduce_quotient", (a, b), (a.kind,)), (a,)
    )
    r = fma(-truncated(a / b), b, a)
    r = where(r < 0.0, r + b, r)
    r = where(b.equals(math.inf), a, r)
    return copysign(where(magnitude(x) < math.inf, r, math.nan), x)


def reduce_quotient(a: Value, b: Value) -> Value:
    """A number congruent to a modulo b, of either sign and of magnitude below 2ᵈ b.

    Each step subtracts the rounded quotient times b; the remainder is exact, and at most b times
    half an ulp of the quotient. Where the quotient would overflow, the step uses b 2ᵏ instead of b.
    """
    form = format_of(a)
    k = form.bias - 23

    def lifted(b: Value, a: Value) -> Value:
        return where(a * 2.0 ** -(k + 16) >= b, b * 2.0**k, b)

    def step(a: Value) -> tuple[Value, Value]:
        size = magnitude(a)
        divisor = lifted(lifted(b, size), size)
        smaller = fma(-(a / divisor), divisor, a)
        following = where(_unfinished(size, b), smaller, a)
        return following, _unfinished(magnitude(following), b)

    return a.body.repeat(a, step)


def _unfinished(a: Value, b: Value) -> Value:
    """Whether a/b ≥ 2ᵈ, for finite a and nonzero b."""
    large = b * 2.0 ** format_of(a).digits <= a
    return large & (a < math.inf) & (b > 0.0)
