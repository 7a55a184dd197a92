"""Which correlation of normal numbers gives a wanted rank correlation where values repeat.

Samples of a discrete input share ranks, and sharing them lowers Spearman's coefficient below that
of the continuous inputs behind it. With mean ranks, the coefficient is the linear correlation of
g(z) and h(w), where g is Φ for a continuum and for a discrete distribution the step function that
has, on each step, the mean of Φ. For standard normal z, w of correlation r,

    cov(g(z), h(w)) = Σ_k α_k β_k r^k,   α_k = E[g(z) h_k(z)],

with h_k the Hermite polynomials normalised to unit variance (Mehler 1866).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import gammaln, ndtri

# With so many terms the series is exact to 1e-7 up to this correlation.
_TERMS, _SERIES_END = 2000, 0.992


def latent_correlation(
    rho: float, steps: np.ndarray | None, other: np.ndarray | None
) -> float | None:
    """Correlation of the normal numbers behind two inputs of rank correlation `rho`.

    Args:
        rho: Spearman's coefficient, ties having the mean of their ranks.
        steps: cumulative probabilities of the first input's values; None if it is a continuum.
        other: those of the second.

    Returns:
        The correlation; None if no correlation makes `rho` so large.
    """
    if steps is None and other is None:
        return 2.0 * np.sin(np.pi * rho / 6.0)
    from scipy import optimize

    most = largest_rank_correlation(steps, other, sign=-1 if rho < 0.0 else 1)
    if abs(rho) > most + 1e-12:
        return None

    def attained(r: float) -> float:
        return rank_correlation(r, steps, other)

    end = np.copysign(_SERIES_END, rho)
    if abs(rho) < (last := abs(attained(end))):
        bracket = sorted((0.0, float(end)))
        root: Any = optimize.brentq(lambda r: attained(r) - rho, *bracket, xtol=1e-14)
        return float(root)
    # Near 1 the series converges slowly; steps approach their limit as √(1 − r).
    part = (most - abs(rho)) / (most - last)
    return float(np.copysign(1.0 - (1.0 - _SERIES_END) * part**2, rho))


def rank_correlation(r: float, steps: np.ndarray | None, other: np.ndarray | None) -> float:
    """Spearman's coefficient of two such inputs whose normal numbers have correlation `r`."""
    if steps is None and other is None:
        return float(6.0 / np.pi * np.arcsin(0.5 * r))
    series = _hermite(_key(steps)) * _hermite(_key(other))
    scale = np.sqrt(_variance(steps) * _variance(other))
    return float(np.polynomial.polynomial.polyval(r, series)) / scale


def largest_rank_correlation(
    steps: np.ndarray | None, other: np.ndarray | None, *, sign: int = 1
) -> float:
    """How near to `sign` the rank correlation of two such inputs can be, as an absolute value."""
    if sign < 0 and other is not None:  # h(1 − u) = 1 − h'(u), with h's steps in reverse order
        other = np.append(1.0 - other[-2::-1], 1.0)
    ends = np.unique(np.concatenate([[0.0, 1.0], _inner(steps), _inner(other)]))
    middle, width = 0.5 * (ends[1:] + ends[:-1]), np.diff(ends)
    product = (_mean_rank(steps, middle) - 0.5) * (_mean_rank(other, middle) - 0.5)
    return float(width @ product / np.sqrt(_variance(steps) * _variance(other)))


def _inner(steps: np.ndarray | None) -> np.ndarray:
    return np.array([]) if steps is None else steps[:-1]


def _mean_rank(steps: np.ndarray | None, u: np.ndarray) -> np.ndarray:
    """The function whose correlation is Spearman's, at probabilities `u`."""
    if steps is None:
        return u
    ends = np.concatenate([[0.0], steps])
    at = np.searchsorted(steps, u)
    return 0.5 * (ends[at] + ends[at + 1])


def _key(steps: np.ndarray | None) -> tuple[float, ...] | None:
    return None if steps is None else tuple(np.asarray(steps).tolist())


def _variance(steps: np.ndarray | None) -> float:
    """Of the mean ranks, over the number of samples: (1 − Σ p³)/12."""
    if steps is None:
        return 1.0 / 12.0
    return float((1.0 - np.sum(np.diff(steps, prepend=0.0) ** 3)) / 12.0)


@lru_cache(64)
def _hermite(steps: tuple[float, ...] | None) -> np.ndarray:
    """α_k, k = 0 … _TERMS − 1, of a continuum or of a step function; α_0, the mean, as zero.

    Integrating by parts, α_k = E[g'(z) h_{k−1}(z)] / √k; a jump δ at t adds δ φ(t) h_{k−1}(t) to
    the expectation.
    """
    k = np.arange(1, _TERMS)
    if steps is None:
        # E[φ(z) h_{2m}(z)] = (−1/4)^m √(2m)! / (2 √π m!), odd ones vanish.

        m = (k - 1) // 2
        size = np.exp(0.5 * gammaln(2 * m + 1) - gammaln(m + 1) - m * np.log(4.0))
        values = np.where(k % 2 == 1, (-1.0) ** m * size / (2.0 * np.sqrt(np.pi)), 0.0)
        return np.concatenate([[0.0], values / np.sqrt(k)])
    inner = np.array([0.0, *steps])
    jumps = 0.5 * (inner[2:] - inner[:-2])
    t = ndtri(inner[1:-1])
    previous, now = np.zeros_like(t), np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
    found = [0.0]
    for n in range(1, _TERMS):
        found.append(float(jumps @ now) / np.sqrt(n))
        # φ h_n from φ h_{n−1} and φ h_{n−2}
        previous, now = now, (t * now - np.sqrt(n - 1.0) * previous) / np.sqrt(n)
    return np.array(found)
