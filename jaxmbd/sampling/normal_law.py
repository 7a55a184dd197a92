"""The standard normal distribution; SciPy is imported on use, as its import takes a while."""

from __future__ import annotations

from typing import Any

import numpy as np


def normal_probability(z: Any) -> np.ndarray:
    """Φ(z), the probability of a standard normal number below z."""
    from scipy import special

    return special.ndtr(z)


def normal_quantile(u: Any) -> np.ndarray:
    """Φ⁻¹(u), the standard normal number of that probability."""
    from scipy import special

    return special.ndtri(u)
