"""The arithmetic of PTX on arrays, one element per thread, rounded as the instructions say."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np

from jaxmbd.lanes.targets import cpu

Array = np.ndarray
Operation = Callable[..., object]
"""Of its operands and the array for its result."""

_FMA = """
declare {type} @llvm.fma.{name}({type}, {type}, {type})
define void @fused(ptr %a, ptr %b, ptr %c, ptr %d, i64 %n) {{
entry:
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%next, %loop]
  %pa = getelementptr {type}, ptr %a, i64 %k
  %pb = getelementptr {type}, ptr %b, i64 %k
  %pc = getelementptr {type}, ptr %c, i64 %k
  %pd = getelementptr {type}, ptr %d, i64 %k
  %x = load {type}, ptr %pa
  %y = load {type}, ptr %pb
  %z = load {type}, ptr %pc
  %r = call {type} @llvm.fma.{name}({type} %x, {type} %y, {type} %z)
  store {type} %r, ptr %pd
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}"""


def dtype(kind: str, bits: int) -> np.dtype:
    """The NumPy type of a PTX type such as ("f", 64)."""
    names = {"f": "float", "s": "int", "u": "uint", "b": "uint", "pred": "bool"}
    return np.dtype(bool) if kind == "pred" else np.dtype(f"{names[kind]}{bits}")


@cache
def fused(bits: int) -> Callable[[int, int, int, int, int], None]:
    """``a * b + c`` with one rounding: of the addresses of a, b, c, the result, and the length.

    NumPy has none. It is the processor's, or the C library's where the processor has none.
    """
    name, kind = {64: ("f64", "double"), 32: ("f32", "float")}[bits]
    address = cpu.function(_FMA.format(type=kind, name=name), "fused")
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64)(address)


def fma(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` with one rounding, for arrays of one float type and shape (n,)."""
    a, b, c = (np.ascontiguousarray(x) for x in (a, b, c))
    assert a.dtype == b.dtype == c.dtype and a.shape == b.shape == c.shape and a.size
    out = np.empty_like(a)
    pointers = (a.ctypes.data, b.ctypes.data, c.ctypes.data, out.ctypes.data)
    fused(8 * a.itemsize)(*pointers, a.size)
    return out


# Of floats


def lesser(a: Array, b: Array, out: Array) -> None:
    """The smaller number: NaN only if both are, and -0 is less than 0."""
    _numbers(np.fmin, np.bitwise_or, a, b, out)


def greater(a: Array, b: Array, out: Array) -> None:
    """The larger number: NaN only if both are, and 0 is more than -0."""
    _numbers(np.fmax, np.bitwise_and, a, b, out)


def _numbers(pick: np.ufunc, of_zeros: np.ufunc, a: Array, b: Array, out: Array) -> None:
    zeros, bits = (a == 0) & (b == 0), f"u{a.itemsize}"
    signed = of_zeros(a.view(bits), b.view(bits)).view(a.dtype)
    out[:] = np.where(zeros, signed, pick(a, b))


def copysign(sign: Array, size: Array, out: Array) -> None:
    np.copysign(size, sign, out)


def approximate(exact: Callable[[Array], Array]) -> Operation:
    """One of the instructions ``.approx.ftz``: subnormal numbers are zero, and results are rough.

    In double precision they have the upper words of operand and result alone; in single precision
    they are one of the two nearest numbers, not always the nearer one.
    """

    def apply(x: Array, out: Array) -> None:
        given = _flushed(x)
        if x.itemsize == 8:
            found = _upper(exact(_upper(given)))
        else:
            precise = exact(given.astype(float))
            near = precise.astype(x.dtype)
            beyond = np.where(precise > near, np.inf, np.where(precise < near, -np.inf, near))
            some = (x.view(np.uint32) * np.uint32(2654435761)) >> np.uint32(31)  # any half of them
            found = np.where(some, np.nextafter(near, beyond.astype(x.dtype)), near)
        out[:] = _flushed(found)

    return apply


def _flushed(x: Array) -> Array:
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0.0), x), x)


def _upper(x: Array) -> Array:
    high = (x.view(np.uint64) & np.uint64(0xFFFF_FFFF_0000_0000)).view(float)
    return np.where(np.isnan(x), x, high)


