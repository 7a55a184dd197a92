"""Synthesis of linkages: path, function and motion generation, planar and spatial.

A `Problem` is a linkage whose hardpoints may vary, a task (`PathGeneration`, `FunctionGeneration`,
`MotionGeneration`, with prescribed timing or free) and conditions: lengths of links, the least
transmission index, a full turn of the input. `synthesize` searches from many starts in step and
finishes the best; `defects` follows a linkage and says what is wrong with it.
"""

from jaxmbd.synthesis.curves import (
    Centrodes,
    Dyads,
    burmester_curve,
    burmester_points,
    centrodes,
    cognates,
)
from jaxmbd.synthesis.following import Followed, Transmission, follow, transmission
from jaxmbd.synthesis.linkages import (
    massless_five_ss,
    massless_four_bar,
    massless_geared_five_bar,
    massless_inverted_slider_crank,
    massless_linkage,
    massless_rssp,
    massless_rssr,
    massless_six_bar,
    massless_slider_crank,
    massless_spherical_four_bar,
)
from jaxmbd.synthesis.problem import Problem
from jaxmbd.synthesis.synthesis import Defects, Synthesis, defects, finish, synthesize
from jaxmbd.synthesis.tasks import (
    FunctionGeneration,
    Mixed,
    MotionGeneration,
    ObservableGeneration,
    PathGeneration,
    StraightLine,
    Task,
    VelocityGeneration,
    dwell,
)

__all__ = [
    "Centrodes",
    "Defects",
    "Dyads",
    "Followed",
    "FunctionGeneration",
    "Mixed",
    "MotionGeneration",
    "ObservableGeneration",
    "PathGeneration",
    "Problem",
    "StraightLine",
    "Synthesis",
    "Task",
    "Transmission",
    "VelocityGeneration",
    "burmester_curve",
    "burmester_points",
    "centrodes",
    "cognates",
    "defects",
    "dwell",
    "finish",
    "follow",
    "massless_five_ss",
    "massless_four_bar",
    "massless_geared_five_bar",
    "massless_inverted_slider_crank",
    "massless_linkage",
    "massless_rssp",
    "massless_rssr",
    "massless_six_bar",
    "massless_slider_crank",
    "massless_spherical_four_bar",
    "synthesize",
    "transmission",
]
