"""How each JAX primitive becomes scalar nodes; importing this fills `RULES`."""

from jaxmbd.lanes.rules import (
    arithmetic,
    contraction,
    control,
    derivatives,
    indexing,
    linear,
    nested,
    shapes,
)
from jaxmbd.lanes.rules.registry import RULES

__all__ = [
    "RULES", "arithmetic", "contraction", "control", "derivatives", "indexing", "linear", "nested",
    "shapes",
]  # fmt: skip
