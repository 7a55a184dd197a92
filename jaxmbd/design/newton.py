"""Newton's method on the Karush-Kuhn-Tucker conditions, to finish what another method found.

With the active constraints A and the Hessian H of the Lagrangian, exact, a step is
``p = −A⁺ c − Z (Zᵀ H Z)⁻¹ Zᵀ g``, Z the null space of A (Nocedal and Wright, Numerical
Optimization, section 18.1). Where the reduced Hessian is not positive definite the magnitudes of
its eigenvalues are taken, and all are damped as much as the conditions need to hold better.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxmbd.design.optimality import AT_LIMIT, Optimality, optimality
from jaxmbd.design.problem import Ask, Point, Scaled

_STEPS = 30
_NEAR = (AT_LIMIT, 1e-3)
"""How near to a limit counts as at it: as found, and where a barrier kept a search away."""
_LONGEST = 0.3
_DAMPINGS = (1e-14, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3)
"""Least eigenvalues of the reduced Hessian that are tried, relative to its largest."""


def finished(
    scaled: Scaled, point: Point, ask: Ask, tolerance: float, feasible: float
) -> tuple[Point, int]:
    """The KKT point near a design, or the nearest to it that was met, and designs evaluated."""
    count = 0
    for near in _NEAR:
        if optimality(scaled, point).residual <= tolerance:
            break
        end, more = _towards(scaled, point, ask, tolerance, near)
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
    scaled: Scaled, point: Point, ask: Ask, tolerance: float, near: float
) -> tuple[Point, int]:
    """Steps as long as the conditions hold better, with what is near a limit taken as at it."""
    state, count = optimality(scaled, point, near), 0
    for _ in range(_STEPS):
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
        point, state = best, least
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
