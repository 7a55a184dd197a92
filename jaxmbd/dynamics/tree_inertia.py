"""The mass matrix of a tree as an operator, by recursions along the tree.

``M = N_dᵀ N_lᵀ diag(M_i) N_l N_d``, with N_l and N_d the decoupled natural orthogonal complement
(Saha 1999). Twists and inertias are in world axes about reference points: b's point of the joint to
the parent (`Elimination.own_points`) or the point of the parent, so that inertias are plain sums.
Few joints in a row share a point, so the digits that distances cost do not grow with the length of
a chain.
"""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.dynamics.inertia import armature_diagonal, world_inertias
from jaxmbd.graph import Topology
from jaxmbd.kinematics import Columns, Known, MotionState, PerBody, by_joint, each, inward, outward
from jaxmbd.lanes import nothing, traced_once
from jaxmbd.numerics import outer, symmetric, trace
from jaxmbd.spatial import cross, skew


class TreeInertia(eqx.Module):
    """M of a tree as an operator: ``M = N_dᵀ N_lᵀ diag(M_i) N_l N_d + diag(a)``.

    Attributes:
        top: the tree.
        columns: (n, 6) of each body, ``p_k = [ω; v]`` of its joint at its reference point.
        shifts: (6, 6) of each, ``Aᵀ``: takes wrenches about a body's point to its parent's; None
            for the identity. ``A`` takes twists the other way.
        bodies: (6, 6) of each, its inertia about its point.
        sizes: (6,) of each, ``[s s s m m m]`` about its point.
        armature: a (nv,), the rotors' inertias; None if there are none.
    """

    top: Topology = eqx.field(static=True)
    columns: PerBody
    shifts: PerBody
    bodies: PerBody
    sizes: PerBody
    armature: Array | None = None

    def __matmul__(self, x: Array) -> Array:
        """``M x`` for x (nv,) or (nv, m): twists from the root, wrenches from the leaves."""
        if x.ndim == 1:
            return (self @ x[:, None])[:, 0]
        parent = self.top.parent
        twists = outward(parent, _twist, self.shifts, self.columns, self.split(x))
        given = self.shifts, self.columns, self.bodies, twists
        found = inward(parent, _momentum, *given).joined(x[:0])
        return found if self.armature is None else found + self.armature[:, None] * x

    def diagonal(self) -> Array:
        """The diagonal (nv,) of M, from the composite inertias."""
        found = inward(self.top.parent, _composite, self.shifts, self.columns, self.bodies)
        total = found.joined(self.none)
        return total if self.armature is None else total + self.armature

    def scale(self) -> Array:
        """A scale of the trace of M: ``Σ_k p_kᵀ Z p_k``, with Z the sum of all `sizes`."""
        sizes = each(lambda x: x[None], self.sizes).joined(jnp.zeros((0, 6), self.none.dtype))
        total = jnp.sum(self.all_columns**2, axis=0) @ jnp.sum(sizes, axis=0)
        return total if self.armature is None else total + jnp.sum(self.armature)

    @property
    def all_columns(self) -> Array:
        """The columns (nv, 6) of all joints."""
        return self.columns.joined(jnp.zeros((0, 6), self.none.dtype))

    @property
    def none(self) -> Array:
        """An empty array (0,)."""
        part = self.sizes.parts[0]
        return part.reshape(-1)[:0]

    def split(self, x: Array) -> PerBody:
        """The parts (n, …) of x (nv, …) that belong to each body's joint."""
        return by_joint(self.top, self.columns.runs, x)

    @property
    def armatures(self) -> PerBody:
        """A (n,) of each body's joint, None if there are none."""
        if self.armature is not None:
            return self.split(self.armature)
        return PerBody(self.columns.runs, [None] * len(self.columns.runs))


@traced_once
def _twist(above: Array | None, shift: Array | None, columns: Array, x: Array) -> Array:
    mu = columns.T @ x
    return mu if above is None else mu + outward_twist(shift, above)


