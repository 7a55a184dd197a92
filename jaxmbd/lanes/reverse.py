"""Reverse mode on the graph: a backward sweep over its nodes, with checkpointed loops.

A loop saves its carries at the start of each iteration. Its adjoint runs the iterations from last
to first: it traces the body again from the saved carries and sweeps back over it. Long loops are
split into two nested ones (see `trace.rules.scan`), so that memory grows with the square root of
their length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from jaxmbd.lanes.ir.graph import Graph, Recall, built
from jaxmbd.lanes.ir.nodes import Buffer, Loop, Node, Region, Unsupported
from jaxmbd.lanes.ir.table import OPERATIONS
from jaxmbd.lanes.trace.arrays import (
    Stacked,
    Value,
    empty,
    from_buffer,
    rows_of,
    scalars,
    short_dtype,
)
from jaxmbd.lanes.trace.interpreter import evaluate_closed, input_values, output, placed
from jaxmbd.lanes.trace.rules.derivatives import Custom, derivative_jaxpr, solve_arguments


class Sweep:
    """A backward sweep, with the cotangents accumulated so far.

    Attributes:
        mask: bits of `Node.deps` of the differentiated inputs.
        leaves: nodes at which the sweep stops; their cotangents are its results.
        cotangents: of leaves, and of nodes that the sweep has not reached yet.
        buffers: for each buffer, the buffer of its cotangents.
        ok: inside a guard, which samples have not failed; only those add to buffers.
    """

    def __init__(
        self,
        g: Graph,
        mask: int,
        leaves: Iterable[Node] = (),
        buffers: dict[Buffer, Buffer] | None = None,
        ok: Node | None = None,
    ):
        self.g, self.mask, self.leaves = g, mask, set(leaves)
        self.cotangents: dict[Node, Node] = {}
        self.buffers: dict[Buffer, Buffer] = {} if buffers is None else buffers
        self.ok = ok
        self._results: dict[Loop, dict[int, Node]] = {}
        self._calls: dict[Custom, dict[int, Node]] = {}

    def inner(self, leaves: Iterable[Node], mask: int | None = None) -> Sweep:
        """A sweep over part of the program that shares the cotangents of buffers."""
        return Sweep(self.g, self.mask if mask is None else mask, leaves, self.buffers, self.ok)

    # Cotangents

    def add(self, node: Node, ct: Node | None) -> None:
        """Add to a node's cotangent."""
        if ct is None or not node.deps & self.mask or node.dtype[0] != "f":
            return
        if ct.constant and ct.data == 0:
            return
        known = self.cotangents.get(node)
        self.cotangents[node] = ct if known is None else self.g.op("add", known, ct)

    def seed(self, out: Value, ct: Value) -> None:
        """Add the cotangent of a result."""
        g = self.g
        if isinstance(out, np.ndarray) and isinstance(ct, np.ndarray):
            for n, c in zip(out.reshape(-1), ct.reshape(-1), strict=True):
                self.add(n, c)
            return

        def row(value: Value, index: Node) -> Any:
            if isinstance(value, Stacked):
                return value.at(g, index).reshape(-1)
            return np.asarray(value[index.data], object).reshape(-1)

        start = 0
        lengths = [1] * out.shape[0]
        if isinstance(out, Stacked) and isinstance(ct, Stacked):
            lengths = [n for n, _ in out.pieces]
        for length in lengths:
            if length == 1:
                at = g.const(start, "i64")
                found = row(ct, at)
                if any(not c.constant or c.data != 0 for c in found):
                    for n, c in zip(row(out, at), found, strict=True):
                        self.add(n, c)
            else:
                self._seed_rows(
                    length, start, lambda at: zip(row(out, at), row(ct, at), strict=True)
                )
            start += length

    def _seed_rows(self, length: int, start: int, pairs: Any) -> None:
        g = self.g
        loop = g.open_loop(length, [], _no_trace)
        inner = self.inner(())
        for n, c in pairs(g.op("add", loop.counter, g.const(start, "i64"))):
            inner.add(n, c)
        inner.run(loop.body)
        self._close(loop, [], inner)

    def gradient(self, x: Value, position: int) -> Value:
        """The cotangents of the argument x, the kernel's at that position."""
        g = self.g
        if isinstance(x, np.ndarray):
            out, nodes = empty(x.shape), scalars(g, x)
            for place in np.ndindex(*x.shape):
                n = nodes[place]
                out[place] = self.cotangents.get(n, g.const(0.0, n.dtype))
            return out
        for source, target in self.buffers.items():
            if source.kind == "input" and source.position == position:
                return rows_of(g, target, x.shape)
        zero = g.const(0.0, x.dtype)
        return Stacked(
            x.shape, x.dtype, [(x.shape[0], lambda i: np.full(x.shape[1:], zero, object))]
        )

    def memory(self, buffer: Buffer) -> Buffer:
        """The buffer of a buffer's cotangents, set to zero at the start of its region."""
        found = self.buffers.get(buffer)
        if found is None:
            region = buffer.region or self.g.base
            found = Buffer("scratch", buffer.dtype, buffer.size, region=region)
            region.nodes.append(Node("clear", (), buffer.dtype, region, False, 0, (found,)))
            self.buffers[buffer] = found
        return found

    # The sweep

    def run(self, region: Region, first: int = 0, last: int | None = None) -> None:
        """Sweep the nodes of a region (from `first` to before `last`), last to first."""
        before, self.g.sweeping = self.g.sweeping, True
        self._run(region, first, last)
        self.g.sweeping = before

    def _run(self, region: Region, first: int, last: int | None) -> None:
        for n in reversed(region.nodes[first:last]):
            known = len(region.nodes)
            self._visit(n)
            if last is None and n.op in ("loop", "recall", "custom"):
                # Before what they depend on, which would be swept twice otherwise.
                self._late(region, known)
        if last is None:
            self._late(region, first)

    def _late(self, region: Region, first: int) -> None:
        """Sweep nodes that tracing loop bodies again has added to a region, from `first` on."""

        def waiting(n: Node) -> bool:
            here = n in self.cotangents and n not in self.leaves
            return here and n.op not in ("element", "param")

        while any(map(waiting, region.nodes[first:])):
            for n in reversed(region.nodes[first:]):
                if waiting(n):
                    self._visit(n)

    def _visit(self, n: Node) -> None:
        if n in self.leaves or n.op in ("element", "param"):
            return
        if n.op in ("loop", "recall"):
            self._loop(n)
        elif n.op == "store":
            if n.data[0] in self.buffers and n.args[1].deps & self.mask:
                target = self.buffers[n.data[0]]
                self.add(n.args[1], self.g.load(target, n.args[0], n.data[1]))
        elif n.op == "custom":
            self._custom(n)
        else:
            ct = self.cotangents.pop(n, None)
            if ct is None:
                return
            if n.op == "result":
                self._results.setdefault(n.args[0].data, {})[n.data] = ct
            elif n.op == "recalled":
                self._results.setdefault(n.data[0].data, {})[n.data[1]] = ct
            elif n.op == "load":
                buffer, offset = n.data
                if buffer.kind != "const":
                    if self.ok is not None:
                        ct = self.g.op("select", self.ok, ct, self.g.const(0.0, ct.dtype))
                    data = (self.memory(buffer), offset)
                    self.g.effect("accumulate", (n.args[0], ct), n.dtype, data)
            else:
                rule = OPERATIONS[n.op].partial
                if rule is None:
                    raise Unsupported(f"reverse mode through '{n.op}'")
                for arg, part in rule(self.g, n, ct):
                    self.add(arg, part)

    # Loops

    def _loop(self, node: Node) -> None:
        loop: Loop = node.data
        seeds = self._results.pop(loop, {})
        if not seeds and not any(buffer in self.buffers for buffer in _written(loop)):
            return
        if loop.count is None:
            error = Unsupported(
                "reverse mode through a while_loop, whose iterations are not counted "
                "(lanes.bounded_while has it)"
            )
            raise placed(error, loop.equation)
        g, before = self.g, (self.g.replay, self.g.recall, self.g.active)
        back = g.open_loop(loop.count, [], _no_trace, times=loop.reached)
        count = g.const(loop.count, "i64") if loop.reached is None else loop.reached
        index = g.op("sub", g.op("sub", count, g.const(1, "i64")), back.counter)
        place = index if loop.origin is None else g.op("add", loop.origin, index)
        carries = [
            g.load(b, place, 0, p.deps) for b, p in zip(loop.saves, loop.params, strict=False)
        ]
        # Loops inside a recalled loop have saved their last run only, so they run again.
        kept = Recall(back.body, index, iter(loop.inner)) if loop.inner else None
        g.replay, g.recall, g.active = back.body, kept, g.active | self.mask
        first = len(back.body.nodes)
        g.sweeping = False  # what the function asks for again
        outs, writes = loop.trace(index, carries)
        g.sweeping = True
        g.replay, g.recall, g.active = before
        inner = self.inner(carries)
        moving = [k for k, p in enumerate(loop.params) if p.dtype[0] == "f" and p.deps & self.mask]
        for k in moving:
            start = seeds.get(k, g.const(0.0, loop.params[k].dtype))
            inner.add(outs[k], g.carry(back, start))
        for buffer, place, offset, value in writes:
            if buffer in self.buffers and value.dtype[0] == "f":
                inner.add(value, g.load(self.buffers[buffer], place, offset))
        inner.run(back.body, first)
        news = [
            inner.cotangents.pop(carries[k], g.const(0.0, loop.params[k].dtype)) for k in moving
        ]
        going = None if loop.going is None else carries[loop.going]
        results = self._close(back, news, inner, going)
        for k, ct in zip(moving, results, strict=True):
            self.add(loop.inits[k], ct)

    def _close(
        self, loop: Loop, outs: list[Node], inner: Sweep, going: Node | None = None
    ) -> list[Node]:
        """End an adjoint loop, summing cotangents of outside nodes over its iterations.

        Samples that are not `going` contribute nothing, even if their cotangents are NaN.
        """
        g, outer = self.g, []
        outs = list(outs)
        count = len(outs)
        for node, ct in inner.cotangents.items():
            if node.region is loop.body:
                continue
            total = g.carry(loop, g.const(0.0, node.dtype))
            if going is not None:
                ct = g.op("select", going, ct, g.const(0.0, node.dtype))
            outs.append(g.op("add", total, ct))
            outer.append(node)
        results = g.close_loop(loop, outs)
        for node, ct in zip(outer, results[count:], strict=True):
            self.add(node, ct)
        return results[:count]

    # Functions with custom derivative rules

    def _custom(self, n: Node) -> None:
        call, k = n.data
        ct = self.cotangents.pop(n, None)
        if ct is not None:
            self._calls.setdefault(call, {})[k] = ct
        if k == call.first and call in self._calls:
            getattr(self, f"_{call.kind}")(call, self._calls.pop(call))

    def _pairs(self, call: Custom, cts: dict[int, Node]) -> list[np.ndarray]:
        """Cotangents of the floating-point results, as arrays."""
        arrays, k = [], 0
        for x, floating in zip(call.outs, call.float_outs, strict=True):
            y = empty(x.shape)
            for place in np.ndindex(*x.shape):
                zero = self.g.const(0.0, x[place].dtype) if floating else None
                y[place] = cts.get(k, zero)
                k += 1
            if floating:
                arrays.append(y)
        return arrays

    def _jvp(self, call: Custom, cts: dict[int, Node]) -> None:
        """Custom JVP: the rule's linear tangent map, transposed by a backward sweep."""
        g, rule = self.g, derivative_jaxpr(self.g, call)
        self._transpose(
            call.float_args,
            lambda n, bit: g.placeholder(n.dtype, bit),
            lambda n: g.const(0.0, n.dtype),
            lambda tangents: evaluate_closed(g, rule, [*call.args, *tangents]),
            self._pairs(call, cts),
        )

    def _transpose(
        self,
        args: Iterable[np.ndarray],
        holder: Callable[[Node, int], Node],
        still: Callable[[Node], Node],
        function: Callable[[list[Any]], list[Value]],
        cts: Iterable[Any],
    ) -> None:
        """Add the cotangents of `args` by a sweep over a function of them.

        Args:
            args: arrays of the nodes that receive cotangents.
            holder: what the function gets for them, given a bit for `Node.deps`: tangents without a
                value, if it is linear, or their values.
            still: what the function gets for nodes that are not differentiated.
            function: the function.
            cts: cotangents of its results.
        """
        g = self.g
        before, bit, first = g.active, g.new_bit(), len(g.region.nodes)
        arrays: list[Any] = []
        holders: list[tuple[Node, Node]] = []
        for x in args:
            y = empty(x.shape)
            for place in np.ndindex(*x.shape):
                n: Any = x[place]
                if n.deps & self.mask and n.dtype[0] == "f":
                    y[place] = holder(n, bit)
                    holders.append((y[place], n))
                else:
                    y[place] = still(n)
            arrays.append(y)
        g.active |= bit
        outs = function(arrays)
        g.active = before
        inner = self.inner([p for p, _ in holders], bit)
        for out, ct in zip(outs, cts, strict=True):
            inner.seed(out, ct)
        inner.run(g.region, first)
        for p, n in holders:
            self.add(n, inner.cotangents.get(p))

    def _vjp(self, call: Custom, cts: dict[int, Node]) -> None:
        """Custom VJP: the rule gives the cotangents of the arguments."""
        arrays = self._pairs(call, cts)
        back = evaluate_closed(self.g, derivative_jaxpr(self.g, call), [*call.args, *arrays])
        for x, c in zip(call.float_args, back, strict=True):
            self.seed(x, c)

    def _solve(self, call: Custom, cts: dict[int, Node]) -> None:
        """The solution of ``A x = b``: ``b̄ = A⁻ᵀ x̄``, and ``Ā`` by a sweep over ``−b̄ᵀ A x``."""
        g, jaxprs = self.g, call.eqn.params["jaxprs"]
        consts, b = solve_arguments(call.eqn, call.args)
        back = evaluate_closed(
            g, jaxprs.transpose_solve, [*consts.transpose_solve, *self._pairs(call, cts)]
        )
        for x, ct in zip(b, back, strict=True):
            self.seed(x, ct)
        self._transpose(
            consts.matvec,
            g.held,  # A need not be linear in the numbers that it consists of
            lambda n: n,
            lambda operator: evaluate_closed(g, jaxprs.matvec, [*operator, *call.outs]),
            [np.frompyfunc(lambda c: g.op("neg", c), 1, 1)(ct) for ct in back],
        )

    def _flag(self, call: Custom, cts: dict[int, Node]) -> None:
        """`flagged`: the identity from x to x; the tested operands get no cotangent."""
        for k, ct in cts.items():
            self.add(call.args[0].reshape(-1)[k], ct)

    def _guard(self, call: Custom, cts: dict[int, Node]) -> None:
        """`guarded`: a sweep over the call's nodes, with zero cotangents for failed samples."""
        g = self.g
        ok = g.const(True, "i1")
        for x in call.outs:
            for n in x.reshape(-1):
                if n.dtype[0] == "f":
                    finite = g.op("lt", g.op("abs", n), g.const(float("inf"), n.dtype))
                    ok = g.op("and", ok, finite)
        inner = self.inner(self.leaves)
        inner.ok = ok if self.ok is None else g.op("and", self.ok, ok)
        flat = [n for x in call.outs for n in x.reshape(-1)]
        for k, ct in cts.items():
            inner.add(flat[k], g.op("select", ok, ct, g.const(0.0, ct.dtype)))
        assert call.span is not None
        region, first, last = call.span
        inner.run(region, first, last)
        for buffer in _stored(region.nodes[first:last]):
            self.buffers.pop(buffer, None)  # or the outer sweep would count its cotangents again
        for n, ct in inner.cotangents.items():
            self.add(n, g.op("select", ok, ct, g.const(0.0, ct.dtype)))


