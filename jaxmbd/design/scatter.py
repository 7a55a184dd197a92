"""The scatter that a robust design lives with: the same samples about every design.

A `Statistic` is what is taken of a quantity that scatters: its mean, deviation, a quantile. The
samples are the same for all designs that are compared (common random numbers), so that each of
these is a smooth function of the design, or piecewise smooth, with an exact derivative.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd import sampling
from jaxmbd.design.unknowns import Unknowns
from jaxmbd.model import Mechanism
from jaxmbd.plumbing import refuse
from jaxmbd.variables import (
    Parametrization,
    find_variables,
    get_variables,
    in_si,
    set_variables,
)


class Statistic(ABC):
    """A number of the samples of a quantity.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import Mean, Statistic
        >>> isinstance(Mean(), Statistic)
        True
    """

    @abstractmethod
    def of(self, samples: Array) -> Array:
        """Of samples (s, …), over the first axis."""


@dataclass(frozen=True)
class Mean(Statistic):
    """The expectation, plus `deviations` standard deviations.

    Attributes:
        deviations: k of ``mean + k · std``, a common robust objective; negative for a lower limit.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import Mean
        >>> Mean(2.0).of(jnp.array([0.0, 1.0, 2.0])).item()
        3.0
    """

    deviations: float = 0.0

    def of(self, samples: Array) -> Array:
        mean = jnp.mean(samples, axis=0)
        return mean if self.deviations == 0.0 else mean + self.deviations * Deviation().of(samples)


@dataclass(frozen=True)
class Deviation(Statistic):
    """The standard deviation (divided by s − 1).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import Deviation
        >>> Deviation().of(jnp.array([0.0, 1.0, 2.0])).item()
        1.0
    """

    def of(self, samples: Array) -> Array:
        square = Variance().of(samples)
        moves = square > 0.0  # the root has no derivative at zero
        return jnp.where(moves, jnp.sqrt(jnp.where(moves, square, 1.0)), 0.0)


@dataclass(frozen=True)
class Variance(Statistic):
    """The variance (divided by s − 1).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import Variance
        >>> Variance().of(jnp.array([0.0, 2.0])).item()
        2.0
    """

    def of(self, samples: Array) -> Array:
        if samples.shape[0] < 2:
            raise ValueError("a variance needs two samples at least")
        return jnp.var(samples, axis=0, ddof=1)


@dataclass(frozen=True)
class Quantile(Statistic):
    """The value below which a share of the samples lies, between samples linearly interpolated.

    Its derivative is that of the samples next to it: exact, and constant between the designs at
    which samples change places.

    Attributes:
        share: between 0 and 1; 1 is the worst case of the samples.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import Quantile
        >>> Quantile(0.75).of(jnp.array([3.0, 1.0, 2.0])).item()
        2.5
    """

    share: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise ValueError(f"Quantile: the share {self.share} must be between 0 and 1")

    def of(self, samples: Array) -> Array:
        return jnp.quantile(samples, self.share, axis=0)


@dataclass(frozen=True)
class Tail(Statistic):
    """The mean of the worst share of the samples (superquantile, conditional value at risk).

    Smoother than `Quantile`, as it depends on all samples beyond it.

    Attributes:
        share: of the samples, between 0 and 1.
        smallest: whether the smallest are the worst, as for a lower limit; `AtLeast` sets it.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import Tail
        >>> Tail(0.5).of(jnp.array([3.0, 1.0, 2.0, 0.0])).item()
        2.5
    """

    share: float
    smallest: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise ValueError(f"Tail: the share {self.share} must be above 0, at most 1")

    def of(self, samples: Array) -> Array:
        count = max(1, round(self.share * samples.shape[0]))
        order = jnp.sort(samples, axis=0)
        worst = order[:count] if self.smallest else order[samples.shape[0] - count :]
        return jnp.mean(worst, axis=0)


@dataclass(frozen=True)
class Scatter:
    """Deviations of a model's numbers, drawn once and added to every design.

    A deviation is the draw about the model's own value minus that value; of distributions that are
    `relative` it is the ratio of both, by which the design's value is multiplied.

    Attributes:
        inputs: path or pattern to a distribution of `jaxmbd.sampling`, as in a study.
        samples: how many.
        seed: of the random numbers.
        design: which samples; `sampling.Sobol` by default.
        correlation: as in a study.

    Example:
        >>> from jaxmbd.design import Scatter
        >>> from jaxmbd.sampling import Normal
        >>> Scatter({"points/*": Normal(3e-4)}, samples=32).samples
        32
    """

    inputs: Mapping[str, Any]
    samples: int = 64
    seed: int = 0
    design: Any = None
    correlation: Any = None

    def drawn(self, model: Any, seed: int | None = None) -> dict[str, np.ndarray]:
        """Path to deviations or factors (samples, …).

        Raises:
            ValueError: unknown paths, or distributions that do not fit.
        """
        sampler = self._sampler(model, self.seed if seed is None else seed)
        draws, found = sampler.draw(0, sampler.count), {}
        for path, x in draws.items():
            nominal = sampler.nominal[path]
            found[path] = x / nominal if _multiplied(sampler, path) else x - nominal
        return found

    def factors(self, model: Any) -> frozenset[str]:
        """The paths whose draws are factors."""
        sampler = self._sampler(model, self.seed)
        return frozenset(path for path in sampler.scatter if _multiplied(sampler, path))

    def _sampler(self, model: Any, seed: int) -> sampling.Sampler:
        inputs: dict[str, Any] = {}
        for pattern, given in self.inputs.items():
            for path, variable in find_variables(model, pattern).items():
                law = sampling.as_distribution(given)
                law = law.in_units(lambda text, x=variable: in_si(text, x.unit, x.path))
                inputs[path] = (variable.value, law)
        design = sampling.Sobol() if self.design is None else self.design
        sampler = sampling.Sampler(
            inputs, design, count=self.samples, seed=seed, correlation=self.correlation
        )
        refuse("scatter", sampler.problems())
        return sampler


def _multiplied(sampler: sampling.Sampler, path: str) -> bool:
    """Whether the draws of a path are factors: a fraction of zero could not be one."""
    return bool(sampler.scatter[path].relative) and bool(np.all(sampler.nominal[path] != 0.0))


def deviated(
    unknowns: Unknowns, x: Any, deviations: Mapping[str, Any], factors: frozenset[str]
) -> Any:
    """The model of a vector x (n,) with one sample of deviations."""
    if not deviations:
        return unknowns.model(x)

    def with_deviations(now: Mapping[str, Any]) -> dict[str, Any]:
        return {
            path: now[path] * d if path in factors else now[path] + d
            for path, d in deviations.items()
        }

    if isinstance(unknowns.base, Mechanism):
        mech = unknowns.model(x)
        return set_variables(mech, with_deviations(get_variables(mech, deviations)))
    assert isinstance(unknowns.base, Parametrization)
    values = unknowns.values(x)
    for path in deviations:
        for part in [name for name in values if name.startswith(f"{path}/")]:
            _join(values, path, part, unknowns.base)
    nominal = {p: values[p] if p in values else unknowns.base.find(p)[p].value for p in deviations}
    return unknowns.base({**values, **with_deviations(nominal)})


def _join(values: dict[str, Any], path: str, part: str, base: Parametrization) -> None:
    """Put a component's value into the vector that it belongs to."""
    whole = base.find(path)[path]
    place = whole.components.index(part[len(path) + 1 :])
    vector = jnp.asarray(values.get(path, whole.value))
    values[path] = vector.at[place].set(values.pop(part))
