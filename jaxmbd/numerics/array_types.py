"""What stands for an array where users give one: JAX's own or NumPy's."""

from __future__ import annotations

import numpy as np
from jax import Array

AnyArray = Array | np.ndarray
