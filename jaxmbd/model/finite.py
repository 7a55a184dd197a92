"""Whether all numbers of a mechanism are finite: one answer for every backend.

Lanes drops products with a literal zero (`jaxmbd.lanes.ir.fold`) and XLA does not, so that a NaN
which is only multiplied by zeros (an inertia across the axis of a plane motion) would be flagged by
XLA but not by lanes. Therefore the mechanism's numbers are checked, not the results.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.mechanism import Mechanism


def finite_numbers(mech: Mechanism) -> Array:
    """Whether all numbers of a mechanism are finite.

    Parameters of forces, drives and couplings may be infinite (a law's limit) but not NaN. All
    other numbers are checked by a sum of products of pairs, which takes one fused operation for
    two numbers. Nothing is differentiated.
    """
    exact = _numbers((mech.bodies, mech.joints, mech.points, mech.gravity), mech)
    half = -(-exact.size // 2)
    fine = jnp.isfinite(exact[:half] @ exact[exact.size - half :])
    return fine & ~jnp.any(jnp.isnan(_numbers((mech.forces, mech.drives, mech.couplings), mech)))


def _numbers(tree: object, mech: Mechanism) -> Array:
    """The floating numbers of a tree, one after another."""
    arrays = (x for x in jax.tree_util.tree_leaves(tree) if hasattr(x, "dtype"))
    floats = [jnp.ravel(x) for x in arrays if jnp.issubdtype(x.dtype, jnp.floating)]
    return jax.lax.stop_gradient(jnp.concatenate([jnp.zeros(0, mech.dtype), *floats]))
