"""Folding: what an operation comes to when its arguments are constants, zeros, ones or negations.

A literal zero stays zero whatever it multiplies, so the zeros of axes and inertias cost nothing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxmbd.lanes.ir.graph import Graph
    from jaxmbd.lanes.ir.nodes import Node

Fold = Callable[..., "Node | None"]
FOLDS: dict[str, Fold] = {}


def fold(*names: str) -> Callable[[Fold], Fold]:
    """Register a folding rule (graph, dtype, *args) → node or None."""

    def register(rule: Fold) -> Fold:
        FOLDS.update(dict.fromkeys(names, rule))
        return rule

    return register


def _float(dtype: str) -> bool:
    return dtype[0] == "f"


def wrap(value: int, dtype: str) -> int:
    """An integer in the range of its type."""
    bits = int(dtype[1:])
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype[0] == "i" and value >> (bits - 1) else value


@fold("add")
def _add(g: Graph, dtype: str, a: Node, b: Node) -> Node | None:
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


@fold("sub")
def _sub(g: Graph, dtype: str, a: Node, b: Node) -> Node | None:
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


@fold("mul")
def _mul(g: Graph, dtype: str, a: Node, b: Node) -> Node | None:
    if b.constant:
        a, b = b, a
    if a.constant:
        if b.constant:
            with np.errstate(all="ignore"):
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


@fold("neg")
def _neg(g: Graph, dtype: str, a: Node) -> Node | None:
    if a.constant:
        return g.const(-a.data if _float(dtype) else wrap(-a.data, dtype), dtype)
    if a.op == "neg":
        return a.args[0]
    if a.op == "sub":
        return g.op("sub", a.args[1], a.args[0])
    return None


@fold("div")
def _div(g: Graph, dtype: str, a: Node, b: Node) -> Node | None:
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


@fold("select")
def _select(g: Graph, dtype: str, c: Node, a: Node, b: Node) -> Node | None:
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
    """The rule of "and" or "or": of zero and all ones, one absorbs and the other does nothing."""

    def rule(g: Graph, dtype: str, a: Node, b: Node) -> Node | None:
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


FOLDS["and"], FOLDS["or"] = _lattice(operator.and_, True), _lattice(operator.or_, False)


@fold("xor")
def _xor(g: Graph, dtype: str, a: Node, b: Node) -> Node | None:
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


@fold("not")
def _not(g: Graph, dtype: str, a: Node) -> Node | None:
    if a.constant:
        return g.const(not a.data if dtype == "i1" else wrap(~a.data, dtype), dtype)
    if a.op == "not":
        return a.args[0]
    return None


def _comparison(compare: Callable[[Any, Any], bool]) -> Fold:
    def rule(g: Graph, dtype: str, a: Node, b: Node) -> Node | None:
        return g.const(compare(a.data, b.data), "i1") if a.constant and b.constant else None

    return rule


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    FOLDS[_name] = _comparison(getattr(operator, _name))


@fold("convert")
def _convert(g: Graph, dtype: str, a: Node) -> Node | None:
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


@fold("stop")
def _stop(g: Graph, dtype: str, a: Node) -> Node | None:
    return None if a.deps else a


@fold("min", "max")
def _extreme(g: Graph, dtype: str, a: Node, b: Node) -> Node | None:
    return a if a is b else None


def _numpy(function: Callable[..., Any]) -> Fold:
    def rule(g: Graph, dtype: str, *args: Node) -> Node | None:
        if not all(a.constant for a in args):
            return None
        with np.errstate(all="ignore"):
            return g.const(function(*(np.float64(a.data) for a in args)), dtype)

    return rule


_FUNCTIONS = {
    "sqrt": np.sqrt, "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "rint": np.rint,
    "trunc": np.trunc, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p,
    "pow": np.power, "cbrt": np.cbrt, "copysign": np.copysign,
}  # fmt: skip
FOLDS.update({name: _numpy(function) for name, function in _FUNCTIONS.items()})
