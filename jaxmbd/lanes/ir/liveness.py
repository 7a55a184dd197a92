"""Liveness: the nodes that the results depend on."""

from __future__ import annotations

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Buffer, Node, Region
from jaxmbd.lanes.ir.table import WRITERS, reads


def live_nodes(graph: Graph) -> set[Node]:
    """The nodes that the outputs depend on, through loop carries and memory too."""
    writers: dict[Buffer, list[Node]] = {}
    loop_of: dict[Node, tuple[Node, int]] = {}
    owner: dict[Region, Node] = {}
    for region in (graph.prologue, graph.base):
        _index(region, writers, loop_of, owner)
    live: set[Node] = set()
    read: set[Buffer] = {b for b in writers if b.kind == "output"}
    todo = [n for _, row in graph.outputs for n in row]
    todo += [n for b in read for n in writers[b]]
    while todo:
        n = todo.pop()
        if n.constant or n in live:
            continue
        live.add(n)
        if n.region in owner:  # a live node keeps its loop alive
            todo.append(owner[n.region])
        if n.op == "result":
            todo += [n.args[0], n.args[0].data.params[n.data]]
        elif n.op == "param":
            node, k = loop_of.get(n, (None, -1))
            if node is not None and k >= 0:
                todo += [node.data.outs[k], node.data.inits[k]]
        elif n.op == "loop":
            if n.data.count is None:
                todo.append(n.data.params[-1])
        else:
            todo.extend(reads(n))
            if n.op == "load" and n.data[0] not in read:
                read.add(n.data[0])
                todo.extend(writers.get(n.data[0], ()))
    return live


def _index(
    region: Region,
    writers: dict[Buffer, list[Node]],
    loop_of: dict[Node, tuple[Node, int]],
    owner: dict[Region, Node],
) -> None:
    for n in region.nodes:
        if n.op in WRITERS:
            writers.setdefault(n.data[0], []).append(n)
        elif n.op == "loop":
            owner[n.data.body] = n
            loop_of[n.data.counter] = (n, -1)
            loop_of.update({p: (n, k) for k, p in enumerate(n.data.params)})
            _index(n.data.body, writers, loop_of, owner)
