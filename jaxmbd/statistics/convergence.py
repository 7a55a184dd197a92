"""How an estimate settles as samples are added: are there enough of them?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from jaxmbd.statistics.samples import counted


class Convergence(NamedTuple):
    """An estimate from the first n samples, for growing n.

    Attributes:
        counts: the numbers n of samples that count (k,).
        estimate: from the first n (k,).
        low, high: confidence interval (k,); infinite where n is too small for one.
        left_out: number of samples without a value, of which the estimate is not.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.statistics import convergence_of_mean
        >>> int(convergence_of_mean(np.arange(100.0)).counts[-1])
        100
    """

    counts: np.ndarray
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    left_out: int


def convergence_of_mean(
    values: Any, ok: Any = None, *, points: int = 24, confidence: float = 0.95
) -> Convergence:
    """Mean of the first n samples, with the interval mean ± z s/√n.

    The interval is that of independent samples; it is too wide for Latin hypercubes and Sobol's
    sequence, whose means are better.

    Args:
        values: an output (n,) in the order of the samples.
        ok: which samples succeeded; all by default.
        points: how many n.
        confidence: probability that an interval has the true mean.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.statistics import convergence_of_mean
        >>> found = convergence_of_mean(np.random.default_rng(0).normal(size=10_000))
        >>> bool(found.low[-1] < 0.0 < found.high[-1])
        True
    """
    kept = counted(values, ok)
    x = np.asarray(values, np.float64)[kept]
    counts = _counts(len(x), points)
    # About the overall mean, so that the sums of squares do not cancel.
    shift = x.mean() if len(x) else 0.0
    sums, squares = np.cumsum(x - shift)[counts - 1], np.cumsum((x - shift) ** 2)[counts - 1]
    mean = sums / counts
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(counts > 1, (squares - counts * mean**2) / (counts - 1), np.inf)
    half = ndtri(0.5 + 0.5 * confidence) * np.sqrt(np.maximum(variance, 0.0) / counts)
    left_out, mean = int(np.sum(~kept)), mean + shift
    return Convergence(counts, mean, mean - half, mean + half, left_out)


def convergence_of_quantile(
    values: Any, level: float, ok: Any = None, *, points: int = 24, confidence: float = 0.95
) -> Convergence:
    """A quantile of the first n samples, with an interval that assumes no distribution.

    The interval's ends are order statistics: the number of samples below the true quantile is
    binomial.

    Args:
        values: an output (n,) in the order of the samples.
        level: the quantile's probability.
        ok: which samples succeeded; all by default.
        points: how many n.
        confidence: probability that an interval has the true quantile, at least.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.statistics import convergence_of_quantile
        >>> found = convergence_of_quantile(np.random.default_rng(0).uniform(size=9999), 0.9)
        >>> bool(found.low[-1] < 0.9 < found.high[-1])
        True
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"a quantile's level lies between 0 and 1, not at {level:g}")
    kept = counted(values, ok)
    x = np.asarray(values, np.float64)[kept]
    counts = _counts(len(x), points)
    estimate, low, high = (np.empty(len(counts)) for _ in range(3))
    for k, n in enumerate(counts):
        below, above = order_ranks(int(n), level, confidence)
        ordered = np.sort(x[:n])
        estimate[k] = np.quantile(ordered, level)
        low[k] = ordered[below - 1] if below >= 1 else -np.inf
        high[k] = ordered[above - 1] if above <= n else np.inf
    return Convergence(counts, estimate, low, high, int(np.sum(~kept)))


def order_ranks(n: int, level: float, confidence: float) -> tuple[int, int]:
    """Ranks, from 1, of the order statistics of n that enclose a quantile; 0 or n + 1 if none.

    The quantile lies below rank r if fewer than r samples lie below it: P = binomial(r − 1).
    """
    from scipy import stats

    tail = 0.5 - 0.5 * confidence
    below = int(stats.binom.ppf(tail, n, level))  # the least k with P(K ≤ k) ≥ tail
    above = int(stats.binom.isf(tail, n, level)) + 1
    return below, above


def _counts(n: int, points: int) -> np.ndarray:
    """Numbers of samples from a few to n, equally spaced in the logarithm."""
    if n == 0:
        raise ValueError("no sample counts: all failed or are not finite")
    return np.unique(np.geomspace(min(10, n), n, points).round().astype(np.int64))
