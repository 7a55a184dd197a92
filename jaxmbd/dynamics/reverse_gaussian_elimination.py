"""``M = Lᵀ D L`` by recursion along the tree, without M: reverse Gaussian elimination.

M is eliminated from its last row upward (UDUᵀ; Saha 1997, 1999). What is left of a body's inertia
after the elimination of its joint's coordinates is again a symmetric 6×6 matrix, to be added to the
parent's (the articulated inertia), so rows of L need not be formed. With ``p_k`` the column of P,
the twist of the body for a unit speed, and ``Î`` the inertia of the body plus what its children
left, each coordinate k of the joint, from the last to the first, takes

    ``ψ̂_k = Î p_k``,  ``D_k = p_kᵀ ψ̂_k``,  ``ψ_k = ψ̂_k / D_k``,  ``Î ← Î − ψ_k ψ̂_kᵀ``,

and then ``Î_parent ← Î_parent + Aᵀ Î A``. As ``L_kj = ψ_kᵀ A_kj p_j`` for the coordinates j
between k and the ground, products with ``L⁻ᵀ`` and ``L⁻¹`` are recursions too: of wrenches ``η = Σ
ψ_k y_k`` from the leaves, and of twists ``μ = Σ p_k x_k`` from the root. The operations are those
of the articulated-body algorithm (Featherstone 2008, 7.3), their number is linear in that of the
bodies.

Twists and inertias are in world axes about reference points: b's point of the joint to the parent
(`Elimination.own_points`) or the point of the parent, so that inertias are plain sums. Few joints
in a row share a point, so the digits that distances cost do not grow with the length of a chain.

A pivot vanishes where a motion has no inertia. What rounding leaves there is a multiple of ε of the
inertia of the composite body (the body with all its descendants), at most ``2 (s |ω|² + m |v|²)``
with its mass m and ``s = ∫ r² dm`` about the reference point.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.dynamics.inertia import world_inertias
from jaxmbd.graph import Topology
from jaxmbd.kinematics.motion import MotionState
from jaxmbd.numerics import tolerances
from jaxmbd.numerics.column_sets import chosen_columns, placed_columns
from jaxmbd.numerics.traced_once import nothing, traced_once
from jaxmbd.spatial.rotations import cross, skew

_UPPER = np.triu(np.ones((6, 6), bool))


class TreeInertia(eqx.Module):
    """M of a tree as an operator: ``M = N_dᵀ N_lᵀ diag(M_i) N_l N_d``.

    Attributes:
        top: the tree.
        columns: (nv, 6), ``p_k = [ω; v]`` of the joints at the reference points of their bodies.
        shifts: (6, 6) each, ``Aᵀ``: takes wrenches about a body's point to its parent's; None for
            the identity. ``A`` takes twists the other way.
        bodies: (6, 6) each, the inertias of the bodies about their points.
        bound: (nv,), upper bounds of the diagonal of M.
    """

    top: Topology = eqx.field(static=True)
    columns: Array
    shifts: tuple[Array | None, ...]
    bodies: tuple[Array, ...]
    bound: Array

    def __matmul__(self, x: Array) -> Array:
        """``M x`` for x (nv,) or (nv, m): twists from the root, wrenches from the leaves."""
        if x.ndim == 1:
            return (self @ x[:, None])[:, 0]
        twist: list[Array] = []
        for i, p in enumerate(self.top.parent):
            place = _place(self.top, i)
            mu = self.columns[place].T @ x[place]
            twist.append(mu + self.outward(i, twist[p]) if p >= 0 else mu)
        wrench = [inertia @ mu for inertia, mu in zip(self.bodies, twist, strict=True)]
        parts = [x[:0]]
        for i, p in _leaves_first(self.top):
            parts.append(self.columns[_place(self.top, i)] @ wrench[i])
            if p >= 0:
                wrench[p] = wrench[p] + self.inward(i, wrench[i])
        return jnp.concatenate(parts[::-1])

    def diagonal(self) -> Array:
        """The diagonal (nv,) of M, from the composite inertias."""
        total, parts = list(self.bodies), [self.bound[:0]]
        for i, p in _leaves_first(self.top):
            columns = self.columns[_place(self.top, i)]
            parts.append(jnp.sum((columns @ total[i]) * columns, axis=1))
            if p >= 0:
                total[p] = total[p] + self.moved(i, total[i])
        return jnp.concatenate(parts[::-1])

    def inward(self, i: int, wrench: Array) -> Array:
        """``Aᵀ w``: wrenches (6, m) on body i, about its parent's point."""
        shift = self.shifts[i]
        return wrench if shift is None else shift @ wrench

    def outward(self, i: int, twist: Array) -> Array:
        """``A t``: twists (6, m) of the parent of body i, at the point of i."""
        shift = self.shifts[i]
        return twist if shift is None else shift.T @ twist

    def moved(self, i: int, inertia: Array) -> Array:
        """``Aᵀ Î A``: an inertia (6, 6) about the point of body i, about its parent's."""
        shift = self.shifts[i]
        return inertia if shift is None else _mirrored(shift @ inertia @ shift.T)


