"""Loops of the kernel as basic blocks: what they need from outside, carries, a latch, results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxmbd.lanes.codegen.llvm_text import LLVM
from jaxmbd.lanes.ir.nodes import Loop, Node, reads

if TYPE_CHECKING:
    from jaxmbd.lanes.codegen.emit import Emitter


def carried(e: Emitter, loop: Loop) -> list[tuple[Node, Node, Node]]:
    """The carries that the results need: each one's value in a pass, before and after it.

    Of the others nothing may be asked: what they begin with need not exist.
    """
    whole = zip(loop.params, loop.inits, loop.outs, strict=True)
    return [carry for carry in whole if carry[0] in e.live]


def captured(e: Emitter, loop: Loop) -> list[Node]:
    """Live nodes from outside that a loop's body uses."""
    found = e.captured.get(loop)
    if found is None:
        found = []
        for n in loop.body.nodes:
            if n not in e.live:
                continue
            if n.op == "loop":
                found.extend(init for _, init, _ in carried(e, n.data))
                found.extend(captured(e, n.data))
            else:
                found.extend(reads(n))
        found.extend(out for _, _, out in carried(e, loop))
        found = e.captured[loop] = [n for n in dict.fromkeys(found) if n.region is not loop.body]
    return found


def write(e: Emitter, loop: Loop) -> None:
    """A loop as basic blocks: phi nodes for live carries, a latch, an exit."""
    t = e.text
    e.times[loop.body] = e.passes(loop.body.parent) * (loop.count or 1)
    head, latch, after = (t.label(x) for x in ("head", "latch", "exit"))
    kept = [carry for carry in carried(e, loop) if carry[2] is not carry[0]]
    for p, init, out in carried(e, loop):
        if out is p:
            e.define(p, e.operand(init, True))
    before = t.block
    starts = [e.operand(init, True) for _, init, _ in kept]
    t.line(f"br label %{head}")
    t.open(head)
    counter, following = t.name(), t.name()
    t.line(f"{counter} = phi i64 [0, %{before}], [{following}, %{latch}]")
    place = len(t.lines)
    for p, _, _ in kept:
        e.names[p, True] = t.name()
        if e.width == 1:
            e.names[p, False] = e.names[p, True]
    e.define(loop.counter, counter)
    for p, _, _ in kept:
        if p in e.inverted:
            e.define(p, e.names[p, True])
    e.region(loop.body, [out for _, _, out in kept])
    t.line(f"br label %{latch}")
    t.open(latch)
    t.line(f"{following} = add i64 {counter}, 1")
    if loop.count is None:
        more = _any(e, e.operand(loop.outs[-1], True))
    else:
        more = t.let(f"icmp slt i64 {following}, {loop.count}")
    t.line(f"br i1 {more}, label %{head}, label %{after}")
    t.open(after)
    phis = []
    for (p, _, out), start in zip(kept, starts, strict=True):
        ty, last = t.vector(LLVM[p.dtype]), e.operand(out, True)
        phis.append(f"  {e.names[p, True]} = phi {ty} [{start}, %{before}], [{last}, %{latch}]")
    t.lines[place:place] = phis
    _results(e, loop)


def _results(e: Emitter, loop: Loop) -> None:
    region = loop.body.parent
    assert region is not None
    for n in region.nodes:
        if n.op == "result" and n.args[0].data is loop and n in e.live:
            out = loop.outs[n.data]
            if out is loop.params[n.data]:
                out = loop.inits[n.data]
            e.define(n, e.operand(out, True))


def _any(e: Emitter, mask: str) -> str:
    if e.width == 1:
        return mask
    return e.text.let(f"call i1 @llvm.vector.reduce.or.v{e.width}i1(<{e.width} x i1> {mask})")
