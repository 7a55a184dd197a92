"""What residuals should look like: of the size of the noise, and without pattern."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxmbd.identification.measured import Record

FAR = 4.0
"""Residuals of more standard deviations count as outliers."""

PATTERN = 4.0
"""Correlations of neighbours by more standard deviations than this are a pattern."""


class ResidualCheck(NamedTuple):
    """The residuals of one channel of one measurement.

    Attributes:
        name: measurement/channel.
        count: number of samples that there are.
        missing: number of those that are missing.
        outliers: number of those more than four standard deviations away.
        rms: root mean square of the others, normalised: about 1 where the noise is as it was said.
        neighbours: correlation of neighbours along the axis: about 0 where errors are independent.
        correlated: whether it is too large for chance.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.identification.residual_check import residual_check
        >>> wave = np.sin(np.linspace(0.0, 6.0, 200)) * 1.4
        >>> residual_check("angle", wave).correlated
        True
    """

    name: str
    count: int
    missing: int
    outliers: int
    rms: float
    neighbours: float
    correlated: bool

    def __str__(self) -> str:
        text = f"{self.name}: rms {self.rms:.3g} of the noise, neighbours {self.neighbours:+.2f}"
        if self.outliers:
            text += f", {self.outliers} of {self.count} beyond {FAR:g} standard deviations"
        if self.correlated:
            text += (
                "; there is a pattern: the model misses something, or the noise is correlated "
                "(errors='autocorrelated')"
            )
        return text


def residual_check(name: str, residuals: np.ndarray) -> ResidualCheck:
    """Size and pattern of normalised residuals along the axis (n,), NaN where missing."""
    here = np.isfinite(residuals)
    r = residuals[here]
    near = np.abs(r) <= FAR
    count = int(here.sum())
    rms = float(np.sqrt(np.mean(r[near] ** 2))) if near.any() else np.nan
    # Outliers are clipped, so that two of them in a row are no pattern.
    clipped = np.where(here, np.clip(np.where(here, residuals, 0.0), -FAR, FAR), np.nan)
    pairs = np.isfinite(clipped[1:]) & np.isfinite(clipped[:-1])
    if pairs.sum() < 8:
        return ResidualCheck(
            name, count, int((~here).sum()), int((~near).sum()), rms, np.nan, False
        )
    both = float(np.mean(clipped[1:][pairs] * clipped[:-1][pairs]))
    r1 = both / max(float(np.nanmean(clipped**2)), 1e-300)
    pattern = bool(abs(r1) * np.sqrt(pairs.sum()) > PATTERN)
    return ResidualCheck(name, count, int((~here).sum()), int((~near).sum()), rms, r1, pattern)


def residual_checks(known: list[Record], residuals: np.ndarray) -> tuple[ResidualCheck, ...]:
    """The checks of all series of normalised residuals (N,)."""
    return tuple(
        residual_check(name, residuals[rows]) for name, rows in zip(*places(known), strict=True)
    )


def places(known: list[Record]) -> tuple[list[str], list[slice]]:
    """Name and place of each channel of each measurement in the vector of all data."""
    names, rows, end = [], [], 0
    for record in known:
        for channel in record.channels:
            names.append(f"{record.name}/{channel.name}" if record.name else channel.name)
            rows.append(slice(end, end + channel.values.size))
            end += channel.values.size
    return names, rows
