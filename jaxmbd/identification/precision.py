"""Standard errors: of normal errors, of outliers, of errors that vary or hang together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxmbd.identification.information import Information, information
from jaxmbd.identification.losses import Loss
from jaxmbd.identification.noise import Noise

ERRORS = ("independent", "sandwich", "autocorrelated")
"""What is assumed of the errors: independent, of one size in a channel; independent, of any size;
of any size and correlated along the axis (Newey and West, Econometrica 55, 1987)."""


def precision(
    jacobian: np.ndarray,
    residuals: np.ndarray,
    noise: Noise,
    series: list[slice],
    loss: Loss,
    errors: str,
) -> Information:
    """Information and covariance of a fit.

    Args:
        jacobian: derivatives of the predictions over standard deviations (N, n).
        residuals: normalised (N,), NaN where missing.
        noise: its channels.
        series: the places of each channel of each measurement.
        loss: of the fit.
        errors: one of `ERRORS`.
    """
    here = np.isfinite(residuals)
    if errors == "independent" and np.isinf(loss.margin):
        return information(jacobian[here])
    r = np.where(here, residuals, 0.0)
    psi, slope = loss.psi(r), loss.stiffness(r)
    count = int(here.sum())
    few = count / max(count - jacobian.shape[1], 1)  # the fit has made the residuals smaller
    stiffness, variance = np.zeros(len(r)), np.zeros(len(r))
    for rows in noise.groups.values():
        rows = rows & here
        stiffness[rows] = np.mean(slope[rows])
        variance[rows] = few * np.mean(psi[rows] ** 2)
    if errors == "independent":
        scores = _independent(variance[here])
    elif errors == "sandwich":
        scores = _independent(few * psi[here] ** 2)
    else:
        scores = _autocorrelated(psi, here, series, few)
    return information(jacobian[here], stiffness[here], scores)


def _independent(variance: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda columns: columns.T @ (variance[:, None] * columns)


def _autocorrelated(
    psi: np.ndarray, here: np.ndarray, series: list[slice], few: float
) -> Callable[[np.ndarray], np.ndarray]:
    """``Σ w_l Σ s_t s_{t+l}ᵀ`` with Bartlett's weights, for each series apart."""

    def scores(columns: np.ndarray) -> np.ndarray:
        whole = np.zeros((len(psi), columns.shape[1]))
        whole[here] = columns
        s, total = psi[:, None] * whole, np.zeros((columns.shape[1],) * 2)
        for rows in series:
            part = s[rows]
            lags = int(4.0 * (len(part) / 100.0) ** (2.0 / 9.0))
            total += part.T @ part
            for lag in range(1, min(lags, len(part) - 1) + 1):
                both = part[lag:].T @ part[:-lag]
                total += (1.0 - lag / (lags + 1.0)) * (both + both.T)
        return few * total

    return scores
