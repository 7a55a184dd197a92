"""Fused multiply-adds: which product a sum is contracted with.

The rule looks at the expression alone, not at what else uses its parts, and LLVM may contract
nothing. So an expression that a kernel has twice gives the same bits both times. A reverse sweep
relies on it: it computes parts of a loop again, and with other rounding errors adaptive steps would
have other lengths.
"""

from __future__ import annotations

from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.nodes import Node
from jaxmbd.lanes.ir.table import root


def fuse(graph: Graph) -> None:
    """Make each sum and difference with a product of its own region ``±x y ± z``."""
    regions = [graph.prologue, graph.base]
    for region in regions:
        for n in region.nodes:
            if n.op == "loop":
                regions.append(n.data.body)
            elif n.op in ("add", "sub") and n.dtype[0] == "f":
                _fuse(n)


def _fuse(n: Node) -> None:
    a, b = map(root, n.args)
    if a is b:
        return  # x y − x y must be zero
    for product, addend in ((a, b), (b, a)):
        if product.op == "mul" and product.region is n.region:
            signs = (n.op == "sub" and x is b for x in (product, addend))
            n.op, n.args, n.data = "fma", (*product.args, addend), tuple(signs)
            return
