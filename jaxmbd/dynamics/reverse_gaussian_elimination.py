"""``M = Lᵀ D L`` by recursion along the tree, without M: reverse Gaussian elimination.

M is eliminated from its last row upward (UDUᵀ; Saha 1997, 1999). What is left of a body's inertia
after the elimination of its joint's coordinates is again a symmetric 6×6 matrix, to be added to the
parent's (the articulated inertia), so rows of L need not be formed. With ``p_k`` the column of P,
the twist of the body for a unit speed, and ``Î`` the inertia of the body plus what its children
left, each coordinate k of the joint, from the last to the first, takes

    ``ψ̂_k = Î p_k``,  ``D_k = p_kᵀ ψ̂_k``,  ``ψ_k = ψ̂_k / D_k``,  ``Î ← Î − ψ_k ψ̂_kᵀ``,

and then ``Î_parent ← Î_parent + Aᵀ Î A``. A rotor's inertia a along the coordinate is added to
D_k. As ``L_kj = ψ_kᵀ A_kj p_j`` for the coordinates j
between k and the ground, products with ``L⁻ᵀ`` and ``L⁻¹`` are recursions too: of wrenches ``η = Σ
ψ_k y_k`` from the leaves, and of twists ``μ = Σ p_k x_k`` from the root. The operations are those
of the articulated-body algorithm (Featherstone 2008, 7.3), their number is linear in that of the
bodies.

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
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.dynamics.tree_inertia import TreeInertia, inward_wrench, moved_inertia, outward_twist
from jaxmbd.kinematics import Known, PerBody, inward, outward
from jaxmbd.lanes import traced_once
from jaxmbd.numerics import chosen_columns, placed_columns, symmetric, tolerances


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
            PerBody.of(runs, [Known(x) for x in active]),
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
    eta: Array | None, shift: Array | None, columns: Array, response: Array, b: Array, active: Known
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
