"""Distributions of a number about its nominal value, continuous and out of a list.

All take widths in the unit of the input, about its nominal value: ``Normal(0.5e-3)`` is a standard
deviation of half a millimetre, ``Uniform(0.5e-3)`` is ± half a millimetre. With ``relative=True``
widths are fractions of the nominal value. Limits called `low` and `high`, and a centre if one is
given, are values of the input, not distances from the nominal value.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from jaxmbd.sampling.scatter import (
    Distribution,
    broadcasts,
    check_finite,
    check_order,
    check_scale,
    digest_of,
    functions_for,
)


@dataclass(frozen=True)
class Normal(Distribution):
    """Normally distributed.

    Attributes:
        sigma: standard deviation.
        mean: its centre; the nominal value by default.
        relative: `sigma` is a fraction of the nominal value.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.sampling import Normal
        >>> Normal(0.1).quantile(np.array([0.5, 0.975]), np.array(2.0)).round(3)
        array([2.   , 2.196])
    """

    sigma: Any
    mean: Any = None
    relative: bool = False

    kind = "normal"
    dimensional = ("sigma", "mean")
    scales = ("sigma",)

    def quantile(self, u, nominal):
        _, special = functions_for(u)
        return self.from_normal(special.ndtri(u), nominal)

    def from_normal(self, z, nominal):
        return _or(self.mean, nominal) + self._scale(self.sigma, nominal) * z

    def std(self, nominal):
        return np.broadcast_to(self._scale(self.sigma, nominal), nominal.shape).astype(np.float64)

    def faults(self):
        return check_scale("sigma", self.sigma) + check_finite(mean=self.mean)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def _spread(half: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Standard deviation, in half widths, of a normal distribution between ``centre ± half``."""
    half, centre = (np.asarray(x, float)[..., None] for x in (half, centre))
    mass = _WEIGHTS * np.exp(-half * _NODES * (centre + 0.5 * half * _NODES))
    mass = mass / mass.sum(axis=-1, keepdims=True)
    mean = (mass * _NODES).sum(axis=-1, keepdims=True)
    return np.sqrt((mass * (_NODES - mean) ** 2).sum(axis=-1))


@dataclass(frozen=True)
class TruncatedNormal(Distribution):
    """Normally distributed, without what lies beyond its limits.

    Attributes:
        sigma: standard deviation before truncation.
        half_width: cut at this distance on both sides of the centre.
        low, high: instead, the values at which it is cut; one of them may be missing.
        mean: centre before truncation; the nominal value by default.
        relative: `sigma` and `half_width` are fractions of the nominal value.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.sampling import TruncatedNormal
        >>> TruncatedNormal(1.0, 1.5).quantile(np.array([1e-9, 0.5]), np.array(2.0)).round(3)
        array([0.5, 2. ])
    """

    sigma: Any
    half_width: Any = None
    _: KW_ONLY
    low: Any = None
    high: Any = None
    mean: Any = None
    relative: bool = False

    kind = "truncated_normal"
    dimensional = ("sigma", "half_width", "low", "high", "mean")
    scales = ("sigma", "half_width")

    def quantile(self, u, nominal):
        xp, special = functions_for(u)
        centre, sigma, a, b = self._standard(nominal)
        flip, a, b = _mirrored(a, b, xp)
        below, above = special.ndtr(a), special.ndtr(b)
        u = xp.where(flip, 1.0 - u, u)
        z = xp.clip(special.ndtri(below + u * (above - below)), a, b)
        return centre + sigma * xp.where(flip, -z, z)

    def std(self, nominal):
        """``σ √(1 + (a φ(a) − b φ(b))/Z − ((φ(a) − φ(b))/Z)²)``, limits a, b in sigmas, mass Z.

        Between limits that are close the terms cancel: there it is the sum of Gauss and Legendre.
        """
        _, sigma, a, b = self._standard(nominal)
        narrow = b - a < 1.0
        half = 0.5 * np.where(narrow, b - a, 1.0)
        inside = half * _spread(half, np.where(narrow, a, 0.0) + half)
        _, a, b = _mirrored(a, b)
        mass = ndtr(b) - ndtr(a)
        at_a, at_b = (np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi) for x in (a, b))
        a, b = np.where(np.isinf(a), 0.0, a), np.where(np.isinf(b), 0.0, b)
        variance = 1.0 + (a * at_a - b * at_b) / mass - ((at_a - at_b) / mass) ** 2
        found = np.where(narrow, inside, np.sqrt(np.maximum(variance, 0.0)))
        return np.broadcast_to(sigma * found, nominal.shape)

    def faults(self):
        found = check_scale("sigma", self.sigma) + check_finite(mean=self.mean)
        if not np.all(np.asarray(self.sigma) > 0.0):
            found.append("sigma must be positive")
        if self.half_width is not None:
            found += check_scale("half_width", self.half_width)
            if not (self.low is None and self.high is None):
                found.append("give half_width, or low and high")
        elif self.low is None and self.high is None:
            found.append("give half_width, or low, or high, or both")
        ends = {n: x for n in ("low", "high") if (x := getattr(self, n)) is not None}
        found += [f"{n} is NaN" for n, x in ends.items() if np.any(np.isnan(x))]
        return found + check_order(low=self.low, high=self.high)

    def _misfits(self, nominal):
        if found := super()._misfits(nominal):
            return found
        if not np.all(self._scale(self.sigma, nominal) > 0.0):
            return ["a fraction of 0 is no sigma: some nominal values are 0"]
        _, _, a, b = self._standard(nominal)
        _, a, b = _mirrored(a, b)
        mass = ndtr(b) - ndtr(a)
        if np.all(mass > 1e-12):
            return []
        ends = f"{np.min(a):.3g} and {np.max(b):.3g}"
        return [f"nothing is left between its limits, which are {ends} sigma from its centre"]

    def _standard(self, nominal):
        """Centre, sigma, and the limits in sigmas from the centre."""
        centre, sigma = _or(self.mean, nominal), self._scale(self.sigma, nominal)
        if self.half_width is not None:
            b = self._scale(self.half_width, nominal) / sigma
            return centre, sigma, -b, b
        low = -np.inf if self.low is None else np.asarray(self.low)
        high = np.inf if self.high is None else np.asarray(self.high)
        return centre, sigma, (low - centre) / sigma, (high - centre) / sigma


