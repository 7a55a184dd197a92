"""Methods of integration: one a file, or a family of them; `chosen` finds one by name."""

import dataclasses
import math
from typing import Any

from jaxmbd.analysis.methods.adaptive import Adaptive
from jaxmbd.analysis.methods.corners import corners_of
from jaxmbd.analysis.methods.diffrax_solver import DiffraxSolver
from jaxmbd.analysis.methods.equal_steps import Cut
from jaxmbd.analysis.methods.events import Event, Occurrences, Record, Watch, checked_events
from jaxmbd.analysis.methods.fixed_steps import RK4, FixedSteps, SemiImplicitEuler
from jaxmbd.analysis.methods.generalized_alpha import GeneralizedAlpha
from jaxmbd.analysis.methods.method import Equations, Method, Step, normalise
from jaxmbd.analysis.methods.rosenbrock import Rodas
from jaxmbd.analysis.methods.runge_kutta import DormandPrince, DormandPrince8
from jaxmbd.analysis.methods.variational import Variational
from jaxmbd.numerics import tolerances

METHODS: dict[str, type[Method]] = {
    "rk4": RK4,
    "semi_implicit_euler": SemiImplicitEuler,
    "generalized_alpha": GeneralizedAlpha,
    "variational": Variational,
    "dormand_prince": DormandPrince,
    "dormand_prince_8": DormandPrince8,
    "rodas": Rodas,
}
"""Methods by the names that stand for them with their defaults."""


def chosen(method: Any, dtype: Any, rtol: Any = None, atol: Any = None) -> Method:
    """The method of that name, a given method, or one that takes a diffrax solver's steps.

    Tolerances that are not given are those of the floating-point type.

    Raises:
        ValueError: there is no such method, or the tolerances are not given to one that has them.
    """
    given = {k: x for k, x in (("rtol", rtol), ("atol", atol)) if x is not None}
    if given and isinstance(method, Method):
        raise ValueError(
            f"{', '.join(given)} beside method={method!r}: give the tolerances to the method"
        )
    for name, x in given.items():
        if isinstance(x, int | float) and not 0.0 < x < math.inf:
            raise ValueError(f"{name}={x}: give a positive number")
    if isinstance(method, str) and method in METHODS:
        method = METHODS[method]()
        if given and not isinstance(method, Adaptive):
            raise ValueError(f"{', '.join(given)} beside a method of fixed steps: dt= is its step")
    elif hasattr(method, "term_structure"):
        method = DiffraxSolver(method)
    if isinstance(method, Adaptive | DiffraxSolver):
        within = tolerances.integration(
            dtype, given.get("rtol", method.rtol), given.get("atol", method.atol)
        )
        return dataclasses.replace(method, rtol=within.rtol, atol=within.atol)
    if isinstance(method, Method):
        return method
    raise ValueError(
        f"method {method!r} is unknown; give one of {['auto', *METHODS]}, a method such as "
        "mbd.DormandPrince(rtol=1e-8), or a diffrax solver"
    )


def cut_at_events(method: Method) -> Adaptive:
    """The method in runs with events.

    Raises:
        ValueError: it cannot look for events.
    """
    if isinstance(method, Adaptive):
        return method
    if isinstance(method, FixedSteps):
        return Cut(method=method)
    given = getattr(method, "solver", method)
    raise ValueError(
        f"events= with method={given!r}, which cannot look for them: give 'dormand_prince', "
        "'rodas' for stiff systems, or a method of fixed steps, as 'rk4'"
    )


__all__ = [
    "METHODS",
    "RK4",
    "Adaptive",
    "Cut",
    "DiffraxSolver",
    "DormandPrince",
    "DormandPrince8",
    "Equations",
    "Event",
    "GeneralizedAlpha",
    "Method",
    "Occurrences",
    "Record",
    "Rodas",
    "SemiImplicitEuler",
    "Step",
    "Variational",
    "Watch",
    "checked_events",
    "chosen",
    "corners_of",
    "cut_at_events",
    "normalise",
]
