"""Tracing a jaxpr to the scalar graph: arrays of nodes, and a rule for each JAX primitive."""

from jaxmbd.lanes.trace import rules

__all__ = ["rules"]
