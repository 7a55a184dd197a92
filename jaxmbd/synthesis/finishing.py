"""The end of a synthesis: a design with exactly closed loops is brought to a KKT point."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis import closure_margin
from jaxmbd.design import AtLeast, Between, Bounded, Optimum, minimize
from jaxmbd.model import Mechanism
from jaxmbd.synthesis.following import course, follow
from jaxmbd.synthesis.problem import Problem
from jaxmbd.synthesis.starts import follow_stations

_DESIGN, _STEPS = "design", "steps"


def finish(problem: Problem, z: Any, **options: Any) -> Optimum:
    """Minimise the squared errors of a linkage that is followed from its drawing, from designs z.

    The loops are closed by `assemble` at every position, each found from the one before, so that
    branch and circuit are those of the drawing. Constraints are those of the problem.

    Args:
        problem: the synthesis.
        z: unknowns (b, nz) of designs that work, or None: those that `minimize` chooses.
        **options: of `minimize`.

    Returns:
        `Optimum` over the unknowns "design" (scaled numbers, see `Problem.unknowns`) and, with free
        timing, "steps" [rad, m]; its objective is in units of the task's size squared.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.design import Within
        >>> from jaxmbd.synthesis import FunctionGeneration, Problem, finish, massless_four_bar
        >>> crank = np.linspace(0.0, 0.2, 3)
        >>> task = FunctionGeneration("A", crank, output="D", values=0.9 * crank)
        >>> found = finish(Problem(massless_four_bar(), task, {"points/C/*": Within(0.5)}), None)
        >>> found.status
        'optimal'
    """
    constraints: dict[str, Bounded] = {"transmission": AtLeast("transmission", 0.0)}
    if z is not None:
        options["starts"] = np.clip(np.atleast_2d(z), *problem.limits)
    if np.size(problem.margins(jnp.zeros(len(problem.limits[0])))):
        constraints["kept"] = AtLeast("kept", 0.0)
    if problem.least_margin is not None:
        constraints["dead_centre"] = AtLeast("dead_centre", problem.least_margin)
    return minimize(
        "error",
        None,
        _ranges(problem),
        observe=lambda values: outputs_of(problem, joined(values)),
        constraints=constraints,
        **options,
    )


def joined(values: Any) -> Array:
    """The unknowns z (nz,) of the values by name."""
    parts = [jnp.asarray(values[n]) for n in (_DESIGN, _STEPS) if n in values]
    return jnp.concatenate(parts)


def unknowns_of(problem: Problem, found: Optimum) -> np.ndarray:
    """The unknowns z (nz,) that `finish` found."""
    return np.array(list(found.values.values()))


def _ranges(problem: Problem) -> dict[str, Any]:
    low, high = problem.limits
    n = len(problem.unknowns)
    ranges: dict[str, Any] = {_DESIGN: Between(low[:n], high[:n], start=np.zeros(n), scale=1.0)}
    if not problem.timed:
        even = np.full(len(low) - n, problem.span / (len(low) - n + 1))
        ranges[_STEPS] = Between(low[n:], high[n:], start=even, scale=1.0)
    return ranges


def outputs_of(problem: Problem, z: Array) -> dict[str, Array]:
    """Squared error, and what must not be negative, of a linkage whose loops are closed."""
    mech = problem.mechanism(z)
    inputs = problem.inputs(z)
    found = follow(mech, problem.task.input, inputs[: problem.positions])
    whole = course(mech, problem.task.input, problem.reach(z))
    error = problem.squared_error(mech, found.q)
    closed = jnp.all(found.closed) & whole.closed
    kept = {"kept": problem.margins(z)}
    if problem.least_margin is not None:
        q = follow_stations(problem, mech, z).closest
        kept["dead_centre"] = _margins(problem, mech, inputs, q)
    return kept | {
        "error": jnp.where(closed, error, jnp.nan),
        "transmission": jnp.where(closed, whole.least - problem.least_transmission, jnp.nan),
    }


def _margins(problem: Problem, mech: Mechanism, inputs: Array, q: Array) -> Array:
    """Distances to the nearest dead centres [m] at all stations (n + k,)."""

    def at(x: Any) -> Array:
        return closure_margin(mech, {problem.task.input: x[0]}, guess=lax.stop_gradient(x[1]))

    return lax.map(at, (inputs, q))
