"""Graph of a mechanism: spanning tree, cut joints, loops, coordinate layout."""

from jaxmbd.graph.independent_loops import Loop, loops
from jaxmbd.graph.layout import Place, Topology, neutral, topology

__all__ = ["Loop", "Place", "Topology", "loops", "neutral", "topology"]
