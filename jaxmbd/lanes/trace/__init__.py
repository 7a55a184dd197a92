"""From a function's jaxpr to its graph: arrays of nodes, and a rule for each JAX primitive."""
