"""Elementwise primitives: arithmetic, comparisons, elementary functions, conversions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import NUMPY, Node, Unsupported
from jaxmbd.lanes.ir.table import OPERATIONS
from jaxmbd.lanes.trace.arrays import SMALL, Stacked, Value, constants, elementwise, short_dtype
from jaxmbd.lanes.trace.interpreter import RULES, rule


def result_dtype(eqn: Any) -> str:
    """The dtype of an equation's first result."""
    return short_dtype(eqn.outvars[0].aval.dtype)


def plain(op: str) -> Callable[..., Value]:
    """The rule of a primitive that maps to one operation of the graph."""

    def apply(g: Graph, eqn: Any, *args: Value) -> Value:
        dtype = result_dtype(eqn)
        return elementwise(g, partial(g.op, op, dtype=dtype), *args, dtype=dtype)

    return apply


RULES.update({p: plain(o.name) for o in OPERATIONS.values() for p in o.primitives})


def scalar_rule(*primitives: str) -> Callable[[Callable[..., Node]], Callable[..., Node]]:
    """Register an elementwise rule by its scalar function (graph, equation, *nodes) → node."""

    def register(fn: Callable[..., Node]) -> Callable[..., Node]:
        def apply(g: Graph, eqn: Any, *args: Value) -> Value:
            return elementwise(g, lambda *x: fn(g, eqn, *x), *args, dtype=result_dtype(eqn))

        RULES.update(dict.fromkeys(primitives, apply))
        return fn

    return register


@scalar_rule("abs")
def _abs(g: Graph, eqn: Any, x: Node) -> Node:
    if x.dtype[0] == "f":
        return g.op("abs", x)
    return g.op("select", g.op("lt", x, g.const(0, x.dtype)), g.op("neg", x), x)


@scalar_rule("square")
def _square(g: Graph, eqn: Any, x: Node) -> Node:
    return g.op("mul", x, x)


@scalar_rule("one_minus_square")
def _one_minus_square(g: Graph, eqn: Any, x: Node) -> Node:
    """``1 − x²`` as a product, which keeps all digits near ``|x| = 1``."""
    one = g.const(1, x.dtype)
    return g.op("mul", g.op("add", one, x), g.op("sub", one, x))


@scalar_rule("log2")
def _log2(g: Graph, eqn: Any, x: Node) -> Node:
    return g.op("div", g.op("log", x), g.const(np.log(2.0), x.dtype))


@scalar_rule("polynomial")
def _polynomial(g: Graph, eqn: Any, x: Node, *coefficients: Node) -> Node:
    """Horner's scheme; the coefficients ascend."""
    *rest, result = coefficients
    for c in reversed(rest):
        result = g.op("add", g.op("mul", result, x), c)
    return result


@scalar_rule("rsqrt")
def _rsqrt(g: Graph, eqn: Any, x: Node) -> Node:
    return g.op("div", g.const(1.0, x.dtype), g.op("sqrt", x))


@scalar_rule("sign")
def _sign(g: Graph, eqn: Any, x: Node) -> Node:
    zero, one = g.const(0, x.dtype), g.const(1, x.dtype)
    if x.dtype[0] == "u":
        return g.op("select", g.op("eq", x, zero), zero, one)
    minus, still = g.const(-1, x.dtype), g.op("stop", x)  # zero with its sign, or NaN
    rest = g.op("select", g.op("lt", x, zero), minus, still)
    return g.op("select", g.op("gt", x, zero), one, rest)


@scalar_rule("is_finite")
def _is_finite(g: Graph, eqn: Any, x: Node) -> Node:
    return g.op("lt", g.op("abs", x), g.const(float("inf"), x.dtype))


@scalar_rule("lt_to", "le_to")
def _total_order(g: Graph, eqn: Any, x: Node, y: Node) -> Node:
    """Comparisons in a total order in which NaN is the largest."""
    less = g.op("lt" if eqn.primitive.name == "lt_to" else "le", x, y)
    if x.dtype[0] != "f":
        return less
    x_nan, y_nan = g.op("ne", x, x), g.op("ne", y, y)
    if eqn.primitive.name == "lt_to":
        return g.op("or", less, g.op("and", y_nan, g.op("not", x_nan)))
    return g.op("or", less, y_nan)


@scalar_rule("eq_to")
def _total_equal(g: Graph, eqn: Any, x: Node, y: Node) -> Node:
    both = g.op("and", g.op("ne", x, x), g.op("ne", y, y))
    return g.op("or", g.op("eq", x, y), both)


