"""Constant folding and identity operations: operands that are constants, zeros, ones or negations.

Operations on constants alone follow IEEE 754, including 0/0, ∞ − ∞ and 0·NaN. With a non-constant
operand there are two departures from IEEE, and no others:

* A literal zero annihilates: ``0·x = 0/x = 0`` for every x, as in sparse algebra, so the zeros in
  axes and inertias cost nothing. IEEE gives NaN where x is NaN, for 0·∞ and for 0/0; code that must
  detect such an x tests x itself (for mechanisms `jaxmbd.model.finite`).
* The sign of a zero result may differ: ``x + 0 = x``, ``0 − x = −x`` and ``−(x − y) = y − x``.

Code generation also contracts a product and a sum into a fused multiply-add, where the processor
has one (`codegen.fused`), and lets quotients by one denominator b share its reciprocal, at the cost
of one more ulp for ``2⁻¹⁰²² ≤ |b| ≤ 2¹⁰²²`` (``2⁻¹²⁶ ≤ |b| ≤ 2¹²⁶`` in single precision). For
larger |b|, 1/b is subnormal, and on CPUs, where XLA flushes subnormals, such quotients are zero; a
subnormal b counts as zero there already.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.nodes import Builder, Fold, Node


def _float(dtype: str) -> bool:
    return dtype[0] == "f"


def wrap(value: int, dtype: str) -> int:
    """An integer wrapped modulo 2ⁿ to the range of its type."""
    bits = int(dtype[1:])
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype[0] == "i" and value >> (bits - 1) else value


def add(g: Builder, dtype: str, a: Node, b: Node) -> Node | None:
    """Sum a + b: constants, a zero operand, a negated operand."""
    if a.constant and b.constant:
        total = a.data + b.data
        return g.const(total if _float(dtype) else wrap(total, dtype), dtype)
    if a.constant and a.data == 0:
        return b
    if b.constant and b.data == 0:
        return a
    if b.op == "neg":
        return g.op("sub", a, b.args[0])
    if a.op == "neg":
        return g.op("sub", b, a.args[0])
    return None


def sub(g: Builder, dtype: str, a: Node, b: Node) -> Node | None:
    """Difference a − b: constants, a zero operand, a negated operand."""
    if a.constant and b.constant:
        rest = a.data - b.data
        return g.const(rest if _float(dtype) else wrap(rest, dtype), dtype)
    if b.constant and b.data == 0:
        return a
    if a.constant and a.data == 0:
        return g.op("neg", b)
    if b.op == "neg":
        return g.op("add", a, b.args[0])
    if a.op == "neg":
        return g.op("neg", g.op("add", a.args[0], b))
    return None


def mul(g: Builder, dtype: str, a: Node, b: Node) -> Node | None:
    """Product a b: constants, an operand 0 or ±1, negated operands."""
    if b.constant:
        a, b = b, a
    if a.constant:
        if b.constant:
            product = a.data * b.data
            return g.const(product if _float(dtype) else wrap(product, dtype), dtype)
        if a.data == 0:
            return a
        if a.data == 1:
            return b
        if a.data == -1:
            return g.op("neg", b)
    if a.op == "neg":
        if b.op == "neg":
            return g.op("mul", a.args[0], b.args[0])
        return g.op("neg", g.op("mul", a.args[0], b))
    if b.op == "neg":
        if a.constant:
            return g.op("mul", g.const(-a.data, dtype), b.args[0]) if _float(dtype) else None
        return g.op("neg", g.op("mul", a, b.args[0]))
    return None


def neg(g: Builder, dtype: str, a: Node) -> Node | None:
    """−a: ``−(−x) = x`` and ``−(x − y) = y − x``."""
    if a.constant:
        return g.const(-a.data if _float(dtype) else wrap(-a.data, dtype), dtype)
    if a.op == "neg":
        return a.args[0]
    if a.op == "sub":
        return g.op("sub", a.args[1], a.args[0])
    return None


def div(g: Builder, dtype: str, a: Node, b: Node) -> Node | None:
    """a/b: constants, a zero numerator, b = ±1; by a power of two as a product (exact)."""
    if not _float(dtype):
        if a.constant and b.constant and b.data != 0:
            quotient = abs(a.data) // abs(b.data)
            return g.const(quotient if (a.data < 0) == (b.data < 0) else -quotient, dtype)
        return a if b.constant and b.data == 1 else None
    if a.constant and b.constant:
        with np.errstate(all="ignore"):
            return g.const(np.float64(a.data) / np.float64(b.data), dtype)
    if a.constant and a.data == 0:
        return a
    if b.constant:
        if b.data == 1:
            return a
        if b.data == -1:
            return g.op("neg", a)
        if b.data != 0 and math.isfinite(b.data) and abs(math.frexp(b.data)[0]) == 0.5:
            return g.op("mul", a, g.const(1.0 / b.data, dtype))
    return None


def select(g: Builder, dtype: str, c: Node, a: Node, b: Node) -> Node | None:
    """A select with a constant condition or equal operands; of booleans, logic."""
    if c.constant:
        return a if c.data else b
    if a is b:
        return a
    if c.op == "not":
        return g.op("select", c.args[0], b, a)
    if dtype == "i1":
        if a.constant:
            return g.op("or", c, b) if a.data else g.op("and", g.op("not", c), b)
        if b.constant:
            return g.op("or", g.op("not", c), a) if b.data else g.op("and", c, a)
    return None


def _lattice(combine: Callable[[Any, Any], Any], zero_absorbs: bool) -> Fold:
    """The rule of "and" or "or": of 0 and all ones, one absorbs and the other is the identity."""

    def rule(g: Builder, dtype: str, a: Node, b: Node) -> Node | None:
        if b.constant:
            a, b = b, a
        if a.constant:
            if b.constant:
                return g.const(combine(a.data, b.data), dtype)
            if a.data == 0:
                return a if zero_absorbs else b
            if dtype == "i1" or a.data == -1:
                return b if zero_absorbs else a
        return a if a is b else None

    return rule


and_, or_ = _lattice(operator.and_, True), _lattice(operator.or_, False)


def xor(g: Builder, dtype: str, a: Node, b: Node) -> Node | None:
    """Exclusive or: constants, a zero operand; with true, "not"."""
    if b.constant:
        a, b = b, a
    if a.constant:
        if b.constant:
            return g.const(a.data ^ b.data, dtype)
        if a.data == 0:
            return b
        if dtype == "i1":
            return g.op("not", b)
    return None


def not_(g: Builder, dtype: str, a: Node) -> Node | None:
    """Not: constants; a double negation is the identity."""
    if a.constant:
        return g.const(not a.data if dtype == "i1" else wrap(~a.data, dtype), dtype)
    if a.op == "not":
        return a.args[0]
    return None


def comparison(compare: Callable[[Any, Any], bool]) -> Fold:
    """The rule of a comparison."""

    def rule(g: Builder, dtype: str, a: Node, b: Node) -> Node | None:
        return g.const(compare(a.data, b.data), "i1") if a.constant and b.constant else None

    return rule


def convert(g: Builder, dtype: str, a: Node) -> Node | None:
    """Conversion: constants; to the same type, the identity."""
    if a.dtype == dtype:
        return a
    if a.constant:
        if dtype == "i1":
            return g.const(a.data != 0, dtype)
        if _float(dtype):
            return g.const(a.data, dtype)
        return g.const(_to_int(a.data, dtype), dtype)
    return None


def _to_int(x: Any, dtype: str) -> int:
    if isinstance(x, float):
        if x != x:
            return 0
        bits = int(dtype[1:])
        low, high = (
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)
        )
        return int(min(max(x, low), high))
    return wrap(int(x), dtype)


def stop(g: Builder, dtype: str, a: Node) -> Node | None:
    """A stop of gradients is the identity on values that depend on no differentiated input."""
    return None if a.deps else a


def extreme(g: Builder, dtype: str, a: Node, b: Node) -> Node | None:
    """Minimum or maximum of a value and itself, or with a NaN constant (which it returns)."""
    if a is b:
        return a
    return next((x for x in (a, b) if x.constant and x.data != x.data), None)


def by(function: Callable[..., Any]) -> Fold:
    """The rule that evaluates a NumPy function if all operands are constants."""

    def rule(g: Builder, dtype: str, *args: Node) -> Node | None:
        if not all(a.constant for a in args):
            return None
        with np.errstate(all="ignore"):
            return g.const(function(*(np.float64(a.data) for a in args)), dtype)

    return rule
