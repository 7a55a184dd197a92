"""Coming back from designs whose loops cannot close: a closure margin is brought above zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize as scipy_minimize

from jaxmbd.design.problem import Problem

Ask = Callable[[Any], Any]


@dataclass(frozen=True)
class Closing:
    """How far the loops of a design are from not closing, and how far they should be.

    Attributes:
        margin: function of the mechanism: one or more signed distances [m], positive where the
            loops close, negative by as much as they are open, with a derivative on both sides
            (`jaxmbd.closure_margin`, or one's own: a Grashof condition, a reach).
        reserve: the margin that a design must keep [m].
        hold: whether it is a constraint of the search too, which then can follow the edge where the
            loops just close; otherwise it only leads back from starts beyond.

    Example:
        >>> from jaxmbd.design import Closing
        >>> Closing(lambda linkage: linkage["coupler"] - linkage["crank"]).reserve
        0.0001
    """

    margin: Callable[[Any], Any]
    reserve: float = 1e-4
    hold: bool = True


def restored(problem: Problem, closing: Closing, x: np.ndarray, ask: Ask) -> np.ndarray:
    """A design near x whose margins are at least the reserve, or the nearest to that.

    Minimises ``Σ min(0, margin − 2 reserve)²`` within the limits, by L-BFGS-B.
    """
    low, high = problem.limits
    wanted = 2.0 * closing.reserve
    row, _ = ask(("margin", x))
    size = float(np.max(np.abs(np.nan_to_num(np.minimum(row - wanted, 0.0))), initial=0.0)) or 1.0

    def missing(x: np.ndarray) -> tuple[float, np.ndarray]:
        row, slope = ask(("margin", x.copy()))
        short = np.minimum(row - wanted, 0.0) / size
        if not (np.all(np.isfinite(short)) and np.all(np.isfinite(slope))):
            return 1e6, np.zeros_like(x)
        return float(short @ short), 2.0 * short @ slope / size

    found = scipy_minimize(
        missing,
        x,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"maxiter": 100, "ftol": 1e-16, "gtol": 1e-10},
    )
    return np.clip(found.x, low, high)
