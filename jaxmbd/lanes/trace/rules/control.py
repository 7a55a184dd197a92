"""Calls, branches and loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from jax.extend import core

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Node, Write
from jaxmbd.lanes.ir.operation import Kind
from jaxmbd.lanes.ir.table import OPERATIONS
from jaxmbd.lanes.trace.arrays import (
    Stacked,
    Value,
    constants,
    elementwise,
    empty,
    from_buffer,
    in_memory,
    rows_of,
    scalars,
    short_dtype,
)
from jaxmbd.lanes.trace.registry import evaluate, evaluate_closed, rule

UNROLLED = 1
"""Scans of at most this many iterations are unrolled."""
RARELY = "lanes_rarely"
"""Name of the inner jit call by which `lanes.rarely` is recognised."""
SEGMENTED = 64
"""In reverse mode, longer scans become two nested loops, so that memory grows with √length."""
HELD = 256
"""Stacked results of at most this many elements are loaded after the scan, others on use."""


@rule("jit", "pjit", "closed_call", "core_call", "core_closed_call")
@rule("checkpoint", "remat", "remat2")
def _call(g: Graph, eqn: Any, *args: Value) -> list[Value]:
    """A call, evaluated once per region and operands if its nodes can all be shared."""
    body = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
    if not isinstance(body, core.ClosedJaxpr):
        return evaluate(g, body, [], args)
    if not all(isinstance(x, np.ndarray) for x in args):
        return evaluate_closed(g, body, args)
    place = (body, g.region, g.rare, *(n for x in args for n in x.reshape(-1)))
    known = g.calls.get(place)
    if known is None:
        first = len(g.region.nodes)
        known = evaluate_closed(g, body, args)
        if all(_computed(n) for n in g.region.nodes[first:]):
            g.calls[place] = known
    return known


def _computed(n: Node) -> bool:
    """Whether a node is only computed: no loop, memory access or derivative rule."""
    return OPERATIONS[n.op].kind is Kind.VALUE or n.op == "stop"


@rule("cond")
def _cond(g: Graph, eqn: Any, index: Value, *args: Value) -> list[Value]:
    """All branches are computed and one is selected, unless the index is a constant."""
    branches = eqn.params["branches"]
    which = scalars(g, index).item()
    if which.constant:
        chosen = min(max(int(which.data), 0), len(branches) - 1)
        return evaluate_closed(g, branches[chosen], args)
    results = [evaluate_closed(g, branch, args) for branch in branches]
    picked = results[-1]
    for k in range(len(branches) - 2, -1, -1):
        here = which if which.dtype == "i1" else g.op("le", which, g.const(k, which.dtype))
        if which.dtype == "i1":
            here = g.op("not", which)
        picked = [
            elementwise(g, lambda a, b, c=here: g.op("select", c, a, b), x, y)
            for x, y in zip(results[k], picked, strict=True)
        ]
    return picked


@rule("platform_index")
def _platform_index(g: Graph, eqn: Any, *args: Value) -> Value:
    """The branch of a `lax.platform_dependent`: the default or the CPU's, the last of these."""
    platforms = eqn.params["platforms"]
    chosen = [k for k, p in enumerate(platforms) if p is None or "cpu" in p]
    return constants(g, np.int32(chosen[-1] if chosen else len(platforms) - 1))


@rule("scan")
def _scan(g: Graph, eqn: Any, *args: Value) -> list[Value]:
    p = eqn.params
    return Scan(g, eqn, args, p["num_consts"], p["num_carry"]).run()


