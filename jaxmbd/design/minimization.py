"""`minimize`: the numbers of a model that make an objective least, under constraints.

Searches come back from designs whose loops cannot close: a closure margin is brought above zero. An
experiment's margin is that of the configurations in which it holds coordinates.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import minimize as scipy_minimize

from jaxmbd.analysis import closure_margin
from jaxmbd.design.answers import Answers, Store, in_step, question
from jaxmbd.design.curves import Curve, Curves, as_curves, misfit_of, residuals_of
from jaxmbd.design.evaluation import Evaluation
from jaxmbd.design.goals import Bounded, Quantile, Scatter, Statistic, What
from jaxmbd.design.methods import LEAST_SQUARES, METHODS, Descent, descend
from jaxmbd.design.optimality import FEW, finished
from jaxmbd.design.optimum import Course, Optimum, optimum_of
from jaxmbd.design.problem import OBJECTIVE, Ask, Point, Problem, Scaled, starting_points
from jaxmbd.design.unknowns import Unknowns, Vary
from jaxmbd.model import Mechanism
from jaxmbd.observe import Configuration, Sweep, Together
from jaxmbd.plumbing import hint, refuse


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
    """The margins of sweeps at five places of their axes, and of poses; None of anything else."""
    parts = list(observe.experiments.values()) if isinstance(observe, Together) else [observe]
    held = [x for x in parts if isinstance(x, Sweep)]
    held += [x for x in parts if isinstance(x, Configuration) and not x.settle]
    if not held:
        return None
    return Closing(lambda mech: jnp.concatenate([_margins(x, mech) for x in held]), hold=False)


def _margins(observe: Any, mech: Mechanism) -> Array:
    if isinstance(observe, Sweep):
        observe, mech = observe.on(mech)
    moved = _some(observe.over) if isinstance(observe, Sweep) else {}

    def at(step: list[Array]) -> Array:
        return closure_margin(mech, {**observe.known, **dict(zip(moved, step, strict=True))})

    if not moved:
        return at([])[None]
    return jax.lax.map(at, [jnp.asarray(x, mech.dtype) for x in moved.values()])


def _some(over: Mapping[Any, Any]) -> dict[Any, np.ndarray]:
    """The moved coordinates at a few places of the axis, its ends among them."""
    values = {key: np.asarray(x) for key, x in over.items()}
    count = len(next(iter(values.values()), ()))  # none where only loads change
    places = np.unique(np.linspace(0, count - 1, _PLACES).round().astype(int))
    return {key: x[places] for key, x in values.items()}


_ASIDE, _STAYED = 0.05, 1e-6
"""Steps off a start at which the search stayed, and what counts as staying."""
_IN_STEP = 256
"""Most starts at a time, each with a thread."""


def minimize(
    objective: What | Curves,
    model: Any,
    vary: Vary,
    *,
    observe: Callable[[Any], Any] | None = None,
    constraints: Mapping[str, Bounded] | None = None,
    method: str | Descent | None = None,
    starts: Any = 1,
    candidates: int = 0,
    seed: int = 0,
    scatter: Scatter | None = None,
    over: Statistic | None = None,
    closing: Closing | Callable[[Any], Any] | None = None,
    steps: int = 300,
    tolerance: float = 1e-8,
    feasible: float = 1e-8,
    store: Any = None,
    progress: bool = False,
) -> Optimum:
    """Minimise an objective of a mechanism over some of its numbers.

    Objective and constraints are functions of the *subject*: what `observe` makes of the model, or
    the model itself. They are JAX functions; derivatives are exact. A design that fails (its
    numbers are not finite) is no error: searches turn back from it, and start beyond it if
    `closing` says which way.

    Args:
        objective: function of the subject to one number, or name of an output; one or several
            `Curve`, of whose deviations the mean squares are added; with a method of least squares
            a function to residuals, whose sum of squares is minimised.
        model: a `Mechanism`, a `Parametrization`, or None: the unknowns by name are the model.
        vary: path, pattern or name to `Within`, `Between` or `Together`.
        observe: an experiment of `jaxmbd.observe`, or a function of the model (in which experiments
            may be called; designs whose loops cannot close then need `closing`).
        constraints: name to `AtMost`, `AtLeast`, `Equals` or `InRange`; with scatter, of the mean
            of their samples unless they say otherwise by their own `over`.
        method: "slsqp" (few unknowns, exact first derivatives), "trust-constr" (exact Hessians
            too), "least-squares" (matching of curves, by Levenberg and Marquardt's steps within
            limits that may bind; also called "levenberg-marquardt"), or a `Descent` (many
            unknowns, stochastic objectives). By default "least-squares" for curves without
            constraints and scatter, else "slsqp".
        starts: number of starting points: the model as it is, and others evenly over the limits;
            or the designs themselves (b, n), rows in SI units in the order of the numbers.
            They run in step, each round one batch; the best result is kept.
        candidates: if above `starts`, so many points are tried, and the best are the starts: those
            of least violation, and of them those of least objective.
        seed: of the starting points.
        scatter: deviations that every design lives with; the objective is then taken `over` them.
        over: what is taken of the objective's samples; by default the mean.
        closing: a closure margin of the model, or `Closing`: kept by a constraint,
            and followed back from starts at which a loop cannot close. For a `Sweep` or
            `Configuration` it need not be given for that; it is then no constraint.
        steps: most iterations of a start; of "least-squares" most evaluations.
        tolerance: largest KKT residual of a design that counts as optimal.
        feasible: largest violation of a scaled constraint that counts as none.
        store: a file that keeps all evaluations; a run that was ended goes on from there.
        progress: print a line now and then, to the standard error.

    An "optimal" result is a point that satisfies the first-order conditions: a local minimum as a
    rule. A search that stays at its start looks whether designs beside it are better; one that ends
    in a saddle, as those of symmetrical designs do, has the status "saddle": give `starts`.

    Returns:
        `Optimum`; ``print(found)`` reports what changed, what binds, how optimal it is.

    Raises:
        ValueError: lists everything that is wrong with the arguments; no start works; the store
            belongs to another problem.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.design import AtLeast, Between
        >>> found = mbd.minimize(
        ...     lambda x: (x["a"] - 2.0) ** 2 + x["b"] ** 2,
        ...     None,
        ...     {"a": Between(-3.0, 3.0, start=0.0), "b": Between(-3.0, 3.0, start=1.0)},
        ...     constraints={"sum": AtLeast(lambda x: x["a"] + x["b"], 3.0)},
        ... )
        >>> found.status, round(found.values["a"], 9), round(found.multipliers["sum"], 9)
        ('optimal', 2.5, 1.0)
    """
    began = time.monotonic()
    closing = Closing(closing) if callable(closing) else closing
    if method is None:
        alone = not constraints and scatter is None and not (closing and closing.hold)
        method = "least-squares" if alone and as_curves(objective) else "slsqp"
    _check(observe, constraints, method, starts, steps, store, closing)
    unknowns = Unknowns.of(model, vary)
    bounds = dict(constraints or {})
    problem = _problem(objective, unknowns, observe, bounds, method, scatter, over, closing)
    x0 = starting_points(problem, starts, seed, candidates)
    name = method if isinstance(method, str) else "optax"
    options = {"steps": steps, "tolerance": tolerance, "feasible": feasible}
    show = _Progress(progress)
    if isinstance(method, Descent):
        courses, computed = descend(problem, method, x0, show), None
    else:
        file = None if store is None else Store(store, _description(problem))
        try:
            courses, computed = _in_step(problem, method, x0, closing, file, options, show)
        finally:
            if file is not None:
                file.close()
    evaluations = sum(c.evaluations for c in courses)
    return optimum_of(
        problem,
        courses,
        tolerance,
        feasible,
        objective_before=problem.objective(problem.point(np.zeros(len(unknowns))))[0],
        evaluations=evaluations,
        computed=evaluations if computed is None else computed,
        seconds=time.monotonic() - began,
        method=name,
    )


def _check(
    observe: Any, constraints: Any, method: Any, starts: Any, steps: int, store: Any, closing: Any
) -> None:
    """Refuse arguments of another kind, an unknown method, and what would be ignored."""
    if observe is not None and not callable(observe):
        raise ValueError(
            f"observe= must be an experiment, such as Sweep({{…}}, {{…}}), or a function of the "
            f"mechanism, not {observe!r}"
        )
    if constraints is not None and not isinstance(constraints, Mapping):
        raise ValueError("constraints= is a dictionary: name to AtMost, AtLeast, Equals or InRange")
    if isinstance(method, str) and method not in METHODS:
        raise ValueError(
            f"method={method!r}: there is none; {hint(method, METHODS)}, or give a Descent"
        )

    if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise ValueError(
            "minimize needs double precision; switch it on before anything else, "
            "jax.config.update('jax_enable_x64', True)"
        )
    if steps < 1 or (np.ndim(starts) == 0 and starts < 1):
        raise ValueError(f"starts={starts}, steps={steps}: both must be 1 at least")
    given = {"store": store, "closing": closing}
    ignored = [name for name, x in given.items() if x is not None]
    if ignored and isinstance(method, Descent):
        raise ValueError(
            f"{' and '.join(ignored)}= cannot be used with a Descent; choose one of {list(METHODS)}"
        )


def _problem(
    objective: What | Curves,
    unknowns: Unknowns,
    observe: Any,
    bounds: dict[str, Bounded],
    method: Any,
    scatter: Scatter | None,
    over: Statistic | None,
    closing: Closing | None,
) -> Problem:
    least_squares = method in LEAST_SQUARES
    held = closing is not None and closing.hold
    _check_bounds(bounds, unknowns)
    _check_method(bool(bounds) or held, method, scatter, over, [b.over for b in bounds.values()])
    _check_start(observe, unknowns)
    if curves := as_curves(objective):
        objective = partial(residuals_of if least_squares else misfit_of, curves)
    assert not isinstance(objective, (Curve, Sequence)) or isinstance(objective, str)
    goals: dict[str, What] = {OBJECTIVE: objective} | {n: b.what for n, b in bounds.items()}
    measures = {n: b.over for n, b in bounds.items() if b.over is not None}
    if over is not None:
        measures[OBJECTIVE] = over
    whole = {}
    if closing is not None and closing.hold:
        whole["closing"] = closing.margin
        measures["closing"] = Quantile(0.0)  # of all samples, the worst
        bounds = bounds | {"closing": Bounded(closing.margin, closing.reserve, np.inf)}
    evaluation = Evaluation(unknowns, goals, observe, scatter, measures, whole)
    return Problem(evaluation, bounds, least_squares)


def _check_bounds(bounds: Mapping[str, Any], unknowns: Unknowns) -> None:
    """Refuse constraints of another kind, and names that mean something else."""
    wrong = [n for n, b in bounds.items() if not isinstance(b, Bounded)]
    wrong += [n for n in (OBJECTIVE, "closing", *unknowns.names) if n in bounds]
    if wrong:
        raise ValueError(
            f"constraints {wrong}: give AtMost, AtLeast, Equals or InRange, under names other than "
            "'objective', 'closing' and those of unknowns"
        )


def _check_method(
    constrained: bool, method: Any, scatter: Scatter | None, over: Any, each: Sequence[Any]
) -> None:
    """Refuse what a method cannot do, and statistics without samples."""
    if scatter is None and any(x is not None for x in (over, *each)):
        raise ValueError("over= is taken of the samples of a scatter; give scatter= too")
    if method in LEAST_SQUARES and constrained:
        raise ValueError(f'method={method!r} takes no constraints; choose "slsqp"')
    if scatter is not None and (method in LEAST_SQUARES or method == "trust-constr"):
        raise ValueError(f'method={method!r} takes no scatter; choose "slsqp" and one number')


def _check_start(observe: Any, unknowns: Unknowns) -> None:
    """Refuse an experiment that does not fit the model as it is; warn of what it warns of."""
    problems = getattr(observe, "problems", None)
    if problems is None or unknowns.base is None:
        return
    start = unknowns.model(np.zeros(len(unknowns)))
    refuse("observe", problems(start))
    if (warn := getattr(observe, "warn", None)) is not None:
        warn(start)


def _description(problem: Problem) -> dict[str, Any]:
    digest = problem.evaluation.digest
    if digest is None:
        raise ValueError(
            "store=: what the functions compute cannot be recognised in another process, because "
            "they contain callbacks or objects known by identity only"
        )
    evaluation = problem.evaluation
    scatter = [question("scatter", *evaluation.samples.values()).hex(), *sorted(evaluation.factors)]
    return {
        "format": 1,
        "unknowns": evaluation.unknowns.describe(),
        "functions": digest,
        "scatter": scatter,
        "measures": {name: repr(x) for name, x in sorted(evaluation.measures.items())},
    }


def _in_step(
    problem: Problem,
    method: str,
    x0: np.ndarray,
    closing: Closing | None,
    store: Store | None,
    options: dict[str, Any],
    show: _Progress,
) -> tuple[list[Course], int]:
    solver = partial(METHODS[method], problem, **options)
    margin, unknowns = None, problem.evaluation.unknowns
    closing = closing or closing_of(problem.evaluation.observe)
    if closing is not None:
        scatter, worst = problem.evaluation.scatter, {"margin": Quantile(0.0)}
        margin = Evaluation(unknowns, {"margin": closing.margin}, None, scatter, worst)
    courses: list[Course] = []
    answers = Answers(problem, store, margin, show)

    def task(first: int, i: int, ask: Ask) -> Course:
        point = Point(x0[first + i], *ask(("design", x0[first + i])))
        if not point.works and closing is not None:
            x = restored(problem, closing, point.x, ask)
            point = Point(x, *ask(("design", x)))
        if not point.works:
            return Course(point, [], 1, "the start does not work", None)
        course = solver(point, ask)
        stayed = np.max(np.abs(course.best.x - point.x)) < _STAYED
        if stayed and course.evaluations < options["steps"]:  # else it had no time to leave
            course = _off_a_saddle(problem, course, solver, ask, options["feasible"])
        if problem.evaluation.scatter is not None or len(point.x) > FEW:
            return course
        scaled = Scaled.about(problem, point).stricter(Scaled.about(problem, course.best))
        done = course.evaluations if problem.least_squares else len(course.history) - 1
        left = max(options["steps"] - done, 0)
        limits = options["tolerance"], options["feasible"]
        best, count = finished(scaled, course.best, ask, *limits, left)
        return course._replace(best=best, evaluations=course.evaluations + count)

    for first in range(0, len(x0), _IN_STEP):
        count = min(_IN_STEP, len(x0) - first)
        courses += in_step(partial(task, first), count, answers)
    return courses, answers.computed


def _off_a_saddle(
    problem: Problem, course: Course, solver: Callable[..., Course], ask: Ask, feasible: float
) -> Course:
    """The course from a better design beside a start at which the search stayed.

    That was a maximum or a saddle; where nothing beside it is better, the course is as it was.
    """
    point, count = course.best, course.evaluations
    if len(point.x) > FEW:
        return course
    scaled = Scaled.about(problem, point)
    here = problem.objective(point)[0]
    for step in _ASIDE * np.concatenate([np.eye(len(point.x)), -np.eye(len(point.x))]):
        x = np.clip(point.x + step, *problem.limits)
        beside, count = Point(x, *ask(("design", x))), count + 1
        if beside.works and scaled.violation(beside) <= max(feasible, scaled.violation(point)):
            if problem.objective(beside)[0] < here - 1e-9 * abs(here):
                again = solver(beside, ask)
                return again._replace(evaluations=count + again.evaluations - 1)
    return course._replace(evaluations=count)


class _Progress:
    """Lines about how far it is, at most one each second."""

    def __init__(self, shown: bool):
        self.shown, self.last = shown, time.monotonic()

    def __call__(self, text: str, objectives: np.ndarray) -> None:
        now = time.monotonic()
        if self.shown and now - self.last >= 1.0:
            self.last = now
            best = np.min(objectives[np.isfinite(objectives)], initial=np.inf)
            print(f"{text}, least objective {best:.6g}", file=sys.stderr, flush=True)
