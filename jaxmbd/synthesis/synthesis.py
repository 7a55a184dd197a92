"""`synthesize`: a linkage for a task, from many starts in step, finished to a KKT point."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbd.design import Optimum, Point
from jaxmbd.synthesis.defect_report import Defects, defects
from jaxmbd.synthesis.finishing import finish, unknowns_of
from jaxmbd.synthesis.problem import Problem
from jaxmbd.synthesis.simultaneous import search_simultaneously
from jaxmbd.synthesis.starts import courses, random_starts, walk_all

_CLOSED = 1e-4
"""Largest error of closure, in units of the task's size, that the finish is left to remove."""
_REACHED = 0.01
_NONE = 1e-5
_SAME = 1e-9


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
    good &= same & _one_branch(problem, walked.index)
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
    z = unknowns_of(problem, end)
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


def _one_branch(problem: Problem, index: Any) -> np.ndarray:
    """Whether the transmission index keeps its sign and its least size at all stations (s,)."""
    index = np.asarray(index)
    side = np.where(index[:, :1] < 0.0, -1.0, 1.0)
    return np.min(side * index, axis=1) >= problem.least_transmission - _CLOSED


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
    evaluation = end.problem.evaluation
    sizes = []
    for x in map(evaluation.unknowns.vector, (z, start)):
        row, slope = evaluation.jacobians(x[None])
        sizes.append(np.max(np.abs(end.problem.objective(Point(x, row[0], slope[0]))[1])))
    ratio = float(sizes[0] / sizes[1])
    return ratio if np.isfinite(ratio) else 1.0
