"""Reduction of huge arguments modulo π/2, after Payne and Hanek (SIGNUM Newsletter 18, 1983).

x = m 2ˢ with an integer m. Those leading bits of 2/π whose product with 2ˢ is a multiple of 4 do
not matter; the 192 bits after them, W, give x·(2/π) mod 4 = 4·(m W mod 2¹⁹²)/2¹⁹², whose first two
bits are the quadrant and the next 126 the fraction. No double is closer to a multiple of π/2 than
2⁻⁶², so at least 64 bits of the fraction are significant.
"""

from __future__ import annotations

from jaxmbd.lanes.elementary.body import Value
from jaxmbd.lanes.elementary.constants import PI, parts, words_of_two_over_pi
from jaxmbd.lanes.elementary.operations import (
    as_float,
    fma,
    format_of,
    pattern,
    resized,
    two_product,
    two_sum,
    where,
)

PADDING = 64  # zero bits ahead of 2/π, for the smallest arguments
WORDS = 20
"""64-bit words of 2/π (padding included): enough for the window of the largest double."""


def reduce_huge(x: Value) -> tuple[Value, Value, Value]:
    """`payne_hanek` lane by lane, for floats of either format."""
    r, rest, q = x.body.each_lane("payne_hanek", resized(x, 64), ("f64", "f64", "i64"))
    if x.bits == 32:
        high = resized(r, 32)
        return high, resized(r - resized(high, 64), 32), resized(q, 32)
    return r, rest, q


def payne_hanek(x: Value) -> tuple[Value, Value, Value]:
    """Remainder r, its rounding error and quadrant of a double x ≥ 2¹⁷; NaN if not finite."""
    form = format_of(x)
    bits = pattern(x)
    exponent = bits >> form.digits
    m = bits & (1 << form.digits) - 1 | 1 << form.digits
    s = exponent - (form.bias + form.digits)
    offset = s + (PADDING - 2)
    offset = where(offset < 0, 0, offset)  # small arguments, whose result is not used
    w2, w1, w0 = _window(offset)
    m, product = resized(m, 128), resized(m * w2, 128) << 64
    turn = m * resized(w1, 128) + product + (m * resized(w0, 128) >> 64)

    q = (turn + (1 << 125)) >> 126
    fraction = turn - (q << 126)
    negative = fraction < 0
    fraction = where(negative, -fraction, fraction)
    r, rest = _times_half_pi(fraction)
    r = where(negative, -r, r) + (x - x)  # NaN for infinity
    return r, where(negative, -rest, rest), resized(q, 64)


def _window(offset: Value) -> tuple[Value, Value, Value]:
    """192 bits of 2/π from a bit offset, as three words, the most significant first."""
    body = offset.body
    words = words_of_two_over_pi(PADDING, WORDS)
    table = body.table("two_over_pi", words)
    first, shift = offset >> 6, offset & 63
    word = [body.load(table, first + index) for index in range(4)]
    w2, w1, w0 = (
        body.intrinsic("fshl", high, low, shift) for high, low in zip(word, word[1:], strict=False)
    )
    return w2, w1, w0


def _times_half_pi(fraction: Value) -> tuple[Value, Value]:
    """fraction·2⁻¹²⁶·π/2 for 0 ≤ fraction < 2¹²⁶, from three parts of 43 bits."""
    mask = (1 << 43) - 1
    low, middle, top = (
        as_float(resized(fraction >> 43 * index & mask, 64), "f64") for index in range(3)
    )
    high, rest = two_sum(top * 2.0**-40, middle * 2.0**-83)
    rest = fma(low, 2.0**-126, rest)
    p1, p2 = parts(PI / 2, 2, 64)
    product, error = two_product(high, high.constant(p1))
    return two_sum(product, fma(high, p2, fma(rest, p1, error)))
