"""Calls with derivative rules: `custom_jvp`, `custom_vjp`, `custom_linear_solve`, and our own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Node, Region
from jaxmbd.lanes.trace.arrays import Stacked, Value, bits, empty, scalars
from jaxmbd.lanes.trace.content import Content
from jaxmbd.lanes.trace.interpreter import evaluate_closed, rule
from jaxmbd.lanes.trace.jaxprs import floating, is_guarded, rule_jaxpr


@dataclass(eq=False)
class Custom:
    """A call whose derivative is not that of its operations.

    Attributes:
        kind: "jvp", "vjp", "guard", "flag" or "solve".
        eqn: the call's equation.
        args: its arguments, arrays of nodes; of a "guard" long ones as they are.
        outs: its results.
        wrapped: its results as "custom" nodes, which the rest of the function uses.
        span: region, first and past-the-last index of the call's nodes there (for "guard").
    """

    kind: str
    eqn: Any
    args: list[Any]
    outs: list[Any]
    wrapped: list[Any]
    span: tuple[Region, int, int] | None = None

    @property
    def first(self) -> int:
        """Flat index of the first floating-point result element."""
        flat = [n for x in self.outs for n in x.reshape(-1)]
        return next(k for k, n in enumerate(flat) if n.dtype[0] == "f")

    @property
    def float_args(self) -> list[Any]:
        """The floating-point arguments."""
        return [x for x, v in zip(self.args, self.eqn.invars, strict=True) if floating(v.aval)]

    @property
    def float_outs(self) -> list[bool]:
        """Which results are floating-point."""
        return [floating(v.aval) for v in self.eqn.outvars]


@rule("custom_jvp_call")
def _custom_jvp(g: Graph, eqn: Any, *args: Value) -> list[Value]:
    kind = "guard" if is_guarded(eqn) else "jvp"
    return _custom(g, eqn, kind, eqn.params["call_jaxpr"], args, args)


@rule("custom_vjp_call", "custom_vjp_call_jaxpr")
def _custom_vjp(g: Graph, eqn: Any, *args: Value) -> list[Value]:
    p = eqn.params
    return _custom(g, eqn, "vjp", p.get("call_jaxpr", p.get("fun_jaxpr")), args, args)


@rule("custom_linear_solve")
def _linear_solve(g: Graph, eqn: Any, *args: Value) -> list[Value]:
    """The solution of ``A x = b``; its derivative is that of the equation."""
    consts, b = solve_arguments(eqn, args)
    return _custom(g, eqn, "solve", eqn.params["jaxprs"].solve, [*consts.solve, *b], args)


def solve_arguments(eqn: Any, args: Sequence[Any]) -> tuple[Any, list[Any]]:
    """A linear solve's arguments: those of each of its functions, and the right-hand side."""
    lengths = eqn.params["const_lengths"]
    ends = np.cumsum(lengths).tolist()
    parts = [list(args[end - n : end]) for n, end in zip(lengths, ends, strict=True)]
    return type(lengths)(*parts), list(args[ends[-1] :])


@rule("lanes_flag")
def _flag(g: Graph, eqn: Any, x: Value, miss: Value, terms: Value) -> list[Value]:
    """`lanes.flagged`: x or NaN; its transpose is the identity from x to x."""
    x, miss, terms = (scalars(g, y) for y in (x, miss, terms))
    out = empty(x.shape)
    for place in np.ndindex(*x.shape[:-1] if x.size else (0,)):
        largest = limit = g.const(0.0, x[place][0].dtype)
        for n in miss[place]:
            largest = g.op("max", largest, g.op("abs", n))
        for n in terms[place]:
            limit = g.op("max", limit, g.op("abs", n))
        for k, n in enumerate(x[place]):
            scaled = g.op("mul", g.const(eqn.params["tolerance"], n.dtype), limit)
            bad = g.op("lt", scaled, largest)
            out[(*place, k)] = g.op("select", bad, g.const(float("nan"), n.dtype), n)
    args = [x, miss, terms]
    if not _deps(g, args) & g.active:
        return [out]
    return _wrapped(g, Custom("flag", eqn, args, [out], []))


def by_its_rule(g: Graph, eqn: Any, args: list[Any], outs: list[Any]) -> list[Value]:
    """Results of a primitive, whose derivative is JAX's own and not that of their operations."""
    if not _deps(g, args) & g.active:
        return outs
    return _wrapped(g, Custom("jvp", eqn, args, outs, []))


def _custom(
    g: Graph, eqn: Any, kind: str, body: Any, operands: Sequence[Value], args: Sequence[Value]
) -> list[Value]:
    region, first = g.region, len(g.region.nodes)
    place = _place(g, body, operands)
    known = g.calls.get(place) if place else None
    if kind == "guard":
        with g.guard():
            outs = evaluate_closed(g, body, operands)
    else:
        outs = evaluate_closed(g, body, operands) if known is None else known
    if g.active:
        small = [x if kind == "guard" else scalars(g, x) for x in args]
        if _deps(g, small) & g.active:
            call = Custom(kind, eqn, small, [scalars(g, x) for x in outs], [])
            call.span = (region, first, len(region.nodes))
            outs = _wrapped(g, call)
    if place and known is None:
        g.calls[place] = outs
    return outs


def _place(g: Graph, body: Any, args: Sequence[Value]) -> Any:
    """What the value of a call depends on; None for a call that is not shared.

    The rule of an implicit function calls the function itself, whose search should not run again.
    Only calls in one region are shared, so that a loop body traced again has the same loops.
    """
    if not all(isinstance(x, np.ndarray) for x in args):
        return None
    content = g.of(body, lambda: Content(body).value)
    return (g.region, content, *(n for x in args for n in x.reshape(-1)))


def _deps(g: Graph, args: Sequence[Any]) -> int:
    """The union of the arguments' dependency bits."""
    deps = 0
    for x in args:
        deps |= bits(g, x)
    return deps


def _wrapped(g: Graph, call: Custom) -> list[Value]:
    """The call's results as "custom" nodes, at which a reverse sweep applies its rule."""
    deps = _deps(g, call.args)
    arrays = [x for x in call.args if not isinstance(x, Stacked)]
    inputs = tuple(n for x in arrays for n in x.reshape(-1) if n.deps)
    k = 0
    for x in call.outs:
        y = empty(x.shape)
        for place in np.ndindex(*x.shape):
            y[place] = _wrap(g, call, k, x[place], inputs, deps)
            k += 1
        call.wrapped.append(y)
    return list(call.wrapped)


def _wrap(g: Graph, call: Custom, k: int, out: Node, inputs: tuple[Node, ...], deps: int) -> Node:
    if out.dtype[0] != "f":
        return out
    node = Node("custom", (out, *inputs), out.dtype, g.region, False, deps, (call, k))
    g.region.nodes.append(node)
    return node


def derivative_jaxpr(g: Graph, call: Custom) -> Any:
    """The closed jaxpr of a call's derivative rule.

    For "jvp": (primals, their tangents) → tangents of the results; for "vjp": (primals, cotangents
    of the results) → cotangents of the primals. Only floating-point arrays have (co)tangents.
    """
    return g.of(call.eqn, lambda: rule_jaxpr(call.eqn))
