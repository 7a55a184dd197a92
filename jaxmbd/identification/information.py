"""What data tell about unknowns: Fisher's information, its covariance, what it leaves open.

Standard errors: of normal errors, of outliers, of errors that vary or hang together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jaxmbd.identification.autocorrelation import Series, scores
from jaxmbd.identification.losses import Loss
from jaxmbd.identification.noise import Noise

SILENT = 1e-9
"""An unknown whose effect is a smaller share of the largest one has none, up to rounding."""

ALIKE = 1e-6
"""Below this singular value, columns of unit length are dependent, up to rounding."""

TAKES_PART = 1e-4
"""Least component of a null direction that counts, up to rounding."""


class Information(NamedTuple):
    """What normalised residuals tell about scaled unknowns, to first order.

    Attributes:
        jacobian: derivatives over standard deviations (N, n), of the samples that there are.
        open: unknowns that alone are not determined (n,), because a null direction moves them.
        null: directions that change nothing that was measured (n, d).
        covariance: of the unknowns (n, n), zero along `null`.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.identification.information import information
        >>> found = information(np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 1.0]]))
        >>> (found.null[:, 0] / found.null[0, 0]).round(6).tolist()[:2], found.open.tolist()
        ([1.0, -1.0], [True, True, False])
    """

    jacobian: np.ndarray
    open: np.ndarray
    null: np.ndarray
    covariance: np.ndarray

    def errors(self) -> np.ndarray:
        """Standard errors (n,): infinite where open."""
        found = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return np.where(self.open, np.inf, found)

    def correlation(self) -> np.ndarray:
        """Correlations (n, n), NaN where an unknown is open."""
        s = self.errors()
        s = np.where(np.isfinite(s) & (s > 0.0), s, np.nan)
        return self.covariance / np.outer(s, s)


def information(
    jacobian: np.ndarray,
    stiffness: np.ndarray | None = None,
    scores: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Information:
    """Information and covariance at a minimum of ``Σ ρ(r)``.

    The covariance is ``H⁻¹ M H⁻¹`` with ``H = Jᵀ a J`` and M that of the scores ``Jᵀ ψ`` (Huber
    1967), and for least squares of residuals of variance one ``(Jᵀ J)⁻¹``.

    Args:
        jacobian: derivatives of the normalised residuals (N, n).
        stiffness: a, ``dψ/dr`` of each residual, or its mean (N,).
        scores: of columns (N, k) to M (k, k); by default M = H.
    """
    n = jacobian.shape[1]
    norms = np.linalg.norm(jacobian, axis=0)
    heard = norms > SILENT * max(float(norms.max(initial=0.0)), 1e-300)
    # Columns of unit length: which are dependent must not depend on anyone's units.
    triangle = np.linalg.qr(jacobian[:, heard] / norms[heard], mode="r")
    _, s, vt = np.linalg.svd(triangle, full_matrices=True)
    s = np.concatenate([s, np.zeros(len(vt) - len(s))])
    known = s > ALIKE * (s[0] if len(s) else 1.0)
    basis, null, shares = (np.zeros((n, k)) for k in (known.sum(), (~known).sum(), (~known).sum()))
    basis[heard] = vt[known].T / norms[heard, None]
    null[heard] = vt[~known].T / norms[heard, None]
    shares[heard] = vt[~known].T
    silent = ~heard
    columns = jacobian @ basis
    h = columns.T @ (columns if stiffness is None else stiffness[:, None] * columns)
    inverse = np.linalg.pinv(h, hermitian=True)
    whole = inverse if scores is None else inverse @ scores(columns) @ inverse
    moved = np.linalg.norm(shares, axis=1) > TAKES_PART
    null = np.hstack([null, np.eye(n)[:, silent]])
    return Information(jacobian, moved | silent, null, basis @ whole @ basis.T)


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
