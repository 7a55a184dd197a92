"""Elementary functions as LLVM IR text, without a mathematical library.

Errors are at most 1.7 units in the last place (ulp); of tan, tanh and logistic 2.3, of erfc 2.8.
Every function is defined for scalars and vectors of any width, of doubles and of floats, by
operations that CPUs and GPUs have: fused multiply-add, integer arithmetic, select. The code is free
of branches, except to the slow paths that are taken if any lane needs them: sine, cosine and
tangent of huge arguments, and remainders of huge quotients.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jaxmbd.lanes.elementary import (
    exponential,
    special,
    trigonometric,
)
from jaxmbd.lanes.elementary.body import Body, Value, structure, symbol

__all__ = ["FUNCTIONS", "declarations", "definitions", "symbol"]


@dataclass(frozen=True)
class Function:
    """How one function is built.

    Attributes:
        build: from its arguments to its result or results.
        arity: number of arguments.
        cold: whether it is a rarely taken path, not to be inlined.
        scalar: whether it is always a scalar function.
    """

    build: Callable[..., Value | tuple[Value, ...]]
    arity: int = 1
    cold: bool = False
    scalar: bool = False


_Bodies = dict[tuple[str, int], tuple[Body, str]]
"""(name, bits) → body of the function, and the text of its definition."""

_LIBRARY = {
    "sincos": Function(trigonometric.sincos),
    "sin": Function(trigonometric.sin),
    "cos": Function(trigonometric.cos),
    "tan": Function(trigonometric.tan),
    "reduce_huge": Function(trigonometric.reduce_huge, cold=True),
    "payne_hanek": Function(trigonometric.payne_hanek, cold=True, scalar=True),
    "exp": Function(exponential.exp),
    "exp2": Function(exponential.exp2),
    "expm1": Function(exponential.expm1),
    "logistic": Function(exponential.logistic),
    "sinh": Function(exponential.sinh),
    "cosh": Function(exponential.cosh),
    "tanh": Function(exponential.tanh),
    "log": Function(exponential.log),
    "log1p": Function(exponential.log1p),
    "asinh": Function(exponential.asinh),
    "acosh": Function(exponential.acosh),
    "atanh": Function(exponential.atanh),
    "asin": Function(trigonometric.asin),
    "acos": Function(trigonometric.acos),
    "atan": Function(trigonometric.atan),
    "atan2": Function(trigonometric.atan2, arity=2),
    "pow": Function(exponential.pow, arity=2),
    "cbrt": Function(exponential.cbrt),
    "erf": Function(special.erf),
    "erfc": Function(special.erfc),
    "erf_inv": Function(special.erf_inv),
    "rem": Function(special.rem, arity=2),
    "reduce_quotient": Function(special.reduce_quotient, arity=2, cold=True),
}

FUNCTIONS = {name: f.arity for name, f in _LIBRARY.items() if not f.cold}
"""The functions and their number of arguments. `sincos` has two results, the others one."""


def definitions(needed: Iterable[tuple[str, int]], width: int) -> str:
    """LLVM IR text that defines functions and what they call.

    Args:
        needed: (name, bits) of each function, with 32 or 64 bits.
        width: lanes of the vectors; 1 for scalars.

    Returns:
        tables and definitions, without the declarations of intrinsics (`declarations`). One module
        may hold texts for different widths, but not two for the same width.
    """
    bodies = _closure(needed, width)
    tables = sorted(set().union(*(body.tables for body, _ in bodies.values())))
    return "\n".join([*tables, *(text for _, text in bodies.values())])


def declarations(needed: Iterable[tuple[str, int]], width: int) -> set[str]:
    """The declarations of the intrinsics called by `definitions` of the same arguments."""
    return set().union(*(body.intrinsics for body, _ in _closure(needed, width).values()))


def _closure(needed: Iterable[tuple[str, int]], width: int) -> _Bodies:
    """The functions needed and, transitively, those that they call."""
    found: _Bodies = {}
    waiting = list(needed)
    while waiting:
        key = waiting.pop()
        if key not in found:
            found[key] = _define(*key, width)
            waiting += sorted(found[key][0].callees)
    return found


@functools.cache
def _define(name: str, bits: int, width: int) -> tuple[Body, str]:
    function = _LIBRARY[name]
    body = Body(1 if function.scalar else width, callers=width)
    arguments = [Value(body, f"f{bits}", text) for text in ("%x", "%y")[: function.arity]]
    results = function.build(*arguments)
    results = results if isinstance(results, tuple) else (results,)
    result_type = structure(*(body.type_of(value.kind) for value in results))
    result = "poison"
    for index, value in enumerate(results):
        insertion = f"insertvalue {result_type} {result}, {value.typed}, {index}"
        result = body.emit("", insertion).text if len(results) > 1 else value.text
    parameters = ", ".join(argument.typed for argument in arguments)
    attributes = "cold noinline nounwind" if function.cold else "alwaysinline nounwind"
    lines = [
        f"define internal {result_type} {symbol(name, bits, width)}({parameters}) {attributes} {{",
        "entry:",
        *body.lines,
        f"  ret {result_type} {result}",
        "}",
    ]
    return body, "\n".join(lines)
