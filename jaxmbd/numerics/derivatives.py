"""A Jacobian by columns in a loop, so that the tangent program is compiled once.

Derivatives of solutions of equations that may be redundant; NaN where they do not exist.

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
from jax import Array, lax

from jaxmbd.lanes import flagged
from jaxmbd.numerics import tolerances

WRITTEN_OUT = 2
"""Up to this many columns are unrolled, which exploits the zeros of the unit directions."""


def jacobian(fn: Callable[[Array], Any], x: Array) -> Any:
    """``∂fn/∂x`` of each array in ``fn(x)``, with the components of x along the last axis.

    `jax.jacfwd` maps the tangent over n directions, which a compiler to scalars unrolls n times;
    here the tangent map is the body of a loop, so the program size is independent of n.

    Args:
        fn: a function of x.
        x: the point (n,).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.numerics.derivatives import jacobian
        >>> jacobian(lambda x: x[:2] * x[2], jnp.array([1.0, 2.0, 3.0])).tolist()
        [[3.0, 0.0, 1.0], [0.0, 3.0, 2.0]]
    """
    if x.shape[0] <= WRITTEN_OUT:
        return jax.jacfwd(fn)(x)

    def column(direction: Array) -> Any:
        return jax.jvp(fn, (x,), (direction,))[1]

    columns = lax.map(column, jnp.eye(x.shape[0], dtype=x.dtype))
    return jax.tree_util.tree_map(lambda c: jnp.moveaxis(c, 0, -1), columns)


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
