"""Loops of the kernel as basic blocks: what they need from outside, carries, a latch, results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxmbd.lanes.codegen.llvm_text import LLVM
from jaxmbd.lanes.ir.nodes import Loop, Node, reads

if TYPE_CHECKING:
    from jaxmbd.lanes.codegen.emit import Emitter


def captured(e: Emitter, loop: Loop) -> list[Node]:
    """Live nodes from outside that a loop's body uses."""
    found = e.captured.get(loop)
    if found is None:
        found = []
        for n in loop.body.nodes:
            if n not in e.live:
                continue
            found.extend(reads(n))
            if n.op == "loop":
                found.extend(captured(e, n.data))
        found.extend(n for n, p in zip(loop.outs, loop.params, strict=True) if p in e.live)
        found = e.captured[loop] = [n for n in dict.fromkeys(found) if n.region is not loop.body]
    return found


def write(e: Emitter, loop: Loop) -> None:
    """A loop as basic blocks: phi nodes for live carries, a latch, an exit."""
    t = e.text
    e.times[loop.body] = e.passes(loop.body.parent) * (loop.count or 1)
    head, latch, after = (t.label(x) for x in ("head", "latch", "exit"))
    kept = [k for k, p in enumerate(loop.params) if p in e.live and loop.outs[k] is not p]
    for k, p in enumerate(loop.params):
        if p in e.live and loop.outs[k] is p:
            e.define(p, e.operand(loop.inits[k], True))
    before = t.block
    inits = {k: e.operand(loop.inits[k], True) for k in kept}
    t.line(f"br label %{head}")
    t.open(head)
    counter, following = t.name(), t.name()
    t.line(f"{counter} = phi i64 [0, %{before}], [{following}, %{latch}]")
    place = len(t.lines)
    for k in kept:
        e.names[loop.params[k], True] = t.name()
        if e.width == 1:
            e.names[loop.params[k], False] = e.names[loop.params[k], True]
    e.define(loop.counter, counter)
    for k in kept:
        if loop.params[k] in e.inverted:
            e.define(loop.params[k], e.names[loop.params[k], True])
    e.region(loop.body, [loop.outs[k] for k in kept])
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
    for k in kept:
        p, ty = loop.params[k], t.vector(LLVM[loop.params[k].dtype])
        out = e.operand(loop.outs[k], True)
        phis.append(f"  {e.names[p, True]} = phi {ty} [{inits[k]}, %{before}], [{out}, %{latch}]")
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
