"""Derivatives of solutions of equations that may be redundant; NaN where they do not exist.

Where ``r(x, p) = 0`` determines x, its tangent ẋ solves ``A ẋ = −r_p ṗ`` with A = ∂r/∂x. Rows of A
that add no rank are skipped, and the solution of the others is the tangent only if it satisfies the
skipped rows too: there is no derivative in a direction ṗ that makes the redundant equations
inconsistent (such as moving one pin of a planar linkage out of the plane). So all rows are tested,
and the tangent is NaN if one is not satisfied.

This holds for forward mode. Reverse mode acts on cotangents, which specify no direction, so nothing
can be tested: its gradient is exact along every direction in which the derivative exists, and its
product with any other direction is meaningless.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.lanes import flagged
from jaxmbd.numerics import tolerances


def tested(x: Array, miss: Array, terms: Sequence[Any], given: Any = ()) -> Array:
    """The tangent x (n,), or NaN if a row's residual exceeds `tolerances.consistency` of its terms.

    For the rule of a `jax.custom_jvp`: all arguments are linear in the tangents.

    Args:
        x: tangent of the solution.
        miss: residual of each row.
        terms: terms of the rows, in the rows' unit, which set the scale of the residuals.
        given: tangents that the rows depend on; their rounding error adds to the tolerance.
    """
    tolerance = tolerances.consistency(x.dtype)
    least = tolerances.rounding(x.dtype, 1e4) / tolerance
    leaves = jax.tree_util.tree_leaves(given)
    floats = [y for y in leaves if getattr(y, "dtype", None) == x.dtype]
    parts = [*(jnp.ravel(y) for y in terms), *(least * jnp.ravel(y) for y in floats)]
    return flagged(x, jnp.ravel(miss), jnp.concatenate([jnp.zeros(1, x.dtype), *parts]), tolerance)


def believed(miss: Array, error: Array | None) -> Array:
    """Residuals of rows that are known to the relative `error` only, less where that is larger.

    Of redundant rows with an error the tangents contradict each other by as much.
    """
    if error is None:
        return miss
    tolerance = tolerances.consistency(miss.dtype)
    return miss * (tolerance / jnp.maximum(error, tolerance))


def nan_where(bad: Array, rates: Array) -> Array:
    """``rates``, NaN where `bad`; its transpose makes cotangents NaN there that are not zero."""

    def forward(_: Callable[[Array], Array], rates: Array) -> Array:
        return jnp.where(bad, jnp.nan, rates)

    def backward(_: Callable[[Array], Array], cotangents: Array) -> Array:
        return jnp.where(bad & (cotangents != 0.0), jnp.nan, cotangents)

    return jax.lax.custom_linear_solve(lambda x: x, rates, forward, backward)


@jax.custom_jvp
def solution(x: Array, miss: Array, terms: Sequence[Any], given: Any = ()) -> Array:
    """The identity of x; its tangent is `tested` with the tangents of the other arguments."""
    del miss, terms, given
    return x


@solution.defjvp
def _solution_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    return primals[0], tested(*tangents)
