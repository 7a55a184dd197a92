"""Functions that a program calls several times, compiled once: routines.

A function that `jax.jit` has traced is one jaxpr wherever it is called. If it is long and nothing
is differentiated through it, its code is a function of the kernel, and what differs between the
calls is passed in memory; else it is evaluated in place. Constant operands are part of a routine,
as are equal ones, so that it has no more operations than the function evaluated in place.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend import core

from jaxmbd.lanes.ir.graph import Graph, live_nodes
from jaxmbd.lanes.ir.nodes import Buffer, Node, Routine
from jaxmbd.lanes.trace.arrays import Value, empty, scalars, short_dtype
from jaxmbd.lanes.trace.content import inner_jaxprs
from jaxmbd.lanes.trace.interpreter import evaluate_closed

LARGE = 1_000_000
"""Fewest elements of all arrays of a program with routines, zeros among them. A routine saves
compiling, but what is passed in memory costs time in each call: a sixth of the speed of a chain of
24 bodies with three loops (440 000), whose values mostly stay in the first cache, one percent of a
biped's with 31 bodies and 30 rows (1 900 000)."""
LONG = 2000
"""Fewest operations of a routine."""
PROMISING = LONG
"""Fewest elements of all arrays of a function, zeros among them, that may have so many."""
MOST = 4096
"""Most elements of an array that is passed to a routine."""
UNIFORM = 0.25
"""Largest share of operands that are the same in all samples: a routine computes what depends on
these alone for every vector of samples again."""


def repeated(closed: Any, *, inside: bool = False) -> list[int]:
    """The ids of long jaxprs that a large program or a routine calls from several places."""
    counts: Counter[int] = Counter()
    sizes: dict[int, int] = {}

    def size(jaxpr: Any) -> int:
        if id(jaxpr) not in sizes:
            sizes[id(jaxpr)] = sum(map(work, jaxpr.eqns))
        return sizes[id(jaxpr)]

    def work(eqn: Any) -> int:
        inner = list(inner_jaxprs(eqn))
        if eqn.primitive.name in ("jit", "pjit"):
            counts.update(map(id, inner))
        results = sum(math.prod(v.aval.shape) for v in eqn.outvars)
        if eqn.primitive.name == "dot_general":
            (along, _), _ = eqn.params["dimension_numbers"]
            results *= math.prod(eqn.invars[0].aval.shape[k] for k in along)
        return results + sum(map(size, inner))

    if not inside and size(closed.jaxpr) < LARGE:
        return []
    size(closed.jaxpr)
    return [k for k, n in counts.items() if n > 1 and sizes[k] >= PROMISING]


def needed(jaxpr: Any, results: Sequence[bool] | None = None) -> set[Any]:
    """The variables that results depend on, all of them by default; calls are looked into."""
    found = {
        v for k, v in enumerate(jaxpr.outvars)
        if not isinstance(v, core.Literal) and (results is None or results[k])
    }  # fmt: skip
    for eqn in reversed(jaxpr.eqns):
        wanted = [v in found for v in eqn.outvars]
        if eqn.effects or any(wanted):
            read = eqn.invars
            if eqn.primitive.name in ("jit", "pjit"):
                (inner,) = inner_jaxprs(eqn)
                used = needed(inner, wanted)
                read = [v for v, x in zip(read, inner.invars, strict=True) if x in used]
            found.update(v for v in read if not isinstance(v, core.Literal))
    return found


def routine_call(g: Graph, body: Any, args: Sequence[Value]) -> list[Value] | None:
    """The results of a function as a routine; None if it is to be evaluated in place."""
    if id(body.jaxpr) not in g.repeated or g.active or not all(map(_countable, args)):
        return None
    used = needed(body.jaxpr)
    args = [
        scalars(g, x) if v in used else np.full(x.shape, g.const(0, short_dtype(v.aval.dtype)))
        for v, x in zip(body.jaxpr.invars, args, strict=True)
    ]
    nodes = [n for x in args for n in x.reshape(-1)]
    moving = list(dict.fromkeys(n for n in nodes if not n.constant))
    if any(n.deps for n in moving) or sum(n.uniform for n in moving) > UNIFORM * len(moving):
        return None
    place = {n: k for k, n in enumerate(moving)}
    origins = _origins(moving)
    types = ((n.dtype, origin) for n, origin in zip(moving, origins, strict=True))
    key = (id(body.jaxpr), *(place.get(n, n) for n in nodes), *types)
    if key not in g.routines:
        g.routines[key] = _made(g, body, args, moving, origins)
    made = g.routines[key]
    if made is None:
        return None
    routine, inputs, values = made
    outer = dict(zip(inputs, moving, strict=True))
    found = g.call(routine, [outer[p] for p in routine.params])
    outer.update(zip(routine.results, found, strict=True))
    return [_replaced(x, outer) for x in values]


Made = tuple[Routine, list[Node], list[Value]]
"""A routine, the nodes of all varying operands, used or not, and the values of its function."""


Origin = tuple[int, int, Routine] | None
"""Of an operand that a routine has returned: which of the calls, which result of what routine."""


def _origins(nodes: Sequence[Node]) -> list[Origin]:
    calls: dict[Node, int] = {}
    return [
        (calls.setdefault(n.args[0], len(calls)), n.data, n.args[0].data.routine)
        if n.op == "returned"
        else None
        for n in nodes
    ]


def _made(
    g: Graph, body: Any, args: Sequence[Value], moving: Sequence[Node], origins: Sequence[Origin]
) -> Made | None:
    """The routine of a function; None if it is short."""
    inner = g.inside(repeated(body, inside=True))
    inputs = [Node("param", (), n.dtype, inner.base, False, 0) for n in moving]
    given = dict(zip(moving, inputs, strict=True))
    values = evaluate_closed(inner, body, [_replaced(x, given) for x in args])
    if not all(map(_countable, values)):
        return None
    values = [scalars(inner, x) for x in values]
    out = dict.fromkeys(n for x in values for n in x.reshape(-1) if not n.constant)
    results = [n for n in out if n not in set(inputs)]
    found = Buffer("scratch", "f64", len(results))
    inner.outputs = [(found, results)]
    live = live_nodes(inner)
    g.built += inner.built
    if len(live) < LONG:
        return None
    params = {p: origin for p, origin in zip(inputs, origins, strict=True) if p in live}
    own = Buffer("scratch", "f64", 0)
    given = {-1: own}
    places = []
    for origin in params.values():
        call, index, routine = origin or (-1, own.size, None)
        if routine is None:
            own.size += 1
        else:
            given.setdefault(call, Buffer("scratch", "f64", routine.found.size))
        places.append((list(given).index(call), index))
    routine = Routine(inner, list(params), list(given.values()), places, results, found)
    return routine, inputs, values


def _countable(x: Value) -> bool:
    return isinstance(x, np.ndarray) or x.size <= MOST


def _replaced(x: Value, by: dict[Node, Node]) -> Value:
    """An array with nodes replaced by others."""
    new = empty(x.shape)
    new.reshape(-1)[:] = [by.get(n, n) for n in x.reshape(-1)]
    return new
