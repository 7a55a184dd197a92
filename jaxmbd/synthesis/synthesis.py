"""`synthesize`: a linkage for a task, from many starts in step; `finish`: to a KKT point."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis import closure_margin
from jaxmbd.design import AtLeast, Between, Bounded, Optimum, minimize
from jaxmbd.model import Mechanism
from jaxmbd.synthesis.defect_report import Defects, defects
from jaxmbd.synthesis.following import course, follow
from jaxmbd.synthesis.problem import Problem
from jaxmbd.synthesis.search import (
    courses,
    follow_stations,
    least_index,
    random_starts,
    search_simultaneously,
    walk_all,
)

_CLOSED = 1e-4
"""Largest error of closure, in units of the task's size, that the finish is left to remove."""
_REACHED = 0.01
_NONE = 1e-5
_SAME = 1e-9
_DESIGN, _STEPS = "design", "steps"


@dataclass(frozen=True)
class Synthesis:
    """What `synthesize` found; printed as a report.

    Attributes:
        mechanism: the linkage, drawn at the first position.
        values: name to number in SI units.
        inputs: the input at each position, from the first (n,) [rad, m].
        error: squared errors at the positions, summed [m², rad²].
        kkt: residual of the Karush-Kuhn-Tucker conditions, relative to the gradient at the start
            from which the search came.
        defects: of order, branch, circuit and rotation, found by following the linkage.
        errors: what each start ended with, as `error`; NaN where it ended with no linkage that
            closes, keeps its conditions and is without defect (s,).
        candidates: unknowns that each start ended with (s, nz).
        seconds: wall time of the search from all starts, and of the finish.
        optimum: of the finish.

    Example:
        >>> from dataclasses import fields
        >>> from jaxmbd.synthesis import Synthesis
        >>> [field.name for field in fields(Synthesis)][:3]
        ['mechanism', 'values', 'inputs']
    """

    mechanism: Any
    values: dict[str, float]
    inputs: np.ndarray
    error: float
    kkt: float
    defects: Defects
    errors: np.ndarray
    candidates: np.ndarray
    seconds: tuple[float, float]
    optimum: Optimum
    problem: Problem = field(repr=False)

    @property
    def root_mean_square(self) -> float:
        """Of the errors at the positions [m, rad]."""
        return float(np.sqrt(self.error / self.problem.positions))

    @property
    def working(self) -> float:
        """Share of the starts that ended with a linkage without defect."""
        return float(np.mean(np.isfinite(self.errors)))

    def reached(self, error: float | None = None) -> float:
        """Share of the starts that ended within 1 % of an error; by default of the best one.

        Less than 1e-5 of the task's size (root mean square) counts as no error.
        """
        none = self.problem.positions * (_NONE * self.problem.task.size) ** 2
        goal = (self.error if error is None else error) * (1.0 + _REACHED) + none
        return float(np.mean(np.nan_to_num(self.errors, nan=np.inf) <= goal))

    def __str__(self) -> str:
        at = ", ".join(f"{x:.5g}" for x in self.inputs)
        rows = [f"  {name} = {x:.8g}" for name, x in self.values.items()]
        return "\n".join(
            [
                f"synthesis: error {self.root_mean_square:.4g} (root mean square of "
                f"{self.problem.positions} positions), KKT residual {self.kkt:.1e}",
                str(self.defects),
                f"{len(self.errors)} starts in {self.seconds[0]:.1f} s: "
                f"{100 * self.working:.0f} % end with a linkage without defect, "
                f"{100 * self.reached():.0f} % with the best; finished in {self.seconds[1]:.1f} s",
                f"inputs: {at}",
                *rows,
            ]
        )


