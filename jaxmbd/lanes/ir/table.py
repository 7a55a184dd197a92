"""The table of operations: a new operation is a new entry here.

An operation that is one instruction, one intrinsic or one elementary function needs nothing else;
any other also needs a function in `codegen.instructions` or `codegen.memory`.
"""

from __future__ import annotations

import operator

import numpy as np

from jaxmbd.lanes.ir import fold, partials
from jaxmbd.lanes.ir.nodes import (
    Call,
    Fold,
    Infix,
    Intrinsic,
    Kind,
    Node,
    Operation,
    Partial,
    Result,
)


def _same(word: str) -> Infix:
    return Infix(word, word, word)


def _comparison(name: str, floating: str, signed: str, unsigned: str) -> Operation:
    return Operation(
        name, 2, fold.comparison(getattr(operator, name)), None,
        Infix(f"fcmp {floating}", f"icmp {signed}", f"icmp {unsigned}"),
        result=Result.BOOLEAN, primitives=(name,), commutative=name in ("eq", "ne"),
    )  # fmt: skip


def _rounding(name: str, intrinsic: str, exact: Fold, *primitives: str) -> Operation:
    return Operation(
        name, 1, exact, partials.flat, Intrinsic(intrinsic), operands="float",
        primitives=primitives,
    )  # fmt: skip


def _elementary(
    name: str,
    partial: Partial,
    exact: Fold | None = None,
    *,
    arity: int = 1,
    llvm: Call | None = None,
    registers: int = 0,
    primitives: tuple[str, ...] | None = None,
) -> Operation:
    """A function of `elementary`; it counts as twenty floating-point operations."""
    return Operation(
        name, arity, exact, partial, llvm or Call(), operands="float", flops=20,
        registers=registers, primitives=(name,) if primitives is None else primitives,
    )  # fmt: skip