class Scan:
    """One scan: carries as loop-carried scalars, stacked results in memory."""

    def __init__(self, g: Graph, eqn: Any, args: Sequence[Value], consts: int, carry: int):
        p = eqn.params
        self.g, self.body, self.length, self.reverse = g, p["jaxpr"], p["length"], p["reverse"]
        self.consts = list(args[:consts])
        init = [scalars(g, x) for x in args[consts : consts + carry]]
        self.xs = list(args[consts + carry :])
        self.carry_shapes = [x.shape for x in init]
        self.init = [node for x in init for node in x.reshape(-1)]
        dtypes = [result_dtype_of(v) for v in self.body.jaxpr.outvars[:carry]]
        types = [t for t, x in zip(dtypes, init, strict=True) for _ in range(x.size)]
        self.init = [g.op("convert", x, dtype=t) for x, t in zip(self.init, types, strict=True)]
        self.ncarry = carry
        self.out_avals = [v.aval for v in eqn.outvars[carry:]]

    def run(self) -> list[Value]:
        """Its results: final carries, then stacked outputs."""
        if self.length <= UNROLLED:
            return self._unrolled()
        g = self.g
        self.xs = [self._indexable(x) for x in self.xs]
        self.stacks = [
            g.scratch(result_dtype_of(v), max(1, int(np.prod(v.aval.shape)) * self.length))
            for v in self.body.jaxpr.outvars[self.ncarry :]
        ]
        deps, stacked = self._dependencies() if g.active else (None, [0] * len(self.stacks))
        if g.active and self.length > SEGMENTED:
            carries = self._segmented(deps)
        else:
            carries = g.loop(self.length, self.init, self._trace(None), deps)
        stacks = [self._stacked(k, bits) for k, bits in enumerate(stacked)]
        return self._arrays(carries) + stacks

    def _segmented(self, deps: list[int] | None) -> list[Node]:
        g = self.g
        inner = _segment(self.length)
        outer, rest = divmod(self.length, inner)

        def segment(index: Node, carries: list[Node]) -> tuple[list[Node], list[Write]]:
            start = g.op("mul", index, g.const(inner, "i64"))
            return g.loop(inner, carries, self._trace(start), deps), []

        carries = g.loop(outer, self.init, segment, deps)
        if rest:
            start = g.const(outer * inner, "i64")
            carries = g.loop(rest, carries, self._trace(start), deps)
        return carries

    def _trace(self, start: Node | None) -> Any:
        g = self.g

        def body(index: Node, carries: list[Node]) -> tuple[list[Node], list[Write]]:
            if start is not None:
                index = g.op("add", index, start)
            if self.reverse:
                index = g.op("sub", g.const(self.length - 1, "i64"), index)
            out = self._step(self._arrays(carries), [_at(g, x, index) for x in self.xs])
            new = [n for x in out[: self.ncarry] for n in scalars(g, x).reshape(-1)]
            writes: list[Write] = []
            for buffer, y in zip(self.stacks, out[self.ncarry :], strict=True):
                nodes = scalars(g, y).reshape(-1)
                place = g.op("mul", index, g.const(nodes.size, "i64"))
                writes += [(buffer, place, k, node) for k, node in enumerate(nodes)]
            return new, writes

        return body

    def _step(self, carry: list[Value], xs: list[Value]) -> list[Value]:
        return evaluate_closed(self.g, self.body, [*self.consts, *carry, *xs])

    def _arrays(self, nodes: Sequence[Node]) -> list[Value]:
        return _shaped(nodes, self.carry_shapes)

    def _indexable(self, x: Value) -> Value:
        if isinstance(x, Stacked) or x.size == 0:
            return x
        return in_memory(self.g, x)

    def _stacked(self, k: int, deps: int) -> Value:
        aval, buffer = self.out_avals[k], self.stacks[k]
        if 0 in aval.shape:
            return empty(aval.shape)
        if buffer.dtype[0] != "f":
            deps = 0
        if int(np.prod(aval.shape)) <= HELD:
            return from_buffer(self.g, buffer, aval.shape, deps)
        return rows_of(self.g, buffer, aval.shape, deps)

    def _unrolled(self) -> list[Value]:
        g, carry, stacks = self.g, self._arrays(self.init), []
        order = range(self.length)
        for i in reversed(order) if self.reverse else order:
            xs = [_at(g, x, g.const(i, "i64")) for x in self.xs]
            out = self._step(carry, xs)
            carry = out[: self.ncarry]
            stacks.append([scalars(g, y) for y in out[self.ncarry :]])
        if self.reverse:
            stacks.reverse()
        ys = []
        for k, aval in enumerate(self.out_avals):
            rows = [s[k] for s in stacks]
            ys.append(np.stack(rows) if rows else empty(aval.shape))
        return [*carry, *ys]

    def _dependencies(self) -> tuple[list[int], list[int]]:
        """Dependency bits of each carry and stacked result, by fixed-point iteration."""
        known = [bits(self.g, x) for x in self.consts]
        stacked = [bits(self.g, x) for x in self.xs]
        state = [bits(self.g, x) for x in self._arrays(self.init)]
        while True:
            out = flow(self.body.jaxpr, [*known, *state, *stacked])
            new = [a | b for a, b in zip(state, out, strict=False)]
            if new == state:
                break
            state = new
        sizes = [int(np.prod(s)) for s in self.carry_shapes]
        carries = [b for b, n in zip(state, sizes, strict=True) for _ in range(n)]
        return carries, out[self.ncarry :]


