"""Values out of a list: a discrete choice, and measured values."""

from __future__ import annotations

import hashlib
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from jaxmbd.sampling.scatter import Distribution, check_finite

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
        values, cumulative = self._sorted()
        return values[np.minimum(np.searchsorted(cumulative, u), len(values) - 1)]

    def std(self, nominal):
        values, cumulative = self._sorted()
        p = np.diff(cumulative, prepend=0.0)
        mean = np.tensordot(p, values, 1)
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

    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        """Values and cumulative probabilities; numbers in ascending order, arrays as given."""
        values = np.asarray(self.values)
        count = len(values)
        p = (
            np.full(count, 1.0 / count)
            if self.probabilities is None
            else np.asarray(self.probabilities)
        )
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
        count = len(self.values)
        if self.interpolate:
            at = np.clip(u * count - 0.5, 0.0, count - 1.0)
            below = np.minimum(at.astype(np.int64), count - 2)
            part = at - below
            drawn = self.values[below] * (1.0 - part) + self.values[below + 1] * part
        else:
            drawn = self.values[np.minimum((u * count).astype(np.int64), count - 1)]
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
        digest = hashlib.blake2b(self.values.tobytes(), digest_size=16).hexdigest()
        many = {"shape": list(self.values.shape), "blake2b": digest}
        values = self.values.tolist() if self.values.size <= _MANY else many
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
