"""Coming back from designs whose loops cannot close: a closure margin is brought above zero.

An experiment's margin is that of the configurations in which it holds coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import minimize as scipy_minimize

from jaxmbd.analysis import closure_margin
from jaxmbd.design.problem import Ask, Problem
from jaxmbd.model import Mechanism
from jaxmbd.observe import Configuration, Sweep


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
        bounds=problem.box,
        options={"maxiter": 100, "ftol": 1e-16, "gtol": 1e-10},
    )
    return np.clip(found.x, *problem.limits)


_PLACES = 5


def closing_of(observe: Any) -> Closing | None:
    """The margins of a sweep at five places of its axis, or of a pose; None of anything else."""
    holds = isinstance(observe, Configuration) and not observe.settle
    if holds or isinstance(observe, Sweep):
        return Closing(partial(_margins, observe), hold=False)
    return None


def _margins(observe: Any, mech: Mechanism) -> Array:
    observe = observe.on(mech) if hasattr(observe, "on") else observe  # a corner's own
    moved = _some(observe.over) if isinstance(observe, Sweep) else {}

    def at(step: list[Array]) -> Array:
        return closure_margin(mech, {**observe.known, **dict(zip(moved, step, strict=True))})

    if not moved:
        return at([])[None]
    return jax.lax.map(at, [jnp.asarray(x, mech.dtype) for x in moved.values()])


def _some(over: Mapping[Any, Any]) -> dict[Any, np.ndarray]:
    """The moved coordinates at a few places of the axis, its ends among them."""
    values = {key: np.asarray(x) for key, x in over.items()}
    count = len(next(iter(values.values())))
    places = np.unique(np.linspace(0, count - 1, _PLACES).round().astype(int))
    return {key: x[places] for key, x in values.items()}
