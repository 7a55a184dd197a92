"""The same paths by differential evolution and a four-bar in closed form: what others search with.

Unknowns and penalties as in the literature on evolutionary synthesis: link lengths, coupler point,
position and angle of the frame, crank angles; a design that breaks the Grashof condition or the
order of its points is penalised. The loop is closed by the intersection of two circles, on one of
its two branches.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.optimize import differential_evolution

_PENALTY = 1e4


def coupler_points(x: np.ndarray, angles: np.ndarray, branch: float) -> np.ndarray:
    """Points (…, n, 2) of four-bars, by the intersection of two circles.

    x (…, 9): ground, crank, coupler, rocker, coupler point (2), pivot (2), angle of the frame;
    `angles` (…, n) are of the crank from the ground link. NaN where the loop does not close.
    """
    r1, r2, r3, r4, cx, cy, x0, y0, frame = (x[..., i, None] for i in range(9))
    bx, by = r2 * np.cos(angles), r2 * np.sin(angles)
    dx, dy = r1 - bx, -by
    d = np.sqrt(dx * dx + dy * dy)
    along = (r3 * r3 - r4 * r4 + d * d) / (2.0 * d)
    with np.errstate(invalid="ignore"):
        across = branch * np.sqrt(r3 * r3 - along * along)
    ux, uy = dx / d, dy / d
    ex, ey = (along * ux - across * uy) / r3, (along * uy + across * ux) / r3
    px, py = bx + cx * ex - cy * ey, by + cx * ey + cy * ex
    c, s = np.cos(frame), np.sin(frame)
    return np.stack([x0 + c * px - s * py, y0 + s * px + c * py], axis=-1)


def evolve(
    targets: Any, box: float, links: tuple[float, float], step: float | None, seed: int, rounds: int
) -> dict[str, Any]:
    """The better of both branches by SciPy's differential evolution, 100 designs a round."""
    targets = np.asarray(targets)
    count = len(targets)
    free = count if step is None else 1
    bounds = [links] * 4 + [(-box, box)] * 4 + [(0.0, 2.0 * np.pi)] * (1 + free)
    began, tried = time.perf_counter(), 0

    def cost(v: np.ndarray, branch: float) -> np.ndarray:
        nonlocal tried
        x, angles = v.T[:, :9], v.T[:, 9:]
        tried += len(x)
        if step is not None:
            angles = angles + np.deg2rad(step) * np.arange(count)
        points = coupler_points(x, angles, branch)
        error = np.sum((points - targets) ** 2, axis=(1, 2))
        turns = np.mod(np.diff(angles, axis=1), 2.0 * np.pi)
        disorder = turns.sum(axis=1) > 2.0 * np.pi * (1.0 + 1e-12)
        r1, r2, r3, r4 = x[:, :4].T
        locked = (r1 + r2 > r3 + r4) | (np.abs(r1 - r2) < np.abs(r3 - r4))
        return np.nan_to_num(error, nan=_PENALTY) + _PENALTY * (1.0 * disorder + locked)

    size = 100
    runs = [
        differential_evolution(
            cost,
            bounds,
            args=(branch,),
            maxiter=rounds,
            popsize=max(1, size // len(bounds)),
            rng=np.random.default_rng(seed),
            vectorized=True,
            updating="deferred",
            polish=False,
            tol=0.0,
        )
        for branch in (1.0, -1.0)
    ]
    best = min(float(r.fun) for r in runs)
    return {"error": best, "designs": tried, "seconds": time.perf_counter() - began}
