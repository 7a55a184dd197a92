"""Starting points: the model as it is, and others spread evenly over the limits."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.design.problem import Problem


def starting_points(problem: Problem, starts: Any, seed: int, candidates: int) -> np.ndarray:
    """Starts (b, n): the model's own, then points of a scrambled Sobol sequence.

    Args:
        problem: its limits must be finite if there is more than one start.
        starts: how many, or designs (b, n) in SI units.
        seed: of the sequence.
        candidates: if above `starts`, so many points are evaluated, and the best of them taken:
            those that work, by their violations, then by their objective.

    Raises:
        ValueError: a limit is infinite.
    """
    low, high = problem.limits
    if np.ndim(starts):
        return _given(problem, starts)
    own = np.zeros((1, len(low)))
    if max(starts, candidates) <= 1:
        return own
    if not np.all(np.isfinite(high - low)):
        raise ValueError("starts= needs two finite limits of every number; give Between or Within")
    from scipy.stats import qmc

    count = max(starts, candidates) - 1
    sequence = qmc.Sobol(len(low), rng=np.random.default_rng(seed))
    cube = sequence.random_base2(int(np.ceil(np.log2(max(count, 1)))))[:count]
    points = np.concatenate([own, low + cube * (high - low)])
    if candidates <= starts:
        return points
    rows = problem.evaluation.values(points)
    works = np.all(np.isfinite(rows), axis=1)
    _, places, lower, upper = problem.bounds()
    short = np.maximum(np.maximum(lower - rows[:, places], rows[:, places] - upper), 0.0)
    sizes = np.std(rows[works][:, places], axis=0) if works.any() else np.ones(len(places))
    violation = np.sum(short / np.where(sizes > 0.0, sizes, 1.0), axis=1)
    order = np.lexsort(
        (np.where(works, problem.merits(rows), np.inf), np.where(works, violation, np.inf))
    )
    if starts > 1:  # the model as it is stays
        order = np.concatenate([[0], order[order != 0]])
    return points[np.sort(order[:starts])]


def _given(problem: Problem, starts: Any) -> np.ndarray:
    """Designs in SI units as starts, brought within the limits."""
    low, high = problem.limits
    if np.ndim(starts) != 2 or np.shape(starts)[1] != len(low):
        names = list(problem.evaluation.unknowns.names)
        raise ValueError(f"starts= has shape {np.shape(starts)}; each is a row of {names}")
    return np.clip(problem.evaluation.unknowns.vector(starts), low, high)
