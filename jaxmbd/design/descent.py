"""Stochastic and plain gradient descent by optax, for many unknowns or fresh scatter each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxmbd.design.optimum import Course
from jaxmbd.design.problem import OBJECTIVE, Point, Problem

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
    histories: list[list[tuple[float, float]]] = [[] for _ in x0]
    best_x, best = x.copy(), np.full(len(x), np.inf)
    for step in range(method.steps):
        if method.redraw and evaluation.scatter is not None:
            evaluation.redraw(evaluation.scatter.seed + 1 + step)
        value, slope = _gradients(problem, x)
        for history, f in zip(histories, value, strict=True):
            history.append((float(f), 0.0))
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
