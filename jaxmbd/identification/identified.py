"""What an identification found: estimates, how sure they are, what the data leave open."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from jaxmbd.identification.combinations import Ambiguity, ambiguities
from jaxmbd.identification.fit import Fit, Noise
from jaxmbd.identification.information import Information, precision
from jaxmbd.identification.loading_loops import LoadingLoop, loop_of
from jaxmbd.identification.measured import Measured, Predictor, Record, blank, places, records
from jaxmbd.observe import Experiment
from jaxmbd.plumbing import text_table, warn_user

AT_LIMIT = 1e-4
"""An unknown this close to a limit, in its scale, is taken to be there."""

FAR = 4.0
"""Residuals of more standard deviations count as outliers."""

PATTERN = 4.0
"""Correlations of neighbours by more standard deviations than this are a pattern."""

CLOSE = 0.95
"""Correlations above this are reported."""


class ResidualCheck(NamedTuple):
    """The residuals of one channel of one measurement.

    Attributes:
        name: measurement/channel.
        count: number of samples that there are.
        missing: number of those that are missing.
        outliers: number of those more than four standard deviations away.
        rms: root mean square of the others, normalised: about 1 where the noise is as given.
        neighbours: correlation of neighbours along the axis: about 0 where errors are independent.
        correlated: whether it is too large for chance.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.identification.identified import residual_check
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
    r1, pattern = np.nan, False
    if pairs.sum() >= 8:
        both = float(np.mean(clipped[1:][pairs] * clipped[:-1][pairs]))
        r1 = both / max(float(np.nanmean(clipped**2)), 1e-300)
        pattern = bool(abs(r1) * np.sqrt(pairs.sum()) > PATTERN)
    return ResidualCheck(name, count, int((~here).sum()), int((~near).sum()), rms, r1, pattern)


class Interval(NamedTuple):
    """A predicted series with intervals.

    Attributes:
        places: along the experiment's axis; None without one.
        value: prediction, in the shape of the data.
        low, high: confidence interval of the true, noiseless value.
        lowest, highest: prediction interval of a new measurement; NaN where its noise is unknown.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.identification import Interval
        >>> band = Interval(None, *(np.array([x]) for x in (1.0, 0.9, 1.1, 0.7, 1.3)))
        >>> band.low, band.highest
        (array([0.9]), array([1.3]))
    """

    places: np.ndarray | None
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray


