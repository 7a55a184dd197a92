"""Graph of a mechanism: spanning tree, cut joints, loops, coordinate layout."""

from jaxmbd.graph.layout import Loop, Place, Topology, loops, neutral, topology

__all__ = ["Loop", "Place", "Topology", "loops", "neutral", "topology"]
