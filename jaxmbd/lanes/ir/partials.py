"""Reverse-mode rules of the graph's operations: cotangents of operands from that of the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from jaxmbd.lanes.ir.nodes import Builder, Node

Contributions = Iterator[tuple[Node, Node]]
"""(operand, contribution to its cotangent) pairs."""


def _unary(factor: Callable[[Builder, Node, Node], Node]) -> Callable[..., Contributions]:
    """The rule of ``y = f(x)`` from its derivative, ``factor(graph, x, y)``."""

    def rule(g: Builder, n: Node, ct: Node) -> Contributions:
        yield n.args[0], g.op("mul", ct, factor(g, n.args[0], n))

    return rule


def _c(g: Builder, like: Node, value: float) -> Node:
    return g.const(value, like.dtype)


def _inverse(g: Builder, x: Node) -> Node:
    return g.op("div", _c(g, x, 1.0), x)


def _one_plus_square(g: Builder, x: Node, sign: str = "add") -> Node:
    return g.op(sign, _c(g, x, 1.0), g.op("mul", x, x))


def _inverse_root(g: Builder, square: Node) -> Node:
    return _inverse(g, g.op("sqrt", square))


def _bell(g: Builder, x: Node, sign: float) -> Node:
    """±2/√π exp(−x²)."""
    e = g.op("exp", g.op("neg", g.op("mul", x, x)))
    return g.op("mul", e, _c(g, x, sign * 2.0 / math.sqrt(math.pi)))


sqrt = _unary(lambda g, x, y: g.op("div", _c(g, x, 0.5), y))
sin = _unary(lambda g, x, y: g.op("cos", x))
cos = _unary(lambda g, x, y: g.op("neg", g.op("sin", x)))
tan = _unary(lambda g, x, y: _one_plus_square(g, y))
asin = _unary(lambda g, x, y: _inverse_root(g, _one_plus_square(g, x, "sub")))
acos = _unary(lambda g, x, y: g.op("neg", _inverse_root(g, _one_plus_square(g, x, "sub"))))
atan = _unary(lambda g, x, y: _inverse(g, _one_plus_square(g, x)))
sinh = _unary(lambda g, x, y: g.op("cosh", x))
cosh = _unary(lambda g, x, y: g.op("sinh", x))
tanh = _unary(lambda g, x, y: _one_plus_square(g, y, "sub"))
asinh = _unary(lambda g, x, y: _inverse_root(g, _one_plus_square(g, x)))
acosh = _unary(
    lambda g, x, y: _inverse_root(
        g, g.op("mul", g.op("sub", x, _c(g, x, 1.0)), g.op("add", x, _c(g, x, 1.0)))
    )
)
atanh = _unary(lambda g, x, y: _inverse(g, _one_plus_square(g, x, "sub")))
exp = _unary(lambda g, x, y: y)
exp2 = _unary(lambda g, x, y: g.op("mul", y, _c(g, x, math.log(2.0))))
expm1 = _unary(lambda g, x, y: g.op("add", y, _c(g, x, 1.0)))
log = _unary(lambda g, x, y: _inverse(g, x))
log1p = _unary(lambda g, x, y: _inverse(g, g.op("add", x, _c(g, x, 1.0))))
cbrt = _unary(lambda g, x, y: g.op("div", g.op("mul", y, _c(g, x, 1.0 / 3.0)), x))
logistic = _unary(lambda g, x, y: g.op("mul", y, g.op("sub", _c(g, x, 1.0), y)))
erf = _unary(lambda g, x, y: _bell(g, x, 1.0))
erfc = _unary(lambda g, x, y: _bell(g, x, -1.0))
erf_inv = _unary(
    lambda g, x, y: g.op("mul", g.op("exp", g.op("mul", y, y)), _c(g, x, math.sqrt(math.pi) / 2))
)


def add(g: Builder, n: Node, ct: Node) -> Contributions:
    """ȳ for both."""
    yield n.args[0], ct
    yield n.args[1], ct


def sub(g: Builder, n: Node, ct: Node) -> Contributions:
    """ȳ and −ȳ."""
    yield n.args[0], ct
    yield n.args[1], g.op("neg", ct)


def mul(g: Builder, n: Node, ct: Node) -> Contributions:
    """ȳ b and ȳ a."""
    a, b = n.args
    yield a, g.op("mul", ct, b)
    yield b, g.op("mul", ct, a)


def div(g: Builder, n: Node, ct: Node) -> Contributions:
    """ȳ/b and −(ȳ/b) y."""
    a, b = n.args
    part = g.op("div", ct, b)
    yield a, part
    yield b, g.op("neg", g.op("mul", part, n))


def neg(g: Builder, n: Node, ct: Node) -> Contributions:
    """−ȳ."""
    yield n.args[0], g.op("neg", ct)


def select(g: Builder, n: Node, ct: Node) -> Contributions:
    """ȳ for the selected operand, zero for the other."""
    c, a, b = n.args
    zero = _c(g, n, 0.0)
    yield a, g.op("select", c, ct, zero)
    yield b, g.op("select", c, zero, ct)


def taken(g: Builder, n: Node, ct: Node) -> Contributions:
    """ȳ where the branch is taken, else zero: elsewhere it may be NaN, as 0 · ∞ is."""
    x, here = n.args
    yield x, g.op("select", here, ct, _c(g, n, 0.0))


def extreme(g: Builder, n: Node, ct: Node) -> Contributions:
    """ȳ for the larger or smaller operand; half to each where they are equal, as in JAX."""
    zero, half = _c(g, n, 0.0), g.op("mul", ct, _c(g, n, 0.5))
    for x, other in (n.args, n.args[::-1]):
        wins = g.op("gt" if n.op == "max" else "lt", x, other)
        tie = g.op("select", g.op("eq", x, other), half, zero)
        yield x, g.op("select", wins, ct, tie)


def abs_(g: Builder, n: Node, ct: Node) -> Contributions:
    """ȳ for x ≥ 0, else −ȳ, as in JAX."""
    x = n.args[0]
    yield x, g.op("select", g.op("ge", x, _c(g, n, 0.0)), ct, g.op("neg", ct))


def atan2(g: Builder, n: Node, ct: Node) -> Contributions:
    """Cotangents z̄ x/(x² + y²) of y and −z̄ y/(x² + y²) of x."""
    y, x = n.args
    part = g.op("div", ct, g.op("add", g.op("mul", x, x), g.op("mul", y, y)))
    yield y, g.op("mul", part, x)
    yield x, g.op("neg", g.op("mul", part, y))


def pow_(g: Builder, n: Node, ct: Node) -> Contributions:
    """For z = xʸ: z̄ y xʸ⁻¹ and z̄ xʸ log x, whose log x is taken as 0 at x = 0."""
    x, y = n.args
    zero, one = _c(g, n, 0.0), _c(g, n, 1.0)
    less = g.op("select", g.op("eq", y, zero), one, g.op("sub", y, one))
    yield x, g.op("mul", ct, g.op("mul", y, g.op("pow", x, less)))
    safe = g.op("select", g.op("eq", x, zero), one, x)
    yield y, g.op("mul", ct, g.op("mul", g.op("log", safe), n))


def rem(g: Builder, n: Node, ct: Node) -> Contributions:
    """For a − b trunc(a/b): ȳ and −ȳ trunc(a/b)."""
    a, b = n.args
    yield a, ct
    yield b, g.op("neg", g.op("mul", ct, g.op("trunc", g.op("div", a, b))))


def copysign(g: Builder, n: Node, ct: Node) -> Contributions:
    """ȳ, negated where the result has the other sign than x."""
    x, sign = n.args
    same = g.op("eq", g.op("lt", x, _c(g, n, 0.0)), g.op("lt", sign, _c(g, n, 0.0)))
    yield x, g.op("select", same, ct, g.op("neg", ct))


def convert(g: Builder, n: Node, ct: Node) -> Contributions:
    """ȳ in the type of x."""
    if n.args[0].dtype[0] == "f":
        yield n.args[0], g.op("convert", ct, dtype=n.args[0].dtype)


def flat(g: Builder, n: Node, ct: Node) -> Contributions:
    """No contributions: the function is piecewise constant."""
    return iter(())
