"""Whether a KKT point is a saddle: second-order conditions from differences of exact gradients.

At a local minimum the Hessian of the Lagrangian is positive semidefinite on the null space Z of the
active constraints (Nocedal and Wright, Numerical Optimization, theorem 12.5). Its columns are
differences of gradients here, because these are compiled already; a negative eigenvalue counts only
if the Lagrangian does fall along its eigenvector.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import null_space

from jaxmbd.design.optimality import AT_LIMIT, Optimality
from jaxmbd.design.problem import Point, Scaled
from jaxmbd.numerics.near_names import listed

FEW = 60
"""Most unknowns for which second derivatives are asked for unbidden."""
_STEP, _TRIED = 1e-5, 0.02
_NEGATIVE = 1e-3
"""Eigenvalues above this share of the largest may be errors of the differences."""


def falling_direction(scaled: Scaled, point: Point, state: Optimality) -> np.ndarray | None:
    """A direction (n,) in which a KKT point is no minimum; None where none is found.

    Args:
        scaled: the problem, with few unknowns and no scatter, or nothing is looked for.
        point: the design.
        state: its optimality.
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
        return lagrangian(Point(x, *(y[0] for y in evaluation.jacobians(x[None]))))

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


def told(scaled: Scaled, way: np.ndarray) -> str:
    """The saddle in words."""
    names = scaled.problem.evaluation.unknowns.names
    order = [i for i in np.argsort(-np.abs(way)) if abs(way[i]) > 0.1 * np.abs(way).max()]
    moves = listed([f"{names[i]} {'up' if way[i] > 0.0 else 'down'}" for i in order])
    return f"at a saddle; the objective falls with {moves}: start beside it, or give starts="
