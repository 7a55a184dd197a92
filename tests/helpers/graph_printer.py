"""A graph as text, for reading and comparing."""

from __future__ import annotations

from collections.abc import Iterable

from jaxmbd.lanes.ir.graph import Graph, live_nodes
from jaxmbd.lanes.ir.nodes import Buffer, Loop, Node, Region
from jaxmbd.lanes.ir.table import reads


def text(graph: Graph, *, live: bool = True) -> str:
    """The nodes of a graph in order, loops indented; deterministic for a given function.

    Args:
        graph: the graph.
        live: leave out dead nodes.

    Returns:
        a line per node: ``%3: f64 = mul %0, 2.0``; a dot after the type marks values that are the
        same in all samples.
    """
    return "\n".join(_Printer(graph, live).lines)


class _Printer:
    """The text of one graph, and the names given so far."""

    def __init__(self, graph: Graph, live: bool):
        self.live = live_nodes(graph) if live else None
        self.lines: list[str] = []
        self.names: dict[Node, str] = {}
        self.buffers: dict[Buffer, str] = {}
        for title, region in (("once", graph.prologue), ("each", graph.base)):
            self.lines.append(f"{title}:")
            self._region(region, "  ")
        self.lines.append("results:")
        for buffer, row in graph.outputs:
            self.lines.append(f"  {self._buffer(buffer)} = {self._list(row)}")

    def _region(self, region: Region, indent: str) -> None:
        for n in region.nodes:
            if self.live is None or n in self.live:
                if n.op == "loop":
                    self._loop(n, indent)
                else:
                    self.lines.append(f"{indent}{self._define(n)} = {self._right(n)}")

    def _right(self, n: Node) -> str:
        words = [self._name(a) for a in reads(n)]
        if n.op in ("element", "entry", "load", "store", "accumulate"):
            buffer, offset = n.data
            words.insert(0, f"{self._buffer(buffer)}[{offset}]")
        elif n.op in ("clear", "row"):
            words.insert(0, self._buffer(n.data[0]))
        elif n.op == "result":
            words.append(str(n.data))
        return f"{n.op} {', '.join(words)}".rstrip()

    def _loop(self, n: Node, indent: str) -> None:
        loop: Loop = n.data
        kept = [
            k for k, p in enumerate(loop.params)
            if self.live is None or p in self.live or k == loop.going
        ]  # fmt: skip
        count = "while" if loop.count is None else f"{loop.count} times"
        if loop.times is not None:
            count = f"{self._name(loop.times)} of {count}"
        elif loop.going is not None and loop.count is not None:
            count = f"while, {count}"
        begins = [f"{self._define(loop.params[k])} = {self._name(loop.inits[k])}" for k in kept]
        head = f"{indent}{self._define(n)} = loop {count}, {self._define(loop.counter)}"
        self.lines.append(f"{head}, carrying ({', '.join(begins)}):")
        self._region(loop.body, indent + "  ")
        self.lines.append(f"{indent}  next ({self._list(loop.outs[k] for k in kept)})")

    def _define(self, n: Node) -> str:
        name = self.names.setdefault(n, f"%{len(self.names)}")
        return f"{name}: {n.dtype}{'.' if n.uniform else ''}"

    def _name(self, n: Node) -> str:
        return str(n.data) if n.constant else self.names.get(n, f"<{n.op}>")

    def _list(self, nodes: Iterable[Node]) -> str:
        return ", ".join(self._name(n) for n in nodes)

    def _buffer(self, buffer: Buffer) -> str:
        short = {"input": "in", "output": "out"}.get(buffer.kind)
        if short is not None:
            return f"{short}{buffer.position}"
        return self.buffers.setdefault(buffer, f"{buffer.kind}{len(self.buffers)}")
