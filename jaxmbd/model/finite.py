"""Whether all numbers of a mechanism are finite: one answer for every backend.

Lanes drops products with a literal zero (`jaxmbd.lanes.ir.fold`) and XLA does not, so that a NaN
which is only multiplied by zeros (an inertia across the axis of a plane motion) would be flagged by
XLA but not by lanes. Therefore the mechanism's numbers are checked, not the results.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from jaxmbd.model.mechanism import Mechanism
from jaxmbd.numerics import MANY, row_sum

LONG = 64
"""Arrays of parameters with more numbers, as of a road, are tested each by itself: a kernel would
look for the right one of many joined arrays at each number."""


def has_literal_zeros(mech: Mechanism) -> bool:
    """Whether constants of a mechanism may be zeros that a compiler folds.

    Points count as such wherever they are constant, because their differences may be. Where
    directions and points vary with the sample, or no direction has a zero, every number of the
    mechanism reaches the results, and so does a NaN.
    """
    if mech.structure.planar:
        return True
    if any(not isinstance(x, Tracer) for x in mech.points.values()):
        return True
    directions = jax.tree_util.tree_leaves(mech.joints)
    constant = [x for x in directions if not isinstance(x, Tracer) and np.size(x) > 1]
    return any(not np.all(np.asarray(x)) for x in constant)


def finite_numbers(mech: Mechanism) -> Array:
    """Whether all numbers of a mechanism are finite.

    Parameters of forces, drives and couplings may be infinite (a law's limit) but not NaN. All
    other numbers are checked by a sum of products of pairs, which takes one fused operation for
    two numbers. Nothing is differentiated.
    """
    points = jax.tree_util.tree_leaves(mech.points)
    many = points if len(points) >= MANY else []
    rest = {} if many else mech.points
    exact = _numbers((mech.bodies, mech.joints, rest, mech.gravity), mech)
    half = -(-exact.size // 2)
    fine = jnp.isfinite(exact[:half] @ exact[exact.size - half :])
    if many:
        given = [jax.lax.stop_gradient(jnp.asarray(x, mech.dtype)) for x in many]
        fine = fine & jnp.isfinite(row_sum(given, lambda x: x @ x))
    parameters = _floats((mech.forces, mech.drives, mech.couplings))
    few = [x for x in parameters if x.size <= LONG]
    for x in (_joined(few, mech), *(x for x in parameters if x.size > LONG)):
        fine = fine & ~jnp.any(jnp.isnan(lax.stop_gradient(x)))
    return fine


def finite_squares(mech: Mechanism) -> Array:
    """Whether the squares of the numbers of bodies, joints, points and gravity are finite.

    Where they overflow, lengths of vectors do too, and results are wrong though they are finite.
    """
    exact = _numbers((mech.bodies, mech.joints, mech.points, mech.gravity), mech)
    return jnp.isfinite(exact @ exact)


def _numbers(tree: object, mech: Mechanism) -> Array:
    """The floating numbers of a tree, one after another."""
    return _joined(_floats(tree), mech)


def _floats(tree: object) -> list[Array]:
    arrays = (x for x in jax.tree_util.tree_leaves(tree) if hasattr(x, "dtype"))
    return [x for x in arrays if jnp.issubdtype(x.dtype, jnp.floating)]


def _joined(arrays: list[Array], mech: Mechanism) -> Array:
    flat = [x if x.ndim == 1 else lax.reshape(x, (x.size,)) for x in arrays]
    return lax.stop_gradient(jnp.concatenate([jnp.zeros(0, mech.dtype), *flat]))
