"""The directions that errors can have, and those that change least: of the rows ``J = ∂r/∂x``."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis.known import Key
from jaxmbd.analysis.misfit import Case, error_rows, moved
from jaxmbd.numerics import tolerances
from jaxmbd.numerics.rank_revealing import ldlt_rank_revealing, ldlt_solve

_ASIDE = 0.2
_INVERSE = 30
_MODES = 3


def generic(size: int, dtype: Any) -> Array:
    """Fixed numbers in general position, of either sign."""
    return jnp.asarray(np.sin(1.0 + 2.3 * np.arange(size)), dtype)


def error_span(keys: tuple[Key, ...], case: Case, q: Array, rows: Array, r: Array) -> Array:
    """The projection onto the directions that the errors can have (n, n).

    Rows of planar loops in space are dependent at every configuration, rows of a dead centre at
    this one only; so the span counts as that of a configuration aside where it has more dimensions
    there. An error that is not in the span has to be counted whole.
    """
    eye = jnp.eye(r.shape[0], dtype=q.dtype)
    aside = moved(keys, case, q, _ASIDE * generic(rows.shape[1], q.dtype))
    here, rank = _projection(rows)
    there, most = _projection(error_rows(keys, case, aside)[1])
    span = jnp.where(rank == most, here, there)
    missed = jnp.max(jnp.abs(r - span @ r)) > tolerances.closing(q.dtype)
    return jnp.where(missed | (most == r.shape[0]), eye, span)


def _projection(rows: Array) -> tuple[Array, Array]:
    """The projection onto the columns' span (n, n), by Gram-Schmidt; and its rank."""
    n, count = rows.shape
    least = tolerances.consistency(rows.dtype)
    longest = jnp.sqrt(jnp.max(jnp.sum(rows * rows, axis=0)))
    span, rank = jnp.zeros((n, n), rows.dtype), jnp.zeros((), rows.dtype)
    for k in range(count):
        new = rows[:, k] - span @ rows[:, k]
        new = new - span @ new
        size = jnp.sqrt(new @ new)
        kept = size > least * longest
        new = jnp.where(kept, new / jnp.where(kept, size, 1.0), 0.0)
        span, rank = span + jnp.outer(new, new), rank + kept
    return span, rank


def softest(rows: Array, through: Array) -> Array:
    """Left singular vectors (k, n) of the smallest singular values, by inverse iteration."""
    n = rows.shape[0]
    count = min(*rows.shape, _MODES)
    eye = jnp.eye(n, dtype=rows.dtype)
    gram = rows @ rows.T
    size = jnp.trace(gram) / n
    shift = tolerances.rounding(rows.dtype, 1e4) * size * eye
    factors = ldlt_rank_revealing(gram + 1e3 * size * (eye - through) + shift, tolerance=0.0)

    def improved(_: Any, u: Array) -> Array:
        u = ldlt_solve(*factors, u.T).T
        modes = u[:0]
        for x in u:
            for _ in range(2):
                x = x - modes.T @ (modes @ x)
            size = jnp.sqrt(x @ x)
            modes = jnp.concatenate([modes, (x / jnp.where(size > 0.0, size, 1.0))[None]])
        return modes

    start = generic(count * n, rows.dtype).reshape(count, n) @ through
    return lax.fori_loop(0, _INVERSE, improved, start)