_TABLE = (
    # Arithmetic
    Operation(
        "add", 2, fold.add, partials.add, Infix("fadd", "add", "add"), flops=1,
        commutative=True, primitives=("add", "add_any"),
    ),
    Operation(
        "sub", 2, fold.sub, partials.sub, Infix("fsub", "sub", "sub"), flops=1,
        primitives=("sub",),
    ),
    Operation(
        "mul", 2, fold.mul, partials.mul, Infix("fmul", "mul", "mul"), flops=1,
        commutative=True, primitives=("mul",),
    ),
    Operation("fma", 3, operands="float", flops=2),  # made by `codegen.fused`
    Operation("div", 2, fold.div, partials.div, flops=1, primitives=("div",)),
    Operation("rem", 2, None, partials.rem, primitives=("rem",)),
    Operation("neg", 1, fold.neg, partials.neg, primitives=("neg",)),
    Operation("min", 2, fold.extreme, partials.extreme, primitives=("min",)),
    Operation("max", 2, fold.extreme, partials.extreme, primitives=("max",)),
    Operation(
        "sqrt", 1, fold.by(np.sqrt), partials.sqrt, Intrinsic("sqrt"), operands="float", flops=1,
        primitives=("sqrt",),
    ),
    Operation("abs", 1, fold.by(np.abs), partials.abs_, Intrinsic("fabs"), operands="float"),
    Operation(
        "copysign", 2, fold.by(np.copysign), partials.copysign, Intrinsic("copysign"),
        operands="float",
    ),
    _rounding("floor", "floor", fold.by(np.floor), "floor"),
    _rounding("ceil", "ceil", fold.by(np.ceil), "ceil"),
    _rounding("rint", "rint", fold.by(np.rint)),
    _rounding("trunc", "trunc", fold.by(np.trunc)),
    # Elementary functions
    _elementary(
        "sin", partials.sin, fold.by(np.sin), llvm=Call("sincos", 0), registers=10
    ),
    _elementary(
        "cos", partials.cos, fold.by(np.cos), llvm=Call("sincos", 1), registers=10
    ),
    _elementary("tan", partials.tan, fold.by(np.tan)),
    _elementary("asin", partials.asin, fold.by(np.arcsin)),
    _elementary("acos", partials.acos, fold.by(np.arccos)),
    _elementary("atan", partials.atan, fold.by(np.arctan)),
    _elementary("atan2", partials.atan2, fold.by(np.arctan2), arity=2),
    _elementary("sinh", partials.sinh, fold.by(np.sinh)),
    _elementary("cosh", partials.cosh, fold.by(np.cosh)),
    _elementary("tanh", partials.tanh, fold.by(np.tanh)),
    _elementary("asinh", partials.asinh, fold.by(np.arcsinh)),
    _elementary("acosh", partials.acosh, fold.by(np.arccosh)),
    _elementary("atanh", partials.atanh, fold.by(np.arctanh)),
    _elementary("exp", partials.exp, fold.by(np.exp)),
    _elementary("exp2", partials.exp2, fold.by(np.exp2)),
    _elementary("expm1", partials.expm1, fold.by(np.expm1)),
    _elementary("log", partials.log, fold.by(np.log)),
    _elementary("log1p", partials.log1p, fold.by(np.log1p)),
    _elementary("pow", partials.pow_, fold.by(np.power), arity=2, primitives=()),
    _elementary("cbrt", partials.cbrt, fold.by(np.cbrt)),
    _elementary("logistic", partials.logistic),
    _elementary("erf", partials.erf),
    _elementary("erfc", partials.erfc),
    _elementary("erf_inv", partials.erf_inv),
    # Comparisons, booleans, bits
    _comparison("lt", "olt", "slt", "ult"),
    _comparison("le", "ole", "sle", "ule"),
    _comparison("gt", "ogt", "sgt", "ugt"),
    _comparison("ge", "oge", "sge", "uge"),
    _comparison("eq", "oeq", "eq", "eq"),
    _comparison("ne", "une", "ne", "ne"),
    Operation(
        "and", 2, fold.and_, None, _same("and"), operands="integer", commutative=True,
        primitives=("and",),
    ),
    Operation(
        "or", 2, fold.or_, None, _same("or"), operands="integer", commutative=True,
        primitives=("or",),
    ),
    Operation(
        "xor", 2, fold.xor, None, _same("xor"), operands="integer", commutative=True,
        primitives=("xor",),
    ),
    Operation("not", 1, fold.not_, None, operands="integer", primitives=("not",)),
    Operation("shl", 2, operands="integer", primitives=("shift_left",)),
    Operation("lshr", 2, operands="integer", primitives=("shift_right_logical",)),
    Operation("ashr", 2, operands="integer", primitives=("shift_right_arithmetic",)),
    # Selection and conversion
    Operation("select", 3, fold.select, partials.select, operands="mixed"),
    Operation("convert", 1, fold.convert, partials.convert, result=Result.STATED),
    Operation("bitcast", 1, None, partials.flat, result=Result.STATED),
    # Aliases, for reverse mode
    Operation("stop", 1, fold.stop, kind=Kind.ALIAS, primitives=("stop_gradient",)),
    Operation("mark", 1, kind=Kind.ALIAS),
    Operation("taken", 2, None, partials.taken, kind=Kind.ALIAS, result=Result.STATED),
    Operation("recalled", 1, kind=Kind.ALIAS),
    Operation("custom", None, kind=Kind.ALIAS, result=Result.STATED, operands="mixed"),
    # Arguments, memory
    Operation("element", 0, result=Result.STATED, registers=2),
    Operation("entry", 1, result=Result.STATED, registers=2),
    Operation("load", 1, kind=Kind.IN_PLACE, result=Result.STATED),
    Operation("store", 2, kind=Kind.IN_PLACE, operands="mixed", writes=True),
    Operation("accumulate", 2, kind=Kind.IN_PLACE, operands="mixed", writes=True),
    Operation("clear", 0, kind=Kind.IN_PLACE, result=Result.STATED, writes=True),
    Operation("row", None, kind=Kind.IN_PLACE, operands="mixed", result=Result.STATED, writes=True),
    # Constants, loops, calls of routines
    Operation("const", 0, kind=Kind.NAMED, result=Result.STATED),
    Operation("param", 0, kind=Kind.NAMED, result=Result.STATED),
    Operation("loop", None, kind=Kind.NAMED, operands="mixed", result=Result.STATED),
    Operation("result", 1, kind=Kind.NAMED, result=Result.STATED),
    Operation("recall", 0, kind=Kind.NAMED, result=Result.STATED),
    Operation("call", None, kind=Kind.NAMED, operands="mixed", result=Result.STATED),
    Operation("returned", 1, kind=Kind.NAMED, operands="mixed", result=Result.STATED),
)  # fmt: skip

OPERATIONS = {operation.name: operation for operation in _TABLE}
"""By name."""


def _of_kind(kind: Kind) -> frozenset[str]:
    return frozenset(name for name, o in OPERATIONS.items() if o.kind is kind)


ALIASES, IN_PLACE, NAMED = (_of_kind(k) for k in (Kind.ALIAS, Kind.IN_PLACE, Kind.NAMED))
WRITERS = frozenset(name for name, o in OPERATIONS.items() if o.writes)


def reads(n: Node) -> tuple[Node, ...]:
    """The operands that a node reads: of an alias only the first."""
    return n.args[:1] if n.op in ALIASES else n.args


def root(n: Node) -> Node:
    """The node that a chain of aliases stands for."""
    while n.op in ALIASES:
        n = n.args[0]
    return n
