"""Operations on `Value`s beyond those with a Python operator, and the formats of floats."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from jaxmbd.lanes.elementary.body import Operand, Value


@dataclass(frozen=True)
class Format:
    """A binary floating-point format.

    Attributes:
        digits: bits of the stored significand, without the implicit leading 1.
        bias: bias of the stored exponent.
    """

    digits: int
    bias: int

    @property
    def sign(self) -> int:
        """The sign bit, as a signed integer."""
        return -((2 * self.bias + 2) << self.digits)

    @property
    def magic(self) -> float:
        """1.5·2^digits: adding it rounds to an integer, found in the low bits of the sum."""
        return 1.5 * 2.0**self.digits

    @property
    def smallest(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)


FORMATS = {64: Format(digits=52, bias=1023), 32: Format(digits=23, bias=127)}


def bits_of(x: float, bits: int) -> int:
    """The bit pattern of a number as a float of 32 or 64 bits."""
    letter, integer = ("d", "Q") if bits == 64 else ("f", "I")
    return struct.unpack(integer, struct.pack(letter, x))[0]


def format_of(x: Value) -> Format:
    """The format of a float, or of an integer that holds the bits of a float."""
    return FORMATS[x.bits]


def fma(x: Operand, y: Operand, z: Operand) -> Value:
    """x·y + z, rounded once."""
    value = next(operand for operand in (x, y, z) if isinstance(operand, Value))
    return value.body.intrinsic("fma", *(value.constant(operand) for operand in (x, y, z)))


def horner(x: Value, coefficients: Sequence[Operand]) -> Value:
    """The polynomial with these coefficients, that of x⁰ first, by Horner's rule."""
    *lower, last = coefficients
    result = x.constant(last)
    for coefficient in reversed(lower):
        result = fma(result, x, coefficient)
    return result


def where(mask: Value, x: Operand, y: Operand) -> Value:
    """Select x where the mask is set, y elsewhere."""
    value = x if isinstance(x, Value) else y
    assert isinstance(value, Value)
    x, y = value.constant(x), value.constant(y)
    return mask.body.emit(x.kind, f"select {mask.typed}, {x.typed}, {y.typed}")


def magnitude(x: Value) -> Value:
    """|x|."""
    return x.body.intrinsic("fabs", x)


def sqrt(x: Value) -> Value:
    """√x."""
    return x.body.intrinsic("sqrt", x)


def truncated(x: Value) -> Value:
    """Round x towards zero."""
    return x.body.intrinsic("trunc", x)


def copysign(x: Operand, sign: Value) -> Value:
    """|x| with the sign of `sign`."""
    return sign.body.intrinsic("copysign", sign.constant(x), sign)


def clamped(x: Value, low: float, high: float) -> Value:
    """Clamp x to bounds; NaN stays NaN."""
    x = where(x < low, low, x)
    return where(x > high, high, x)


def pattern(x: Value) -> Value:
    """The bit pattern of a float, as an integer."""
    return _cast("bitcast", x, f"i{x.bits}")


def from_pattern(x: Value) -> Value:
    """The float with this bit pattern."""
    return _cast("bitcast", x, f"f{x.bits}")


def sign_bit(x: Value) -> Value:
    """The sign bit alone, of a float or of an integer."""
    return (pattern(x) if x.is_float else x) & format_of(x).sign


def flip(x: Value, sign: Value) -> Value:
    """A float, negated where the sign bit of an integer is set."""
    return from_pattern(pattern(x) ^ sign)


def as_float(x: Value, kind: str) -> Value:
    """A signed integer as a float."""
    return _cast("sitofp", x, kind)


def resized(x: Value, bits: int) -> Value:
    """A float in another format, an unsigned integer with another number of bits."""
    if bits == x.bits:
        return x
    if x.is_float:
        return _cast("fpext" if bits > x.bits else "fptrunc", x, f"f{bits}")
    return _cast("zext" if bits > x.bits else "trunc", x, f"i{bits}")


def odd(x: Value) -> Value:
    """Whether an integer is odd, as a mask."""
    return _cast("trunc", x, "i1")


def two_sum(x: Value, y: Value) -> tuple[Value, Value]:
    """Sum and rounding error of x + y where |x| ≥ |y| or x = 0 (Dekker 1971)."""
    s = x + y
    return s, y - (s - x)


def difference(x: Value, y: Value) -> tuple[Value, Value]:
    """Difference and rounding error of x − y (Knuth, The Art of Computer Programming, 4.2.2)."""
    d = x - y
    v = d - x
    return d, (x - (d - v)) - (y + v)


def two_product(x: Value, y: Value) -> tuple[Value, Value]:
    """Product and rounding error of x·y."""
    p = x * y
    return p, fma(x, y, -p)


def _cast(instruction: str, x: Value, kind: str) -> Value:
    return x.body.emit(kind, f"{instruction} {x.typed} to {x.body.type_of(kind)}")
