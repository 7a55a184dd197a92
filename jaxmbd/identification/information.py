"""What data tell about unknowns: Fisher's information, its covariance, what it leaves open.

Standard errors are those of normal errors, of outliers, of errors that vary, or of errors that are
correlated along an axis. The latter are autoregressive, ``e_t = Σ_j a_j e_{t−j} + u_t``: partial
correlations of a series come from the residuals' autocovariances by Levinson's recursion, its order
from Schwarz's criterion (Annals of Statistics 6, 1978). Residuals are less correlated than errors,
because the fit has taken up what it could of them: what it took is computed from the errors found
so far and added, until it settles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from jaxmbd.identification.fit import Loss, Noise

SILENT = 1e-9
"""An unknown whose effect is a smaller share of the largest one has none, up to rounding."""

ALIKE = 1e-6
"""Below this singular value, columns of unit length are dependent, up to rounding."""

TAKES_PART = 1e-4
"""Least component of a null direction that counts, up to rounding."""


class Information(NamedTuple):
    """What normalised residuals tell about scaled unknowns, to first order."""

    jacobian: np.ndarray  # over standard deviations, of the samples that there are (N, n)
    open: np.ndarray  # unknowns that alone are not determined: a null direction moves them (n,)
    null: np.ndarray  # directions that change nothing that was measured (n, d)
    covariance: np.ndarray  # of the unknowns (n, n), zero along `null`

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
    1967), and for least squares of residuals of variance one ``(Jᵀ J)⁻¹``. The stiffness a (N,) is
    ``dψ/dr`` of each residual, or its mean; `scores` makes M (k, k) of columns (N, k).
    """
    n = jacobian.shape[1]
    norms = np.linalg.norm(jacobian, axis=0)
    acts = norms > SILENT * max(float(norms.max(initial=0.0)), 1e-300)
    # Columns of unit length: which are dependent must not depend on anyone's units.
    triangle = np.linalg.qr(jacobian[:, acts] / norms[acts], mode="r")
    _, s, vt = np.linalg.svd(triangle, full_matrices=True)
    s = np.concatenate([s, np.zeros(len(vt) - len(s))])
    known = s > ALIKE * (s[0] if len(s) else 1.0)
    basis, null, shares = (np.zeros((n, k)) for k in (known.sum(), (~known).sum(), (~known).sum()))
    basis[acts] = vt[known].T / norms[acts, None]
    null[acts] = vt[~known].T / norms[acts, None]
    shares[acts] = vt[~known].T
    columns = jacobian @ basis
    h = columns.T @ (columns if stiffness is None else stiffness[:, None] * columns)
    inverse = np.linalg.pinv(h, hermitian=True)
    whole = inverse if scores is None else inverse @ scores(columns) @ inverse
    moved = np.linalg.norm(shares, axis=1) > TAKES_PART
    null = np.hstack([null, np.eye(n)[:, ~acts]])
    return Information(jacobian, moved | ~acts, null, basis @ whole @ basis.T)


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

    Of derivatives (N, n) over standard deviations and normalised residuals (N,), NaN where missing;
    `series` are the places of each channel of each measurement, `errors` is one of `ERRORS`.
    """
    here = np.isfinite(residuals)
    if errors == "independent" and not loss.robust:
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


_ROUNDS = 20
_SETTLED = 1e-3
_ORDER_ROUNDS = 4
"""Rounds in which the order may change."""

_MOST = 0.97
"""Largest partial correlation: of errors closer to a drift a record does not tell the size."""

_FADED = 512
"""Samples after which the errors before a record no longer matter."""


@dataclass(frozen=True, eq=False)
class Series:
    """One channel of one measurement; all is zero where samples are missing."""

    psi: np.ndarray  # how residuals pull (n,)
    columns: np.ndarray  # derivatives of the normalised predictions (n, k)
    taken: np.ndarray  # the same times how the pull grows with the residual (n, k)
    here: np.ndarray  # which samples there are (n,)

    @cached_property
    def order(self) -> int:
        """Largest that is tried: five stretches without gaps for each of its coefficients."""
        limit = int(10.0 * np.log10(max(int(self.here.sum()), 1)))
        return max((p for p in range(1, limit + 1) if self.whole(p).sum() >= 5 * p), default=0)

    def whole(self, order: int) -> np.ndarray:
        """Which samples there are with so many before them (n − order,)."""
        ahead = np.concatenate([[0], np.cumsum(self.here)])
        return ahead[order + 1 :] - ahead[: max(len(ahead) - order - 1, 0)] == order + 1

    @cached_property
    def period(self) -> int:
        """Of a circle on which the beginning of the record has forgotten its end."""
        return 2 ** int(np.ceil(np.log2(len(self.psi) + _FADED)))

    def sums(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """``Σ_t a_t · b_{t+l}`` for all lags l that are needed."""
        both = np.fft.rfft(a.T, self.period).conj() * np.fft.rfft(b.T, self.period)
        total = both.reshape(-1, both.shape[-1]).sum(axis=0)
        return np.fft.irfft(total, self.period)[: self.order + 1]


class Errors(NamedTuple):
    """Errors of a series."""

    partial: np.ndarray  # partial correlations (p,)
    variance: float

    @property
    def coefficients(self) -> np.ndarray:
        """A (p,)."""
        found = np.zeros(0)
        for k in self.partial:
            found = np.append(found - k * found[::-1], k)
        return found

    @property
    def innovation(self) -> float:
        """Variance of u."""
        return float(self.variance * np.prod(1.0 - self.partial**2))

    def filter(self, period: int) -> np.ndarray:
        """Of errors to u, at the frequencies of a period."""
        return np.fft.rfft(np.append(1.0, -self.coefficients), period)

    def times(self, columns: np.ndarray, period: int) -> np.ndarray:
        """The errors' covariance times columns (n, k)."""
        spectrum = self.innovation / np.abs(self.filter(period)) ** 2
        found = np.fft.rfft(columns, period, axis=0) * spectrum[:, None]
        return np.fft.irfft(found, period, axis=0)[: len(columns)]

    def uncertain(self, count: int) -> list[Errors]:
        """Errors as likely as these, either side along each partial correlation.

        Its arcsine has a variance of one over the number of samples.
        """
        angle, found = np.arcsin(self.partial), []
        step = np.sqrt(len(angle) / max(count, 1))
        for j in range(len(angle)):
            for side in (-step, step):
                moved = angle.copy()
                moved[j] = np.clip(angle[j] + side, -np.arcsin(_MOST), np.arcsin(_MOST))
                partial = np.sin(moved)
                found.append(Errors(partial, self.innovation / float(np.prod(1.0 - partial**2))))
        return found or [self]


