"""The mass matrix M as an operator: dense, or as the recursion along the tree.

`Topology.elimination` decides, by counted operations. Both can be multiplied by vectors and
factored as ``M = Lᵀ D L``, with the same pivots and products to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from jaxmbd.dynamics.inertia import joint_space_inertia
from jaxmbd.dynamics.reverse_gaussian_elimination import Eliminated, eliminate
from jaxmbd.dynamics.tree_inertia import TreeInertia, tree_inertia
from jaxmbd.kinematics.motion import MotionState
from jaxmbd.numerics import tolerances
from jaxmbd.numerics.ltdl import ltdl, ltdl_backward, ltdl_forward

MassOperator = Array | TreeInertia
"""M (nv, nv); ``M @ x`` is its product."""


class DenseFactor(NamedTuple):
    """The factor L of M: `lower` (nv, nv)."""

    lower: Array

    def backward(self, b: Array) -> Array:
        """``L⁻ᵀ b`` (nv, m)."""
        return ltdl_backward(self.lower, b)

    def backward_rows(self, jacobian: Array) -> Array:
        """``L⁻ᵀ Jᵀ`` (nv, nc)."""
        return ltdl_backward(self.lower, jacobian.T)

    def forward(self, y: Array) -> Array:
        """``L⁻¹ y`` (nv, m)."""
        return ltdl_forward(self.lower, y)


Factor = DenseFactor | Eliminated


def mass_operator(m: MotionState, *, recursive: bool | None = None) -> MassOperator:
    """M at a configuration; `recursive` chooses its kind, by default the topology does."""
    recursive = m.top.elimination.is_recursive if recursive is None else recursive
    return tree_inertia(m) if recursive else joint_space_inertia(m)


def factor_mass(mass: MassOperator) -> tuple[Factor, Array, Array]:
    """L, the pivots D (nv,), and whether each exceeds its rounding error; others are 1."""
    if isinstance(mass, TreeInertia):
        return eliminate(mass)
    floor = tolerances.rounding(mass.dtype, 64) * jnp.asarray(jnp.diagonal(mass))
    lower, pivots, sound = ltdl(mass, floor)
    return DenseFactor(lower), pivots, sound


def mass_diagonal(mass: MassOperator) -> Array:
    """The diagonal (nv,) of M."""
    return mass.diagonal() if isinstance(mass, TreeInertia) else jnp.asarray(jnp.diagonal(mass))


def mass_size(mass: MassOperator) -> Array:
    """The trace of M, or a scale of it."""
    return mass.scale() if isinstance(mass, TreeInertia) else jnp.trace(mass)


def mass_array(mass: MassOperator) -> Array:
    """M (nv, nv) as an array."""
    if not isinstance(mass, TreeInertia):
        return mass
    return mass @ jnp.eye(mass.top.nv, dtype=mass.none.dtype)
