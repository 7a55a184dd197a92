"""Rules that translate JAX primitives to scalar nodes; importing this fills `RULES`."""

from jaxmbd.lanes.trace.registry import RULES
from jaxmbd.lanes.trace.rules import (
    arithmetic,
    contraction,
    control,
    derivatives,
    indexing,
    linear,
    scan,
    shapes,
)

__all__ = [
    "RULES", "arithmetic", "contraction", "control", "derivatives", "indexing",
    "linear", "scan", "shapes",
]  # fmt: skip
