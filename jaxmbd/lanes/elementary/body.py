"""A function's LLVM IR text, built by arithmetic on `Value`s.

A `Value` is a vector of floats, integers or booleans; operators on it append instructions to its
`Body`. A Python number as the other operand becomes a constant of its kind. At width 1 vectors are
scalars. Operations without a Python operator, and the formats of floats, follow.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Union

SCALARS = {"f64": "double", "f32": "float"}
FLOAT_OPERATIONS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
Operand = Union["Value", float]


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An SSA value of one kind: "f64", "f32", "i64", "i32", "i128" or "i1".

    Right shifts are logical; comparisons of floats are ordered (false if an operand is NaN), of
    integers signed.
    """

    body: Body
    kind: str
    text: str

    @property
    def is_float(self) -> bool:
        """Whether it holds floats."""
        return self.kind[0] == "f"

    @property
    def bits(self) -> int:
        """Bits of one lane."""
        return int(self.kind[1:])

    @property
    def typed(self) -> str:
        """The value preceded by its type, as in an argument list."""
        return f"{self.body.type_of(self.kind)} {self.text}"

    def constant(self, number: Operand) -> Value:
        """A number as a value of this kind; a value unchanged."""
        if isinstance(number, Value):
            return number
        return Value(self.body, self.kind, self.body.literal(self.kind, number))

    def _binary(self, operation: str, left: Operand, right: Operand) -> Value:
        left, right = self.constant(left), self.constant(right)
        if self.is_float:
            operation = FLOAT_OPERATIONS[operation]
        return self.body.emit(self.kind, f"{operation} {left.typed}, {right.text}")

    def _compare(self, predicate: str, other: Operand) -> Value:
        instruction = f"fcmp o{predicate}" if self.is_float else f"icmp {_signed(predicate)}"
        return self.body.emit("i1", f"{instruction} {self.typed}, {self.constant(other).text}")

    def __add__(self, other: Operand) -> Value:
        return self._binary("add", self, other)

    def __radd__(self, other: float) -> Value:
        return self._binary("add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return self._binary("sub", self, other)

    def __rsub__(self, other: float) -> Value:
        return self._binary("sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return self._binary("mul", self, other)

    def __rmul__(self, other: float) -> Value:
        return self._binary("mul", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return self._binary("div", self, other)

    def __rtruediv__(self, other: float) -> Value:
        return self._binary("div", other, self)

    def __neg__(self) -> Value:
        return self.body.emit(self.kind, f"fneg {self.typed}") if self.is_float else 0 - self

    def __and__(self, other: Operand) -> Value:
        return self._binary("and", self, other)

    def __or__(self, other: Operand) -> Value:
        return self._binary("or", self, other)

    def __xor__(self, other: Operand) -> Value:
        return self._binary("xor", self, other)

    def __lshift__(self, other: Operand) -> Value:
        return self._binary("shl", self, other)

    def __rshift__(self, other: Operand) -> Value:
        return self._binary("lshr", self, other)

    def __lt__(self, other: Operand) -> Value:
        return self._compare("lt", other)

    def __le__(self, other: Operand) -> Value:
        return self._compare("le", other)

    def __gt__(self, other: Operand) -> Value:
        return self._compare("gt", other)

    def __ge__(self, other: Operand) -> Value:
        return self._compare("ge", other)

    def equals(self, other: Operand) -> Value:
        """The mask of lanes where both are equal."""
        return self._compare("eq", other)


def symbol(name: str, bits: int, width: int) -> str:
    """A function's symbol, like "@lanes.sin.v8f64"; at width 1 "@lanes.sin.f64"."""
    return f"@lanes.{name}.f{bits}" if width == 1 else f"@lanes.{name}.v{width}f{bits}"


def structure(*types: str) -> str:
    """The LLVM type of a function's results: a structure, unless there is only one."""
    return types[0] if len(types) == 1 else f"{{{', '.join(types)}}}"


class Body:
    """The instructions of one function, and the functions and intrinsics that they call.

    Attributes:
        width: lanes of its vectors.
        callers: lanes of its callers; differs from `width` for scalar functions called from vector
            code.
    """

    def __init__(self, width: int, callers: int | None = None):
        self.width = width
        self.callers = callers or width
        self.lines: list[str] = []
        self.intrinsics: set[str] = set()
        self.tables: set[str] = set()
        self.callees: set[tuple[str, int]] = set()
        self._block = "entry"
        self._count = 0

    def type_of(self, kind: str) -> str:
        """The LLVM type of a kind."""
        scalar = SCALARS.get(kind, kind)
        return scalar if self.width == 1 else f"<{self.width} x {scalar}>"

    def literal(self, kind: str, number: float) -> str:
        """A constant; floats as the bits of a double, as LLVM expects for both formats."""
        if kind[0] == "f":
            if kind == "f32":
                (number,) = struct.unpack("f", struct.pack("f", number))
            (pattern,) = struct.unpack("Q", struct.pack("d", number))
            text = f"0x{pattern:016X}"
        else:
            text = str(int(number))
        return text if self.width == 1 else f"splat ({SCALARS.get(kind, kind)} {text})"

    def emit(self, kind: str, instruction: str) -> Value:
        """Append an instruction that yields a value."""
        value = Value(self, kind, self._fresh())
        self.lines.append(f"  {value.text} = {instruction}")
        return value

    def intrinsic(self, name: str, *arguments: Value) -> Value:
        """Call an LLVM intrinsic whose operands and result have one kind."""
        kind = arguments[0].kind
        suffix = kind if self.width == 1 else f"v{self.width}{kind}"
        types = ", ".join([self.type_of(kind)] * len(arguments))
        head = f"{self.type_of(kind)} @llvm.{name}.{suffix}"
        self.intrinsics.add(f"declare {head}({types})")
        return self.emit(kind, f"call {head}({', '.join(a.typed for a in arguments)})")

    def call(
        self, name: str, arguments: Sequence[Value], kinds: tuple[str, ...]
    ) -> tuple[Value, ...]:
        """Call another function of this library, whose results have `kinds`."""
        bits = arguments[0].bits
        self.callees.add((name, bits))
        result = structure(*map(self.type_of, kinds))
        typed = ", ".join(argument.typed for argument in arguments)
        call = f"call {result} {symbol(name, bits, self.callers)}({typed})"
        if len(kinds) == 1:
            return (self.emit(kinds[0], call),)
        called = self.emit("", call)
        return tuple(
            self.emit(kind, f"extractvalue {result} {called.text}, {index}")
            for index, kind in enumerate(kinds)
        )

    def each_lane(self, name: str, x: Value, kinds: tuple[str, ...]) -> tuple[Value, ...]:
        """Call a scalar function of one argument and several results, lane by lane."""
        if self.width == 1:
            return self.call(name, [x], kinds)
        self.callees.add((name, x.bits))
        types = [SCALARS.get(kind, kind) for kind in kinds]
        results = structure(*types)
        function = symbol(name, x.bits, self.callers)
        vectors = [Value(self, kind, "poison") for kind in kinds]
        for lane in range(self.width):
            scalar = self.emit("", f"extractelement {x.typed}, i32 {lane}").text
            called = self.emit("", f"call {results} {function}({SCALARS[x.kind]} {scalar})").text
            for index, (vector, scalar_type) in enumerate(zip(vectors, types, strict=True)):
                element = self.emit("", f"extractvalue {results} {called}, {index}").text
                inserted = f"insertelement {vector.typed}, {scalar_type} {element}, i32 {lane}"
                vectors[index] = self.emit(vector.kind, inserted)
        return tuple(vectors)

    def table(self, name: str, words: Sequence[int]) -> str:
        """A constant array of 64-bit words; returns its symbol."""
        at = f"@lanes.{name}.v{self.callers}"
        entries = ", ".join(f"i64 {word}" for word in words)
        self.tables.add(f"{at} = internal constant [{len(words)} x i64] [{entries}]")
        return at

    def load(self, table: str, index: Value) -> Value:
        """A word of a table, at width 1."""
        place = self.emit("", f"getelementptr i64, ptr {table}, {index.typed}")
        return self.emit("i64", f"load i64, ptr {place.text}")

    def any_lane(self, mask: Value) -> str:
        """The name of a scalar i1: whether the mask is set in any lane."""
        if self.width == 1:
            return mask.text
        head = f"i1 @llvm.vector.reduce.or.v{self.width}i1"
        self.intrinsics.add(f"declare {head}({self.type_of('i1')})")
        return self.emit("", f"call {head}({mask.typed})").text

    def rarely(
        self, mask: Value, rare: Callable[[], tuple[Value, ...]], usual: tuple[Value, ...]
    ) -> tuple[Value, ...]:
        """`usual`, or if any lane is in `mask` the values of `rare`, built in a separate block.

        The rare block computes all lanes; functions called there should be `cold`, so that LLVM
        moves the block out of the main path.
        """
        before, label = self._block, self._fresh()[1:]
        self._branch(f"i1 {self.any_lane(mask)}, label %rare.{label}, label %join.{label}")
        self._open(f"rare.{label}")
        values, after = rare(), self._block
        self._branch(f"label %join.{label}")
        self._open(f"join.{label}")
        return tuple(
            self.emit(
                v.kind, f"phi {self.type_of(v.kind)} [{u.text}, %{before}], [{v.text}, %{after}]"
            )
            for u, v in zip(usual, values, strict=True)
        )

    def repeat(self, start: Value, step: Callable[[Value], tuple[Value, Value]]) -> Value:
        """Repeat `step`, which returns the next value and a mask of unfinished lanes.

        The loop ends when no lane is unfinished; `step` must not change finished lanes.
        """
        before, label = self._block, self._fresh()[1:]
        self._branch(f"label %loop.{label}")
        self._open(f"loop.{label}")
        head = len(self.lines)
        value = self.emit(start.kind, "phi")
        following, unfinished = step(value)
        again = self.any_lane(unfinished)
        edges = f"[{start.text}, %{before}], [{following.text}, %{self._block}]"
        self.lines[head] = f"  {value.text} = phi {self.type_of(start.kind)} {edges}"
        self._branch(f"i1 {again}, label %loop.{label}, label %done.{label}")
        self._open(f"done.{label}")
        return following

    def _fresh(self) -> str:
        self._count += 1
        return f"%t{self._count}"

    def _branch(self, target: str) -> None:
        self.lines.append(f"  br {target}")

    def _open(self, label: str) -> None:
        self._block = label
        self.lines.append(f"{label}:")


def _signed(predicate: str) -> str:
    return predicate if predicate == "eq" else f"s{predicate}"


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
