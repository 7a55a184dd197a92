"""The exact remainder of a division."""

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
    """X − y trunc(x/y) without rounding, as C's fmod; it has x's sign.

    With a quotient q < 2ᵈ, d the digits, trunc(q) is at most one too large, and x − trunc(q) y is a
    float. Larger quotients are brought down by `reduce_quotient`.
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
    """A number congruent to a modulo b, of either sign, below 2ᵈ b.

    Every step takes the rounded quotient's multiple of b away; what is left of a is a float and at
    most half an ulp of the quotient times b. Where the quotient would overflow, the step is one
    modulo b 2ᵏ.
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
    """Whether a/b, both finite and b not 0, has more digits than a float."""
    large = b * 2.0 ** format_of(a).digits <= a
    return large & (a < math.inf) & (b > 0.0)
