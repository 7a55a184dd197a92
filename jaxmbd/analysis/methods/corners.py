"""Corners: times at which a `Sampled` function of time jumps or bends, at which steps end.

An error control would find each by rejecting steps. Known beforehand they cost none, and no order:
a step that ends at a corner sees what was before it, up to its end, and the next what comes after,
from its begin on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.model import Mechanism, corners_in, next_time


def corners_of(mech: Mechanism, inputs: Any) -> tuple[Array, ...]:
    """Times of the samples in drives, laws of time and inputs, each (n,) [s].

    Of inputs by a function those of a pytree, as an `equinox.Module`; what another function reads
    cannot be seen.
    """
    timed = [x for x in mech.forces.values() if x.of_time]
    return corners_in((mech.drives, timed, inputs))


def next_corner(corners: tuple[Array, ...], t: Array) -> Array:
    """The first corner after `t`; infinite if there is none [s]."""
    return reduce(jnp.minimum, (next_time(t, x) for x in corners))


def inside(begin: Array, end: Array, tiny: Array) -> Callable[[Array], Array]:
    """Times of a step, at its ends moved by `tiny` into it, with derivatives as if they were not.

    So rounding decides nothing at a corner.
    """

    def moved(t: Array) -> Array:
        return t + lax.stop_gradient(jnp.clip(t, begin + tiny, end - tiny) - t)

    return moved