def _mirrored(a: Any, b: Any, xp: Any = np) -> tuple[Any, Any, Any]:
    """Limits in the upper tail, where Φ loses digits, as their mirror image; and where that is."""
    flip = a > 0.0
    return flip, xp.where(flip, -b, a), xp.where(flip, -a, b)


@dataclass(frozen=True)
class Uniform(Distribution):
    """Uniformly distributed.

    Attributes:
        half_width: from the nominal value less this to the nominal value plus this.
        low, high: instead, the smallest and the largest value.
        relative: `half_width` is a fraction of the nominal value.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.sampling import Uniform
        >>> Uniform(0.1, relative=True).quantile(np.array([0.25, 0.5]), np.array(20.0))
        array([19., 20.])
    """

    half_width: Any = None
    _: KW_ONLY
    low: Any = None
    high: Any = None
    relative: bool = False

    kind = "uniform"
    dimensional = ("half_width", "low", "high")
    scales = ("half_width",)

    def quantile(self, u, nominal):
        if self.half_width is None:
            return self.low + np.subtract(self.high, self.low) * u
        return nominal + self._scale(self.half_width, nominal) * (2.0 * u - 1.0)

    def std(self, nominal):
        half = 0.5 * np.subtract(self.high, self.low) if self.half_width is None else None
        half = self._scale(self.half_width, nominal) if half is None else half
        return np.broadcast_to(half / np.sqrt(3.0), nominal.shape)

    def faults(self):
        return _width_or_limits(self)


@dataclass(frozen=True)
class LogNormal(Distribution):
    """The logarithm is normally distributed; the sign is that of the nominal value.

    Attributes:
        sigma: standard deviation of the logarithm, without unit (about the relative scatter).
        median: the median; the nominal value by default.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.sampling import LogNormal
        >>> LogNormal(0.2).quantile(np.array([0.16, 0.5, 0.84]), np.array(10.0)).round(2)
        array([ 8.2, 10. , 12.2])
    """

    sigma: Any
    _: KW_ONLY
    median: Any = None

    kind = "log_normal"
    dimensional = ("median",)

    def quantile(self, u, nominal):
        _, special = functions_for(u)
        return self.from_normal(special.ndtri(u), nominal)

    def from_normal(self, z, nominal):
        xp, _ = functions_for(z)
        median = _or(self.median, nominal)
        # Of a negative median the mirror image, so that values rise with z, as correlations expect.
        return median * xp.exp(xp.copysign(np.asarray(self.sigma), median) * z)

    def std(self, nominal):
        s = np.square(self.sigma)
        std = np.abs(_or(self.median, nominal)) * np.exp(0.5 * s) * np.sqrt(np.expm1(s))
        return np.broadcast_to(std, nominal.shape)

    def faults(self):
        return check_scale("sigma", self.sigma) + check_finite(median=self.median)

    def _misfits(self, nominal):
        found = super()._misfits(nominal)
        if not broadcasts(np.shape(self.sigma), nominal.shape):
            found.append(f"sigma has shape {np.shape(self.sigma)}, the input {nominal.shape}")
        if not np.any(_or(self.median, nominal)):
            found.append("a median of 0 gives no scatter")
        return found


