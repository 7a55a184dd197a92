"""A design problem in the form of an optimiser: scaled rows, limits and starting points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds

from jaxmbd.design.evaluation import Evaluation
from jaxmbd.design.goals import Bounded

OBJECTIVE = "objective"
Ask = Callable[[Any], Any]
"""Asks a question, as `Answers` has them, and waits for the answer."""

_ROUNDING = 1e-10
"""A slope along a whole range, relative to the value, that may be rounding."""


class Point(NamedTuple):
    """A design that was evaluated."""

    x: np.ndarray  # (n,)
    row: np.ndarray  # objective, or its residuals, and what is bounded (m,); NaN where it fails
    jacobian: np.ndarray  # derivatives of the row (m, n)

    @property
    def works(self) -> bool:
        """Whether all numbers are finite."""
        return bool(np.all(np.isfinite(self.row)) and np.all(np.isfinite(self.jacobian)))


@dataclass(frozen=True)
class Problem:
    """Minimise the objective's part of the rows of `evaluation` under bounds of the others."""

    evaluation: Evaluation
    constraints: Mapping[str, Bounded]  # by name, in the order of the rows
    least_squares: bool = False  # whether the objective is the sum of squares of its elements

    def __post_init__(self) -> None:
        shape = self.evaluation.shapes[OBJECTIVE]
        if not self.least_squares and int(np.prod(shape)) != 1:
            raise ValueError(
                f"the objective has shape {shape}; return one number, or choose a method for least "
                'squares, "levenberg-marquardt" or "least-squares"'
            )

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits of x (n,)."""
        return self.evaluation.unknowns.limits

    @property
    def box(self) -> Bounds:
        """These limits, as SciPy takes them."""
        return Bounds(*self.limits)  # type: ignore[arg-type]

    def point(self, x: np.ndarray) -> Point:
        """The design at x (n,)."""
        return Point(x, *(y[0] for y in self.evaluation.jacobians(x[None])))

    @property
    def residual(self) -> slice:
        """The objective's part of a row."""
        return self.evaluation.layout[OBJECTIVE]

    def bounds(self) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
        """Names, indices into a row, lower and upper bounds (k,) of all bounded elements."""
        names: list[str] = []
        places: list[int] = []
        lower: list[float] = []
        upper: list[float] = []
        for name, bound in self.constraints.items():
            part, shape = self.evaluation.layout[name], self.evaluation.shapes[name]
            count = part.stop - part.start
            names += [name] if shape == () else [f"{name}[{i}]" for i in range(count)]
            places += range(part.start, part.stop)
            for limits, given in ((lower, bound.lower), (upper, bound.upper)):
                try:
                    limits += np.broadcast_to(given, shape).ravel().tolist()
                except ValueError:
                    raise ValueError(
                        f"constraint {name!r}: it has shape {shape}, its bound {given.shape}"
                    ) from None
        return names, np.array(places, int), np.array(lower), np.array(upper)

    def objective(self, point: Point) -> tuple[float, np.ndarray]:
        """The objective and its gradient (n,)."""
        part = self.residual
        if self.least_squares:
            r = point.row[part]
            return float(r @ r), 2.0 * r @ point.jacobian[part]
        return float(point.row[part][0]), point.jacobian[part][0]

    def merits(self, rows: np.ndarray) -> np.ndarray:
        """The objectives (b,) of rows (b, m)."""
        part = rows[:, self.residual]
        return np.sum(part**2, axis=1) if self.least_squares else part[:, 0]

    def curvature(self, point: Point) -> tuple[np.ndarray, np.ndarray]:
        """The objective's Hessian as weights of the rows' (m,) and a matrix (n, n) to add."""
        weights, n = np.zeros(len(point.row)), len(point.x)
        if not self.least_squares:
            weights[self.residual] = 1.0
            return weights, np.zeros((n, n))
        weights[self.residual] = 2.0 * point.row[self.residual]
        slope = point.jacobian[self.residual]
        return weights, 2.0 * slope.T @ slope


class Scaled(NamedTuple):
    """A problem with objective and constraints divided by the size of their gradients."""

    problem: Problem
    objective_scale: float
    scales: np.ndarray  # of the bounded elements (k,), as what follows
    places: np.ndarray  # of a row
    lower: np.ndarray
    upper: np.ndarray
    origin: np.ndarray  # a limit that is finite, or zero

    @classmethod
    def about(cls, problem: Problem, start: Point) -> Scaled:
        """Scaled by the gradients at a point."""
        _, places, lower, upper = problem.bounds()
        value, slope = problem.objective(start)
        sizes = np.max(np.abs(start.jacobian[places]), axis=1, initial=0.0)
        origin = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper, 0.0))
        return cls(
            problem,
            float(_size(np.max(np.abs(slope)), value)),
            _size(sizes, np.maximum(np.abs(start.row[places]), np.abs(origin))),
            places,
            lower,
            upper,
            origin,
        )

    def stricter(self, other: Scaled) -> Scaled:
        """The same with the smaller scales of constraints of two, so that violations count more."""
        return self._replace(scales=np.minimum(self.scales, other.scales))

    @property
    def equal(self) -> np.ndarray:
        """Which bounded elements are equalities (k,)."""
        return self.lower == self.upper

    def value(self, point: Point) -> tuple[float, np.ndarray]:
        """Scaled objective and gradient."""
        f, g = self.problem.objective(point)
        return f / self.objective_scale, g / self.objective_scale

    def constrained(self, point: Point) -> tuple[np.ndarray, np.ndarray]:
        """Scaled values (k,) of the bounded elements, from `origin`, and their Jacobian (k, n)."""
        row, slope = point.row[self.places], point.jacobian[self.places]
        return (row - self.origin) / self.scales, slope / self.scales[:, None]

    def violation(self, point: Point) -> float:
        """Largest violation of a scaled constraint."""
        c = point.row[self.places]
        short = np.maximum(self.lower - c, c - self.upper) / self.scales
        return float(np.max(short, initial=0.0))


def _size(slope: Any, value: Any) -> Any:
    """Sizes to divide by: of slopes, of values where slopes are only rounding, or else one."""
    slope, value = np.abs(slope), np.abs(value)
    size = np.where(slope > _ROUNDING * value, slope, value)
    return np.where(np.isfinite(size) & (size > 0.0), size, 1.0)


def starting_points(problem: Problem, starts: Any, seed: int, candidates: int) -> np.ndarray:
    """Starts (b, n): the model's own, then points of a scrambled Sobol sequence.

    If there are more `candidates` than `starts`, so many points are evaluated, and the best of
    those that work are taken: by their violations, then by their objective. `starts` may be the
    designs themselves, in SI units.

    Raises:
        ValueError: a limit is infinite, or the designs do not fit.
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
