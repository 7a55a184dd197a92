"""The exact floating-point remainder (fmod)."""

from __future__ import annotations

import math

from jaxmbd.lanes.elementary.body import Value
from jaxmbd.lanes.elementary.operations import (
    copysign,
    fma,
    format_of,
    magnitude,
    truncated,
    where,
)


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
