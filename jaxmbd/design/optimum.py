"""What an optimisation found: the design, what changed, which limits bind, how optimal it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.analysis import Status
from jaxmbd.design.optimality import Optimality, falling_direction, optimality, saddle_text
from jaxmbd.design.problem import Point, Problem, Scaled
from jaxmbd.observe import REASONS, Experiment, status_text, stays_open
from jaxmbd.plumbing import text_table
from jaxmbd.variables import shown


class Course(NamedTuple):
    """What an optimiser did from one start."""

    best: Point  # feasible and of least objective, or else of least violation
    history: list[tuple[float, float, int]]  # (objective, violation, evaluations) of iterations
    evaluations: int
    message: str  # why it stopped
    start: Point | None  # the first design that works; None if none did


_SAME = 1e-6
"""A share of what was gained by which objectives that count as the same may differ."""


@dataclass(frozen=True)
class Optimum:
    """The best design that `minimize` found; printed as a report.

    Attributes:
        status: "optimal" (a KKT point), "saddle" (one beside which designs are better: looked for
            with at most 60 unknowns and no scatter), "feasible" (all constraints hold, not optimal
            to the tolerance), or "infeasible".
        mechanism: the model with its best numbers (a dictionary where there is no model).
        values, before: name to number in SI units, found and at the start.
        objective, objective_before: its values; NaN where the model as it is does not work.
        constraints: name to value of each bounded element.
        multipliers: name of a bounded element, or of an unknown at its limit, to ∂objective/∂limit:
            by how much the objective changes if that limit is raised by one unit (negative at
            upper limits, where more room helps, positive at lower ones).
        kkt: residual of the Karush-Kuhn-Tucker conditions, relative to the gradient at the start.
        history: (objective, violation, evaluations so far) of each iteration of the best start
            (k, 3).
        designs: unknowns in SI units that each start ended with (b, n).
        objectives: objective of each start (b,); NaN where it found nothing feasible.
        evaluations: designs evaluated, with their derivatives; `computed` of them in this run, the
            others were kept in the store. Those by which an end is told from a saddle, some more
            than there are unknowns, are not among them.
        seconds: wall time.
        method, message: the algorithm, and why it stopped.
        idle: which unknowns change neither objective nor constraints (n,).

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.design import Between
        >>> vary = {"a": Between(0.0, 3.0, start=1.0)}
        >>> found = mbd.minimize(lambda x: (x["a"] - 2.0) ** 2, None, vary)
        >>> found.status, round(found.values["a"], 6)
        ('optimal', 2.0)
    """

    status: str
    mechanism: Any
    values: dict[str, float]
    before: dict[str, float]
    objective: float
    objective_before: float
    constraints: dict[str, float]
    multipliers: dict[str, float]
    kkt: float
    history: np.ndarray
    designs: np.ndarray
    objectives: np.ndarray
    evaluations: int
    computed: int
    seconds: float
    method: str
    message: str
    idle: np.ndarray
    problem: Problem = field(repr=False)
    optimality: Optimality = field(repr=False)

    @property
    def reached(self) -> float:
        """Share of the starts that ended at the best objective, within 1e-6 of what was gained."""
        size = np.nanmax(np.abs([self.objective, self.objective_before - self.objective]))
        return float(np.mean(self.objectives - self.objective <= _SAME * size))

    def __str__(self) -> str:
        head = (
            f"design by {self.method}: {self.status}, KKT residual {self.kkt:.1e}, "
            f"{self.evaluations} evaluations, {self.seconds:.1f} s"
        )
        change = f"objective {self.objective_before:.6g} -> {self.objective:.6g}"
        lines = [head, change, "", self._unknowns()]
        if self.constraints:
            lines += ["", self._bounded()]
        if len(self.objectives) > 1:
            works = int(np.sum(np.isfinite(self.objectives)))
            lines += [
                "",
                f"{len(self.objectives)} starts: {works} end feasible, "
                f"{100.0 * self.reached:.0f} % of all at the best objective",
            ]
        if self.status == "infeasible":
            lines += ["", "no design was found within the limits that keeps all constraints"]
        if self.status != "optimal":
            lines += ["", f"stopped: {self.message}"]
        return "\n".join(lines)

    def _unknowns(self) -> str:
        u = self.problem.evaluation.unknowns
        rows = []
        for i, name in enumerate(u.names):
            unit, factor = shown(u.units[i])
            old, new = factor * self.before[name], factor * self.values[name]
            end = ""
            if name in self.multipliers:
                each = self.multipliers[name] / factor
                end = f"at its limit, multiplier {each:.3g}{f' per {unit}' if unit else ''}"
            elif self.idle[i]:
                end = "nothing depends on it"
            rows.append((name, f"{old:.6g}", f"{new:.6g}", f"{new - old:+.4g}", unit, end))
        return text_table(("number", "before", "found", "change", "unit", ""), rows)

    def _bounded(self) -> str:
        names, _, lower, upper = self.problem.bounds()
        rows = []
        for i, name in enumerate(names):
            short = max(lower[i] - self.constraints[name], self.constraints[name] - upper[i])
            end = ""
            if self.status == "infeasible" and short > 0.0:
                end = f"VIOLATED by {short:.3g}"
            elif self.optimality.active[i]:
                end = f"binds, multiplier {self.multipliers[name]:.3g}"
            rows.append(
                (name, f"{self.constraints[name]:.6g}", f"{lower[i]:.6g}", f"{upper[i]:.6g}", end)
            )
        return text_table(("constraint", "value", "from", "to", ""), rows)


def optimum_of(
    problem: Problem, courses: list[Course], tolerance: float, feasible: float, **about: Any
) -> Optimum:
    """The best of the courses of all starts.

    Raises:
        ValueError: none of the starts works.
    """
    start = next((c.start for c in courses if c.start is not None), None)
    if start is None:
        raise ValueError(f"none of {len(courses)} start(s) works: {_why(problem, courses[0].best)}")
    scaled = Scaled.about(problem, start)  # all courses are judged by the same scales
    ranked = [_judged(scaled, c, feasible) for c in courses]
    best = min(range(len(courses)), key=lambda i: ranked[i][:2])
    course = courses[best]
    assert course.start is not None
    at_end = _at_end(scaled, course)
    state = optimality(at_end, course.best)
    status, message = "feasible", course.message
    if state.violation > feasible:
        status = "infeasible"
    elif state.residual <= tolerance:
        way = falling_direction(at_end, course.best, state)
        status = "optimal" if way is None else "saddle"
        message = message if way is None else saddle_text(at_end, way)
    unknowns, point = problem.evaluation.unknowns, course.best
    names, places, _, _ = problem.bounds()
    found = unknowns.numbers(point.x)
    pushed = {n: m for n, m in zip(unknowns.names, state.at_limits, strict=True) if m != 0.0}
    bound = dict(zip(names, state.multipliers, strict=True))
    return Optimum(
        status=status,
        mechanism=unknowns.model(point.x),
        values=dict(zip(unknowns.names, found.tolist(), strict=True)),
        before=dict(zip(unknowns.names, unknowns.start.tolist(), strict=True)),
        objective=problem.objective(point)[0],
        constraints=dict(zip(names, point.row[places].tolist(), strict=True)),
        multipliers={n: float(m) for n, m in (bound | pushed).items()},
        kkt=state.residual,
        history=np.array(course.history),
        designs=unknowns.numbers(np.stack([c.best.x for c in courses])),
        objectives=np.array([r[2] for r in ranked]),
        message=message,
        idle=np.all(point.jacobian == 0.0, axis=0) & np.all(course.start.jacobian == 0.0, axis=0),
        problem=problem,
        optimality=state,
        **about,
    )


def _why(problem: Problem, point: Point) -> str:
    """What is not finite at a design, and the usual cure."""
    unknowns = problem.evaluation.unknowns
    for goal, part in problem.evaluation.layout.items():
        if not np.all(np.isfinite(point.row[part])):
            found = f"{goal!r} is not finite at the model as it is"
            if problem.evaluation.scatter is not None:
                found += ", or at one of the samples of its scatter"
            start = unknowns.model(np.zeros(len(unknowns)))
            if failure := failure_of(problem.evaluation.observe, start):
                found += f": {failure}"
            return found + (
                ". If its loops cannot close there, give closing= (see jaxmbd.closure_margin) or "
                "another start; else look at the function"
            )
        wrong = ~np.all(np.isfinite(point.jacobian[part]), axis=0)
        if np.any(wrong):
            names = [n for n, x in zip(unknowns.names, wrong, strict=True) if x]
            return (
                f"{goal!r} is finite at the model as it is, its derivative with respect to {names} "
                "is not: a root or norm of zero, or a dead centre; see jaxmbd.check_gradient"
            )
    return "all numbers are finite at the model as it is, but not where the search went"


def _at_end(scaled: Scaled, course: Course) -> Scaled:
    """The common scales, with those of constraints where the course ended if they are smaller."""
    return scaled.stricter(Scaled.about(scaled.problem, course.best))


def failure_of(experiment: Any, model: Any) -> str:
    """How an experiment fails, where, and which joint stays open; empty if it does not."""
    if not isinstance(experiment, Experiment):
        return ""
    seen = experiment(model)
    if (status := Status(int(seen["status"]))) == Status.OK:
        return ""
    where = f" at {float(seen[REASONS[2]]):.4g}" if experiment.has_axis else ""
    how = status_text(status)
    if open_ := stays_open(experiment.declare(model).outputs, seen):
        how += f", {open_}"
    return f"{type(experiment).__name__} fails{where}: {how}"


def _judged(scaled: Scaled, course: Course, feasible: float) -> tuple[int, float, float]:
    """Rank of a course, its merit, and its objective if it is feasible."""
    if course.start is None or not course.best.works:
        return 2, 0.0, np.nan
    violation = _at_end(scaled, course).violation(course.best)
    objective = scaled.problem.objective(course.best)[0]
    if violation > feasible:
        return 1, violation, np.nan
    return 0, objective, objective
