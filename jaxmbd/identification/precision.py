"""Standard errors: of normal errors, of outliers, of errors that vary or hang together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxmbd.identification.autocorrelation import Series, scores
from jaxmbd.identification.information import Information, information
from jaxmbd.identification.losses import Loss
from jaxmbd.identification.noise import Noise

ERRORS = ("independent", "sandwich", "autocorrelated")
"""What is assumed of the errors: independent, of one size in a channel; independent, of any size;
of any size and correlated along the axis, by an autoregressive model of each series."""


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
        found = _independent(variance[here])
    elif errors == "sandwich":
        found = _independent(few * psi[here] ** 2)
    else:
        found = _autocorrelated(psi, stiffness, here, series)
    return information(jacobian[here], stiffness[here], found)


def _independent(variance: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda columns: columns.T @ (variance[:, None] * columns)


def _autocorrelated(
    psi: np.ndarray, stiffness: np.ndarray, here: np.ndarray, series: list[slice]
) -> Callable[[np.ndarray], np.ndarray]:
    def of(columns: np.ndarray) -> np.ndarray:
        whole = np.zeros((len(psi), columns.shape[1]))
        whole[here] = columns
        taken = stiffness[:, None] * whole
        parts = [Series(psi[rows], whole[rows], taken[rows], here[rows]) for rows in series]
        return scores(parts, np.linalg.pinv(whole.T @ taken, hermitian=True))

    return of
