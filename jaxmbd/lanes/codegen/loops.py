"""Loops of the kernel as basic blocks: what they need from outside, carries, a latch, results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxmbd.lanes.codegen.llvm_text import LLVM
from jaxmbd.lanes.codegen.writer import Writer
from jaxmbd.lanes.ir.nodes import Loop, Node


def write(w: Writer, loop: Loop, body: Callable[[Sequence[Node]], None]) -> None:
    """A loop as basic blocks: phi nodes for live carries, a latch, an exit.

    Args:
        w: what it is written with.
        loop: the loop, of which what it needs from outside is known.
        body: writes the loop's body, with the nodes that it is given.
    """
    t = w.text
    head, latch, after = (t.label(x) for x in ("head", "latch", "exit"))
    kept = [k for k, p in enumerate(loop.params) if p in w.uses.live and loop.outs[k] is not p]
    for k, p in enumerate(loop.params):
        if p in w.uses.live and loop.outs[k] is p:
            w.define(p, w.operand(loop.inits[k], True))
    before = t.block
    inits = {k: w.operand(loop.inits[k], True) for k in kept}
    t.line(f"br label %{head}")
    t.open(head)
    counter, following = t.name(), t.name()
    t.line(f"{counter} = phi i64 [0, %{before}], [{following}, %{latch}]")
    place = len(t.lines)
    for k in kept:
        w.names[loop.params[k], True] = t.name()
        if w.width == 1:
            w.names[loop.params[k], False] = w.names[loop.params[k], True]
    w.define(loop.counter, counter)
    for k in kept:
        if loop.params[k] in w.uses.inverted:
            w.define(loop.params[k], w.names[loop.params[k], True])
    body([loop.outs[k] for k in kept])
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
    for k in kept:
        p, ty = loop.params[k], t.vector(LLVM[loop.params[k].dtype])
        out = w.operand(loop.outs[k], True)
        phis.append(f"  {w.names[p, True]} = phi {ty} [{inits[k]}, %{before}], [{out}, %{latch}]")
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
