"""π and ln 2 in extended precision, and their splittings into sums of floats."""

from __future__ import annotations

import functools
import struct
from fractions import Fraction

PRECISION = 1400  # bits; the largest double needs 1150 of 2/π


def _inverse(q: int, alternating: bool) -> Fraction:
    """atan(1/q) if alternating, else artanh(1/q): Σ ±1/(n qⁿ) over odd n."""
    one = 1 << PRECISION
    total, n = 0, 1
    while q**n <= one:
        term = one // (n * q**n)
        total += -term if alternating and n % 4 == 3 else term
        n += 2
    return Fraction(total, one)


PI = 16 * _inverse(5, True) - 4 * _inverse(239, True)
"""Machin's formula."""
LN2 = 2 * _inverse(3, False)


def nearest(x: Fraction, bits: int) -> float:
    """The float of 32 or 64 bits nearest to x."""
    return float(x) if bits == 64 else struct.unpack("f", struct.pack("f", float(x)))[0]


@functools.cache
def parts(x: Fraction, count: int, bits: int) -> tuple[float, ...]:
    """Floats whose sum approximates x, each the nearest to what the previous ones leave."""
    result = []
    for _ in range(count):
        result.append(nearest(x, bits))
        x -= Fraction(result[-1])
    return tuple(result)


@functools.cache
def words_of_two_over_pi(padding: int, count: int) -> tuple[int, ...]:
    """`padding` zero bits, then the fractional bits of 2/π, in `count` words of 64 bits."""
    length = 64 * count - padding
    digits = int(2 / PI * (1 << length))
    return tuple(digits >> 64 * (count - 1 - index) & (1 << 64) - 1 for index in range(count))