@traced_once
def _momentum(
    below: Array | None, shift: Array | None, columns: Array, inertia: Array, twist: Array
) -> tuple[Array, Array]:
    wrench = _plus(below, inertia @ twist)
    return columns @ wrench, inward_wrench(shift, wrench)


@traced_once
def _composite(
    below: Array | None, shift: Array | None, columns: Array, inertia: Array
) -> tuple[Array, Array]:
    total = _plus(below, inertia)
    return jnp.sum((columns @ total) * columns, axis=1), moved_inertia(shift, total)


def _plus(below: Array | None, own: Array) -> Array:
    return own if below is None else own + below


def inward_wrench(shift: Array | None, wrench: Array) -> Array:
    """``Aᵀ w``: wrenches (6, m) on a body, about its parent's point."""
    return wrench if shift is None else shift @ wrench


def outward_twist(shift: Array | None, twist: Array) -> Array:
    """``A t``: twists (6, m) of the parent of a body, at the body's point."""
    return twist if shift is None else shift.T @ twist


def moved_inertia(shift: Array | None, inertia: Array) -> Array:
    """``Aᵀ Î A``: an inertia (6, 6) about the point of a body, about its parent's."""
    return inertia if shift is None else symmetric(shift @ inertia @ shift.T)


def tree_inertia(m: MotionState) -> TreeInertia:
    """M at a configuration."""
    return _from(m, world_inertias(m))


@partial(traced_once, runs=nothing)
def _from(m: MotionState, inertias: PerBody) -> TreeInertia:
    runs = m.pos.runs
    masses = [jnp.asarray(m.mech.bodies[body].mass) for body in m.top.bodies]
    found = outward(
        m.top.parent,
        _at_point,
        m.pos.columns,
        m.pos.joint,
        m.pos.com,
        PerBody.of(runs, masses),
        inertias,
        PerBody.of(runs, [Known(own) for own in m.top.elimination.own_points]),
        carried=lambda x: x[0],
    )
    along = armature_diagonal(m.mech)
    columns, shifts, bodies, sizes = (found.field(k) for k in range(1, 5))
    return TreeInertia(m.top, columns, shifts, bodies, sizes, along)


@traced_once
def _at_point(
    above: Array | None,
    columns: Columns | None,
    joint: Array,
    com: Array,
    mass: Array,
    inertia: Array,
    own: Known,
) -> tuple[Array, Array, Array | None, Array, Array]:
    """A body's reference point, and its columns, shift, inertia and size about it."""
    point = joint if own.value or above is None else above
    shift = _shift(point - above) if own.value and above is not None else None
    body, size = _about_point(mass, com - point, inertia)
    if columns is None:
        return point, jnp.zeros((0, 6), com.dtype), shift, body, size
    w, u, _ = columns
    u = u if own.value or above is None else u + cross(w, (point - joint)[None])
    return point, jnp.concatenate([w, u], axis=1), shift, body, size


@traced_once
def _about_point(mass: Array, arm: Array, inertia: Array) -> tuple[Array, Array]:
    """Inertia (6, 6) and size (6,) about a point, of a body whose COM is at `arm`."""
    moment, eye = mass * arm, jnp.asarray(np.eye(3), arm.dtype)
    square = moment @ arm
    rotary = inertia + square * eye - symmetric(outer(moment, arm))
    across = skew(moment)
    second = 0.5 * trace(inertia) + square
    size = jnp.concatenate([jnp.broadcast_to(x, (3,)) for x in (second, mass)])
    return _blocks(rotary, across, -across, mass * eye), size


@traced_once
def _shift(offset: Array) -> Array:
    eye = jnp.asarray(np.eye(3), offset.dtype)
    return _blocks(eye, skew(offset), 0.0 * eye, eye)


def _blocks(a: Array, b: Array, c: Array, d: Array) -> Array:
    return jnp.concatenate([jnp.concatenate([a, b], axis=1), jnp.concatenate([c, d], axis=1)])
