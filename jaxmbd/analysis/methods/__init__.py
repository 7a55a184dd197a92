"""Methods of integration: one a file, or a family of them; `chosen` finds one by name."""

from typing import Any

from jaxmbd.analysis.methods.adaptive import Adaptive
from jaxmbd.analysis.methods.diffrax_solver import DiffraxSolver
from jaxmbd.analysis.methods.fixed_steps import RK4, SemiImplicitEuler
from jaxmbd.analysis.methods.method import Equations, Method, Step, normalise
from jaxmbd.analysis.methods.rosenbrock import Rodas
from jaxmbd.analysis.methods.runge_kutta import DormandPrince

METHODS: dict[str, type[Method]] = {
    "rk4": RK4,
    "semi_implicit_euler": SemiImplicitEuler,
    "dormand_prince": DormandPrince,
    "rodas": Rodas,
}
"""Methods by the names that stand for them with their defaults."""


def chosen(method: Any, rtol: Any = None, atol: Any = None) -> Method:
    """The method of that name, a method as it is, or one that takes a diffrax solver's steps.

    Raises:
        ValueError: there is no such method, or the tolerances are not given to one that has them.
    """
    given = {k: x for k, x in (("rtol", rtol), ("atol", atol)) if x is not None}
    if isinstance(method, str) and method in METHODS:
        kind = METHODS[method]
        return kind(**given) if issubclass(kind, Adaptive) else kind()
    if isinstance(method, Method):
        if given:
            raise ValueError(
                f"{', '.join(given)} beside method={method!r}: give the tolerances to the method"
            )
        return method
    if hasattr(method, "term_structure"):
        return DiffraxSolver(method, **given)
    raise ValueError(
        f"method {method!r} is unknown; give one of {list(METHODS)}, a method such as "
        "mbd.DormandPrince(rtol=1e-8), or a diffrax solver"
    )


__all__ = [
    "METHODS",
    "RK4",
    "Adaptive",
    "DiffraxSolver",
    "DormandPrince",
    "Equations",
    "Method",
    "Rodas",
    "SemiImplicitEuler",
    "Step",
    "chosen",
    "normalise",
]