@dataclass(frozen=True)
class Triangular(Distribution):
    """Most probable in the middle, linearly less so up to the limits.

    Attributes:
        half_width: from the nominal value less this to the nominal value plus this.
        low, high: instead, the smallest and the largest value.
        mode: the most probable value, with `low` and `high`; the nominal value by default.
        relative: `half_width` is a fraction of the nominal value.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.sampling import Triangular
        >>> Triangular(low=0.0, high=1.0).quantile(np.array([0.125, 0.5]), np.array(0.5))
        array([0.25, 0.5 ])
    """

    half_width: Any = None
    _: KW_ONLY
    low: Any = None
    high: Any = None
    mode: Any = None
    relative: bool = False

    kind = "triangular"
    dimensional = ("half_width", "low", "high", "mode")
    scales = ("half_width",)

    def quantile(self, u, nominal):
        xp, _ = functions_for(u)
        low, mode, high = self._corners(nominal)
        width = xp.maximum(high - low, np.finfo(u.dtype).tiny)
        rising = low + xp.sqrt(u * (width * (mode - low)))
        falling = high - xp.sqrt((1.0 - u) * (width * (high - mode)))
        return xp.where(u * width < mode - low, rising, falling)

    def std(self, nominal):
        a, c, b = self._corners(nominal)
        variance = ((b - a) ** 2 + (c - a) ** 2 + (b - c) ** 2) / 36.0
        return np.broadcast_to(np.sqrt(variance), nominal.shape)

    def faults(self):
        found = _width_or_limits(self) + check_finite(mode=self.mode)
        if self.mode is None or found:
            return found
        if self.half_width is not None:
            return ["mode goes with low and high, not with half_width"]
        inside = (np.asarray(self.low) <= self.mode) & (self.mode <= np.asarray(self.high))
        return [] if np.all(inside) else ["mode must lie between low and high"]

    def _misfits(self, nominal):
        if found := super()._misfits(nominal):
            return found
        low, mode, high = self._corners(nominal)
        if np.all((low <= mode) & (mode <= high)):
            return []
        return ["the nominal value lies outside of low and high: give the mode"]

    def _corners(self, nominal):
        if self.half_width is not None:
            half = self._scale(self.half_width, nominal)
            return nominal - half, nominal, nominal + half
        return np.asarray(self.low), _or(self.mode, nominal), np.asarray(self.high)


def _width_or_limits(d: Uniform | Triangular) -> list[str]:
    limits = (d.low, d.high)
    if d.half_width is not None:
        found = check_scale("half_width", d.half_width)
        return found if limits == (None, None) else [*found, "give half_width, or low and high"]
    if None in limits:
        return ["give half_width, or both low and high"]
    return check_finite(low=d.low, high=d.high) + check_order(low=d.low, high=d.high)


def _or(value: Any, nominal: np.ndarray) -> Any:
    return nominal if value is None else np.asarray(value)


# Above this number of distinct values an empirical distribution counts as a continuum, and its
# description has a digest instead of the values.
_MANY = 1000


@dataclass(frozen=True)
class Choice(Distribution):
    """One of several values.

    Attributes:
        values: the values (m,) of the input, or of each of its numbers; for an input of shape
            (3,), an array (m, 3) is a choice among m whole arrays.
        probabilities: (m,), summing to one; equal by default.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.sampling import Choice
        >>> springs = Choice([20.0, 25.0, 30.0], [0.2, 0.5, 0.3])
        >>> springs.quantile(np.array([0.1, 0.6]), np.array(25.0))
        array([20., 25.])
    """

    values: Any
    probabilities: Any = None

    kind = "choice"
    dimensional = ("values",)

    def quantile(self, u, nominal):
        xp, _ = functions_for(u)
        values, cumulative = self._sorted()
        return xp.asarray(values)[xp.minimum(xp.searchsorted(cumulative, u), len(values) - 1)]

    def std(self, nominal):
        values, p = np.asarray(self.values), self._each()
        mean = np.tensordot(p, values, 1) / p.sum()
        return np.broadcast_to(np.sqrt(np.tensordot(p, (values - mean) ** 2, 1)), nominal.shape)

    def unit_shape(self, shape):
        return shape if np.ndim(self.values) == 1 else ()

    def steps(self):
        values, cumulative = self._sorted()
        last = np.append(values[1:] != values[:-1], True) if values.ndim == 1 else slice(None)
        return cumulative[last]

    def faults(self):
        found = check_finite(values=self.values)
        if np.ndim(self.values) == 0 or not np.size(self.values):
            return ["values must be a list"]
        p = self.probabilities
        if p is None:
            return found
        p = np.asarray(p)
        if p.shape != (len(self.values),):
            return [*found, f"there are {p.size} probabilities for {len(self.values)} values"]
        if not np.all(p >= 0.0):
            return [*found, f"probabilities must not be negative, are {p.tolist()}"]
        if abs(p.sum() - 1.0) > 1e-9:
            found.append(f"probabilities must sum to 1, sum to {p.sum():.10g}")
        return found

    def _misfits(self, nominal):
        return _rows_misfit(np.shape(self.values), nominal)

    def _each(self) -> np.ndarray:
        """Probability of each value."""
        if self.probabilities is None:
            return np.full(len(self.values), 1.0 / len(self.values))
        return np.asarray(self.probabilities, np.float64)

    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        """Values and cumulative probabilities; numbers in ascending order, arrays as given."""
        values, p = np.asarray(self.values), self._each()
        count = len(values)
        order = np.argsort(values, kind="stable") if values.ndim == 1 else np.arange(count)
        cumulative = np.minimum(np.cumsum(p[order]), 1.0)  # sums may be above by rounding
        cumulative[-1] = 1.0
        return values[order], cumulative


