"""A distribution made tighter or wider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxmbd.sampling.scatter import Distribution, check_scale


@dataclass(frozen=True)
class Scaled(Distribution):
    """Another distribution, with all distances from the nominal value multiplied.

    Attributes:
        base: the other distribution.
        factor: less than one for a tighter scatter.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.sampling import Scaled, Uniform
        >>> Scaled(Uniform(1.0), 0.5).quantile(np.array([0.0, 1.0]), np.array(3.0))
        array([2.5, 3.5])
    """

    base: Any
    factor: Any

    kind = ""

    def __post_init__(self) -> None:
        if faults := self.faults():
            raise ValueError(f"Scaled: {'; '.join(faults)}")

    def quantile(self, u, nominal):
        return nominal + self.factor * (self.base.quantile(u, nominal) - nominal)

    def from_normal(self, z, nominal):
        return nominal + self.factor * (self.base.from_normal(z, nominal) - nominal)

    def std(self, nominal):
        return self.factor * self.base.std(nominal)

    def unit_shape(self, shape):
        return self.base.unit_shape(shape)

    def steps(self):
        return self.base.steps()

    def faults(self):
        return check_scale("factor", self.factor)

    def problems(self, nominal):
        return self.base.problems(nominal)

    def describe(self):
        return {
            "distribution": "scaled",
            "factor": float(self.factor),
            "base": self.base.describe(),
        }
