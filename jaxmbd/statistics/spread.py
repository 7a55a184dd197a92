"""Spread of outputs: mean, extremes, quantiles; worst samples, yield, process capability.

And how an estimate settles as samples are added: are there enough of them?
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from jaxmbd.statistics.samples import counted

# From the 99 % band to the median.
LEVELS = (0.005, 0.05, 0.25, 0.5, 0.75, 0.95, 0.995)


class Envelope(NamedTuple):
    """Spread of an output over the samples that count, at each of its points.

    Attributes:
        count: number of samples that count.
        left_out: number of failed ones and of those with NaN.
        mean, std: of each point (…); the standard deviation is that of a sample (n − 1).
        low, high: smallest and largest value.
        levels: probabilities of the quantiles (k,).
        quantiles: (k, …).

    Example:
        >>> from jaxmbd.statistics import envelope
        >>> found = envelope([[0.0, 1.0], [2.0, 5.0]])
        >>> found.low, found.high
        (array([0., 1.]), array([2., 5.]))
    """

    count: int
    left_out: int
    mean: np.ndarray
    std: np.ndarray
    low: np.ndarray
    high: np.ndarray
    levels: np.ndarray
    quantiles: np.ndarray


def envelope(values: Any, ok: Any = None, *, levels: Sequence[float] = LEVELS) -> Envelope:
    """Spread of `values` (n, …) over the samples, point by point of a curve.

    Args:
        values: an output of all samples.
        ok: which of them succeeded (n,); all by default.
        levels: probabilities of the quantiles.

    Raises:
        ValueError: no sample counts.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.statistics import envelope
        >>> found = envelope(np.arange(101.0), levels=[0.05, 0.5])
        >>> found.quantiles, float(found.mean)
        (array([ 5., 50.]), 50.0)
    """
    kept = counted(values, ok)
    x = np.asarray(values, np.float64)[kept]
    if not len(x):
        raise ValueError(f"none of {len(kept)} samples counts: all failed or are not finite")
    std = x.std(axis=0, ddof=1) if len(x) > 1 else np.full(x.shape[1:], np.nan)
    probabilities = np.asarray(levels, np.float64)
    return Envelope(
        len(x),
        int(len(kept) - len(x)),
        x.mean(axis=0),
        std,
        x.min(axis=0),
        x.max(axis=0),
        probabilities,
        np.quantile(x, probabilities, axis=0),
    )


class Worst(NamedTuple):
    """Extreme samples of an output.

    Attributes:
        largest, smallest: samples of the largest and of the smallest value.
        farthest: sample farthest from the nominal value; -1 without one.
        critical: sample nearest to, or farthest beyond, a limit; -1 without limits.
        margin: its distance from that limit, negative beyond it; NaN without limits.
        left_out: number of samples without a value, which may be worse than all of these.

    Example:
        >>> from jaxmbd.statistics import worst
        >>> worst([1.0, 5.0, -3.0]).largest
        1
    """

    largest: int
    smallest: int
    farthest: int
    critical: int
    margin: float
    left_out: int


def worst(
    values: Any,
    ok: Any = None,
    *,
    nominal: float | None = None,
    low: float | None = None,
    high: float | None = None,
) -> Worst:
    """Of the samples that have a value, those extreme in each of the senses of "worst".

    Args:
        values: an output (n,).
        ok: which samples succeeded; all by default.
        nominal: its value for nominal inputs.
        low: the least value that is allowed.
        high: the largest one.

    Raises:
        ValueError: no sample counts.

    Example:
        >>> from jaxmbd.statistics import worst
        >>> worst([1.0, 5.0, -3.0], nominal=2.5, high=4.0)
        Worst(largest=1, smallest=2, farthest=2, critical=1, margin=-1.0, left_out=0)
    """
    rows = np.flatnonzero(counted(values, ok))
    if not rows.size:
        raise ValueError("no sample counts: all failed or are not finite")
    x = np.asarray(values, np.float64)[rows]
    farthest = -1 if nominal is None else int(rows[np.argmax(np.abs(x - nominal))])
    critical, margin = -1, float("nan")
    if low is not None or high is not None:
        margins = _margins(x, low, high)
        critical, margin = int(rows[np.argmin(margins)]), float(margins.min())
    largest, smallest = int(rows[np.argmax(x)]), int(rows[np.argmin(x)])
    left_out = len(np.asarray(values)) - len(rows)
    return Worst(largest, smallest, farthest, critical, margin, left_out)


class Capability(NamedTuple):
    """How an output keeps its limits.

    Attributes:
        count: samples that have a value.
        left_out: samples without one: failed ones and those not finite. They are bad parts.
        mean, std: over the samples that have a value; NaN without any.
        cp: (high − low)/6σ, of the same; NaN unless there are both limits.
        cpk: distance of their mean from the nearer limit, over 3σ.
        passed: samples within the limits.
        fraction: `passed` over all samples, the yield.
        least, most: its confidence interval.

    Example:
        >>> from jaxmbd.statistics import capability
        >>> print(capability([1.0, 2.0, 3.0, 9.0], low=0.0, high=5.0))
        yield 75.00 % (30.06 to 95.44 %): 3 of 4 samples are within the limits
        mean 3.75, standard deviation 3.594; Cp 0.23, Cpk 0.12
    """

    count: int
    left_out: int
    mean: float
    std: float
    cp: float
    cpk: float
    passed: int
    fraction: float
    least: float
    most: float

    def __str__(self) -> str:
        missing = f"; {self.left_out} have no value" if self.left_out else ""
        indices = {"Cp": self.cp, "Cpk": self.cpk}
        known = ", ".join(f"{name} {x:.2f}" for name, x in indices.items() if np.isfinite(x))
        spread = [f"mean {self.mean:.4g}", f"standard deviation {self.std:.4g}"][: self.count]
        return (
            f"yield {100.0 * self.fraction:.2f} % ({100.0 * self.least:.2f} to "
            f"{100.0 * self.most:.2f} %): {self.passed} of {self.count + self.left_out} samples "
            f"are within the limits{missing}"
            + (f"\n{', '.join(spread)}" if spread else "")
            + (f"; {known}" if known else "")
        )


def capability(
    values: Any,
    ok: Any = None,
    *,
    low: float | None = None,
    high: float | None = None,
    confidence: float = 0.95,
    method: str = "wilson",
) -> Capability:
    """Yield and process capability of an output with limits.

    A sample that failed, or has no value of the output, does not keep its limits.

    Args:
        values: an output (n,).
        ok: which samples succeeded; all by default.
        low: the least value that is allowed.
        high: the largest one; one of them may be missing.
        confidence: of the yield's interval.
        method: "wilson", or "exact" (Clopper and Pearson), which is never too narrow.

    Raises:
        ValueError: no limits, limits in the wrong order, or no samples.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.statistics import capability
        >>> x = np.random.default_rng(0).normal(10.0, 0.1, size=100_000)
        >>> found = capability(x, low=9.7, high=10.3)
        >>> round(found.cpk, 2), round(found.fraction, 3)
        (1.0, 0.997)
    """
    if low is None and high is None:
        raise ValueError("give a limit: low, high, or both")
    if low is not None and high is not None and not low < high:
        raise ValueError(f"low must be less than high; they are {low:g} and {high:g}")
    if not np.size(values):
        raise ValueError("there are no samples")
    kept = counted(values, ok)
    x = np.asarray(values, np.float64)[kept]
    mean = float(x.mean()) if len(x) else float("nan")
    std = float(x.std(ddof=1)) if len(x) > 1 else float("nan")
    passed = int((_margins(x, low, high) >= 0.0).sum())
    least, most = proportion_interval(passed, len(kept), confidence, method)
    with np.errstate(divide="ignore", invalid="ignore"):
        cp = np.divide((np.nan if low is None or high is None else high - low), 6.0 * std)
        cpk = np.divide(float(_margins(np.array(mean), low, high)), 3.0 * std)
    return Capability(
        len(x),
        int(len(kept) - len(x)),
        mean,
        std,
        float(cp),
        float(cpk),
        passed,
        passed / len(kept),
        least,
        most,
    )


def proportion_interval(
    passed: int, count: int, confidence: float = 0.95, method: str = "wilson"
) -> tuple[float, float]:
    """Confidence interval of a probability, of which `passed` of `count` trials are known.

    Args:
        passed: number of trials that passed.
        count: number of trials.
        confidence: probability that the interval has the true one.
        method: "wilson", or "exact" (Clopper and Pearson).

    Example:
        >>> from jaxmbd.statistics import proportion_interval
        >>> [round(x, 4) for x in proportion_interval(0, 1000, method="exact")]
        [0.0, 0.0037]
    """
    from scipy import stats

    if method not in ("wilson", "exact"):
        raise ValueError(f'method must be "wilson" or "exact", is {method!r}')
    found = stats.binomtest(passed, count).proportion_ci(confidence, method)
    return float(found.low), float(found.high)


def _margins(x: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
    """Distance from the nearer limit, negative beyond it."""
    below = x - (-np.inf if low is None else low)
    return np.minimum(below, (np.inf if high is None else high) - x)


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
    from scipy import stats

    if not 0.0 < level < 1.0:
        raise ValueError(f"a quantile's level lies between 0 and 1, not at {level:g}")
    kept = counted(values, ok)
    x = np.asarray(values, np.float64)[kept]
    counts = _counts(len(x), points)
    # The quantile lies below the sample of rank r if fewer than r samples lie below it, as is so
    # with the binomial probability P(K ≤ r − 1). Rank 0 or n + 1: so few samples give no end.
    tail = 0.5 - 0.5 * confidence
    ends = stats.binom.ppf(tail, counts, level), stats.binom.isf(tail, counts, level) + 1
    estimate, low, high = (np.empty(len(counts)) for _ in range(3))
    for k, (n, below, above) in enumerate(zip(counts, *(x.astype(int) for x in ends), strict=True)):
        ordered = np.sort(x[:n])
        estimate[k] = np.quantile(ordered, level)
        low[k] = ordered[below - 1] if below >= 1 else -np.inf
        high[k] = ordered[above - 1] if above <= n else np.inf
    return Convergence(counts, estimate, low, high, int(np.sum(~kept)))


def _counts(n: int, points: int) -> np.ndarray:
    """Numbers of samples from a few to n, equally spaced in the logarithm."""
    if n == 0:
        raise ValueError("no sample counts: all failed or are not finite")
    return np.unique(np.geomspace(min(10, n), n, points).round().astype(np.int64))