class Eliminated(eqx.Module):
    """The factor L of M: `response` (nv, 6) are ``ψ_k``."""

    tree: TreeInertia
    response: Array

    def backward(self, b: Array, rows: Sequence[Sequence[int]] | None = None) -> Array:
        """``L⁻ᵀ b`` (nv, m): ``y_k = b_k − p_kᵀ η``, ``η ← η + ψ_k y_k``, from the leaves.

        Args:
            b: (nv, m).
            rows: for each column of b the speeds at which it may differ from zero, by default all;
                bodies that carry none of them take no part.
        """
        tree, m, out = self.tree, b.shape[1], [b[:0]]
        active = _active(tree.top, rows, m)
        wrench = [jnp.zeros((6, len(x)), b.dtype) for x in active]
        for i, p in _leaves_first(tree.top):
            eta, place = wrench[i], _place(tree.top, i)
            for k in reversed(range(place.start, place.stop)):
                y = chosen_columns(b[k : k + 1], active[i]) - tree.columns[k : k + 1] @ eta
                eta = eta + self.response[k][:, None] * y
                out.append(placed_columns(y, active[i], range(m)))
            if p >= 0:
                wrench[p] = wrench[p] + placed_columns(tree.inward(i, eta), active[i], active[p])
        return jnp.concatenate(out[::-1])

    def backward_rows(self, jacobian: Array) -> Array:
        """``L⁻ᵀ Jᵀ`` (nv, nc) for the constraint rows J, along the branches of their loops."""
        return self.backward(jacobian.T, self.tree.top.row_speeds)

    def forward(self, y: Array) -> Array:
        """``L⁻¹ y`` (nv, m): ``x_k = y_k − ψ_kᵀ μ``, ``μ ← μ + p_k x_k``, from the root."""
        tree, out = self.tree, [y[:0]]
        twist: list[Array] = []
        for i, p in enumerate(tree.top.parent):
            at_rest = jnp.zeros((6, y.shape[1]), y.dtype)
            mu = tree.outward(i, twist[p]) if p >= 0 else at_rest
            place = _place(tree.top, i)
            for k in range(place.start, place.stop):
                x = y[k] - self.response[k] @ mu
                mu = mu + _outer(tree.columns[k], x)
                out.append(x[None])
            twist.append(mu)
        return jnp.concatenate(out)


def eliminate(tree: TreeInertia) -> tuple[Eliminated, Array, Array]:
    """Factor M.

    Returns:
        L, the pivots D (nv,), and whether each exceeds the rounding error of a motion without
        inertia; one that does not is replaced by 1.
    """
    floor = tolerances.rounding(tree.bound.dtype, 32) * tree.bound
    total = list(tree.bodies)
    response, pivots = [tree.columns[:0]], [tree.bound[:0]]
    sound = [tree.bound[:0] > 0.0]
    for i, p in _leaves_first(tree.top):
        inertia, place = total[i], _place(tree.top, i)
        for k in reversed(range(place.start, place.stop)):
            psi, pivot, above, inertia = _one_speed(inertia, tree.columns[k], floor[k])
            response.append(psi[None])
            pivots.append(pivot)
            sound.append(above)
        if p >= 0:
            total[p] = total[p] + tree.moved(i, inertia)
    factor = Eliminated(tree, jnp.concatenate(response[::-1]))
    return factor, jnp.concatenate(pivots[::-1]), jnp.concatenate(sound[::-1])


@traced_once
def _one_speed(inertia: Array, column: Array, floor: Array) -> tuple[Array, Array, Array, Array]:
    """``ψ_k``, ``D_k`` (1,), whether it exceeds its floor, and the inertia that is left."""
    momentum = inertia @ column
    pivot = (column @ momentum)[None]
    above = pivot > floor
    pivot = jnp.where(above, pivot, 1.0)
    psi = momentum / pivot
    return psi, pivot, above, _mirrored(inertia - _outer(psi, momentum))


