"""The methods of `minimize`: SciPy's optimisers for many starts in step, descent by optax.

SciPy's are SLSQP, trust-constr and bounded least squares. None ever sees a design that fails as
NaN: its objective is far above the last one that works there, so that line searches and trust
regions shrink back, and its derivatives are the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from scipy.optimize import NonlinearConstraint, OptimizeResult, least_squares
from scipy.optimize import minimize as scipy_minimize

from jaxmbd.design.optimality import optimality
from jaxmbd.design.optimum import Course
from jaxmbd.design.problem import OBJECTIVE, Ask, Point, Problem, Scaled

_RESTARTS = 6
_NOTHING, _PATIENCE = 1e-10, 25
"""A relative gain that counts as none, and how many iterations without a gain end a search."""
_CHEAP = 1e-4
"""How far below its tolerance a search goes on whose every step gains a digit."""
_STAYS = 1e-4
"""A change of x between two searches that counts as none."""


class _Ended(Exception):
    """Ends an algorithm of SciPy from within."""


class _Run:
    """One start: asks for designs, remembers the last that works and the best."""

    def __init__(self, problem: Problem, first: Point, ask: Ask, feasible: float):
        self.problem, self.ask, self.feasible = problem, ask, feasible
        self.scaled = self.judged = Scaled.about(problem, first)
        self.asked = self.last = self.best = self.first = first
        self.evaluations, self.since = 1, 0
        self.history = [(*self._state(first), 1)]

    def rescale(self) -> None:
        """Search on with the scales of the best design."""
        self.scaled = Scaled.about(self.problem, self.best)
        self.judged = self.judged.stricter(self.scaled)

    def _state(self, point: Point) -> tuple[float, float]:
        return self.problem.objective(point)[0], self.judged.violation(point)

    def at(self, x: np.ndarray) -> Point | None:
        """The design at x; None where it fails."""
        low, high = self.problem.limits
        x = np.clip(x, low, high)
        for known in (self.last, self.asked):
            if np.array_equal(x, known.x):
                return known if known.works else None
        self.evaluations += 1
        self.asked = point = Point(x.copy(), *self.ask(("design", x.copy())))
        if not point.works:
            return None
        self.last = point
        if self._rank(point) < self._rank(self.best):
            gain = self._rank(self.best)[1] - self._rank(point)[1]
            small = abs(gain) <= _NOTHING * abs(self._rank(point)[1])
            self.since = self.since if small else 0
            self.best = point
        return point

    def _rank(self, point: Point) -> tuple[float, float]:
        objective, violation = self._state(point)
        return (0.0, objective) if violation <= self.feasible else (violation, 0.0)

    def value(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        point = self.at(x)
        if point is not None:
            return self.scaled.value(point)
        value, slope = self.scaled.value(self.last)
        return value + 10.0 * (1.0 + abs(value)), slope

    def near(self, x: np.ndarray) -> Point:
        """The design at x, or the last that works."""
        return self.at(x) or self.last

    def hessian(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Of the rows with weights (m,)."""
        return self.ask(("hessian", self.near(x).x, weights))[0]

    def constraints(self, *, second: bool = False) -> list[NonlinearConstraint]:
        """Equalities and inequalities of the scaled problem, with second derivatives or without."""
        parts = [np.flatnonzero(part) for part in (self.scaled.equal, ~self.scaled.equal)]
        return [self._constraint(part, second) for part in parts if len(part)]

    def _constraint(self, part: np.ndarray, second: bool) -> NonlinearConstraint:
        scaled = self.scaled
        limits = [(x - scaled.origin) / scaled.scales for x in (scaled.lower, scaled.upper)]
        value, slope = (lambda x, k=k: scaled.constrained(self.near(x))[k][part] for k in range(2))

        def bend(x: np.ndarray, v: np.ndarray) -> np.ndarray:
            weights = np.zeros(len(self.first.row))
            weights[scaled.places[part]] = v / scaled.scales[part]
            return self.hessian(x, weights)

        options: dict[str, Any] = {"hess": bend} if second else {}
        low, high = (x[part] for x in limits)
        return NonlinearConstraint(value, low, high, jac=slope, **options)  # type: ignore[arg-type]

    def record(self, x: np.ndarray, *_: Any) -> None:
        state = self._state(self.near(x))
        self.history.append((*state, self.evaluations))
        self.since += 1

    def stop_at(self, tolerance: float) -> None:
        """End the search at a KKT point, or if nothing was gained for long.

        Raises:
            _Ended: says why.
        """
        if optimality(self.scaled, self.best).residual <= tolerance:
            raise _Ended("a point that satisfies the first-order conditions")
        if self.since >= _PATIENCE:
            raise _Ended(f"nothing gained in {_PATIENCE} iterations")

    def course(self, message: str) -> Course:
        return Course(self.best, self.history, self.evaluations, message, self.first)


