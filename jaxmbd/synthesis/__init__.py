"""Synthesis of linkages: path, function and motion generation, planar and spatial.

A `Problem` is a linkage whose hardpoints may vary, a task (`PathGeneration`, `FunctionGeneration`,
`MotionGeneration`, with prescribed timing or free) and conditions: lengths of links, the least
transmission index, a full turn of the input. `synthesize` searches from many starts in step and
finishes the best; `defects` follows a linkage and says what is wrong with it.
"""

from jaxmbd.synthesis.following import Followed, Transmission, follow, transmission
from jaxmbd.synthesis.linkages import massless_four_bar, massless_rssr
from jaxmbd.synthesis.problem import (
    FunctionGeneration,
    MotionGeneration,
    PathGeneration,
    Problem,
    Task,
)
from jaxmbd.synthesis.synthesis import Defects, Synthesis, defects, finish, synthesize

__all__ = [
    "Defects",
    "Followed",
    "FunctionGeneration",
    "MotionGeneration",
    "PathGeneration",
    "Problem",
    "Synthesis",
    "Task",
    "Transmission",
    "defects",
    "finish",
    "follow",
    "massless_four_bar",
    "massless_rssr",
    "synthesize",
    "transmission",
]
