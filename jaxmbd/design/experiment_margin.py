"""The closure margin of an experiment: of the configurations in which it holds coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.analysis import closure_margin
from jaxmbd.design.restoration import Closing
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.observe import Pose, Sweep

_PLACES = 5


def closing_of(observe: Any) -> Closing | None:
    """The margins of a sweep at five places of its axis, or of a pose; None of anything else."""
    if isinstance(observe, Sweep):
        return Closing(_Margins(observe), hold=False)
    if isinstance(observe, Pose) and not observe.settle:
        return Closing(_Margins(observe), hold=False)
    return None


class _Margins:
    """Margins of the configurations of a sweep, or of a pose."""

    def __init__(self, observe: Sweep | Pose):
        self.observe = observe

    def __call__(self, mech: Mechanism) -> Array:
        observe: Any = self.observe
        observe = observe.on(mech) if hasattr(observe, "on") else observe  # a corner's own
        moved = _some(observe.over) if isinstance(observe, Sweep) else {}

        def at(step: list[Array]) -> Array:
            return closure_margin(mech, {**observe.known, **dict(zip(moved, step, strict=True))})

        if not moved:
            return at([])[None]
        return jax.lax.map(at, [jnp.asarray(x, mech.dtype) for x in moved.values()])


def _some(over: Mapping[Any, Any]) -> dict[Any, np.ndarray]:
    """The moved coordinates at a few places of the axis, its ends among them."""
    values = {key: np.asarray(x) for key, x in over.items()}
    count = len(next(iter(values.values())))
    places = np.unique(np.linspace(0, count - 1, _PLACES).round().astype(int))
    return {key: x[places] for key, x in values.items()}
