"""Loops as basic blocks: a header with phi nodes, the body, a latch, an exit.

A loop that no sample begins is skipped, and one of zero iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxmbd.lanes.codegen.writer import Writer
from jaxmbd.lanes.ir.nodes import Loop, Node

SELDOM = '!0 = !{!"branch_weights", i32 1, i32 1000}'
"""The odds of a rare loop, so that what is spilled for it is spilled on the way into it."""

STOP_WORD = "lanes_stop_word"
"""The host's function that returns the address of a word; while it is odd, long loops end."""
LONG = 256
"""Iterations from which a loop is long."""


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
            w.define(p, w.operand(init, not p.uniform))
    word = _stop_word(w, loop)
    skipped = t.block
    starts = {p: w.operand(init, not p.uniform) for p, init, _ in kept}
    if _skippable(loop):
        some = _begins(w, loop)
        start, odds = t.label("start"), ", !prof !0" if loop.body.rare else ""
        t.line(f"br i1 {some}, label %{start}, label %{after}{odds}")
        t.open(start)
        t.line(f"br label %{head}")
    else:
        t.line(f"br label %{head}")
    before = t.block
    t.open(head)
    counter, following = t.name(), t.name()
    t.line(f"{counter} = phi i64 [0, %{before}], [{following}, %{latch}]")
    place, names = len(t.lines), {p: t.name() for p, _, _ in kept}
    with w.scope():
        w.define(loop.counter, counter)
        for p, name in names.items():
            w.define(p, name)
        body([out for _, _, out in kept])
        ends = {p: w.operand(out, not p.uniform) for p, _, out in kept}
        going_on = "" if loop.going is None else w.operand(loop.outs[loop.going], True)
    t.line(f"br label %{latch}")
    t.open(latch)
    t.line(f"{following} = add i64 {counter}, 1")
    more = "" if loop.going is None else _any(w, going_on)
    if loop.count is not None:
        most = loop.count if loop.times is None else w.operand(loop.times, False)
        within = t.let(f"icmp slt i64 {following}, {most}")
        more = t.let(f"and i1 {more}, {within}") if more else within
        if word:
            stop = t.let(f"trunc i64 {t.let(f'load volatile i64, ptr {word}')} to i1")
            more = t.let(f"select i1 {stop}, i1 false, i1 {more}")
    t.line(f"br i1 {more}, label %{head}, label %{after}")
    end = t.block
    t.open(after)
    phis = []
    for p, _, _ in kept:
        ty = w.type_of(p)
        pair = f"[{starts[p]}, %{before}], [{ends[p]}, %{latch}]"
        phis.append(f"  {names[p]} = phi {ty} {pair}")
    t.lines[place:place] = phis
    _results(w, loop, (skipped, starts), (end, ends))


def _results(
    w: Writer, loop: Loop, first: tuple[str, dict[Node, str]], last: tuple[str, dict[Node, str]]
) -> None:
    """Name the results: the initial values if the loop is skipped, else the last ones."""
    region = loop.body.parent
    assert region is not None
    found: list[tuple[Node, str]] = []
    for n in region.nodes:
        if n.op == "result" and n.args[0].data is loop and n in w.uses.live:
            p = loop.params[n.data]
            if p not in last[1]:
                name = ""
            elif _skippable(loop):
                ty = w.type_of(n)
                pairs = (f"[{names[p]}, %{block}]" for block, names in (first, last))
                name = w.text.let(f"phi {ty} {', '.join(pairs)}")
            else:
                name = last[1][p]
            found.append((n, name))
    for n, name in found:  # after the phi nodes, as it may write instructions
        w.define(n, name or w.operand(loop.inits[n.data], not n.uniform))


def _skippable(loop: Loop) -> bool:
    """Whether a loop may have no iteration."""
    return loop.going is not None or loop.times is not None


def _begins(w: Writer, loop: Loop) -> str:
    """Whether there is a first iteration."""
    if loop.going is not None:
        return _any(w, w.operand(loop.inits[loop.going], True))
    assert loop.times is not None
    return w.text.let(f"icmp sgt i64 {w.operand(loop.times, False)}, 0")


def _any(w: Writer, mask: str) -> str:
    if w.width == 1:
        return mask
    return w.text.let(f"call i1 @llvm.vector.reduce.or.v{w.width}i1(<{w.width} x i1> {mask})")


def _stop_word(w: Writer, loop: Loop) -> str:
    """The address of the word that ends a long loop of the host, else nothing."""
    if w.gpu or loop.count is None or loop.count < LONG:
        return ""
    w.text.declared.add(f"declare ptr @{STOP_WORD}()")
    return w.text.let(f"call ptr @{STOP_WORD}()")
