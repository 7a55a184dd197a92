"""Corners: times at which a `Sampled` function of time jumps or bends, at which steps end.

An error control would find each by rejecting steps. Known beforehand they cost none, and no order:
a step that ends at a corner sees what was before it, up to its end, and the next what comes after,
from its begin on.

Runs and their reverse-mode derivatives are kernels with any number of corners. In forward mode
adaptive steps keep the samples for each step that is tried: from 64 of them on XLA computes such a
derivative, and by thousands of them it is slow and takes a gigabyte.
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

    Of inputs by a function those of a pytree, as a `jax.tree_util.Partial` of the function and the
    samples, or an `equinox.Module`; what a function closes over cannot be seen.
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
