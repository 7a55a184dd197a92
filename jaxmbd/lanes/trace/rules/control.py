"""Calls, branches and while loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from jax.extend import core

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Node, Unsupported, Write
from jaxmbd.lanes.trace.arrays import Value, bits, constants, elementwise, empty, scalars, shaped
from jaxmbd.lanes.trace.interpreter import evaluate, evaluate_closed, rule
from jaxmbd.lanes.trace.jaxprs import BOUNDED, GOING, expanded, is_choice
from jaxmbd.lanes.trace.routines import routine_call

SKIPPED = 1024
"""Most elements of a result of an iteration that is skipped where no sample needs it."""
RARELY = "lanes_rarely"
"""Name of the inner jit call by which `lanes.rarely` is recognised."""


@rule("jit", "pjit", "closed_call", "core_call", "core_closed_call", "eval_jaxpr")
@rule("checkpoint", "remat", "remat2")
def _call(g: Graph, eqn: Any, *args: Value) -> list[Value]:
    """A call, in place or as a routine; what equals a call before it in the region is known."""
    body = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
    if not isinstance(body, core.ClosedJaxpr):
        return evaluate(g, body, [], args)
    place = _place(g, body, args)
    if place in g.calls:
        return g.calls[place]
    found = routine_call(g, body, args)
    found = evaluate_closed(g, body, args) if found is None else found
    if place is not None:
        g.calls[place] = found
    return found


def _place(g: Graph, body: Any, args: Sequence[Value]) -> Any:
    """What the results of a call depend on; None where equal calls are not shared.

    A reverse sweep needs all of them, and what runs rarely keeps its nodes to itself.
    """
    if g.active or g.rare is not None or not all(isinstance(x, np.ndarray) for x in args):
        return None
    return (g.region, body, *(n for x in args for n in x.reshape(-1)))


@rule("call_hi_primitive")
def _composed(g: Graph, eqn: Any, *args: Value) -> list[Value]:
    if any(np.issubdtype(v.aval.dtype, np.floating) for v in eqn.outvars):
        raise Unsupported("by its parts, as it may have derivatives of its own")
    return evaluate_closed(g, expanded(eqn), args)


@rule("cond")
def _cond(g: Graph, eqn: Any, index: Value, *args: Value) -> list[Value]:
    """All branches are computed and one is selected, unless the index is a constant."""
    branches = eqn.params["branches"]
    which = scalars(g, index).item()
    if which.constant:
        chosen = min(max(int(which.data), 0), len(branches) - 1)
        return evaluate_closed(g, branches[chosen], args)
    if is_choice(eqn, BOUNDED):
        if ends_early(g):
            return evaluate_closed(g, branches[1], args)  # the loop ends where it is not needed
        small = all(math.prod(v.aval.shape) <= SKIPPED for v in eqn.outvars)
        if small and not g.active:
            return _skipped(g, branches, which, args)
    last = len(branches) - 1
    # The adjoint of a bounded loop masks what flows to values from outside it.
    inside = g.region.depth if is_choice(eqn, GOING) and ends_early(g) else 0
    # Whether the branch is one of the first k + 1.
    until = [
        g.op("not", which) if which.dtype == "i1" else g.op("le", which, g.const(k, which.dtype))
        for k in range(last)
    ]
    picked: list[Value] = []
    for k in range(last, -1, -1):
        after = [g.op("not", until[k - 1])] if k > 0 else []
        here = after if k == last else [until[k], *after]
        result = evaluate_closed(g, branches[k], [taken(g, here, x, inside) for x in args])
        picked = result if k == last else [
            elementwise(g, lambda a, b, c=until[k]: g.op("select", c, a, b), x, y)
            for x, y in zip(result, picked, strict=True)
        ]  # fmt: skip
    return picked


def _skipped(g: Graph, branches: Any, which: Node, args: Sequence[Value]) -> list[Value]:
    """The second branch, run only if a sample takes it: a loop of one iteration, or none."""
    needed = which if which.dtype == "i1" else g.op("lt", g.const(0, which.dtype), which)
    others = [scalars(g, x) for x in evaluate_closed(g, branches[0], args)]
    flat = [n for x in others for n in x.reshape(-1)]

    def body(index: Node, carries: list[Node]) -> tuple[list[Node], list[Write]]:
        with g.rarely(g.region):
            new = evaluate_closed(g, branches[1], args)
        found = [scalars(g, x).reshape(-1) for x in new]
        nodes = [n for x in found for n in x]
        kept = [g.op("select", needed, n, x) for n, x in zip(nodes, carries[:-1], strict=True)]
        return [*kept, g.const(False, "i1")], []

    out = g.loop(1, [*flat, needed], body, until=True)
    return shaped(out[:-1], [x.shape for x in others])


def ends_early(g: Graph) -> bool:
    """Whether the nodes under construction are an iteration that some sample needs."""
    if not g.open or g.open[-1].body is not g.region:
        return False
    return g.open[-1].going is not None or g.open[-1].times is not None


def taken(g: Graph, here: Sequence[Node], x: Value, depth: int = 0) -> Value:
    """An argument of a branch, to which cotangents flow back only where the branch is taken.

    Values from regions of less depth are left as they are, and what is computed from them alone can
    move out of a loop.
    """
    if not here or not bits(g, x) & g.active:
        return x
    where = here[0] if len(here) == 1 else g.op("and", *here)

    def masked(n: Node) -> Node:
        if not n.deps & g.active or n.region is None or n.region.depth < depth:
            return n
        return g.op("taken", n, where, dtype=n.dtype)

    return elementwise(g, masked, x)


@rule("platform_index")
def _platform_index(g: Graph, eqn: Any, *args: Value) -> Value:
    """The branch of a `lax.platform_dependent`: the default or the CPU's, the last of these."""
    platforms = eqn.params["platforms"]
    chosen = [k for k, p in enumerate(platforms) if p is None or "cpu" in p]
    return constants(g, np.int32(chosen[-1] if chosen else len(platforms) - 1))


