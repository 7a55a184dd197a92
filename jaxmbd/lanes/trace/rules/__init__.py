"""Rules that translate JAX primitives to scalar nodes; importing this fills `RULES`."""

from jaxmbd.lanes.trace.registry import RULES
from jaxmbd.lanes.trace.rules import (
    arithmetic,
    callbacks,
    contraction,
    control,
    derivatives,
    indexing,
    linear,
    scan,
    shapes,
)

__all__ = [
    "RULES", "arithmetic", "callbacks", "contraction", "control", "derivatives", "indexing",
    "linear", "scan", "shapes",
]  # fmt: skip