@scalar_rule("round")
def _round(g: Graph, eqn: Any, x: Node) -> Node:
    if int(eqn.params["rounding_method"]) == 1:
        return g.op("rint", x)
    size = g.op("abs", x)
    half = g.op("sub", size, g.op("floor", size))
    up = g.op("add", g.op("floor", size), g.const(1.0, x.dtype))
    rounded = g.op("select", g.op("ge", half, g.const(0.5, x.dtype)), up, g.op("floor", size))
    return g.op("copysign", rounded, x)


@scalar_rule("pow")
def _pow(g: Graph, eqn: Any, x: Node, y: Node) -> Node:
    y = g.op("convert", y, dtype=x.dtype)
    if y.constant and float(y.data).is_integer() and abs(y.data) <= 64:
        return power(g, x, int(y.data))
    if y.constant and y.data == 0.5:
        return g.op("sqrt", x)
    return g.op("pow", x, y)


@scalar_rule("integer_pow")
def _integer_pow(g: Graph, eqn: Any, x: Node) -> Node:
    return power(g, x, eqn.params["y"])


def power(g: Graph, x: Node, n: int) -> Node:
    """An integer power, by repeated squaring."""
    if n < 0:
        return g.op("div", g.const(1, x.dtype), power(g, x, -n))
    result, square = g.const(1, x.dtype), x
    while n:
        if n & 1:
            result = g.op("mul", result, square)
        n >>= 1
        if n:
            square = g.op("mul", square, square)
    return result


@rule("select_n")
def _select_n(g: Graph, eqn: Any, which: Value, *cases: Value) -> Value:
    def choose(w: Node, *xs: Node) -> Node:
        if w.dtype == "i1":
            return g.op("select", w, xs[1], xs[0]) if len(xs) == 2 else xs[0]
        result = xs[-1]
        for k in range(len(xs) - 2, -1, -1):
            result = g.op("select", g.op("le", w, g.const(k, w.dtype)), xs[k], result)
        return result

    return elementwise(g, choose, which, *cases, dtype=result_dtype(eqn))


@scalar_rule("convert_element_type")
def _convert(g: Graph, eqn: Any, x: Node) -> Node:
    dtype = result_dtype(eqn)
    if dtype == "i1" and x.dtype != "i1":
        return g.op("ne", x, g.const(0, x.dtype))
    return g.op("convert", x, dtype=dtype)


@scalar_rule("bitcast_convert_type")
def _bitcast(g: Graph, eqn: Any, x: Node) -> Node:
    dtype = result_dtype(eqn)
    if dtype[1:] != x.dtype[1:]:
        raise Unsupported("between types of different size")
    if x.constant:
        return g.const(np.array(x.data, NUMPY[x.dtype]).view(NUMPY[dtype]).item(), dtype)
    return g.op("bitcast", x, dtype=dtype)


@rule("copy", "copy_p", "optimization_barrier", "pvary", "reshard")
def _same(g: Graph, eqn: Any, *args: Value) -> list[Value]:
    return list(args)


@rule("reduce_precision")
def _reduce_precision(g: Graph, eqn: Any, x: Value) -> Value:
    info = np.finfo(eqn.outvars[0].aval.dtype)
    if eqn.params["exponent_bits"] < info.nexp or eqn.params["mantissa_bits"] < info.nmant:
        raise Unsupported("to fewer bits than the type has")
    return x


@rule("empty", "empty2")
def _empty(g: Graph, eqn: Any) -> Value:
    """An array of which nothing is read before it is written: any numbers will do."""
    return constants(g, np.zeros(eqn.outvars[0].aval.shape), eqn.outvars[0].aval.dtype)


@rule("iota")
def _iota(g: Graph, eqn: Any, *args: Value) -> Value:
    shape, dimension = eqn.params["shape"], eqn.params["dimension"]
    dtype = result_dtype(eqn)
    size = int(np.prod(shape))
    if size > SMALL and dimension == 0:
        rest = shape[1:]
        return Stacked(
            shape,
            dtype,
            [(shape[0], lambda i: np.full(rest, g.op("convert", i, dtype=dtype), object))],
        )
    counts = np.arange(shape[dimension]).reshape(
        [-1 if k == dimension else 1 for k in range(len(shape))]
    )
    make = np.frompyfunc(lambda x: g.const(x, dtype), 1, 1)
    return np.broadcast_to(np.asarray(make(counts), object), shape)