@dataclass(frozen=True, eq=False)
class Identified:
    """Estimates of unknowns from measured series; printed as a table.

    Attributes:
        predictor: the model of the measurements.
        records: the measurements.
        fit: where the search ended.
        noise: what was known of the noise.
        information: what the data tell about the scaled unknowns.
        settings: of `identify`.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.identification import Identified
        >>> issubclass(Identified, object)
        True
    """

    predictor: Predictor
    records: list[Record]
    fit: Fit
    noise: Noise
    information: Information
    settings: Any

    def __str__(self) -> str:
        here = int(np.isfinite(self.residuals).sum())
        head = f"{len(self.names)} unknowns from {here} samples, {self.fit.evaluations} evaluations"
        if not self.converged:
            head += f"; NOT CONVERGED: {self.fit.message}"
        unknowns, ends = self.predictor.unknowns, self.intervals(0.95)
        columns = ("unknown", "estimate", "standard error", "95 % from", "to", "start", "unit")
        rows = []
        for i, name in enumerate(self.names):
            value, error = self.estimates[i], self.standard_errors[i]
            digits = _digits(value, error if np.isfinite(error) else unknowns.scale[i])
            low, high = (f"{x:.{digits}g}" if np.isfinite(x) else "-" for x in ends[name])
            sure = f"{error:.2g}" if np.isfinite(error) else "undetermined"
            start = f"{unknowns.start[i]:.4g}"
            rows.append((name, f"{value:.{digits}g}", sure, low, high, start, unknowns.units[i]))
        lines = [head, text_table(columns, rows)]
        lines += [f"{name} is at a limit of its range" for name in self.at_limit]
        for channel, sigma in self.noise_levels.items():
            how = "estimated" if channel in self.noise.estimated else "given"
            lines.append(f"noise of {channel}: {sigma:.3g} ({how})")
        lines += [f"residuals of {check}" for check in self.checks]
        lines += [f"hysteresis of {loop}; {_ELASTIC}" for loop in self.loops]
        return "\n".join(lines + doubts(self.names, self.information, self.ambiguities))

    @property
    def names(self) -> tuple[str, ...]:
        """Paths of the unknowns (n,)."""
        return self.predictor.unknowns.names

    @cached_property
    def estimates(self) -> np.ndarray:
        """Estimates (n,), SI."""
        return self.predictor.unknowns.numbers(self.fit.x)

    @property
    def values(self) -> dict[str, float]:
        """Path to estimate, SI."""
        return dict(zip(self.names, map(float, self.estimates), strict=True))

    @cached_property
    def standard_errors(self) -> np.ndarray:
        """Standard errors (n,), SI: infinite where not determined.

        They take no account of limits: with some unknown at a limit those of the others are
        rather too large than too small.
        """
        return self.information.errors() * self.predictor.unknowns.scale

    @property
    def errors(self) -> dict[str, float]:
        """Path to standard error, SI."""
        return dict(zip(self.names, map(float, self.standard_errors), strict=True))

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the estimates (n, n), SI, as far as the data determine them."""
        scale = self.predictor.unknowns.scale
        return self.information.covariance * np.outer(scale, scale)

    @property
    def correlation(self) -> np.ndarray:
        """Correlations of the estimates (n, n); NaN where one is not determined."""
        return self.information.correlation()

    @property
    def model(self) -> Any:
        """The `Mechanism` with the estimates."""
        return self.predictor.unknowns.model(self.fit.x)

    @property
    def converged(self) -> bool:
        """Whether the search reached a minimum."""
        return self.fit.converged

    @property
    def at_limit(self) -> tuple[str, ...]:
        """Unknowns at a limit of their range, which may lie beyond it."""
        low, high = self.predictor.unknowns.limits
        there = (self.fit.x < low + AT_LIMIT) | (self.fit.x > high - AT_LIMIT)
        return tuple(n for n, is_there in zip(self.names, there, strict=True) if is_there)

    @cached_property
    def residuals(self) -> np.ndarray:
        """Measured minus predicted over the noise (N,), NaN where missing."""
        return (data_of(self.records) - self.fit.y) / self.fit.sigma

    @property
    def degrees_of_freedom(self) -> int:
        """Samples that there are, less the combinations of unknowns that they determine."""
        rank = len(self.names) - self.information.null.shape[1]
        return int(np.isfinite(self.residuals).sum()) - rank

    @property
    def noise_levels(self) -> dict[str, float]:
        """Channel to standard deviation of its noise, root mean square where it varies."""
        return {
            name: float(np.sqrt(np.mean(self.fit.sigma[rows] ** 2)))
            for name, rows in self.noise.groups.items()
        }

    @cached_property
    def checks(self) -> tuple[ResidualCheck, ...]:
        """Size and pattern of the residuals of each series."""
        series = zip(*places(self.records), strict=True)
        return tuple(residual_check(name, self.residuals[rows]) for name, rows in series)

    @cached_property
    def loops(self) -> tuple[LoadingLoop, ...]:
        """Series that go another way back than forth along their axis, beyond what is predicted.

        The work is that of the axis' force along the measured displacement, or the other way
        round: of use where both are of one point along one line.
        """
        found = []
        every = [(record, channel) for record in self.records for channel in record.channels]
        for name, rows, (record, channel) in zip(*places(self.records), every, strict=True):
            if channel.places is not None and channel.values.ndim == 1:
                units = _axis_unit(record, self.predictor.mechanism), channel.about.unit
                left = channel.values - self.fit.y[rows]
                found.append(loop_of(name, channel.places, channel.values, left, units))
        return tuple(loop for loop in found if loop is not None)

    @cached_property
    def ambiguities(self) -> tuple[Ambiguity, ...]:
        """Unknowns that the data cannot tell apart, with what they determine of them."""
        return ambiguities_of(self.predictor, self.fit.x, self.information, self.fit.sigma)

    def quantile(self, level: float) -> float:
        """How many standard errors an interval reaches: Student's t if noise was estimated.

        Args:
            level: its probability.
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"{level=}; give a probability between 0 and 1, such as 0.95")
        p = 0.5 * (1.0 + level)
        free = max(self.degrees_of_freedom, 1)
        return float(stats.t.ppf(p, free) if self.noise.estimated else stats.norm.ppf(p))

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Path to confidence interval, SI."""
        half = self.quantile(level) * self.standard_errors
        low, high = self.estimates - half, self.estimates + half
        return {n: (float(a), float(b)) for n, a, b in zip(self.names, low, high, strict=True)}

    def predict(self, experiment: Any = None, *, level: float = 0.95) -> dict[str, Interval]:
        """Predicted series with intervals, of the measurements or of another experiment.

        Args:
            experiment: by default those of the data, at the data's places.
            level: probability of the intervals.

        Returns:
            channel (or measurement/channel) to its `Interval`.
        """
        known, y, jac = self.records, self.fit.y, self.fit.jacobian
        if experiment is not None:
            mech, unknowns = self.predictor.mechanism, self.predictor.unknowns
            known = records(mech, [Measured(experiment, blank(mech, experiment))])
            y, jac = (x[0] for x in Predictor(unknowns, mech, known)(self.fit.x))
        # What the data leave open stays where it is: only determined directions are uncertain.
        sure = np.sqrt(np.maximum(np.sum((jac @ self.information.covariance) * jac, axis=1), 0.0))
        factor, found = self.quantile(level), {}
        levels = self.noise_levels
        channels = [c for record in known for c in record.channels]
        for name, rows, channel in zip(*places(known), channels, strict=True):
            shape = channel.values.shape
            value, half = y[rows].reshape(shape), factor * sure[rows].reshape(shape)
            noise = self.fit.sigma[rows] if experiment is None else levels.get(channel.name, np.nan)
            whole = factor * np.hypot(sure[rows], noise).reshape(shape)
            ends = (value - half, value + half, value - whole, value + whole)
            found[name] = Interval(channel.places, value, *ends)
        return found


_ELASTIC = (
    "elastic rates alone cannot follow that: they are those of the middle line, and their errors "
    "are too small unless errors='autocorrelated'"
)


def _axis_unit(record: Record, mech: Any) -> str:
    """SI unit of the axis of a measurement."""
    experiment = record.experiment
    return experiment.axis_values(mech).unit if isinstance(experiment, Experiment) else ""


def data_of(known: list[Record]) -> np.ndarray:
    """All measured series, one after the other (N,)."""
    return np.concatenate([c.values.ravel() for record in known for c in record.channels])


def identified(
    predictor: Predictor, known: list[Record], fit: Fit, noise: Noise, settings: Any
) -> Identified:
    """The result of a fit."""
    residuals = (data_of(known) - fit.y) / fit.sigma
    found = precision(
        fit.jacobian / fit.sigma[:, None],
        residuals,
        noise,
        places(known)[1],
        settings.loss,
        settings.errors,
    )
    result = Identified(predictor, known, fit, noise, found, settings)
    for loop in result.loops:
        warn_user(f"hysteresis of {loop}; {_ELASTIC}")
    return result


def ambiguities_of(
    predictor: Predictor, x: np.ndarray, found: Information, sigma: np.ndarray
) -> tuple[Ambiguity, ...]:
    """What information leaves open, in words."""
    unknowns = predictor.unknowns
    if not found.null.shape[1]:
        return ()
    here = predictor(x).y[0]

    def change_of(values: np.ndarray) -> np.ndarray:
        change = (predictor(unknowns.vector(values)).y - here) / sigma
        size = np.sqrt(np.sum(change**2, axis=1))
        return np.where(np.isfinite(change).all(axis=1), size, np.inf)

    scale = unknowns.scale
    return ambiguities(
        scale[:, None] * found.null,
        unknowns.numbers(x),
        unknowns.names,
        unknowns.units,
        scale,
        found.covariance * np.outer(scale, scale),
        change_of,
    )


def doubts(
    names: tuple[str, ...], found: Information, ambiguities: tuple[Ambiguity, ...]
) -> list[str]:
    """What the data determine not at all, worse than the ranges do, or only together."""
    lines = [f"not identifiable: {x}" for x in ambiguities]
    sizes, vectors = np.linalg.eigh(found.covariance)
    for size, v in zip(np.sqrt(np.maximum(sizes, 0.0)), vectors.T, strict=True):
        if size > 1.0:
            v = v / v[np.argmax(np.abs(v))]
            parts = [f"{c:+.2g}·({n})" for c, n in zip(v, names, strict=True) if abs(c) > 0.1]
            lines.append(
                f"weakly determined: {' '.join(parts)}, in units of their ranges, has a standard "
                f"error of {size:.2g}"
            )
    close = found.correlation()
    pairs = [(i, j) for i in range(len(names)) for j in range(i) if abs(close[i, j]) > CLOSE]
    return lines + [
        f"correlation {close[i, j]:+.3f} of {names[j]} and {names[i]}" for i, j in pairs
    ]


def _digits(value: float, error: float) -> int:
    """Significant digits that show two digits of the error."""
    if not (error > 0.0 and value):
        return 6
    return int(np.clip(np.ceil(np.log10(abs(value) / error)) + 2, 3, 15))
