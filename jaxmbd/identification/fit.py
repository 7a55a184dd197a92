"""The fit of one set of data: Gauss–Newton steps in a trust region, noise estimated on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.identification.losses import Loss
from jaxmbd.identification.noise import Noise
from jaxmbd.plumbing import optional

ROUNDS = 60
"""At most this often samples are weighted anew."""

PATIENCE = 8
"""Evaluations of a round: while weights change, it is no use to follow a valley to its end."""

SAME_NOISE = 1e-3
"""A relative change of the noise at which these rounds may end."""

SAME_FIT = 1e-2
"""A change of the fit in standard errors, of all its freedoms together, at which they may end."""

Evaluate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Of x (n,): predictions (N,) and their derivatives (N, n)."""


class Fit(NamedTuple):
    """What a fit found.

    Attributes:
        x: scaled unknowns (n,).
        y, jacobian: predictions (N,) and derivatives (N, n) there.
        sigma: standard deviation of each sample's noise (N,).
        likelihood: minus its logarithm, ``Σ ρ(r) + log σ``, up to a constant.
        converged: whether a step too small to matter was reached.
        message: how it ended.
        evaluations: how often the model was evaluated.
    """

    x: np.ndarray
    y: np.ndarray
    jacobian: np.ndarray
    sigma: np.ndarray
    likelihood: float
    converged: bool
    message: str
    evaluations: int


class _Memory:
    """Predictions with derivatives, of which the last are kept."""

    def __init__(self, evaluate: Evaluate):
        self.evaluate, self.count = evaluate, 0
        self.x: np.ndarray | None = None
        self.last: Any = None

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.x is None or not np.array_equal(x, self.x):
            self.x, self.last = x.copy(), self.evaluate(x)
            self.count += 1
        return self.last


def fitted(
    evaluate: Evaluate,
    start: np.ndarray,
    limits: tuple[np.ndarray, np.ndarray],
    data: np.ndarray,
    noise: Noise,
    loss: Loss,
    max_evaluations: int,
) -> Fit:
    """The x that minimises ``Σ ρ((data − y(x)) / σ)`` within limits.

    Iteratively reweighted least squares: weights ``ψ(r)/r`` and unknown σ are taken from the
    residuals, the fit is repeated from where it ended, until they settle. It descends for every
    loss that grows slower than a parabola (Huber, Robust Statistics, 1981, 7.8), also where
    samples change sides of a kink at every step.

    Args:
        evaluate: predictions with derivatives; NaN where the model fails, which the search avoids.
        start: x to start from (n,); the model must not fail there.
        limits: lower and upper limit of x.
        data: (N,), NaN where missing.
        noise: known and unknown standard deviations.
        loss: ρ.
        max_evaluations: of the model, in all.
    """
    model, here, x = _Memory(evaluate), np.isfinite(data), start
    sigma = noise.from_residuals(data - model(x)[0], np.zeros(len(data)), robust=True)
    once = np.isinf(loss.margin) and (not noise.estimated or len(noise.groups) == 1)
    found: Any = None
    settled = False
    for _ in range(ROUNDS):
        before = x
        r = np.where(here, (data - model(x)[0]) / sigma, 0.0)
        weight = np.where(here, np.sqrt(loss.weight(r)), 0.0) / sigma
        left = max_evaluations - model.count
        most = left if once else min(left, PATIENCE)
        found = _least_squares(model, x, limits, data, weight, here, max(1, most))
        x = found.x
        y, jac = model(x)
        lever = leverages(jac * weight[:, None], here)
        new = noise.from_residuals(data - y, lever, robust=np.isfinite(loss.margin))
        change, sigma = float(np.max(np.abs(np.log(new / sigma)))), new
        moved = float(np.linalg.norm((weight[:, None] * jac)[here] @ (x - before)))
        settled = once or (found.status > 0 and change < SAME_NOISE and moved < SAME_FIT)
        if settled or model.count >= max_evaluations:
            break
    y, jac = model(x)
    least = loss.value(((data - y) / sigma)[here]) + np.sum(np.log(sigma[here]))
    message = str(found.message) if settled else "The weights of the samples did not settle."
    ended = settled and found.status > 0
    return Fit(x, y, jac, sigma, float(least), ended, message, model.count)


def _least_squares(
    model: _Memory,
    x: np.ndarray,
    limits: tuple[np.ndarray, np.ndarray],
    data: np.ndarray,
    weight: np.ndarray,
    here: np.ndarray,
    most: int,
) -> Any:
    """SciPy's trust-region reflective search for the least ``Σ (w (data − y))²``."""
    return optional("scipy.optimize", "campaign", "identify").least_squares(
        lambda x: (weight * (model(x)[0] - data))[here],
        x,
        lambda x: (weight[:, None] * model(x)[1])[here],
        bounds=limits,
        method="trf",
        xtol=1e-9,
        ftol=1e-10,
        gtol=1e-10,
        max_nfev=most,
    )


def leverages(jacobian: np.ndarray, here: np.ndarray) -> np.ndarray:
    """The diagonal (N,) of the projector onto the columns of a Jacobian; 0 where data are missing.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.identification.fit import leverages
        >>> leverages(np.ones((4, 1)), np.array([True, True, True, False])).round(3).tolist()
        [0.333, 0.333, 0.333, 0.0]
    """
    norms = np.linalg.norm(jacobian[here], axis=0)
    columns = jacobian[here] / np.where(norms > 0.0, norms, 1.0)
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    found = np.zeros(len(here))
    found[here] = np.sum(u[:, s > 1e-10 * max(s[0], 1.0)] ** 2, axis=1)
    return found
