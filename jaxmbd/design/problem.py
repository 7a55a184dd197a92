"""A design problem in the form of an optimiser: scaled rows of objective and constraints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.design.evaluation import Evaluation
from jaxmbd.design.goals import Bounded

OBJECTIVE = "objective"
_ROUNDING = 1e-10
"""A slope along a whole range, relative to the value, that may be rounding."""


class Point(NamedTuple):
    """A design that was evaluated.

    Attributes:
        x: (n,).
        row: objective, or its residuals, and constrained quantities (m,); NaN where it fails.
        jacobian: derivatives of the row (m, n).
    """

    x: np.ndarray
    row: np.ndarray
    jacobian: np.ndarray

    @property
    def works(self) -> bool:
        """Whether all numbers are finite."""
        return bool(np.all(np.isfinite(self.row)) and np.all(np.isfinite(self.jacobian)))


@dataclass(frozen=True)
class Problem:
    """Minimise the objective's part of the rows of `evaluation` under bounds of the others.

    Attributes:
        evaluation: rows and their derivatives.
        constraints: name to `Bounded`, in the order of the rows.
        least_squares: whether the objective is the sum of squares of its elements.
    """

    evaluation: Evaluation
    constraints: Mapping[str, Bounded]
    least_squares: bool = False

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
    """A problem with objective and constraints divided by the size of their gradients.

    Equalities and inequalities are ``C x-row = e`` and ``G x-row ≥ g``, as SciPy takes them.
    """

    problem: Problem
    objective_scale: float
    scales: np.ndarray
    places: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @classmethod
    def about(cls, problem: Problem, start: Point) -> Scaled:
        """Scaled by the gradients at a point."""
        _, places, lower, upper = problem.bounds()
        value, slope = problem.objective(start)
        sizes = np.max(np.abs(start.jacobian[places]), axis=1, initial=0.0)
        limits = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper, 0.0))
        return cls(
            problem,
            float(_size(np.max(np.abs(slope)), value)),
            _size(sizes, np.maximum(np.abs(start.row[places]), np.abs(limits))),
            places,
            lower,
            upper,
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

    def equalities(self, point: Point) -> tuple[np.ndarray, np.ndarray]:
        """Residuals that must be zero, and their Jacobian."""
        k = self.equal
        rows, scale = self.places[k], self.scales[k]
        return (
            (point.row[rows] - self.lower[k]) / scale,
            point.jacobian[rows] / scale[:, None],
        )

    def inequalities(self, point: Point) -> tuple[np.ndarray, np.ndarray]:
        """Residuals that must not be negative, and their Jacobian."""
        below, above = self.one_sided
        c, j = point.row[self.places], point.jacobian[self.places]
        value = [
            (c[below] - self.lower[below]) / self.scales[below],
            (self.upper[above] - c[above]) / self.scales[above],
        ]
        slope = [
            j[below] / self.scales[below, None],
            -j[above] / self.scales[above, None],
        ]
        return np.concatenate(value), np.concatenate(slope)

    @property
    def one_sided(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the elements with a lower and of those with an upper limit."""
        open_ = ~self.equal
        return (
            np.flatnonzero(open_ & np.isfinite(self.lower)),
            np.flatnonzero(open_ & np.isfinite(self.upper)),
        )

    def violation(self, point: Point) -> float:
        """Largest violation of a scaled constraint."""
        equal, _ = self.equalities(point)
        unequal, _ = self.inequalities(point)
        return float(max(np.max(np.abs(equal), initial=0.0), np.max(-unequal, initial=0.0)))


def _size(slope: Any, value: Any) -> Any:
    """Sizes to divide by: of slopes, of values where slopes are only rounding, or else one."""
    slope, value = np.abs(slope), np.abs(value)
    size = np.where(slope > _ROUNDING * value, slope, value)
    return np.where(np.isfinite(size) & (size > 0.0), size, 1.0)
