"""Mass matrix by composite inertias: ``M = N_dᵀ (N_lᵀ diag(M_i) N_l) N_d`` without the products.

The matrix in brackets is, for each body, the inertia of all that it carries (the composite body),
so each column of M is that inertia times a joint's column, seen by the columns that support it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.kinematics.motion import MotionState, motion_state
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.spatial.rotations import cross


class CompositeInertia(NamedTuple):
    """Inertia of a body and all it carries about that body's centre of mass, world axes.

    Attributes:
        mass: [kg].
        moment: first moment (3,) [kg m].
        inertia: second moment (3, 3) [kg m²].
    """

    mass: Array
    moment: Array
    inertia: Array


def world_inertias(m: MotionState) -> list[Array]:
    """Inertia (3, 3) [kg m²] of each body about its COM, world axes: ``R I Rᵀ``."""
    out = []
    for body, r in zip(m.top.bodies, m.pos.rotation, strict=True):
        inertia = jnp.asarray(m.mech.bodies[body].inertia)
        out.append(inertia if r is None else r @ inertia @ r.T)
    return out


def composite_inertias(m: MotionState, inertias: list[Array]) -> list[CompositeInertia]:
    """Composite inertias, gathered from the leaves inward."""
    zero = jnp.zeros(3, m.q.dtype)
    total = [
        CompositeInertia(jnp.asarray(m.mech.bodies[body].mass), zero, inertia)
        for body, inertia in zip(m.top.bodies, inertias, strict=True)
    ]
    for i in range(len(total) - 1, -1, -1):
        p = m.top.parent[i]
        if p >= 0:
            total[p] = _add(total[p], total[i], m.pos.com[i] - m.pos.com[p])
    return total


def _add(a: CompositeInertia, b: CompositeInertia, r: Array) -> CompositeInertia:
    """`a` and `b` together, about a's point; `r` runs from a's point to b's."""
    eye = jnp.eye(3, dtype=r.dtype)
    hr = jnp.outer(b.moment, r)
    shift = (b.mass * (r @ r) + 2.0 * (b.moment @ r)) * eye - b.mass * jnp.outer(r, r) - hr - hr.T
    return CompositeInertia(
        a.mass + b.mass, a.moment + b.moment + b.mass * r, a.inertia + b.inertia + shift
    )


def joint_space_inertia(m: MotionState) -> Array:
    """M (nv, nv) from the composite inertias; zero between branches."""
    composite = composite_inertias(m, world_inertias(m))
    nv = m.top.nv
    columns = [jnp.zeros((nv, 0), m.q.dtype)]
    for i, name in enumerate(m.top.tree):
        place = m.top.layout[name].v
        assert place is not None
        if place.start == place.stop:
            continue
        c, end = composite[i], place.stop
        w, u = m.pos.angular[place], m.pos.linear[place]
        momentum = c.mass * u + cross(w, c.moment[None])
        spin = w @ c.inertia + cross(c.moment[None], u)
        at_com = m.pos.linear[:end] + cross(
            m.pos.angular[:end], m.pos.com[i] - m.pos.column_com[:end]
        )
        block = m.pos.angular[:end] @ spin.T + at_com @ momentum.T
        supports = np.isin(np.arange(end), m.top.support[i])[:, None]
        block = jnp.where(supports, block, 0.0)
        columns.append(jnp.concatenate([block, jnp.zeros((nv - end, w.shape[0]), w.dtype)]))
    upper = jnp.concatenate(columns, axis=1)
    above = np.triu(np.ones((nv, nv), bool))
    return jnp.where(above, upper, upper.T)


def mass_matrix(mech: Mechanism, q: Array) -> Array:
    """M (nv, nv) of the tree: ``½ vᵀ M v`` is the kinetic energy of any v.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.mass_matrix(m, mbd.neutral(m)).shape
        (1, 1)
    """
    return joint_space_inertia(motion_state(mech, q))
