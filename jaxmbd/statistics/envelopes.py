"""Spread of numbers and of curves: mean, standard deviation, extremes, quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

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
