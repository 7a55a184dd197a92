"""What makes numbers of different kinds comparable: the mechanism's length.

Angles times it are travels, moments over it are forces; so rows, speeds and efforts each get one
unit, and a tolerance means the same for all.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.graph import topology
from jaxmbd.kinematics.closure import closure_jacobian
from jaxmbd.kinematics.motion import MotionState
from jaxmbd.model.mechanism import Mechanism


def mechanism_length(mech: Mechanism) -> Array:
    """A typical length [m]: the spread of points and centres of mass; one where they coincide."""
    points = [mech.point(name) for name in mech.structure.points]
    points += [mech.com(body) for body in mech.structure.bodies]
    stack = jax.lax.stop_gradient(jnp.stack(points))
    square = jnp.mean(jnp.sum((stack - jnp.mean(stack, axis=0)) ** 2, axis=1))
    return jnp.where(square > 0.0, jnp.sqrt(jnp.where(square > 0.0, square, 1.0)), 1.0)


def row_scale(m: MotionState) -> Array:
    """(nc,): one for force rows, the mechanism's length for moment rows."""
    moment = np.array([kind == "moment" for kind in m.top.row_kinds], bool)
    if not moment.any():
        return jnp.ones(m.top.nc, m.q.dtype)
    return jnp.where(moment, mechanism_length(m.mech), 1.0).astype(m.q.dtype)


def scaled_jacobian(m: MotionState) -> Array:
    """J (nc, nv) with `row_scale` applied: all multipliers in newtons."""
    return row_scale(m)[:, None] * closure_jacobian(m)


def speed_units(mech: Mechanism) -> Array:
    """(nv,): the mechanism's length for travels, one for angles."""
    travel = np.array([k == "travel" for k in topology(mech).speed_kinds], bool)
    return jnp.where(travel, mechanism_length(mech), 1.0)


def placed_numbers(mech: Mechanism) -> list[Array]:
    """The numbers on which closure errors depend: of points, joints, couplings and drives."""
    parts = (mech.points, mech.joints, mech.couplings, mech.drives)
    leaves = [jnp.asarray(x) for x in jax.tree_util.tree_leaves(parts) if hasattr(x, "dtype")]
    return [x for x in leaves if jnp.issubdtype(x.dtype, jnp.floating)]
