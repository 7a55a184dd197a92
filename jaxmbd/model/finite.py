"""Whether all numbers of a mechanism are finite: one answer for every backend.

Lanes drops what a literal zero multiplies (`jaxmbd.lanes.ir.fold`) and XLA does not, so a NaN that
meets nothing but zeros (an inertia across the axis of a plane motion) would pass here and be
flagged there. So a mechanism's numbers are asked themselves, not what became of them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.mechanism import Mechanism


def finite_numbers(mech: Mechanism) -> Array:
    """Whether all numbers of a mechanism are finite.

    Parameters of forces, drives and couplings may be infinite (a law's limit), not NaN. Of the
    others, a sum of products of pairs is finite where they are: one fused operation for two.
    Nothing is differentiated.
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
