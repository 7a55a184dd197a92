"""Derivatives of solutions of equations that may be redundant: they exist, or they are NaN.

Where ``r(x, p) = 0`` determines x, its tangent is ``A ẋ = −r_p ṗ``. Rows of A that add no rank are
skipped, and the ẋ of the others is the tangent only if it meets the skipped ones too: there is no
derivative in a direction ṗ in which the redundant rows would contradict each other (a planar
linkage drawn in space, one of whose pins is moved out of the plane). So all rows are tested, and
the tangent is NaN where one is not met.

That is forward mode. The transpose acts on cotangents, which name no direction, and cannot be
tested: reverse mode gives the gradient that is exact along every direction in which the derivative
exists, and whose product with another direction means nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.lanes import flagged
from jaxmbd.numerics import tolerances


def tested(x: Array, miss: Array, terms: Sequence[Any], given: Any = ()) -> Array:
    """The tangent x (n,), or NaN where a row misses more than its terms' redundancy explains.

    For the rule of a `jax.custom_jvp`: all arguments are linear in the tangents.

    Args:
        x: tangent of the solution.
        miss: what is left of each row's tangent.
        terms: arrays of the rows' unit that `miss` is small beside where it is rounding.
        given: the tangents that the rows depend on, whose rounding the rows feel.
    """
    tolerance = tolerances.consistency(x.dtype)
    least = tolerances.rounding(x.dtype, 1e4) / tolerance
    leaves = jax.tree_util.tree_leaves(given)
    floats = [y for y in leaves if getattr(y, "dtype", None) == x.dtype]
    parts = [*(jnp.ravel(y) for y in terms), *(least * jnp.ravel(y) for y in floats)]
    return flagged(x, jnp.ravel(miss), jnp.concatenate([jnp.zeros(1, x.dtype), *parts]), tolerance)


@jax.custom_jvp
def solution(x: Array, miss: Array, terms: Sequence[Any], given: Any = ()) -> Array:
    """x, whose tangent is `tested` with those of the others."""
    del miss, terms, given
    return x


@solution.defjvp
def _solution_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    return primals[0], tested(*tangents)
