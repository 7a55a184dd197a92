"""The covariance of what a sampler draws: of any distributions, by Hermite's polynomials.

A number is a function g(z) of a standard normal number z, its quantile at Φ(z). Of two of them,
whose normal numbers have correlation r, and with h_k the normalised polynomials (Mehler 1866),

    cov(g(z), f(w)) = Σ_k α_k β_k r^k,   α_k = E[g(z) h_k(z)], β_k = E[f(w) h_k(w)].

What is left of g after the last term is shared only by numbers that are functions of the same z.
Each term is positive semidefinite (Schur), and so is the sum. Of normal distributions the first
term is all there is; where values jump (`Choice`), the rest is a few percent of the variance, and
is missed in part where such inputs are correlated by more than 0.98.

What a user's own distribution makes of unit numbers of another shape is taken as uncorrelated.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jaxmbd.sampling.correlation import Copula, Covariance
from jaxmbd.sampling.names import components
from jaxmbd.sampling.scatter import Distribution

# Terms of the series; and the points, equally spaced, of the expectations.
_TERMS, _REACH, _POINTS = 400, 8.0, 4001
_NEGLIGIBLE = 1e-12


def drawn_covariance(
    scatter: Mapping[str, Distribution], nominal: Mapping[str, np.ndarray], linked: Copula | None
) -> Covariance:
    """Covariance of all numbers that scatter, by the names of their components.

    Args:
        scatter: distributions by name, in the order in which they take the numbers of a sample.
        nominal: nominal values by name.
        linked: which of the normal numbers behind them are correlated, and how.
    """
    z = np.linspace(-_REACH, _REACH, _POINTS)
    weights = np.exp(-0.5 * z * z)
    weights /= weights.sum()
    basis = _hermite(z)
    names: list[str] = []
    columns: list[int] = []
    series, std, at = [], [], 0
    count = sum(nominal[n].size for n in scatter)
    covariance = np.zeros((count, count))
    for name, distribution in scatter.items():
        shape, size = nominal[name].shape, nominal[name].size
        unit = distribution.unit_shape(shape)
        own = np.arange(len(names), len(names) + size)
        g = np.zeros((len(z), size))
        if unit in (shape, ()):  # numbers of their own, or one for the whole array
            rows = np.broadcast_to(z.reshape(-1, *[1] * len(unit)), (len(z), *unit))
            g = distribution.from_normal(rows, nominal[name]).reshape(len(z), -1)
        g = g - weights @ g
        alpha = (basis * weights) @ g
        rest = g - basis.T @ alpha
        block = (rest.T * weights) @ rest
        covariance[np.ix_(own, own)] = block if unit == () else np.diag(np.diag(block))
        names += components(name, shape)
        columns += range(at, at + size) if unit == shape else [at] * size
        series.append(alpha)
        std.append(np.ravel(distribution.std(nominal[name])))
        at += int(np.prod(unit))
    correlation = np.eye(at)
    if linked is not None:
        correlation[np.ix_(linked.columns, linked.columns)] = linked.lower @ linked.lower.T
    r = correlation[np.ix_(columns, columns)]
    power, deviations = np.ones_like(r), np.concatenate(std)
    for alpha in np.concatenate(series, axis=1):
        power *= r
        if np.any(np.abs(alpha) > _NEGLIGIBLE * deviations):
            covariance += np.outer(alpha, alpha) * power
    # Closed forms of the standard deviations are better than the sums.
    found = np.sqrt(np.diag(covariance))
    scale = np.divide(deviations, found, out=np.zeros(count), where=found > 0.0)
    covariance *= np.outer(scale, scale)
    np.fill_diagonal(covariance, deviations**2)
    return Covariance(tuple(names), 0.5 * (covariance + covariance.T))


def _hermite(z: np.ndarray) -> np.ndarray:
    """h_k(z), k = 1 … _TERMS, of unit variance (k, n)."""
    found = [np.ones_like(z), z]
    for k in range(2, _TERMS + 1):
        found.append((z * found[-1] - np.sqrt(k - 1.0) * found[-2]) / np.sqrt(k))
    return np.stack(found[1:])
