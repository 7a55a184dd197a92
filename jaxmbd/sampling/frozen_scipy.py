"""Distributions of `scipy.stats`, accepted as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmbd.sampling.scatter import Distribution


@dataclass(frozen=True, eq=False)
class FromSciPy(Distribution):
    """A distribution of `scipy.stats`, of the value itself, whatever the nominal value is.

    Attributes:
        base: a frozen distribution, ``scipy.stats.weibull_min(2.0, scale=0.1)``, a
            ``scipy.stats.rv_histogram``, or one of the newer kind, ``scipy.stats.Normal(mu=1.0)``.

    Example:
        >>> import numpy as np, scipy.stats
        >>> from jaxmbd.sampling import as_distribution
        >>> as_distribution(scipy.stats.expon(scale=2.0)).std(np.array(2.0))
        array(2.)
    """

    base: Any

    def __post_init__(self) -> None:
        if faults := self.faults():
            raise ValueError(f"scipy distribution: {'; '.join(faults)}")

    def __repr__(self) -> str:
        about = self.describe()
        return f"FromSciPy({', '.join(f'{k}={about[k]!r}' for k in about if k != 'distribution')})"

    def quantile(self, u, nominal):
        inverse = getattr(self.base, "ppf", None) or self.base.icdf
        return np.asarray(inverse(u), np.float64)

    def std(self, nominal):
        std = getattr(self.base, "std", None) or self.base.standard_deviation
        return np.array(np.broadcast_to(std(), nominal.shape), np.float64)

    def steps(self):
        # Discrete ones have a probability mass; an infinite tail ends where it is negligible.
        mass = getattr(self.base, "pmf", None)
        if mass is None or np.size(self.base.std()) != 1:
            return None
        low, high = self.base.ppf(1e-12), self.base.ppf(1.0 - 1e-12)
        if high - low > 10_000:
            return None
        steps = self.base.cdf(np.arange(low, high + 1.0))
        steps[-1] = 1.0
        return steps[np.append(np.diff(steps) > 0.0, True)]

    def faults(self):
        if not (hasattr(self.base, "ppf") or hasattr(self.base, "icdf")):
            return [f"{self.base!r} has neither ppf nor icdf"]
        inverse = getattr(self.base, "ppf", None) or self.base.icdf
        if not np.all(np.isfinite(inverse(np.array(0.5)))):
            return ["its median is not a finite number: are its parameters allowed ones?"]
        return []

    def _misfits(self, nominal):
        # Two numbers of rows, of which parameters' own sizes may match one by chance.
        for wanted in ((2, *nominal.shape), (3, *nominal.shape)):
            try:
                shape = np.shape(self.quantile(np.full(wanted, 0.5), nominal))
            except ValueError:
                shape = None
            if shape != wanted:
                return [f"its shape does not fit {nominal.shape}"]
        return []

    def describe(self):
        base = self.base
        family = getattr(base, "dist", base)
        named = {"distribution": f"scipy.{_family(family)}"}
        if family is not base:  # frozen
            parameters = {n: _plain(x) for n, x in sorted(base.kwds.items())}
            found = {**named, "arguments": [_plain(x) for x in base.args], **parameters}
            return found | _histogram(family)
        if hasattr(base, "_histogram"):
            return named | _histogram(base)
        with np.printoptions(threshold=2**31, floatmode="unique"):
            return {**named, "text": repr(base)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FromSciPy) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(str(self.describe()))


def as_distribution(given: Any) -> Distribution:
    """The distribution itself, or one of `scipy.stats` as one of ours.

    Raises:
        TypeError: it is neither.

    Example:
        >>> import scipy.stats
        >>> from jaxmbd.sampling import as_distribution
        >>> type(as_distribution(scipy.stats.norm(0.0, 0.1))).__name__
        'FromSciPy'
    """
    if isinstance(given, Distribution):
        return given
    # A family such as stats.norm has ppf too, but no parameters.
    known = ("dist", "_histogram", "icdf")
    if not isinstance(given, type) and any(hasattr(given, name) for name in known):
        return FromSciPy(given)
    raise TypeError(
        f"{given!r} is no distribution: use Normal, Uniform, … or a frozen scipy.stats one"
    )


def scipy_distribution(family: str, parameters: Mapping[str, Any]) -> FromSciPy:
    """A distribution of `scipy.stats` by the name of its family, with its parameters by name."""
    from scipy import stats

    made = getattr(stats, family, None)
    if not isinstance(made, (stats.rv_continuous, stats.rv_discrete)):
        raise ValueError(f"scipy.stats has no distribution {family!r}")
    rest = dict(parameters)
    try:
        return FromSciPy(made(*rest.pop("arguments", ()), **rest))
    except TypeError as error:
        raise ValueError(f"scipy.stats.{family}: {error}") from error


def _histogram(family: Any) -> dict[str, str]:
    """A digest of the table of an `rv_histogram`; nothing for others."""
    content = [np.asarray(part).tobytes() for part in getattr(family, "_histogram", ())]
    if not content:
        return {}
    return {"blake2b": hashlib.blake2b(b"".join(content)).hexdigest()[:32]}


def _family(family: Any) -> str:
    cls = type(family)
    name = getattr(family, "name", None) or cls.__qualname__
    return name if cls.__module__.startswith("scipy.") else f"{cls.__module__}.{cls.__qualname__}"


def _plain(value: Any) -> Any:
    return np.asarray(value).tolist()
