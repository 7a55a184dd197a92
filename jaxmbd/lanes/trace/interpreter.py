"""The jaxpr interpreter with its registry of rules, and the graph of a kernel that it makes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from jax import dtypes
from jax._src import source_info_util  # no public API for an equation's source line
from jax.extend import core

from jaxmbd.lanes.ir.graph import Graph, built
from jaxmbd.lanes.ir.nodes import Buffer, Node, Unsupported
from jaxmbd.lanes.trace.arrays import Stacked, Value, constants, from_buffer, short_dtype
from jaxmbd.lanes.trace.jaxprs import CALLBACKS

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


def rule(*primitives: str) -> Callable[[Rule], Rule]:
    """Register a rule (graph, equation, *values) → value or values under primitive names."""

    def register(fn: Rule) -> Rule:
        RULES.update(dict.fromkeys(primitives, fn))
        return fn

    return register


def own() -> bool:
    """Whether all rules are this package's, so that its source tells what they do."""
    package = __name__.partition(".trace")[0]
    return all(fn.__module__.startswith(package) for fn in RULES.values())


def evaluate(g: Graph, jaxpr: Any, consts: Sequence[Value], args: Sequence[Value]) -> list[Value]:
    """Trace an open jaxpr on values, given its constants.

    Raises:
        Unsupported: a primitive has no rule, or none for these operands; the message names it and
            the line of user code.
    """
    env: dict[Any, Value] = {}

    def read(v: Any) -> Value:
        if not isinstance(v, core.Literal):
            return env[v]
        aval: Any = v.aval
        return constants(g, v.val, aval.dtype)

    env.update(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    around = g.equation
    for eqn in jaxpr.eqns:
        if eqn.outvars and all(v.aval.dtype == dtypes.float0 for v in eqn.outvars):
            continue  # the tangent of a boolean or integer: never used
        g.equation = eqn
        try:
            out = _rule(eqn)(g, eqn, *[read(v) for v in eqn.invars])
            out = [out] if isinstance(out, np.ndarray) or not isinstance(out, list | tuple) else out
            for v, x in zip(eqn.outvars, out, strict=True):
                if tuple(x.shape) != v.aval.shape:
                    raise AssertionError(f"shape {x.shape} instead of {v.aval.shape}")
        except Unsupported as error:
            if getattr(error, "placed", False):
                raise
            raise placed(error, eqn) from None
        except Exception as error:
            _note(error, eqn)
            raise
        env.update(zip(eqn.outvars, out, strict=True))
    g.equation = around
    return [read(v) for v in jaxpr.outvars]


_OWN = os.path.dirname(os.path.dirname(__file__))
"""The directory of lanes, whose lines are not the user's."""


def _rule(eqn: Any) -> Rule:
    """The rule of an equation.

    Raises:
        Unsupported: there is none.
    """
    name = eqn.primitive.name
    if name in CALLBACKS:
        raise Unsupported(
            f"the primitive '{name}' (jax.debug.print and other callbacks) inside a loop, a branch "
            "or a function with derivatives of its own, where a kernel cannot call Python; make it "
            "outside of these, of values that they return"
        )
    if name not in RULES:
        raise Unsupported(f"the primitive '{name}'")
    return RULES[name]


INSIDE = {
    **dict.fromkeys(("jit", "pjit", "scan"), "jaxpr"),
    **dict.fromkeys(
        ("closed_call", "eval_jaxpr", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"
    ),
    "while": "body_jaxpr",
    "lanes": "key",
}
"""Primitives whose rules evaluate a jaxpr, in any case, and its parameter."""


def check(jaxpr: Any, seen: set[int] | None = None) -> None:
    """Look for primitives without a rule, before everything that precedes them is traced.

    Raises:
        Unsupported: there is one.
    """
    seen = set() if seen is None else seen
    if id(jaxpr) in seen:
        return
    seen.add(id(jaxpr))
    for eqn in jaxpr.eqns:
        if eqn.outvars and all(v.aval.dtype == dtypes.float0 for v in eqn.outvars):
            continue
        name = eqn.primitive.name
        try:
            _rule(eqn)
            body = eqn.params.get(INSIDE.get(name, ""))
            body = getattr(body, "closed", body)
            if body is not None:
                check(getattr(body, "jaxpr", body), seen)
        except Unsupported as error:
            if getattr(error, "placed", False):
                raise
            raise placed(error, eqn) from None


def evaluate_closed(g: Graph, closed: Any, args: Sequence[Value]) -> list[Value]:
    """Trace a closed jaxpr on values."""
    pairs = zip(closed.consts, closed.jaxpr.constvars, strict=True)
    return evaluate(g, closed.jaxpr, [constants(g, c, v.aval.dtype) for c, v in pairs], args)


def _note(error: Exception, eqn: Any) -> None:
    """Add to an internal error the primitive and the user's line; the innermost that tells it."""
    place = _place(eqn)
    if place and not hasattr(error, "__notes__"):
        error.add_note(f"at the primitive '{eqn.primitive.name}'{place}")


def _place(eqn: Any) -> str:
    """The user's line of an equation, if it tells one."""
    for frame in source_info_util.user_frames(eqn.source_info.traceback):
        if not frame.file_name.startswith(_OWN):
            return f", at {frame.file_name}:{frame.start_line}"
    return ""


START = "lanes cannot compile "


def placed(error: Unsupported, eqn: Any) -> Unsupported:
    """The error with the primitive's name, and the user's line as soon as an equation tells it.

    Those inside JAX's own functions tell none, but the calls of these do.
    """
    name, text = eqn.primitive.name, str(error)
    if not text.startswith(START):
        text = START + (text if f"'{name}'" in text else f"the primitive '{name}': {text}")
    place = _place(eqn)
    found = Unsupported(text + place)
    found.placed = place != ""  # pyright: ignore[reportAttributeAccessIssue]
    return found


def placed_in(error: Unsupported, closed: Any) -> Unsupported:
    """The error with the name and the first line of the function, if no equation tells a line."""
    text = str(error) if str(error).startswith(START) else START + str(error)
    function = closed.jaxpr.debug_info.func_src_info
    told = getattr(error, "placed", False) or not function or _OWN in function
    return Unsupported(text if told else f"{text}, in {function}")


def input_values(
    g: Graph, avals: Sequence[Any], batched: Sequence[bool], wanted: Sequence[int] | None = None
) -> list[Value]:
    """The values of a kernel's arguments; `wanted`: dependency bits of each, 0 for none."""
    values = []
    for k, (aval, b) in enumerate(zip(avals, batched, strict=True)):
        size = int(np.prod(aval.shape))
        buffer = Buffer("input", short_dtype(aval.dtype), size, k, batched=b)
        values.append(from_buffer(g, buffer, aval.shape, wanted[k] if wanted else 0))
    return values


def output(g: Graph, position: int, dtype: str, value: Value) -> None:
    """Make a value the kernel's result at a position."""
    if not isinstance(value, Stacked):
        buffer = Buffer("output", dtype, value.size, position)
        if value.size:
            g.outputs.append((buffer, list(value.reshape(-1))))
        return
    buffer = Buffer("output", dtype, value.size, position)
    width, start = value.size // value.shape[0], 0
    for length, row in value.pieces:
        _write_rows(g, buffer, row, length, start, width)
        start += length


def _write_rows(
    g: Graph, buffer: Buffer, row: Callable[[Node], Any], length: int, start: int, width: int
) -> None:
    def body(index: Node, carries: list[Node]) -> Any:
        nodes = np.asarray(row(index), object).reshape(-1)
        place = g.op("add", index, g.const(start, "i64"))
        place = g.op("mul", place, g.const(width, "i64"))
        g.effect("row", (place, *nodes), buffer.dtype, (buffer,))
        return [], []

    if length == 1:
        body(g.const(0, "i64"), [])
    else:
        g.loop(length, [], body)


def value_graph(closed: Any, batched: Sequence[bool], repeated: Iterable[int] = ()) -> Graph:
    """The graph that evaluates a closed jaxpr, in which `repeated` jaxprs may become routines."""
    check(closed.jaxpr)

    def write(g: Graph) -> None:
        g.repeated = frozenset(repeated)
        args = input_values(g, closed.in_avals, batched)
        values = evaluate_closed(g, closed, args)
        for k, (value, aval) in enumerate(zip(values, closed.out_avals, strict=True)):
            output(g, k, short_dtype(aval.dtype), value)

    return built(write)