@rule("while")
def _while(g: Graph, eqn: Any, *args: Value) -> list[Value]:
    """Each sample iterates until its own condition fails; finished ones keep their values."""
    p = eqn.params
    nc, nb = p["cond_nconsts"], p["body_nconsts"]
    cond_consts, body_consts = list(args[:nc]), list(args[nc : nc + nb])
    init = [scalars(g, x) for x in args[nc + nb :]]

    def arrays(nodes: Sequence[Node]) -> list[Value]:
        return shaped(nodes, [x.shape for x in init])

    def going(state: list[Value]) -> np.ndarray:
        out = evaluate_closed(g, p["cond_jaxpr"], [*cond_consts, *state])
        return scalars(g, out[0])

    nodes = [n for x in init for n in x.reshape(-1)]
    first = going(arrays(nodes))

    rare = any(e.params.get("name") == RARELY for e in p["body_jaxpr"].jaxpr.eqns)

    def body(index: Node, carries: list[Node]) -> tuple[list[Node], list[Write]]:
        with g.rarely(g.region) if rare else nullcontext():
            return iteration(carries)

    # A while loop batched by `jax.vmap` has one condition per entry of its leading axes.
    def iteration(carries: list[Node]) -> tuple[list[Node], list[Write]]:
        state = arrays(carries[: len(nodes)])
        active = empty(first.shape)
        active.reshape(-1)[:] = carries[len(nodes) : -1]
        new = evaluate_closed(g, p["body_jaxpr"], [*body_consts, *state])
        choose = np.frompyfunc(lambda a, n, old: g.op("select", a, n, old), 3, 1)
        kept: list[Value] = []
        for n, old in zip(new, state, strict=True):
            mask = active.reshape(active.shape + (1,) * (old.ndim - active.ndim))
            kept.append(np.asarray(choose(mask, scalars(g, n), old), object))
        still = np.frompyfunc(lambda a, b: g.op("and", a, b), 2, 1)(active, going(kept))
        flags = list(np.asarray(still, object).reshape(-1))
        flat = [n for x in kept for n in scalars(g, x).reshape(-1)]
        return [*flat, *flags, any_of(g, flags)], []

    flags = list(first.reshape(-1))
    total = 0
    for x in args:
        total |= bits(g, x)
    deps = [total if n.dtype[0] == "f" else 0 for n in nodes]
    deps += [0] * (len(flags) + 1)
    out = g.loop(None, [*nodes, *flags, any_of(g, flags)], body, deps, until=True)
    return arrays(out[: len(nodes)])


def any_of(g: Graph, flags: Sequence[Node]) -> Node:
    """Whether any of some booleans holds."""
    result = g.const(False, "i1")
    for flag in flags:
        result = g.op("or", result, flag)
    return result
