"""Loops as basic blocks: a header with phi nodes, the body, a latch, an exit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxmbd.lanes.codegen.llvm_text import LLVM
from jaxmbd.lanes.codegen.writer import Writer
from jaxmbd.lanes.ir.nodes import Loop, Node


def write(w: Writer, loop: Loop, body: Callable[[Sequence[Node]], None]) -> None:
    """Write a loop as basic blocks, with phi nodes for the live carries that change.

    Args:
        w: the writer.
        loop: the loop; initial carries and captured values must have been computed.
        body: writes the loop's body so that it computes the given nodes.
    """
    t = w.text
    head, latch, after = (t.label(x) for x in ("head", "latch", "exit"))
    kept = [carry for carry in w.uses.carried(loop) if carry[2] is not carry[0]]
    for p, init, out in w.uses.carried(loop):
        if out is p:
            w.define(p, w.operand(init, True))
    before = t.block
    starts = [w.operand(init, True) for _, init, _ in kept]
    t.line(f"br label %{head}")
    t.open(head)
    counter, following = t.name(), t.name()
    t.line(f"{counter} = phi i64 [0, %{before}], [{following}, %{latch}]")
    place = len(t.lines)
    for p, _, _ in kept:
        w.names[p, True] = t.name()
        if w.width == 1:
            w.names[p, False] = w.names[p, True]
    w.define(loop.counter, counter)
    for p, _, _ in kept:
        if p in w.uses.inverted:
            w.define(p, w.names[p, True])
    body([out for _, _, out in kept])
    t.line(f"br label %{latch}")
    t.open(latch)
    t.line(f"{following} = add i64 {counter}, 1")
    if loop.count is None:
        more = _any(w, w.operand(loop.outs[-1], True))
    else:
        more = t.let(f"icmp slt i64 {following}, {loop.count}")
    t.line(f"br i1 {more}, label %{head}, label %{after}")
    t.open(after)
    phis = []
    for (p, _, out), start in zip(kept, starts, strict=True):
        ty, last = t.vector(LLVM[p.dtype]), w.operand(out, True)
        phis.append(f"  {w.names[p, True]} = phi {ty} [{start}, %{before}], [{last}, %{latch}]")
    t.lines[place:place] = phis
    _results(w, loop)


def _results(w: Writer, loop: Loop) -> None:
    region = loop.body.parent
    assert region is not None
    for n in region.nodes:
        if n.op == "result" and n.args[0].data is loop and n in w.uses.live:
            out = loop.outs[n.data]
            if out is loop.params[n.data]:
                out = loop.inits[n.data]
            w.define(n, w.operand(out, True))


def _any(w: Writer, mask: str) -> str:
    if w.width == 1:
        return mask
    return w.text.let(f"call i1 @llvm.vector.reduce.or.v{w.width}i1(<{w.width} x i1> {mask})")