def slsqp(
    problem: Problem, first: Point, ask: Ask, *, steps: int, tolerance: float, feasible: float
) -> Course:
    """Sequential least squares programming (Kraft 1988), begun anew until a KKT point is met.

    SLSQP stops where its approximate Hessian predicts no progress; from there it is begun anew,
    with a unit Hessian and the scales of that place, as long as that helps.
    """
    run, message, left = _Run(problem, first, ask, feasible), "", steps
    for _ in range(_RESTARTS):
        if left <= 0:
            break
        before, place = optimality(run.judged, run.best).residual, run.best
        run.rescale()
        iterations, message = _searched(run, left, tolerance)
        left -= iterations
        after = optimality(run.judged, run.best).residual
        stays = np.max(np.abs(run.best.x - place.x)) < _STAYS
        if stays and (after <= tolerance or after >= before or iterations <= 2):
            break
    return run.course(message)


def _searched(run: _Run, steps: int, tolerance: float) -> tuple[int, str]:
    """One search from the best design: its iterations, and why it ended."""
    begun, run.since = len(run.history), 0

    def recorded(x: np.ndarray) -> None:
        run.record(x)
        run.stop_at(tolerance)

    try:
        found = scipy_minimize(
            run.value,
            run.best.x,
            jac=True,
            method="SLSQP",
            bounds=run.problem.box,
            constraints=run.constraints(),
            callback=recorded,
            options={"maxiter": steps, "ftol": 1e-15},
        )
    except _Ended as end:
        return len(run.history) - begun, str(end)
    return int(found.nit), str(found.message)


def trust_constr(
    problem: Problem, first: Point, ask: Ask, *, steps: int, tolerance: float, feasible: float
) -> Course:
    """Trust region with exact Hessians (SciPy's trust-constr)."""
    run = _Run(problem, first, ask, feasible)

    def of_objective(x: np.ndarray) -> np.ndarray:
        weights, _ = problem.curvature(run.near(x))
        return run.hessian(x, weights / run.scaled.objective_scale)

    found: OptimizeResult = scipy_minimize(
        run.value,
        first.x,
        jac=True,
        hess=of_objective,
        method="trust-constr",
        bounds=problem.box,
        constraints=run.constraints(second=True),
        callback=run.record,
        options={
            "maxiter": steps,
            "gtol": tolerance,
            "xtol": 1e-14,
            "barrier_tol": tolerance,
            "initial_tr_radius": 0.3,
        },
    )
    return run.course(str(found.message))


def bounded_least_squares(
    problem: Problem, first: Point, ask: Ask, *, steps: int, tolerance: float, feasible: float
) -> Course:
    """Levenberg-Marquardt steps in a trust region within limits (SciPy's least_squares).

    The step of a trust region is ``−(JᵀJ + λ)⁻¹ Jᵀr`` (Moré, The Levenberg-Marquardt Algorithm:
    Implementation and Theory, 1978); limits scale the unknowns (Branch, Coleman and Li 1999).
    """
    run = _Run(problem, first, ask, feasible)
    part, last = problem.residual, np.inf

    def residuals(x: np.ndarray) -> np.ndarray:
        point = run.at(x)
        if point is not None:
            return point.row[part]
        return run.last.row[part] + 10.0 * (1.0 + np.abs(run.last.row[part]))

    def slopes(x: np.ndarray) -> np.ndarray:
        nonlocal last
        run.record(x)
        before, last = last, optimality(run.scaled, run.best).residual
        run.stop_at(tolerance if last > 0.1 * before else _CHEAP * tolerance)
        return run.near(x).jacobian[part]

    try:
        found = least_squares(
            residuals,
            first.x,
            jac=slopes,  # type: ignore[arg-type]
            bounds=problem.limits,
            method="trf",
            x_scale=1.0,
            max_nfev=steps,
            gtol=1e-15,
            xtol=1e-15,
            ftol=1e-15,
        )
    except _Ended as end:
        return run.course(str(end))
    return run.course(str(found.message))


