"""What is taken of a quantity that scatters: its mean, deviation, a quantile.

The samples are the same for all designs that are compared (common random numbers), so that each of
these is a smooth function of the design, or piecewise smooth, with an exact derivative.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array


class Measure(ABC):
    """A number of the samples of a quantity.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import Mean, Measure
        >>> isinstance(Mean(), Measure)
        True
    """

    @abstractmethod
    def of(self, samples: Array) -> Array:
        """Of samples (s, …), over the first axis."""


@dataclass(frozen=True)
class Mean(Measure):
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
class Deviation(Measure):
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
class Variance(Measure):
    """The variance (divided by s − 1).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.design import Variance
        >>> Variance().of(jnp.array([0.0, 2.0])).item()
        2.0
    """

    def of(self, samples: Array) -> Array:
        count = samples.shape[0]
        if count < 2:
            raise ValueError("a variance needs two samples at least")
        return jnp.sum((samples - jnp.mean(samples, axis=0)) ** 2, axis=0) / (count - 1)


@dataclass(frozen=True)
class Quantile(Measure):
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
        order = jnp.sort(samples, axis=0)
        place = self.share * (samples.shape[0] - 1)
        below = int(place)
        above = min(below + 1, samples.shape[0] - 1)
        return order[below] + (place - below) * (order[above] - order[below])


@dataclass(frozen=True)
class Tail(Measure):
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
