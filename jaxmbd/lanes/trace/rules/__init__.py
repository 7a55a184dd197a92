"""Rules that translate JAX primitives to scalar nodes; importing this fills `RULES`."""

from jaxmbd.lanes.trace.interpreter import RULES
from jaxmbd.lanes.trace.rules import (
    arithmetic,
    control,
    derivatives,
    indexing,
    linear_algebra,
    random,
    scan,
    shapes,
)

__all__ = [
    "RULES", "arithmetic", "control", "derivatives", "indexing",
    "linear_algebra", "random", "scan", "shapes",
]  # fmt: skip