def _stored(nodes: Iterable[Node]) -> Iterator[Buffer]:
    """The buffers that nodes and the loops among them write to."""
    for n in nodes:
        if n.op == "store":
            yield n.data[0]
        elif n.op == "loop":
            yield from _written(n.data)


def _written(loop: Loop) -> Iterator[Buffer]:
    """The buffers that a loop and those in it write to."""
    yield from loop.written
    yield from _stored(loop.body.nodes)


def _no_trace(index: Node, carries: list[Node]) -> Any:
    raise AssertionError("an adjoint loop is not differentiated again on the graph")


def pullback_graph(
    closed: Any, batched: Sequence[bool], wanted: Sequence[bool], given: Sequence[bool]
) -> Graph:
    """The graph of ``x, ȳ ↦ x̄``, for the arguments in `wanted` and the results in `given`."""
    return built(lambda g: _pull(g, closed, batched, wanted, given))


def _pull(
    g: Graph, closed: Any, batched: Sequence[bool], wanted: Sequence[bool], given: Sequence[bool]
) -> None:
    g.active = mask = g.new_bit()
    args = input_values(g, closed.in_avals, batched, [mask if w else 0 for w in wanted])
    outs = evaluate_closed(g, closed, args)
    g.active = 0
    sweep = Sweep(g, mask)
    position = len(args)
    for out, aval, is_given in zip(outs, closed.out_avals, given, strict=True):
        if is_given:
            size = int(np.prod(aval.shape))
            buffer = Buffer("input", short_dtype(aval.dtype), size, position)
            load = rows_of if isinstance(out, Stacked) else from_buffer
            sweep.seed(out, load(g, buffer, aval.shape))
            position += 1
    sweep.run(g.base)
    sweep.run(g.prologue)
    chosen = [k for k, w in enumerate(wanted) if w]
    for j, k in enumerate(chosen):
        output(g, j, short_dtype(closed.in_avals[k].dtype), sweep.gradient(args[k], k))


def inner_pullback(
    g: Graph, closed: Any, args: Sequence[Value], pullback: Any, cotangents: Sequence[Value]
) -> list[Value]:
    """The same within a graph under construction, for a VJP inside a traced function."""
    wanted, given = pullback
    before, mask, region = g.active, g.new_bit(), g.region
    g.active |= mask
    first = len(region.nodes)
    marked, leaves = [], []
    for x, w in zip(args, wanted, strict=True):
        x = scalars(g, x).copy() if w else x
        if w:
            for place in np.ndindex(*x.shape):
                n = x[place]
                x[place] = Node("mark", (n,), n.dtype, region, n.uniform, mask)
            leaves += list(x.reshape(-1))
            region.nodes.extend(x.reshape(-1))
        marked.append(x)
    outs = evaluate_closed(g, closed, marked)
    g.active = before
    sweep = Sweep(g, mask, leaves)
    seeds = iter(cotangents)
    for out, is_given in zip(outs, given, strict=True):
        if is_given:
            sweep.seed(out, next(seeds))
    sweep.run(region, first)
    return [sweep.gradient(x, -1) for x, w in zip(marked, wanted, strict=True) if w]
