"""The angles at which a cam is judged: over the turn, within each segment, and about peaks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.cams.programme import TURN

T = TypeVar("T")

_WITHIN = 96
"""Angles within the segments of a programme, shared by them; each has two at least."""
_ROUNDS, _ROUND = 6, 10
"""Rounds of closing in on a peak, and angles of each: neighbours are 4.5 times as near after one,
so that the peak is missed by 1e-8 of what the first angles missed it by."""


def angles_over_turn(breaks: Array, n: int) -> Array:
    """Increasing cam angles (m,) [rad]: n in equal steps, and those within each segment.

    Args:
        breaks: angles (k + 1,) [rad] at which segments start, and the end of the last one.
        n: how many equal steps.
    """
    each = max(2, math.ceil(_WITHIN / (len(breaks) - 1)))
    last = 1.0 - jnp.sqrt(jnp.finfo(breaks.dtype).eps)  # before what may jump at the end
    shares = jnp.linspace(0.0, last, each, dtype=breaks.dtype)
    within = breaks[:-1, None] + jnp.diff(breaks)[:, None] * shares
    equal = jnp.arange(n, dtype=breaks.dtype) * (TURN / n)
    return jnp.sort(jnp.concatenate([jnp.mod(within.ravel(), TURN), equal]))


def with_peaks(
    look: Callable[[Array], T], measures: Sequence[Callable[[T], Array]], at: Array
) -> T:
    """What is found at cam angles, and at angles that close in on where measures are greatest.

    Args:
        look: what is found at angles (n,) [rad]: arrays (n, …).
        measures: each a number for every angle (n,), of what was found there.
        at: increasing angles (m,) [rad], among which peaks are looked for first.
    """
    first, shares = look(at), jnp.linspace(0.0, 1.0, _ROUND, dtype=at.dtype)
    peaks = jnp.stack([jnp.argmax(measure(first)) for measure in measures])
    around = jnp.concatenate([at[-1:] - TURN, at, at[:1] + TURN])

    def closer(ends: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], T]:
        tried = ends[0][:, None] + (ends[1] - ends[0])[:, None] * shares
        found = look(jnp.mod(tried.ravel(), TURN))
        best = [jnp.argmax(m(found).reshape(tried.shape)[k]) for k, m in enumerate(measures)]
        row, best = jnp.arange(len(measures)), jnp.stack(best)
        before, after = jnp.maximum(best - 1, 0), jnp.minimum(best + 1, _ROUND - 1)
        ends = tried[row, before], tried[row, after]
        return ends, found

    more = jax.lax.scan(closer, (around[peaks], around[peaks + 2]), length=_ROUNDS)[1]
    return jax.tree_util.tree_map(
        lambda x, y: jnp.concatenate([x, y.reshape(-1, *x.shape[1:])]), first, more
    )
