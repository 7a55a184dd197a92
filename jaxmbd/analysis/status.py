"""What became of a sample: data inside `jit`, an exception on the host."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.kinematics import constraint_residual
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.topology import topology


class Status(IntEnum):
    """Outcome of a computation, one number a sample."""

    OK = 0
    NOT_ASSEMBLED = 1
    SINGULAR = 2
    DIVERGED = 3
    NON_FINITE = 4


def visible(x: Any) -> bool:
    """Whether the caller is on the host with one sample, so that a failure may raise."""
    return not isinstance(x, Tracer) and np.ndim(x) == 0


def closing_tolerance(dtype: Any, length: Array) -> Array:
    """Largest closure error [m] of a configuration that counts as assembled."""
    return float(jnp.finfo(dtype).eps) ** 0.65 * length


def open_joints(mech: Mechanism, q: Any, t: float = 0.0) -> str:
    """How far each loop is open at q, the worst first, for messages."""
    top = topology(mech)
    residual = np.asarray(constraint_residual(mech, q, t))
    kinds = np.array(top.row_kinds)
    found = []
    for name in (*top.cut, *top.drives):
        rows = top.layout[name].rows
        size = np.abs(residual[rows])
        unit = ["m" if k == "force" else "rad" for k in kinds[rows]]
        worst = int(np.argmax(np.where(np.isnan(size), np.inf, size)))
        found.append((size[worst], f"joint '{name}' is open by {size[worst]:.3g} {unit[worst]}"))
    return "; ".join(text for _, text in sorted(found, reverse=True))
