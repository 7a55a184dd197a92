"""Levenberg-Marquardt by optimistix for matching curves, all starts in one program.

Limits are kept by a change of variables, ``x = middle + half · sin u``. An optimum at a limit is
approached slowly then; `least-squares` keeps limits as such.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbd.design.optimum import Course
from jaxmbd.design.problem import Point, Problem

_INSIDE = 0.999


def levenberg_marquardt(
    problem: Problem, x0: np.ndarray, *, steps: int, tolerance: float
) -> list[Course]:
    """Courses from starts x0 (b, n).

    Raises:
        ValueError: the problem has constraints or scatter.
    """
    import optimistix  # a quarter of a second, which other methods need not wait for

    if problem.constraints or problem.evaluation.scatter is not None:
        raise ValueError(
            "Levenberg-Marquardt matches residuals within limits: for constraints or scatter "
            'choose method="slsqp"'
        )
    evaluation, (low, high) = problem.evaluation, problem.limits
    bounded = np.isfinite(low) & np.isfinite(high)
    if np.any(~bounded & (np.isfinite(low) | np.isfinite(high))):
        raise ValueError('a one-sided limit: choose method="least-squares"')
    middle = np.where(bounded, 0.5 * (low + high), 0.0)
    half = np.where(bounded, 0.5 * (high - low), 1.0)
    residuals = evaluation.residuals()

    def place(u: Any) -> Any:
        return middle + half * jnp.where(bounded, jnp.sin(u), u)

    def function(u: Any, size: Any) -> Any:
        return residuals(place(u)) / size

    sizes = np.linalg.norm(evaluation.values(x0), axis=1)
    sizes = np.where(np.isfinite(sizes) & (sizes > 0.0), sizes, 1.0)
    solver = optimistix.LevenbergMarquardt(rtol=tolerance, atol=tolerance)

    def solve(u: Any, size: Any) -> Any:
        found = optimistix.least_squares(function, solver, u, size, max_steps=steps, throw=False)
        return found.value, found.stats["num_steps"]

    ratio = np.clip((x0 - middle) / half, -_INSIDE, _INSIDE)
    u0 = np.where(bounded, np.arcsin(ratio), x0)
    u, count = jax.jit(jax.vmap(solve))(u0, sizes)
    both = np.concatenate([np.asarray(jax.vmap(place)(u)), x0])
    rows, jacobians = evaluation.jacobians(both)
    every = [Point(*p) for p in zip(both, rows, jacobians, strict=True)]
    found = []
    for end, start, k in zip(every[: len(x0)], every[len(x0) :], np.asarray(count), strict=True):
        best = end if end.works else start
        history = [(problem.objective(p)[0], 0.0) for p in (start, end) if p.works]
        works = start if start.works else (end if end.works else None)
        found.append(Course(best, history, int(k) + 1, f"{int(k)} steps", works))
    return found