def _segment(length: int) -> int:
    """Iterations of the inner loop: about √length, and a divisor of it if there is one nearby."""
    root = math.isqrt(length - 1) + 1
    near = [k for k in range(root // 2, 2 * root) if length % k == 0]
    return min(near, key=lambda k: abs(k - root)) if near else root


def _shaped(nodes: Sequence[Node], shapes: Sequence[tuple[int, ...]]) -> list[Value]:
    """A flat list of nodes as arrays of the given shapes."""
    out, k = [], 0
    for shape in shapes:
        x = empty(shape)
        x.reshape(-1)[:] = nodes[k : k + x.size]
        out.append(x)
        k += x.size
    return out


def bits(g: Graph, x: Value) -> int:
    """The dependency bits of an array."""
    if isinstance(x, Stacked):
        return g.active if x.dtype[0] == "f" else 0
    total = 0
    for n in x.reshape(-1):
        total |= n.deps
    return total


def flow(jaxpr: Any, bits: Sequence[int]) -> list[int]:
    """Dependency bits of each result from those of the inputs, per array."""
    env: dict[Any, int] = dict(zip(jaxpr.invars, bits, strict=True))

    def read(v: Any) -> int:
        return 0 if isinstance(v, core.Literal) else env.get(v, 0)

    for eqn in jaxpr.eqns:
        total = 0
        for v in eqn.invars:
            total |= read(v)
        for v in eqn.outvars:
            env[v] = total if str(v.aval.dtype).startswith("float") else 0
    return [read(v) for v in jaxpr.outvars]


def result_dtype_of(v: Any) -> str:
    """The graph's dtype of a jaxpr variable."""
    return short_dtype(v.aval.dtype)


def _at(g: Graph, x: Value, index: Node) -> Value:
    if isinstance(x, Stacked):
        return x.at(g, index)
    if x.size == 0:  # any index will do, and it need not be a constant
        return empty(x.shape[1:])
    return np.asarray(x[index.data], object)


@rule("while")
def _while(g: Graph, eqn: Any, *args: Value) -> list[Value]:
    """Each sample iterates until its own condition fails; finished ones keep their values."""
    p = eqn.params
    nc, nb = p["cond_nconsts"], p["body_nconsts"]
    cond_consts, body_consts = list(args[:nc]), list(args[nc : nc + nb])
    init = [scalars(g, x) for x in args[nc + nb :]]

    def arrays(nodes: Sequence[Node]) -> list[Value]:
        return _shaped(nodes, [x.shape for x in init])

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
        return [*flat, *flags, _any(g, flags)], []

    flags = list(first.reshape(-1))
    total = 0
    for x in args:
        total |= bits(g, x)
    deps = [total if n.dtype[0] == "f" else 0 for n in nodes]
    deps += [0] * (len(flags) + 1)
    out = g.loop(None, [*nodes, *flags, _any(g, flags)], body, deps)
    return arrays(out[: len(nodes)])


def _any(g: Graph, flags: Sequence[Node]) -> Node:
    result = g.const(False, "i1")
    for flag in flags:
        result = g.op("or", result, flag)
    return result
