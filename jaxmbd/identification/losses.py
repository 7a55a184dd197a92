"""Losses of a normalised residual, which say how much an outlier counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Loss(NamedTuple):
    """``ρ(r)`` of a residual r in standard deviations; it is ``½ r²`` for small r.

    Attributes:
        margin: the residual beyond which a sample counts less; infinite for least squares. Its
            estimates have 95 % of the efficiency of least squares where errors are normal.
        height: ρ over the square of the margin, as a function of z = r/margin.
        slope: its derivative, ``dρ/dr`` over the margin.
        curvature: the second, ``d²ρ/dr²``.
    """

    margin: float
    height: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    curvature: Callable[[np.ndarray], np.ndarray]

    def value(self, r: np.ndarray) -> float:
        """``Σ ρ(r)``."""
        if np.isinf(self.margin):
            return float(0.5 * np.sum(r**2))
        return float(self.margin**2 * np.sum(self.height(r / self.margin)))

    def psi(self, r: np.ndarray) -> np.ndarray:
        """How a residual pulls: r itself where errors are small."""
        return r if np.isinf(self.margin) else self.margin * self.slope(r / self.margin)

    def weight(self, r: np.ndarray) -> np.ndarray:
        """``ψ(r)/r``: how much a residual counts, 1 where errors are small."""
        return np.where(r == 0.0, 1.0, self.psi(r) / np.where(r == 0.0, 1.0, r))

    def stiffness(self, r: np.ndarray) -> np.ndarray:
        """How the pull grows with the residual: 1 where errors are small."""
        return np.ones_like(r) if np.isinf(self.margin) else self.curvature(r / self.margin)


def _huber(z: np.ndarray) -> np.ndarray:
    return np.where(np.abs(z) <= 1.0, 0.5 * z**2, np.abs(z) - 0.5)


def _inside(z: np.ndarray) -> np.ndarray:
    return (np.abs(z) <= 1.0).astype(float)


def _cauchy_curvature(z: np.ndarray) -> np.ndarray:
    return (1.0 - z**2) / (1.0 + z**2) ** 2


LOSSES = {
    "linear": Loss(np.inf, lambda z: 0.5 * z**2, lambda z: z, np.ones_like),
    "huber": Loss(1.345, _huber, lambda z: np.clip(z, -1.0, 1.0), _inside),
    "cauchy": Loss(
        2.385,
        lambda z: 0.5 * np.log1p(z**2),
        lambda z: z / (1.0 + z**2),
        _cauchy_curvature,
    ),
}
"""Least squares; Huber's (Ann. Math. Statist. 35, 1964), whose outliers pull with constant force;
Cauchy's, whose outliers hardly pull."""


def loss_of(name: str) -> Loss:
    """The loss of a name.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.identification.losses import loss_of
        >>> loss_of("huber").psi(np.array([0.5, 10.0])).tolist()
        [0.5, 1.345]
    """
    if name not in LOSSES:
        raise ValueError(f"loss={name!r}; give one of {list(LOSSES)}")
    return LOSSES[name]