LEAST_SQUARES = ("least-squares", "levenberg-marquardt")
METHODS = {"slsqp": slsqp, "trust-constr": trust_constr} | dict.fromkeys(
    LEAST_SQUARES, bounded_least_squares
)


_MANY = 40
"""Unknowns from which on a gradient is computed in reverse."""


@dataclass(frozen=True)
class Descent:
    """Descent by an optimiser of optax, within limits by projection.

    Attributes:
        optimiser: of optax, for scaled unknowns (limits at about ±1), as ``optax.adam(0.02)``.
        steps: how many.
        redraw: whether each step draws new samples of the scatter (stochastic gradients); the
            result is judged by the common samples.

    Example:
        >>> import optax
        >>> from jaxmbd.design import Descent
        >>> Descent(optax.adam(0.02), steps=300).redraw
        False
    """

    optimiser: Any
    steps: int = 200
    redraw: bool = False


def descend(
    problem: Problem, method: Descent, x0: np.ndarray, report: Callable[[str, np.ndarray], None]
) -> list[Course]:
    """Courses from starts x0 (b, n), all at once.

    Raises:
        ValueError: the problem has constraints, or is one of least squares.
    """
    if problem.constraints or problem.least_squares:
        raise ValueError(
            "optax minimises one number within limits: add constraints to the objective as "
            'penalties, or choose method="slsqp"'
        )
    evaluation = problem.evaluation
    if method.redraw and evaluation.scatter is None:
        raise ValueError("redraw=True draws samples of a scatter anew; give scatter=, or leave it")
    judged = evaluation.samples
    try:
        return _steps(problem, method, x0, report)
    finally:
        evaluation.samples = judged


def _steps(
    problem: Problem, method: Descent, x0: np.ndarray, report: Callable[[str, np.ndarray], None]
) -> list[Course]:
    import optax

    evaluation, (low, high) = problem.evaluation, problem.limits
    judged, first = evaluation.samples, evaluation.jacobians(x0)
    x, state = np.clip(x0, low, high), jax.vmap(method.optimiser.init)(x0)
    update = jax.jit(jax.vmap(method.optimiser.update))
    histories: list[list[tuple[float, float, int]]] = [[] for _ in x0]
    best_x, best = x.copy(), np.full(len(x), np.inf)
    for step in range(method.steps):
        if method.redraw and evaluation.scatter is not None:
            evaluation.redraw(evaluation.scatter.seed + 1 + step)
        value, slope = _gradients(problem, x)
        for history, f in zip(histories, value, strict=True):
            history.append((float(f), 0.0, step + 1))
        better = value < best
        if method.redraw:
            better = np.isfinite(value)  # values of different samples are not compared
        best, best_x = np.where(better, value, best), np.where(better[:, None], x, best_x)
        report(f"step {step}", value)
        slope = np.where(np.isfinite(slope), slope, 0.0)
        updates, state = update(slope, state, x)
        x = np.clip(np.asarray(optax.apply_updates(x, updates)), low, high)
    evaluation.samples = judged
    rows, jacobians = evaluation.jacobians(best_x)
    message = f"{method.steps} steps"
    ends = [Point(*p) for p in zip(best_x, rows, jacobians, strict=True)]
    begins = [Point(*p) for p in zip(x0, *first, strict=True)]
    return [
        Course(end, h, method.steps + 2, message, next((p for p in (begin, end) if p.works), None))
        for begin, end, h in zip(begins, ends, histories, strict=True)
    ]


def _gradients(problem: Problem, x: np.ndarray) -> tuple[np.ndarray, ...]:
    evaluation = problem.evaluation
    if len(evaluation.unknowns) >= _MANY:
        return evaluation.gradients(x)
    rows, jacobians = evaluation.jacobians(x)
    place = evaluation.layout[OBJECTIVE].start
    return rows[:, place], jacobians[:, place]