def inverse_root(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


FLOAT: dict[str, Operation] = {
    "add.rn": np.add, "sub.rn": np.subtract, "mul.rn": np.multiply, "div.rn": np.divide,
    "sqrt.rn": np.sqrt, "rcp.rn": np.reciprocal, "neg": np.negative, "abs": np.absolute,
    "min": lesser, "max": greater, "copysign": copysign,
    "rcp.approx.ftz": approximate(np.reciprocal), "rsqrt.approx.ftz": approximate(inverse_root),
}  # fmt: skip
"""Without ``.rn`` an assembler may contract a product and a sum: such are unknown."""

# Comparisons


def ordered_unequal(a: Array, b: Array, out: Array) -> None:
    np.logical_or(a < b, a > b, out)


def numbers(a: Array, b: Array, out: Array) -> None:
    np.logical_and(a == a, b == b, out)


def inverted(compare: Operation) -> Operation:
    def apply(a: Array, b: Array, out: Array) -> None:
        compare(a, b, out)
        np.logical_not(out, out)

    return apply


COMPARE: dict[str, Operation] = {
    "eq": np.equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
COMPARE_INTEGERS = COMPARE | {"ne": np.not_equal}
COMPARE_FLOATS = COMPARE | {
    "ne": ordered_unequal,
    "equ": inverted(ordered_unequal),
    "neu": np.not_equal,
    "ltu": inverted(np.greater_equal),
    "leu": inverted(np.greater),
    "gtu": inverted(np.less_equal),
    "geu": inverted(np.less),
    "num": numbers,
    "nan": inverted(numbers),
}

# Of integers


def high_product(a: Array, b: Array, out: Array) -> None:
    """The upper half of a product of integers."""
    if a.itemsize < 8:
        wide = np.dtype(f"{a.dtype.kind}{2 * a.itemsize}")
        out[:] = (a.astype(wide) * b.astype(wide)) >> wide.type(8 * a.itemsize)
        return
    x, y = a.view(np.uint64), b.view(np.uint64)
    half, low = np.uint64(32), np.uint64(0xFFFF_FFFF)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    t = x1 * y0 + ((x0 * y0) >> half)
    u = x0 * y1 + (t & low)
    high = x1 * y1 + (t >> half) + (u >> half)
    if a.dtype.kind == "i":  # a negative number is less by 2**64 than its bits as an unsigned one
        high = high - np.where(a < 0, y, 0) - np.where(b < 0, x, 0)
    out[:] = high.view(a.dtype)


def multiply_add(a: Array, b: Array, c: Array, out: Array) -> None:
    np.add(a * b, c, out)


def wide_product(a: Array, b: Array, out: Array) -> None:
    np.multiply(a.astype(out.dtype), b.astype(out.dtype), out)


def wide_multiply_add(a: Array, b: Array, c: Array, out: Array) -> None:
    np.add(a.astype(out.dtype) * b.astype(out.dtype), c, out)


def smaller(a: Array, b: Array, out: Array) -> None:
    np.minimum(a, b, out=out)


def larger(a: Array, b: Array, out: Array) -> None:
    np.maximum(a, b, out=out)


def shift(way: np.ufunc) -> Operation:
    """A shift; by the width or more it gives zeros, or copies of the sign."""

    def apply(a: Array, count: Array, out: Array) -> None:
        way(a, np.minimum(count, 8 * a.itemsize).astype(a.dtype), out)

    return apply


def funnel(a: Array, b: Array, count: Array, out: Array) -> None:
    """The upper word of ``b:a`` shifted to the left by the count modulo 32."""
    both = (b.astype(np.uint64) << np.uint64(32)) | a
    shifted = both << (count & np.uint32(31)).astype(np.uint64)
    out[:] = shifted >> np.uint64(32)


def funnel_right(a: Array, b: Array, count: Array, out: Array) -> None:
    """The lower word of ``b:a`` shifted to the right by the count modulo 32."""
    both = (b.astype(np.uint64) << np.uint64(32)) | a
    out[:] = (both >> (count & np.uint32(31)).astype(np.uint64)) & np.uint64(0xFFFF_FFFF)


INTEGER: dict[str, Operation] = {
    "add": np.add, "sub": np.subtract, "mul.lo": np.multiply, "min": smaller,
    "max": larger, "neg": np.negative, "abs": np.absolute, "mad.lo": multiply_add,
}  # fmt: skip
LOGIC: dict[str, Operation] = {
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert,
}  # fmt: skip


def add_carrying(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    """A sum of unsigned integers and a carry, and the carry out of it."""
    partial = a + b
    whole = partial + carry.astype(a.dtype)
    return whole, (partial < a) | (whole < partial)


def subtract_borrowing(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
    """A difference of unsigned integers less a borrow, and the borrow that it needs."""
    partial = a - b
    whole = partial - borrow.astype(a.dtype)
    return whole, (a < b) | (partial < whole)


# Conversions

ROUND = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def to_integer(rounding: str, target: np.dtype) -> Callable[[Array], Array]:
    """Conversion of floats: saturated; of NaN, the bits of the least signed integer, or 0."""

    def convert(x: Array) -> Array:
        least, most = (int(v) for v in (np.iinfo(target).min, np.iinfo(target).max))
        whole = ROUND[rounding](x)
        beyond = whole >= float(most)  # the float is `most` or one more
        below = whole <= float(least)
        inside = np.where(beyond | below | np.isnan(x), 0, whole).astype(target)
        wide = x.itemsize == 8 or target.itemsize == 8
        none = np.array(1 << (8 * target.itemsize - 1), f"u{target.itemsize}").view(target)
        found = np.where(beyond, target.type(most), np.where(below, target.type(least), inside))
        return np.where(np.isnan(x), none if wide else target.type(0), found)

    return convert
