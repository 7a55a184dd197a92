"""The mass matrix of a tree as an operator, and its factors by reverse Gaussian elimination.

``M = N_dᵀ N_lᵀ diag(M_i) N_l N_d``, with N_l and N_d the decoupled natural orthogonal complement
(Saha 1999). Twists and inertias are in world axes about reference points: b's point of the joint to
the parent (`Elimination.own_points`) or the point of the parent, so that inertias are plain sums.
Few joints in a row share a point, so the digits that distances cost do not grow with the length of
a chain.

To factor ``M = Lᵀ D L`` without M, it is eliminated from its last row upward (UDUᵀ; Saha 1997,
1999). What is left of a body's inertia after the elimination of its joint's coordinates is again a
symmetric 6×6 matrix, to be added to the parent's (the articulated inertia), so rows of L need not
be formed. With ``p_k`` the column of P, the twist of the body for a unit speed, and ``Î`` the
inertia of the body plus what its children left, each coordinate k of the joint, from the last to
the first, takes

    ``ψ̂_k = Î p_k``,  ``D_k = p_kᵀ ψ̂_k``,  ``ψ_k = ψ̂_k / D_k``,  ``Î ← Î − ψ_k ψ̂_kᵀ``,

and then ``Î_parent ← Î_parent + Aᵀ Î A``. A rotor's inertia a along the coordinate is added to D_k.
As ``L_kj = ψ_kᵀ A_kj p_j`` for the coordinates j between k and the ground, products with ``L⁻ᵀ``
and ``L⁻¹`` are recursions too: of wrenches ``η = Σ ψ_k y_k`` from the leaves, and of twists
``μ = Σ p_k x_k`` from the root. The operations are those of the articulated-body algorithm
(Featherstone 2008, 7.3), their number is linear in that of the bodies.

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
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.dynamics.inertia import armature_diagonal, world_inertias
from jaxmbd.graph import Topology
from jaxmbd.kinematics import (
    Columns,
    MotionState,
    PerBody,
    Static,
    by_joint,
    each,
    inward,
    outward,
)
from jaxmbd.lanes import nothing, traced_once
from jaxmbd.numerics import chosen_columns, placed_columns, symmetric, tolerances
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

    def array(self) -> Array:
        """M (nv, nv)."""
        return self @ jnp.eye(self.top.nv, dtype=self.none.dtype)

    def factored(self) -> tuple[Eliminated, Array, Array]:
        """L, the pivots D (nv,), and whether each exceeds its rounding error; others are 1."""
        return eliminate(self)

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
        PerBody.of(runs, [Static(own) for own in m.top.elimination.own_points]),
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
    own: Static,
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
    rotary = inertia + square * eye - symmetric(jnp.outer(moment, arm))
    across = skew(moment)
    second = 0.5 * jnp.trace(inertia) + square
    size = jnp.concatenate([jnp.broadcast_to(x, (3,)) for x in (second, mass)])
    return _blocks(rotary, across, -across, mass * eye), size


@traced_once
def _shift(offset: Array) -> Array:
    eye = jnp.asarray(np.eye(3), offset.dtype)
    return _blocks(eye, skew(offset), 0.0 * eye, eye)


def _blocks(a: Array, b: Array, c: Array, d: Array) -> Array:
    return jnp.concatenate([jnp.concatenate([a, b], axis=1), jnp.concatenate([c, d], axis=1)])


class Eliminated(eqx.Module):
    """The factor L of M: `response` (n, 6) of each body are ``ψ_k``."""

    tree: TreeInertia
    response: PerBody

    def backward(self, b: Array, carried: Sequence[tuple[int, ...]] | None = None) -> Array:
        """``L⁻ᵀ b`` (nv, m): ``y_k = b_k − p_kᵀ η``, ``η ← η + ψ_k y_k``, from the leaves.

        Args:
            b: (nv, m).
            carried: for each body the columns of b that may differ from zero at its speeds or
                those of a descendant, by default all; the same for all bodies of a run.
        """
        tree, m = self.tree, b.shape[1]
        parent, runs = tree.top.parent, tree.columns.runs
        active = [tuple(range(m))] * len(parent) if carried is None else carried

        def handed(i: int, eta: Array) -> Array:
            return placed_columns(eta, active[i], active[parent[i]])

        found = inward(
            parent,
            _backward,
            tree.shifts,
            tree.columns,
            self.response,
            tree.split(b),
            PerBody.of(runs, [Static(x) for x in active]),
            handed=handed,
        )
        return found.joined(b[:0])

    def backward_rows(self, jacobian: Array) -> Array:
        """``L⁻ᵀ Jᵀ`` (nv, nc) for the constraint rows J, along the branches of their loops."""
        return self.backward(jacobian.T, self.tree.top.subtree_rows)

    def forward(self, y: Array) -> Array:
        """``L⁻¹ y`` (nv, m): ``x_k = y_k − ψ_kᵀ μ``, ``μ ← μ + p_k x_k``, from the root."""
        tree = self.tree
        given = tree.shifts, tree.columns, self.response, tree.split(y)
        found = outward(tree.top.parent, _forward, *given, carried=lambda x: x[0])
        return found.field(1).joined(y[:0])


@traced_once
def _backward(
    eta: Array | None,
    shift: Array | None,
    columns: Array,
    response: Array,
    b: Array,
    active: Static,
) -> tuple[Array, Array]:
    chosen = active.value
    eta = jnp.zeros((6, len(chosen)), b.dtype) if eta is None else eta
    out = [b[:0]]
    for k in reversed(range(len(columns))):
        y = chosen_columns(b[k : k + 1], chosen) - columns[k : k + 1] @ eta
        eta = eta + response[k][:, None] * y
        out.append(placed_columns(y, chosen, range(b.shape[1])))
    return jnp.concatenate(out[::-1]), inward_wrench(shift, eta)


@traced_once
def _forward(
    above: Array | None, shift: Array | None, columns: Array, response: Array, y: Array
) -> tuple[Array, Array]:
    mu = jnp.zeros((6, y.shape[1]), y.dtype) if above is None else outward_twist(shift, above)
    out = [y[:0]]
    for k in range(len(columns)):
        x = y[k] - response[k] @ mu
        mu = mu + _outer(columns[k], x)
        out.append(x[None])
    return mu, jnp.concatenate(out)


def eliminate(tree: TreeInertia) -> tuple[Eliminated, Array, Array]:
    """Factor M.

    Returns:
        L, the pivots D (nv,), and whether each exceeds its rounding error; one that does not is
        replaced by 1.
    """
    given = tree.shifts, tree.columns, tree.bodies, tree.sizes, tree.armatures
    found = inward(tree.top.parent, _eliminate_joint, *given)
    none = tree.none
    return (
        Eliminated(tree, found.field(0)),
        found.field(1).joined(none),
        found.field(2).joined(none > 0.0),
    )


@traced_once
def _eliminate_joint(
    below: tuple[Array, Array] | None,
    shift: Array | None,
    columns: Array,
    inertia: Array,
    size: Array,
    armature: Array | None,
) -> tuple[Any, Any]:
    """The elimination of one joint's speeds: (ψ, D, whether D is sound), and what is left."""
    if below is not None:
        inertia, size = inertia + below[0], size + below[1]
    before = jnp.diagonal(inertia)
    error = tolerances.rounding(columns.dtype, 16) * size
    found = [(columns[:0], columns[:0, 0], columns[:0, 0] > 0.0)]
    for k in reversed(range(len(columns))):
        floor = columns[k] ** 2 @ error
        own = None if armature is None else armature[k : k + 1]
        psi, pivot, above, inertia = _one_speed(inertia, columns[k], floor, own)
        error = error + psi**2 * floor
        found.append((psi[None], pivot, above))
    left = jnp.maximum(before, size - (before - jnp.diagonal(inertia)))
    left = left if shift is None else shift**2 @ left
    joined = tuple(jnp.concatenate(x) for x in zip(*found[::-1], strict=True))
    return joined, (moved_inertia(shift, inertia), left)


@traced_once
def _one_speed(
    inertia: Array, column: Array, floor: Array, armature: Array | None
) -> tuple[Array, Array, Array, Array]:
    """``ψ_k``, ``D_k`` (1,), whether it exceeds its floor, and the inertia that is left."""
    momentum = inertia @ column
    pivot = (column @ momentum)[None]
    pivot = pivot if armature is None else pivot + armature
    above = jnp.abs(pivot) > floor
    pivot = jnp.where(above, pivot, 1.0)
    psi = momentum / pivot
    return psi, pivot, above, symmetric(inertia - _outer(psi, momentum))


def _outer(a: Array, b: Array) -> Array:
    return lax.dot_general(a, b, (((), ()), ((), ())))
