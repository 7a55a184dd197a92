"""Scaling of mixed units by the mechanism's length.

Angles times this length are travels, moments divided by it are forces; so all rows, all speeds and
all efforts get a common unit each, and one tolerance fits them all.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.graph import topology
from jaxmbd.kinematics.motion import MotionState
from jaxmbd.lanes import nothing, traced_once
from jaxmbd.model import Mechanism
from jaxmbd.numerics import row_sum


@partial(traced_once, runs=nothing)
def mechanism_length(mech: Mechanism) -> Array:
    """A typical length [m]: RMS distance of points and COMs from their mean; 1 if they coincide.

    NaN where squares of the distances are beyond the floating-point type.

    Results of least norm depend on it where they are not unique, so it has its derivative.
    """
    points = [mech.point(name) for name in mech.structure.points]
    points += [mech.com(body) for body in mech.structure.bodies]
    share = 1.0 / len(points)

    def moments(x: Array) -> Array:
        return jnp.stack([x - points[0], (x - points[0]) ** 2])

    first, second = share * row_sum(points, moments)
    square = jnp.sum(second - first**2)
    flat = square <= 0.0  # not where it is NaN
    return jnp.where(flat, 1.0, jnp.sqrt(jnp.where(flat, 1.0, square)))


def row_scale(m: MotionState) -> Array:
    """(nc,): 1 for force rows, the mechanism's length for moment rows."""
    moment = np.array([kind == "moment" for kind in m.top.row_kinds], bool)
    if not moment.any():
        return jnp.ones(m.top.nc, m.q.dtype)
    return jnp.where(moment, mechanism_length(m.mech), 1.0).astype(m.q.dtype)


def speed_units(mech: Mechanism) -> Array:
    """(nv,): the mechanism's length for travels, 1 for angles."""
    travel = np.array([k == "travel" for k in topology(mech).speed_kinds], bool)
    return jnp.where(travel, mechanism_length(mech), 1.0)


def placed_numbers(mech: Mechanism) -> list[Array]:
    """The parameters that closure errors depend on: of points, joints, couplings and drives."""
    parts = (mech.points, mech.joints, mech.couplings, mech.drives)
    leaves = [jnp.asarray(x) for x in jax.tree_util.tree_leaves(parts) if hasattr(x, "dtype")]
    return [x for x in leaves if jnp.issubdtype(x.dtype, jnp.floating)]
