"""Rules that translate JAX primitives to scalar nodes; importing this fills `RULES`."""

from jaxmbd.lanes.trace.interpreter import RULES
from jaxmbd.lanes.trace.rules import (
    arithmetic,
    control,
    derivatives,
    factorisations,
    indexing,
    linear_algebra,
    orthogonal,
    random,
    scan,
    shapes,
    sorting,
)

__all__ = [
    "RULES", "arithmetic", "control", "derivatives", "factorisations", "indexing",
    "linear_algebra", "orthogonal", "random", "scan", "shapes", "sorting",
]  # fmt: skip
