"""What data tell about unknowns: Fisher's information, its covariance, what it leaves open."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

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