def synthesize(
    problem: Problem, *, starts: int = 256, seed: int = 0, steps: int = 30, finishes: int = 8
) -> Synthesis:
    """Find a linkage for a task.

    Random drawings within the limits are improved together, drawing and configurations as unknowns
    (`search_simultaneously`). Every result is then followed from its drawing along its input: one
    that does not close everywhere, comes to other points than in the search (another circuit or
    branch), or does not keep its conditions, is put aside. The best, and the best of the drawings
    that the search began with, are finished with closed loops by `jaxmbd.minimize`, to a point that
    satisfies the Karush-Kuhn-Tucker conditions: where open loops have led the search astray, as for
    paths that no such linkage can come near, the drawings themselves lead further.

    Args:
        problem: the linkage, its task and its conditions.
        starts: how many.
        seed: of the starts; the same seed gives the same result.
        steps: of the search, for each of its weights.
        finishes: how many of the best of either are finished, at most.

    Raises:
        ValueError: no linkage without defect was found.

    Example:
        A four-bar whose coupler point passes through four points (see `examples`):

        >>> from jaxmbd.design import Within
        >>> from jaxmbd.synthesis import PathGeneration, Problem, massless_four_bar, synthesize
        >>> path = [[1.0, 3.0], [1.4, 3.1], [1.8, 3.1], [2.2, 3.0]]
        >>> task = PathGeneration("A", body="coupler", point="P", targets=path)
        >>> problem = Problem(massless_four_bar(), task, {"points/*": Within(2.0)})
        >>> found = synthesize(problem, starts=4)
        >>> found.root_mean_square < 1e-6, found.defects.sound
        (True, True)
    """
    began = time.monotonic()
    first = random_starts(problem, starts, seed=seed)
    found = search_simultaneously(problem, first, steps=steps)
    walked = walk_all(problem, found.z)
    good = (found.closure < _CLOSED) & (found.margin > -_CLOSED) & (np.asarray(walked.open) == 0)
    same = np.abs(walked.error - found.error) <= 1e-2 * found.error + _CLOSED**2
    good &= same & (least_index(walked) >= problem.least_transmission - _CLOSED)
    unit = problem.task.size**2
    near = np.where(good, walked.error * unit, np.nan)  # the finish mends the rest of the course
    whole = courses(problem, found.z)
    kept = np.min(whole.least, axis=1) >= problem.least_transmission - _CLOSED
    errors = np.where(whole.closed & kept, near, np.nan)
    searched = time.monotonic() - began
    begun = [k for k in range(starts) if first.walked.open[k] == 0][:finishes]
    if not good.any() and not begun:
        raise ValueError(
            f"none of {starts} starts ended with a linkage without defect: "
            f"{int(np.sum(found.closure < _CLOSED))} close, {int(np.sum(walked.open == 0))} can be "
            "followed through all positions. Give wider limits, more starts, or conditions that "
            "can be met"
        )
    began = time.monotonic()
    ends = _distinct(found.z, near, finishes)
    pool = np.concatenate([found.z[ends], first.z[begun]])
    k, end, found_defects = _finished(problem, pool)
    origin = first.z[[*ends, *begun][k]]
    z = np.array(list(end.values.values()))
    return Synthesis(
        mechanism=problem.mechanism(z),
        values=problem.values(z),
        inputs=_inputs(problem, z),
        error=end.objective * unit,
        kkt=end.kkt * _gradient_ratio(end, pool[k], origin),
        defects=found_defects,
        errors=errors,
        candidates=found.z,
        seconds=(searched, time.monotonic() - began),
        optimum=end,
        problem=problem,
    )


def _finished(problem: Problem, z: np.ndarray) -> tuple[int, Optimum, Defects]:
    """The best of some designs (b, nz), once finished, that has no defect; and which it was."""
    end = finish(problem, z)
    ends = np.where(np.isfinite(end.objectives), end.objectives, np.inf)
    # Of those that differ by rounding only, the first: it comes from the search, well converged.
    tied = ends <= np.min(ends) * (1.0 + _SAME) + _SAME**2
    for i in np.lexsort([np.where(tied, -np.inf, ends)]):
        if not np.isfinite(ends[i]):
            break
        at = end.designs[i]
        found = defects(
            problem.mechanism(at),
            problem.task,
            _inputs(problem, at),
            least_transmission=problem.least_transmission,
            full_turn=problem.full_turn,
        )
        if found.sound:
            if i != np.argmin(ends):  # the optimum of all is that of another design
                end = finish(problem, z[[i]])
            return int(i), end, found
    raise ValueError(
        "no linkage keeps its conditions and is without defect once its loops are closed; loosen "
        "the conditions, or ask for more starts or finishes"
    )


def _inputs(problem: Problem, z: np.ndarray) -> np.ndarray:
    return np.asarray(problem.inputs(jnp.asarray(z)))[: problem.positions]


def _distinct(z: np.ndarray, errors: np.ndarray, most: int) -> list[int]:
    """The best few that are not the same drawing."""
    chosen: list[int] = []
    for k in np.argsort(errors):
        if len(chosen) == most or not np.isfinite(errors[k]):
            break
        if all(np.max(np.abs(z[k] - z[j])) > 1e-3 for j in chosen):
            chosen.append(int(k))
    return chosen


def _gradient_ratio(end: Optimum, z: np.ndarray, start: np.ndarray) -> float:
    """Largest derivative of the objective at z over that at a start; 1 if that does not close."""
    points = map(end.problem.point, end.problem.evaluation.unknowns.vector([z, start]))
    here, there = (np.max(np.abs(end.problem.objective(x)[1])) for x in points)
    ratio = float(here / there)
    return ratio if np.isfinite(ratio) else 1.0


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
        observe=lambda values: outputs_of(problem, _joined(values)),
        constraints=constraints,
        **options,
    )


def _joined(values: Any) -> Array:
    """The unknowns z (nz,) of the values by name."""
    parts = [jnp.asarray(values[n]) for n in (_DESIGN, _STEPS) if n in values]
    return jnp.concatenate(parts)


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
