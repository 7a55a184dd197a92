"""Graph of a mechanism: spanning tree, cut joints, coordinate layout."""

from jaxmbd.graph.layout import Place, Topology, neutral, topology

__all__ = ["Place", "Topology", "neutral", "topology"]