@dataclass(frozen=True, eq=False)
class Empirical(Distribution):
    """As measured: each of the measured values is equally probable.

    Attributes:
        values: measured values (m,); for an input of shape (3,), an array (m, 3) is m measured
            arrays, each drawn as a whole.
        offsets: `values` are deviations from the nominal value.
        interpolate: draw from the straight lines between the sorted values instead of them alone.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.sampling import Empirical
        >>> measured = Empirical([0.3, -0.1, 0.1], offsets=True)
        >>> measured.quantile(np.array([0.1, 0.5, 0.9]), np.array(5.0))
        array([4.9, 5.1, 5.3])
    """

    values: Any
    _: KW_ONLY
    offsets: bool = False
    interpolate: bool = False

    kind = "empirical"
    dimensional = ("values",)

    def __post_init__(self) -> None:
        # An array rather than nested tuples: measurements may be many.
        if not isinstance(self.values, str):
            values = np.array(self.values, np.float64)
            object.__setattr__(self, "values", np.sort(values) if values.ndim == 1 else values)
        if not self.pending() and (faults := self.faults()):
            raise ValueError(f"Empirical: {'; '.join(faults)}")

    def quantile(self, u, nominal):
        xp, _ = functions_for(u)
        values, count = xp.asarray(self.values), len(self.values)
        if self.interpolate:
            at = xp.clip(u * count - 0.5, 0.0, count - 1.0)
            below = xp.minimum(at.astype(int), count - 2)
            part = at - below
            drawn = values[below] * (1.0 - part) + values[below + 1] * part
        else:
            drawn = values[xp.minimum((u * count).astype(int), count - 1)]
        return nominal + drawn if self.offsets else drawn

    def std(self, nominal):
        if not self.interpolate:
            return np.broadcast_to(np.std(self.values, axis=0), nominal.shape)
        # Half a share at each end, a whole one spread evenly between neighbours.
        x = self.values - np.mean(self.values)
        a, b, ends = x[:-1], x[1:], x[[0, -1]]
        mean = (0.5 * np.sum(ends) + 0.5 * np.sum(a + b)) / len(x)
        square = (0.5 * np.sum(ends**2) + np.sum(a * a + a * b + b * b) / 3.0) / len(x)
        return np.broadcast_to(np.sqrt(max(square - mean**2, 0.0)), nominal.shape)

    def unit_shape(self, shape):
        return shape if np.ndim(self.values) == 1 else ()

    def steps(self):
        if self.interpolate or self.values.ndim != 1:
            return None
        last = np.flatnonzero(np.append(self.values[1:] != self.values[:-1], True))
        return (last + 1.0) / len(self.values) if last.size <= _MANY else None

    def faults(self):
        if np.ndim(self.values) == 0 or not np.size(self.values):
            return ["values must be a list"]
        found = check_finite(values=self.values) and ["some values are not finite"]
        if self.interpolate and (self.values.ndim != 1 or len(self.values) < 2):
            found.append("to interpolate takes two or more numbers")
        return found

    def describe(self):
        few = self.values.size <= _MANY
        values = self.values.tolist() if few else digest_of(self.values)
        flags = {n: True for n in ("offsets", "interpolate") if getattr(self, n)}
        return {"distribution": self.kind, "values": values, **flags}

    def _misfits(self, nominal):
        return _rows_misfit(np.shape(self.values), nominal)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Empirical) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash((self.values.tobytes(), self.offsets, self.interpolate))


def _rows_misfit(shape: tuple[int, ...], nominal: np.ndarray) -> list[str]:
    if len(shape) == 1 or shape[1:] == nominal.shape:
        return []
    return [f"its values have shape {shape[1:]}, the input {nominal.shape}"]
