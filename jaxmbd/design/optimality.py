"""Optimality of a design: the Karush-Kuhn-Tucker conditions, and Newton's method on them.

With the Lagrangian ``L = f − Σ λ_i c_i − Σ μ_j x_j`` a minimum has ``∂L/∂x = 0``, multipliers of
inequalities at their limit that push inwards, and none at the others (Nocedal and Wright,
Numerical Optimization, theorem 12.1). The multipliers here are those that make the gradient least.

Second-order conditions tell whether a point that meets them is a saddle. At a local minimum
the Hessian of the Lagrangian is positive semidefinite on the null space Z of the active constraints
(theorem 12.5 there). Its columns are differences of gradients here, because these are compiled
already; a negative eigenvalue counts only if the Lagrangian does fall along its eigenvector.

`finished` ends what another method found. With the active constraints A and the Hessian H of the
Lagrangian, exact, a step of Newton's method is ``p = −A⁺ c − Z (Zᵀ H Z)⁻¹ Zᵀ g`` (section 18.1
there). Where the reduced Hessian is not positive definite the magnitudes of its eigenvalues are
taken, and all are damped as much as the conditions need to hold better.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import lsq_linear

from jaxmbd.design.problem import Ask, Point, Scaled
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


_STEPS = 30
_NEAR = (AT_LIMIT, 1e-3)
"""How near to a limit counts as at it: as found, and where a barrier kept a search away."""
_LONGEST = 0.3
_GAIN = 0.5
"""What a step must leave of the residual; one that leaves more is not near a KKT point."""
_DAMPINGS = (1e-14, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3)
"""Least eigenvalues of the reduced Hessian that are tried, relative to its largest."""


def finished(
    scaled: Scaled, point: Point, ask: Ask, tolerance: float, feasible: float, steps: int
) -> tuple[Point, int]:
    """The KKT point near a design, or the nearest to it that was met, and designs evaluated.

    There are at most `steps` to what is near in either sense.
    """
    count = 0
    for near in _NEAR:
        if optimality(scaled, point).residual <= tolerance:
            break
        end, more = _towards(scaled, point, ask, tolerance, near, min(steps, _STEPS))
        count += more
        if _is_better(scaled, end, point, tolerance, feasible):
            point = end
    return point, count


def _is_better(scaled: Scaled, end: Point, point: Point, tolerance: float, feasible: float) -> bool:
    """Whether the conditions hold better, without loss of feasibility or, unless optimal, merit."""
    new, old = optimality(scaled, end), optimality(scaled, point)
    if new.residual >= old.residual or new.violation > max(feasible, old.violation):
        return False
    lower = scaled.value(end)[0] <= scaled.value(point)[0]
    return lower or new.residual <= tolerance or old.violation > feasible


def _towards(
    scaled: Scaled, point: Point, ask: Ask, tolerance: float, near: float, steps: int
) -> tuple[Point, int]:
    """Steps as long as the conditions hold better, with what is near a limit taken as at it."""
    state, count = optimality(scaled, point, near), 0
    for _ in range(steps):
        if state.residual <= tolerance:
            break
        model = _Model.at(scaled, point, state, ask)
        best, least = None, state
        for damping in _DAMPINGS:
            trial = _moved(scaled, point, model.step(damping), ask)
            count += 1
            if trial.works:
                found = optimality(scaled, trial, near)
                if found.residual < least.residual:
                    best, least = trial, found
            if least.residual < 0.1 * state.residual:
                break
        if best is None:
            break
        slow = least.residual > _GAIN * state.residual
        point, state = best, least
        if slow:
            break
    return point, count


def _moved(scaled: Scaled, point: Point, step: np.ndarray, ask: Ask) -> Point:
    low, high = scaled.problem.limits
    x = np.clip(point.x + step, low, high)
    return Point(x, *ask(("design", x)))


class _Model(NamedTuple):
    """The quadratic model of a problem at a design, of free unknowns."""

    free: np.ndarray  # which unknowns are at no limit (n,)
    hessian: np.ndarray  # of the Lagrangian
    slope: np.ndarray  # of the objective
    rows: np.ndarray  # active constraints
    gap: np.ndarray  # how far they are from their limits
    room: tuple[np.ndarray, np.ndarray]  # to the limits in both directions (n,)

    @classmethod
    def at(cls, scaled: Scaled, point: Point, state: Optimality, ask: Ask) -> _Model:
        problem, (low, high) = scaled.problem, scaled.problem.limits
        size = scaled.objective_scale
        weights, added = problem.curvature(point)
        weights[scaled.places] -= state.multipliers
        hessian = ask(("hessian", point.x, weights / size))[0] + added / size
        free = state.at_limits == 0.0
        binds = scaled.equal | (state.multipliers != 0.0)
        places, sizes = scaled.places[binds], scaled.scales[binds]
        at = np.where(state.multipliers[binds] < 0.0, scaled.upper[binds], scaled.lower[binds])
        return cls(
            free,
            hessian[np.ix_(free, free)],
            scaled.value(point)[1][free],
            point.jacobian[places][:, free] / sizes[:, None],
            (point.row[places] - at) / sizes,
            (point.x - low, high - point.x),
        )

    def step(self, damping: float) -> np.ndarray:
        """A step (n,), shortened where it would cross limits."""
        step = np.where(self.room[0] < self.room[1], -self.room[0], self.room[1])  # onto limits
        step[self.free] = _reduced(self.hessian, self.slope, self.rows, self.gap, damping)
        longest = float(np.max(np.abs(step), initial=0.0))
        step *= min(1.0, _LONGEST / longest) if longest > 0.0 else 1.0
        room = np.where(step > 0.0, self.room[1], self.room[0])
        crossing = (np.abs(step) > room) & (room > 1e-9)
        share = room[crossing] / np.abs(step[crossing])
        return step * np.min(share, initial=1.0)


def _ranges(rows: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """``A⁺`` and an orthonormal basis of the null space of A (k, n)."""
    if not len(rows):
        return np.zeros((n, 0)), np.eye(n)
    u, s, vh = np.linalg.svd(rows)
    rank = int(np.sum(s > 1e-12 * np.max(s, initial=1e-300)))
    return vh[:rank].T @ (u[:, :rank] / s[:rank]).T, vh[rank:].T


def _reduced(
    h: np.ndarray, g: np.ndarray, rows: np.ndarray, gap: np.ndarray, damping: float
) -> np.ndarray:
    """``−A⁺ c − Z |Zᵀ H Z|⁻¹ Zᵀ (g + H p)``, p the first term."""
    inverse, null = _ranges(rows, len(g))
    onto = -inverse @ gap
    if not null.shape[1]:
        return onto
    values, vectors = np.linalg.eigh(null.T @ (0.5 * (h + h.T)) @ null)
    sizes = np.abs(values) + damping * max(np.max(np.abs(values)), 1e-300)
    along = vectors @ ((vectors.T @ (null.T @ (g + h @ onto))) / sizes)
    return onto - null @ along