@partial(traced_once, runs=nothing)
def tree_inertia(m: MotionState) -> TreeInertia:
    """M at a configuration."""
    own = m.top.elimination.own_points
    points: list[Array] = []
    linear, shifts, bodies, sizes = [m.pos.slide[:0]], [], [], []
    for i, (p, inertia) in enumerate(zip(m.top.parent, world_inertias(m), strict=True)):
        place, mass = _place(m.top, i), jnp.asarray(m.mech.bodies[m.top.bodies[i]].mass)
        points.append(m.pos.joint[i] if own[i] else points[p])
        offset = points[i] - points[p] if own[i] and p >= 0 else None
        u = m.pos.slide[place]
        if not own[i]:
            u = u + cross(m.pos.angular[place], (points[i] - m.pos.joint[i])[None])
        arm = m.pos.com[i] - points[i]
        body, moment, second = _about_point(mass, arm, inertia)
        linear.append(u)
        shifts.append(None if offset is None else _shift(offset))
        bodies.append(body)
        sizes.append(_Size(mass, moment, second, offset))
    columns = jnp.concatenate([m.pos.angular, jnp.concatenate(linear)], axis=1)
    bound = _bounds(m.top, columns, sizes)
    return TreeInertia(m.top, columns, tuple(shifts), tuple(bodies), bound)


@traced_once
def _about_point(mass: Array, arm: Array, inertia: Array) -> tuple[Array, Array, Array]:
    """Inertia (6, 6), first and second moment about a point, of a body whose COM is at `arm`."""
    moment, eye = mass * arm, jnp.asarray(np.eye(3), arm.dtype)
    square = moment @ arm
    rotary = inertia + square * eye - _mirrored(_outer(moment, arm))
    across = skew(moment)
    return _blocks(rotary, across, -across, mass * eye), moment, 0.5 * jnp.trace(inertia) + square


@traced_once
def _shift(offset: Array) -> Array:
    eye = jnp.asarray(np.eye(3), offset.dtype)
    return _blocks(eye, skew(offset), 0.0 * eye, eye)


class _Size(NamedTuple):
    """Mass, first and second moment of a body about its point; that point from its parent's."""

    mass: Array
    moment: Array
    second: Array
    offset: Array | None


def _bounds(top: Topology, columns: Array, sizes: Sequence[_Size]) -> Array:
    """``2 (s |ω|² + m |v|²)`` (nv,) of the composite bodies."""
    total, squares = list(sizes), columns * columns
    parts = [squares[:0, 0]]
    for i, p in _leaves_first(top):
        mass, moment, second, offset = total[i]
        part = squares[_place(top, i)]
        size = second * jnp.sum(part[:, :3], 1) + mass * jnp.sum(part[:, 3:], 1)
        parts.append(size + size)
        if p < 0:
            continue
        if offset is not None:
            moment = moment + mass * offset
            second = second + offset @ (total[i].moment + moment)
        a = total[p]
        total[p] = _Size(a.mass + mass, a.moment + moment, a.second + second, a.offset)
    return jnp.concatenate(parts[::-1])


def _active(top: Topology, rows: Sequence[Sequence[int]] | None, m: int) -> list[tuple[int, ...]]:
    """For each body the columns that differ from zero at its speeds or those of a descendant."""
    if rows is None:
        return [tuple(range(m))] * len(top.bodies)
    found: list[set[int]] = []
    for i in range(len(top.bodies)):
        place = _place(top, i)
        speeds = range(place.start, place.stop)
        found.append({c for c, row in enumerate(rows) if not set(row).isdisjoint(speeds)})
    for i, p in _leaves_first(top):
        if p >= 0:
            found[p] |= found[i]
    return [tuple(sorted(x)) for x in found]


def _leaves_first(top: Topology) -> list[tuple[int, int]]:
    """Bodies and their parents, descendants first."""
    return list(enumerate(top.parent))[::-1]


def _place(top: Topology, i: int) -> slice:
    place = top.layout[top.tree[i]].v
    assert place is not None
    return place


def _outer(a: Array, b: Array) -> Array:
    return lax.dot_general(a, b, (((), ()), ((), ())))


def _mirrored(a: Array) -> Array:
    """The symmetric matrix with the upper triangle of `a`; its lower triangle is not used."""
    return jnp.where(_UPPER[: len(a), : len(a)], a, a.T)


def _blocks(a: Array, b: Array, c: Array, d: Array) -> Array:
    return jnp.concatenate([jnp.concatenate([a, b], axis=1), jnp.concatenate([c, d], axis=1)])
