"""Logarithms.

x = 2ᵏ m with √½ ≤ m < √2 and f = m − 1; with s = f/(2 + f), log m = 2 artanh s is
f − f²/2 + s (f²/2 + s² P(s²)), whose first two terms are nearly exact (Tang, ACM TOMS 16, 1990;
Muller, Elementary Functions, ch. 4).
"""

from __future__ import annotations

import math

from jaxmbd.lanes.elementary.body import Value
from jaxmbd.lanes.elementary.coefficients import LOGARITHM
from jaxmbd.lanes.elementary.constants import LN2, parts
from jaxmbd.lanes.elementary.operations import (
    bits_of,
    copysign,
    difference,
    fma,
    format_of,
    from_pattern,
    horner,
    magnitude,
    pattern,
    sqrt,
    two_product,
    two_sum,
    where,
)


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
