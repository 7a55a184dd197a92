"""Sine, cosine and tangent.

The argument is reduced to r = x − n π/2, |r| ≤ π/4, by Cody and Waite's method (Software Manual
for the Elementary Functions, 1980): π/2 is a sum of three floats P₁ + P₂ + P₃. With fused
multiply-add x − n P₁ is exact, since it is a multiple of P₁'s last bit and below 1, so that r has
one rounding, however close x is to a multiple of π/2. That holds up to |x| = `LIMITS`; beyond,
`payne_hanek` is used.

The sine is computed from |x| and gets the sign of x at the end, which keeps the sign of zero.
"""

from __future__ import annotations

from jaxmbd.lanes.elementary.body import Value
from jaxmbd.lanes.elementary.coefficients import COSINE, SINE
from jaxmbd.lanes.elementary.constants import PI, nearest, parts
from jaxmbd.lanes.elementary.operations import (
    difference,
    flip,
    fma,
    format_of,
    horner,
    magnitude,
    odd,
    pattern,
    sign_bit,
    two_product,
    two_sum,
    where,
)

LIMITS = {64: 2.0**30, 32: 2.0**17}


def sincos(x: Value) -> tuple[Value, Value]:
    """Sine and cosine."""
    r, q = _reduced(magnitude(x))
    s, c = _sine(r), _cosine(r)
    swap = odd(q)
    return (
        flip(where(swap, c, s), _sine_sign(x, q)),
        flip(where(swap, s, c), _cosine_sign(q)),
    )


def sin(x: Value) -> Value:
    """Sine."""
    r, q = _reduced(magnitude(x))
    return flip(where(odd(q), _cosine(r), _sine(r)), _sine_sign(x, q))


def cos(x: Value) -> Value:
    """Cosine."""
    r, q = _reduced(magnitude(x))
    return flip(where(odd(q), _sine(r), _cosine(r)), _cosine_sign(q))


def tan(x: Value) -> Value:
    """Tangent, s/c or −c/s, of r and its rounding error."""
    r, rest, q = _reduced_to_two(magnitude(x))
    z, error = two_product(r, r)
    s = r + fma(horner(z, SINE[r.bits]) * z, r, rest)
    half = 0.5 * z
    c, lost = two_sum(r.constant(1.0), -half)
    lost = fma(error, -0.5, fma(-r, rest, lost))
    c = c + fma(horner(z, COSINE[r.bits]), z * z, lost)
    swap = odd(q)
    quotient = where(swap, c, s) / where(swap, s, c)
    return flip(quotient, sign_bit(pattern(x) ^ q << (x.bits - 1)))


def _reduced(x: Value) -> tuple[Value, Value]:
    """Remainder r of x ≥ 0, x = n π/2 + r, and an integer q with the two lowest bits of n."""
    n, q, (p1, p2, p3) = _quarters(x)
    r = fma(n, -p3, fma(n, -p2, fma(n, -p1, x)))
    huge = x > LIMITS[x.bits]

    def rare() -> tuple[Value, ...]:
        exact, _, quadrant = x.body.call("reduce_huge", [x], (x.kind, x.kind, q.kind))
        return where(huge, exact, r), where(huge, quadrant, q)

    r, q = x.body.rarely(huge, rare, (r, q))
    return r, q


def _reduced_to_two(x: Value) -> tuple[Value, Value, Value]:
    """As `_reduced`, but r and its rounding error."""
    n, q, (p1, p2, p3) = _quarters(x)
    first = fma(n, -p1, x)
    product, product_error = two_product(n, n.constant(p2))
    r, error = difference(first, product)
    r, rest = two_sum(r, fma(n, -p3, error - product_error))
    huge = x > LIMITS[x.bits]

    def rare() -> tuple[Value, ...]:
        exact = x.body.call("reduce_huge", [x], (x.kind, x.kind, q.kind))
        return tuple(where(huge, e, v) for e, v in zip(exact, (r, rest, q), strict=True))

    r, rest, q = x.body.rarely(huge, rare, (r, rest, q))
    return r, rest, q


def _quarters(x: Value) -> tuple[Value, Value, tuple[float, ...]]:
    """The integer n = round(2x/π), as a float and in the low bits of an integer; parts of π/2."""
    magic = format_of(x).magic
    t = fma(x, nearest(2 / PI, x.bits), magic)
    return t - magic, pattern(t), parts(PI / 2, 3, x.bits)


def _sine(r: Value) -> Value:
    """Sine r + r³ P(r²) of |r| ≤ π/4."""
    z = r * r
    return fma(horner(z, SINE[r.bits]) * z, r, r)


def _cosine(r: Value) -> Value:
    """Cosine (1 − r²/2) + r⁴ P(r²) of |r| ≤ π/4."""
    z = r * r
    return fma(horner(z, COSINE[r.bits]), z * z, fma(-0.5, z, 1.0))


def _sine_sign(x: Value, q: Value) -> Value:
    """Negative in quadrants 2 and 3, where the second bit of q is set; times the sign of x."""
    return sign_bit(q << (x.bits - 2) ^ pattern(x))


def _cosine_sign(q: Value) -> Value:
    """Negative in quadrants 1 and 2."""
    return sign_bit((q + 1) << (q.bits - 2))
