"""Tracing a jaxpr to the scalar graph: arrays of nodes, and a rule for each JAX primitive."""
