"""The registry of rules for JAX primitives, and the jaxpr interpreter that applies them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import dtypes
from jax._src import source_info_util  # no public API for an equation's source line
from jax.extend import core

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Unsupported
from jaxmbd.lanes.trace.arrays import Value, constants

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
    for eqn in jaxpr.eqns:
        if eqn.outvars and all(v.aval.dtype == dtypes.float0 for v in eqn.outvars):
            continue  # the tangent of a boolean or integer: never used
        try:
            fn = RULES.get(eqn.primitive.name)
            if fn is None:
                raise Unsupported(f"the primitive '{eqn.primitive.name}'")
            out = fn(g, eqn, *[read(v) for v in eqn.invars])
        except Unsupported as error:
            if getattr(error, "placed", False):
                raise
            raise _placed(error, eqn) from None
        out = [out] if isinstance(out, np.ndarray) or not isinstance(out, list | tuple) else out
        for v, x in zip(eqn.outvars, out, strict=True):
            if tuple(x.shape) != v.aval.shape:
                raise AssertionError(f"{eqn.primitive.name}: {x.shape} instead of {v.aval.shape}")
            env[v] = x
    return [read(v) for v in jaxpr.outvars]


def evaluate_closed(g: Graph, closed: Any, args: Sequence[Value]) -> list[Value]:
    """Trace a closed jaxpr on values."""
    pairs = zip(closed.consts, closed.jaxpr.constvars, strict=True)
    return evaluate(g, closed.jaxpr, [constants(g, c, v.aval.dtype) for c, v in pairs], args)


def _placed(error: Unsupported, eqn: Any) -> Unsupported:
    name = eqn.primitive.name
    text = str(error)
    if f"'{name}'" not in text:
        text = f"the primitive '{name}': {text}"
    frame = source_info_util.user_frame(eqn.source_info.traceback)
    place = "" if frame is None else f", at {frame.file_name}:{frame.start_line}"
    placed = Unsupported(f"lanes cannot compile {text}{place}")
    placed.placed = True  # pyright: ignore[reportAttributeAccessIssue]
    return placed
