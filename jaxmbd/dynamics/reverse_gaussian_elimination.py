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

A pivot vanishes where a motion has no inertia. Rounding leaves there a multiple of ε of the terms
it was computed from, which are articulated inertias, in a long chain far smaller than composite
ones. In world axes the element ij of each term X is at most ``√(X_ii X_jj)``; with z_i the sum of
the X_ii that Î_ii was computed from, ``p_kᵀ Î p_k`` has an error of ε of at most ``6 Σ p_ki² z_i``.
A body's own inertia about its point adds ``z = [s s s m m m]`` with its mass m and ``s = ∫ r² dm``.
The elimination subtracts from Î_ii the part ``d_i = Σ ψ_ki ψ̂_ki`` and from z_i as much, but z_i
remains at least Î_ii, in which the difference was rounded: ``z ← max(Î_ii, z − d)``. The parent
adds ``(Aᵀ∘Aᵀ) z``. The error of D_k adds ``ψ_ki²`` of it to that of Î_ii for the next coordinates
of the joint. So digits that cancelled below are not forgotten where nothing is left of Î.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

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
from jaxmbd.numerics.triangular import symmetric
from jaxmbd.spatial.rotations import cross, skew


class TreeInertia(eqx.Module):
    """M of a tree as an operator: ``M = N_dᵀ N_lᵀ diag(M_i) N_l N_d``.

    Attributes:
        top: the tree.
        columns: (nv, 6), ``p_k = [ω; v]`` of the joints at the reference points of their bodies.
        shifts: (6, 6) each, ``Aᵀ``: takes wrenches about a body's point to its parent's; None for
            the identity. ``A`` takes twists the other way.
        bodies: (6, 6) each, the inertias of the bodies about their points.
        sizes: (n, 6), ``[s s s m m m]`` of the bodies about their points.
    """

    top: Topology = eqx.field(static=True)
    columns: Array
    shifts: tuple[Array | None, ...]
    bodies: tuple[Array, ...]
    sizes: Array

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
        total, parts = list(self.bodies), [self.columns[:0, 0]]
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
        return inertia if shift is None else symmetric(shift @ inertia @ shift.T)

    def scale(self) -> Array:
        """A scale of the trace of M: ``Σ_k p_kᵀ Z p_k``, with Z the sum of all `sizes`."""
        return jnp.sum(self.columns**2, axis=0) @ jnp.sum(self.sizes, axis=0)


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
        L, the pivots D (nv,), and whether each exceeds its rounding error; one that does not is
        replaced by 1.
    """
    operations = tolerances.rounding(tree.columns.dtype, 16)
    total, sizes = list(tree.bodies), list(tree.sizes)
    none = tree.columns[:0, 0]
    response, pivots, sound = [tree.columns[:0]], [none], [none > 0.0]
    for i, p in _leaves_first(tree.top):
        inertia, place = total[i], _place(tree.top, i)
        before = jnp.diagonal(inertia)
        squares, error = tree.columns[place] ** 2, operations * sizes[i]
        for k in reversed(range(place.start, place.stop)):
            floor = squares[k - place.start] @ error
            psi, pivot, above, inertia = _one_speed(inertia, tree.columns[k], floor)
            error = error + psi**2 * floor
            response.append(psi[None])
            pivots.append(pivot)
            sound.append(above)
        if p >= 0:
            total[p] = total[p] + tree.moved(i, inertia)
            left = jnp.maximum(before, sizes[i] - (before - jnp.diagonal(inertia)))
            shift = tree.shifts[i]
            sizes[p] = sizes[p] + (left if shift is None else shift**2 @ left)
    factor = Eliminated(tree, jnp.concatenate(response[::-1]))
    return factor, jnp.concatenate(pivots[::-1]), jnp.concatenate(sound[::-1])


@traced_once
def _one_speed(inertia: Array, column: Array, floor: Array) -> tuple[Array, Array, Array, Array]:
    """``ψ_k``, ``D_k`` (1,), whether it exceeds its floor, and the inertia that is left."""
    momentum = inertia @ column
    pivot = (column @ momentum)[None]
    above = jnp.abs(pivot) > floor
    pivot = jnp.where(above, pivot, 1.0)
    psi = momentum / pivot
    return psi, pivot, above, symmetric(inertia - _outer(psi, momentum))


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
        body, size = _about_point(mass, arm, inertia)
        linear.append(u)
        shifts.append(None if offset is None else _shift(offset))
        bodies.append(body)
        sizes.append(size)
    columns = jnp.concatenate([m.pos.angular, jnp.concatenate(linear)], axis=1)
    stacked = jnp.stack(sizes) if sizes else columns[:0]
    return TreeInertia(m.top, columns, tuple(shifts), tuple(bodies), stacked)


@traced_once
def _about_point(mass: Array, arm: Array, inertia: Array) -> tuple[Array, Array]:
    """Inertia (6, 6) and size (6,) about a point, of a body whose COM is at `arm`."""
    moment, eye = mass * arm, jnp.asarray(np.eye(3), arm.dtype)
    square = moment @ arm
    rotary = inertia + square * eye - symmetric(_outer(moment, arm))
    across = skew(moment)
    second = 0.5 * jnp.trace(inertia) + square
    size = jnp.concatenate([jnp.broadcast_to(x, (3,)) for x in (second, mass)])
    return _blocks(rotary, across, -across, mass * eye), size


@traced_once
def _shift(offset: Array) -> Array:
    eye = jnp.asarray(np.eye(3), offset.dtype)
    return _blocks(eye, skew(offset), 0.0 * eye, eye)


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


def _blocks(a: Array, b: Array, c: Array, d: Array) -> Array:
    return jnp.concatenate([jnp.concatenate([a, b], axis=1), jnp.concatenate([c, d], axis=1)])
