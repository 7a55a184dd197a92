"""Optimality of a design: multipliers and the residual of the Karush-Kuhn-Tucker conditions.

With the Lagrangian ``L = f − Σ λ_i c_i − Σ μ_j x_j`` a minimum has ``∂L/∂x = 0``, multipliers of
inequalities at their limit that push inwards, and none at the others (Nocedal and Wright,
Numerical Optimization, theorem 12.1). The multipliers here are those that make the gradient least.

Second-order conditions tell whether a point that meets them is a saddle. At a local minimum
the Hessian of the Lagrangian is positive semidefinite on the null space Z of the active constraints
(Nocedal and Wright, Numerical Optimization, theorem 12.5). Its columns are differences of gradients
here, because these are compiled already; a negative eigenvalue counts only if the Lagrangian does
fall along its eigenvector.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import lsq_linear

from jaxmbd.design.problem import Point, Scaled
from jaxmbd.plumbing import listed

AT_LIMIT = 1e-7


class Optimality(NamedTuple):
    """Multipliers and residuals, in scaled variables and gradients.

    The multipliers of constraints are ∂f/∂limit in the objective's over the constraint's unit:
    positive at a lower, negative at an upper limit of an inequality.
    """

    multipliers: np.ndarray  # of the constraints (k,)
    at_limits: np.ndarray  # multipliers of the limits of x (n,), ∂f/∂(number in SI units)
    gradient: float  # largest element of ∂L/∂x over the largest of ∂f/∂x at the start
    violation: float  # largest of a scaled constraint
    apart: float  # largest distance from its limit of a scaled constraint or x with a multiplier
    active: np.ndarray  # which constraints are at a limit (k,)

    @property
    def residual(self) -> float:
        """The largest of gradient, violation and distance apart: zero at a KKT point."""
        return max(self.gradient, self.violation, self.apart)


def optimality(scaled: Scaled, point: Point, near: float = AT_LIMIT) -> Optimality:
    """Optimality of a point, by bounded least squares for the multipliers.

    What is as `near` to a limit, in scaled units, counts as at it.
    """
    problem, size, count = scaled.problem, scaled.objective_scale, len(scaled.places)
    _, slope = scaled.value(point)
    low, high = problem.limits
    # The limits of x are bounds like others; what binds has the sign of its multiplier, or any.
    values = np.append(point.row[scaled.places], point.x)
    lower, upper = np.append(scaled.lower, low), np.append(scaled.upper, high)
    scales = np.append(scaled.scales, np.ones(len(low)))
    rows = np.append(point.jacobian[scaled.places], np.eye(len(low)), axis=0) / scales[:, None]
    equal = lower == upper
    at_lower = equal | (values <= lower + near * np.append(scaled.scales, _room(-low)))
    at_upper = equal | (values >= upper - near * np.append(scaled.scales, _room(high)))
    binds = np.flatnonzero(at_lower | at_upper)
    positive, negative = (at_lower & ~at_upper)[binds], (at_upper & ~at_lower)[binds]
    solved = _bounded(rows[binds].T, slope, positive, negative)
    left = slope - rows[binds].T @ solved
    units = np.append(scaled.scales, problem.evaluation.unknowns.scale)
    multipliers = np.zeros(len(values))
    multipliers[binds] = size * solved / units[binds]
    gradient = float(np.max(np.abs(left), initial=0.0))
    gaps = np.minimum(np.abs(values - lower), np.abs(upper - values)) / scales
    apart = float(np.max(gaps[multipliers != 0.0], initial=0.0))
    active = (at_lower | at_upper)[:count]
    found = multipliers[:count], multipliers[count:], gradient, scaled.violation(point), apart
    return Optimality(*found, active)


def _room(x: np.ndarray) -> np.ndarray:
    """Distances of the start from limits, at most one, and one where it is at the limit."""
    return np.where(x > 0.0, np.minimum(x, 1.0), 1.0)


def _bounded(
    columns: np.ndarray, slope: np.ndarray, positive: np.ndarray, negative: np.ndarray
) -> np.ndarray:
    """Multipliers of least residual with the signs of their limits."""
    if not len(positive):
        return np.zeros(0)
    signs = np.where(positive, 0.0, -np.inf), np.where(negative, 0.0, np.inf)
    return lsq_linear(columns, slope, signs, method="bvls", tol=1e-15).x


FEW = 60
"""Most unknowns for which second derivatives are computed without being asked for."""
_STEP, _TRIED = 1e-5, 0.02
_NEGATIVE = 1e-3
"""Eigenvalues above this share of the largest may be errors of the differences."""


def falling_direction(scaled: Scaled, point: Point, state: Optimality) -> np.ndarray | None:
    """A direction (n,) in which a KKT point is no minimum; None where none is found.

    It is looked for where there are few unknowns and no scatter.
    """
    evaluation, (low, high) = scaled.problem.evaluation, scaled.problem.limits
    if len(point.x) > FEW or evaluation.scatter is not None:
        return None
    free = np.flatnonzero(np.minimum(point.x - low, high - point.x) > AT_LIMIT)
    rows = point.jacobian[scaled.places[state.active]][:, free]
    basis = null_space(rows) if len(rows) else np.eye(len(free))

    def lagrangian(at: Point) -> tuple[float, np.ndarray]:
        value, slope = scaled.problem.objective(at)
        bound = float(state.multipliers @ at.row[scaled.places])
        return value - bound, slope - state.multipliers @ at.jacobian[scaled.places]

    def beside(step: np.ndarray) -> tuple[float, np.ndarray]:
        x = np.clip(point.x + step, low, high)
        return lagrangian(scaled.problem.point(x))

    here, slope = lagrangian(point)
    inwards = np.where(high - point.x < _STEP, -_STEP, _STEP)
    steps = (inwards[:, None] * np.eye(len(point.x)))[free]
    columns = [(beside(step)[1] - slope)[free] / step.sum() for step in steps]
    hessian = basis.T @ np.reshape(columns, (len(free), len(free))) @ basis
    if not (hessian.size and np.all(np.isfinite(hessian))):
        return None
    sizes, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
    if sizes[0] >= -_NEGATIVE * np.abs(sizes).max():
        return None
    way = np.zeros_like(point.x)
    way[free] = _TRIED * (basis @ vectors[:, 0])
    falls = (w for w in (way, -way) if here - beside(w)[0] > -0.25 * sizes[0] * _TRIED**2)
    return next(falls, None)


def saddle_text(scaled: Scaled, way: np.ndarray) -> str:
    """The saddle in words."""
    names = scaled.problem.evaluation.unknowns.names
    order = [i for i in np.argsort(-np.abs(way)) if abs(way[i]) > 0.1 * np.abs(way).max()]
    moves = listed([f"{names[i]} {'up' if way[i] > 0.0 else 'down'}" for i in order])
    return f"at a saddle; the objective falls with {moves}: start beside it, or give starts="