def scores(series: list[Series], inverse: np.ndarray) -> np.ndarray:
    """Covariance (k, k) of the scores ``Xᵀ ψ``, of series whose errors are unrelated.

    ``Xᵀ e = Zᵀ u`` with Z the columns through the filter that makes e of u, backwards; the u may
    be of any size, as of a sandwich. It is the mean over errors that are as likely as those found
    (the coefficients are estimates, too; without it small records claim too much). The inverse
    (k, k) is that of ``Xᵀ diag(ψ') X`` of all series.
    """
    total = np.zeros_like(inverse)
    for one, errors in zip(series, fitted_errors(series, inverse), strict=True):
        likely = errors.uncertain(int(one.here.sum()))
        total += sum(_of_any_size(one, its) for its in likely) / len(likely)
    return total


def _of_any_size(one: Series, errors: Errors) -> np.ndarray:
    """``Zᵀ diag(u²) Z``; the mean of u² is that of the errors, and where it is unknown so is u²."""
    period, order = one.period, len(errors.partial)
    gain = errors.filter(period)
    u = np.fft.irfft(np.fft.rfft(one.psi, period) * gain, period)
    z = np.fft.irfft(np.fft.rfft(one.columns.T, period) / gain.conj(), period).T
    size = np.full(period, errors.innovation)
    at = order + np.flatnonzero(one.whole(order))
    if (mean := np.mean(u[at] ** 2) if len(at) else 0.0) > 0.0:
        size[at] *= u[at] ** 2 / mean
    return z.T @ (size[:, None] * z)


def fitted_errors(series: list[Series], inverse: np.ndarray) -> list[Errors]:
    """The errors of each series; the inverse is as of `scores`."""
    raw = [one.sums(one.psi, one.psi) for one in series]
    pairs = [np.maximum(one.sums(one.here * 1.0, one.here * 1.0), 1.0) for one in series]
    found = [Errors(np.zeros(0), float(c[0] / n[0])) for c, n in zip(raw, pairs, strict=True)]
    for turn in range(_ROUNDS):
        moved = [e.times(s.columns, s.period) for e, s in zip(found, series, strict=True)]
        total = sum(s.columns.T @ x for s, x in zip(series, moved, strict=True))
        spread = inverse @ total @ inverse
        before, found = found, []
        for s, x, c, n, old in zip(series, moved, raw, pairs, before, strict=True):
            with_fit = np.where(s.here[:, None], x @ inverse, 0.0)
            taken = s.sums(s.taken, with_fit) + s.sums(with_fit, s.taken)
            taken -= s.sums(s.taken @ spread, s.taken)
            g = (c + taken) / n
            order = len(old.partial) if turn >= _ORDER_ROUNDS else None
            found.append(_autoregression(g if g[0] > 0.0 else c / n, int(n[0]), order))
        if turn >= _ORDER_ROUNDS and all(map(_alike, before, found)):
            break
    return found


def _autoregression(g: np.ndarray, count: int, order: int | None) -> Errors:
    """Of autocovariances (m,), by Levinson's recursion; of the order that is least by Schwarz."""
    partial: list[float] = []
    a, v = np.zeros(0), float(g[0])
    for m in range(1, len(g) if v > 0.0 else 1):
        k = float((g[m] - a @ g[m - 1 : 0 : -1]) / v)
        if abs(k) > _MOST and partial:
            break
        k = float(np.clip(k, -_MOST, _MOST))
        partial.append(k)
        a, v = np.append(a - k * a[::-1], k), v * (1.0 - k * k)
    if order is None and partial:
        size = count * np.cumsum(np.log1p(-np.square(partial)))
        order = 1 + int(np.argmin(size + np.log(count) * np.arange(1, len(partial) + 1)))
    return Errors(np.array(partial[:order]), float(g[0]))


def _alike(a: Errors, b: Errors) -> bool:
    same = len(a.partial) == len(b.partial)
    close = abs(a.variance - b.variance) <= _SETTLED * b.variance
    return same and close and bool(np.all(np.abs(a.partial - b.partial) <= _SETTLED))
