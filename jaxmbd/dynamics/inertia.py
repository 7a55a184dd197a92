"""Mass matrix by composite inertias: ``M = N_dᵀ (N_lᵀ diag(M_i) N_l) N_d``, recursively.

The diagonal blocks of the matrix in parentheses are the inertias of composite bodies: a body with
all its descendants. A column of M is the composite inertia times the joint's motion column,
multiplied by the motion columns of the joints that support it.
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
    """Inertia of a body with all its descendants about a reference point, world axes.

    All bodies of a branch have the same reference point (`references`), so that composite inertias
    are plain sums.

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
        inertia = m.mech.inertia(body)
        out.append(inertia if r is None else _symmetric(r @ inertia @ r.T))
    return out


def _symmetric(a: Array) -> Array:
    """The symmetric matrix with the upper triangle of `a`; its lower triangle is not used."""
    return jnp.where(np.triu(np.ones(a.shape, bool)), a, a.T)


def references(m: MotionState) -> list[Array]:
    """Reference point of each body's composite inertia, common to a branch from the ground.

    It is the point of the branch's first joint, where linear parts of rotary motion columns vanish;
    of the joint's two points the first body's, if it can move away from the other. Its centre of
    mass would not do: if that is far away, the inertias of all others are small differences.
    """
    out: list[Array] = []
    for i, p in enumerate(m.top.parent):
        if p >= 0:
            out.append(out[p])
        else:
            point = m.mech.joint(m.top.tree[i]).point_a
            body = m.top.bodies[i]
            out.append(m.position(body, point) if _stays_behind(m, i) else m.pos.joint[i])
    return out


def _stays_behind(m: MotionState, i: int) -> bool:
    """Whether body i can move away from b's point of its joint, because b is the parent."""
    name = m.top.tree[i]
    return m.top.reversed_[i] and m.mech.joint(name).translation(m.coordinates(name)) is not None


def composite_inertias(m: MotionState, inertias: list[Array]) -> list[CompositeInertia]:
    """Composite inertias, summed from the leaves to the root."""
    total = []
    for i, (body, point) in enumerate(zip(m.top.bodies, references(m), strict=True)):
        mass = jnp.asarray(m.mech.bodies[body].mass)
        r = m.pos.com[i] - point
        second = _symmetric(jnp.outer(mass * r, r))
        shift = jnp.trace(second) * jnp.eye(3, dtype=r.dtype) - second
        total.append(CompositeInertia(mass, mass * r, inertias[i] + shift))
    for i in range(len(total) - 1, -1, -1):
        p = m.top.parent[i]
        if p >= 0:
            sums = (a + b for a, b in zip(total[p], total[i], strict=True))
            total[p] = CompositeInertia(*sums)
    return total


def joint_space_inertia(m: MotionState) -> Array:
    """M (nv, nv) from the composite inertias; zero between branches."""
    composite = composite_inertias(m, world_inertias(m))
    linear = columns_at_references(m)
    nv = m.top.nv
    columns = [jnp.zeros((nv, 0), m.q.dtype)]
    for i, name in enumerate(m.top.tree):
        place = m.top.layout[name].v
        assert place is not None
        if place.start == place.stop:
            continue
        c, end = composite[i], place.stop
        w, u = m.pos.angular[place], linear[place]
        momentum = c.mass * u + cross(w, c.moment[None])
        spin = w @ c.inertia + cross(c.moment[None], u)
        block = m.pos.angular[:end] @ spin.T + linear[:end] @ momentum.T
        supports = np.isin(np.arange(end), m.top.support[i])[:, None]
        block = jnp.where(supports, block, 0.0)
        columns.append(jnp.concatenate([block, jnp.zeros((nv - end, w.shape[0]), w.dtype)]))
    return _symmetric(jnp.concatenate(columns, axis=1))


def columns_at_references(m: MotionState) -> Array:
    """Linear parts (nv, 3) of the motion columns at the reference points of their branches."""
    linear = [jnp.zeros((0, 3), m.q.dtype)]
    for i, (name, point) in enumerate(zip(m.top.tree, references(m), strict=True)):
        place = m.top.layout[name].v
        assert place is not None
        u = m.pos.slide[place]
        if point is not m.pos.joint[i]:
            u = u + cross(m.pos.angular[place], (point - m.pos.joint[i])[None])
        linear.append(u)
    return jnp.concatenate(linear)


def mass_matrix(mech: Mechanism, q: Array) -> Array:
    """M (nv, nv) of the tree: ``½ vᵀ M v`` is the kinetic energy for speeds v.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.mass_matrix(m, mbd.neutral(m)).shape
        (1, 1)
    """
    return joint_space_inertia(motion_state(mech, q))
