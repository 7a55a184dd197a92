"""Matrices of which only some columns are stored, because the others are known to be zero."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array


def chosen_columns(x: Array, columns: Sequence[int]) -> Array:
    """Some columns of `x` (r, m), in ascending order."""
    if len(columns) == x.shape[1]:
        return x
    return jnp.concatenate([x[:, a:b] for a, b in _runs(columns)] or [x[:, :0]], axis=1)


def placed_columns(x: Array, columns: Sequence[int], within: Sequence[int]) -> Array:
    """The matrix with `x` (r, n) in `columns` and zeros in the other columns of `within`."""
    if len(columns) == len(within):
        return x
    parts, done, end = [], 0, 0
    for a, b in _runs([within.index(c) for c in columns]):
        parts += [jnp.zeros((x.shape[0], a - end), x.dtype), x[:, done : done + b - a]]
        done, end = done + b - a, b
    parts.append(jnp.zeros((x.shape[0], len(within) - end), x.dtype))
    return jnp.concatenate(parts, axis=1)


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Slices of consecutive numbers."""
    starts = [i for i, c in enumerate(places) if i == 0 or places[i - 1] != c - 1]
    ends = [*starts[1:], len(places)] if starts else []
    return [(places[a], places[b - 1] + 1) for a, b in zip(starts, ends, strict=True)]
