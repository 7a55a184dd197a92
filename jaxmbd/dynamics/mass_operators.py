"""The mass matrix M as an operator: dense, its diagonal blocks, or the recursion along the tree.

`Topology.elimination` and `Topology.loop_blocks` decide, by counted operations. All can be
multiplied by vectors and factored as ``M = Lᵀ D L``, with the same pivots and products to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.dynamics.inertia import inertia_blocks, joint_space_inertia
from jaxmbd.dynamics.reverse_gaussian_elimination import (
    Eliminated,
    TreeInertia,
    eliminate,
    tree_inertia,
)
from jaxmbd.kinematics import MotionState
from jaxmbd.numerics import (
    AnyColumns,
    AnyRows,
    BlockRows,
    diagonal,
    ltdl,
    ltdl_backward,
    ltdl_forward,
    tolerances,
    trace,
)


class BlockInertia(eqx.Module):
    """The diagonal blocks of M, for the trees that hang from the ground.

    Attributes:
        blocks: M of each tree.
        parts: its speeds.
    """

    blocks: tuple[Array, ...]
    parts: tuple[range, ...] = eqx.field(static=True)

    def __matmul__(self, x: Array) -> Array:
        pairs = zip(self.blocks, self.parts, strict=True)
        return jnp.concatenate([b @ x[p.start : p.stop] for b, p in pairs])

    def diagonal(self) -> Array:
        """The diagonal (nv,) of M."""
        return jnp.concatenate([diagonal(b) for b in self.blocks])

    def array(self) -> Array:
        """M (nv, nv)."""
        return self @ jnp.eye(self.parts[-1].stop, dtype=self.blocks[0].dtype)


MassOperator = Array | BlockInertia | TreeInertia
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


class BlockFactor(eqx.Module):
    """The factor L of `BlockInertia`: those of its blocks."""

    blocks: tuple[DenseFactor, ...]
    parts: tuple[range, ...] = eqx.field(static=True)

    def backward(self, b: Array) -> Array:
        """``L⁻ᵀ b`` (nv, m)."""
        pairs = zip(self.blocks, self.parts, strict=True)
        return jnp.concatenate([k.backward(b[p.start : p.stop]) for k, p in pairs])

    def backward_rows(self, jacobian: Array) -> Array:
        """``L⁻ᵀ Jᵀ`` (nv, nc)."""
        return self.backward(jacobian.T)

    def forward(self, y: Array) -> Array:
        """``L⁻¹ y`` (nv, m)."""
        pairs = zip(self.blocks, self.parts, strict=True)
        return jnp.concatenate([k.forward(y[p.start : p.stop]) for k, p in pairs])


Factor = DenseFactor | BlockFactor | Eliminated


def mass_operator(m: MotionState, *, recursive: bool | None = None) -> MassOperator:
    """M at a configuration; `recursive` chooses its kind, by default the topology does."""
    recursive = m.top.elimination.is_recursive if recursive is None else recursive
    if recursive:
        return tree_inertia(m)
    if m.top.loop_blocks is None:
        return joint_space_inertia(m)
    parts = m.top.loop_blocks.columns
    return BlockInertia(inertia_blocks(m, parts), parts)


def factor_mass(mass: MassOperator) -> tuple[Factor, Array, Array]:
    """L, the pivots D (nv,), and whether each exceeds its rounding error; others are 1."""
    if isinstance(mass, TreeInertia):
        return eliminate(mass)
    if isinstance(mass, BlockInertia):
        found = [factor_mass(block) for block in mass.blocks]
        factors, pivots, sound = zip(*found, strict=True)
        return BlockFactor(factors, mass.parts), jnp.concatenate(pivots), jnp.concatenate(sound)
    floor = tolerances.rounding(mass.dtype, 64) * diagonal(mass)
    lower, pivots, sound = ltdl(mass, floor)
    return DenseFactor(lower), pivots, sound


def factored_rows(factor: Factor, jacobian: AnyRows) -> AnyColumns:
    """``L⁻ᵀ Jᵀ`` (nv, nc)."""
    if not isinstance(jacobian, BlockRows):
        return jnp.asarray(factor.backward_rows(jacobian))
    if not isinstance(factor, BlockFactor):
        return jacobian.like(factor.backward_rows(jacobian.array()).T).T
    found = []
    for i, touched in enumerate(jacobian.sparsity.touched):
        parts = [factor.blocks[k].backward_rows(jacobian.part(i, k)).T for k in touched]
        found.append(jnp.concatenate(parts, axis=1))
    return BlockRows(tuple(found), jacobian.sparsity).T


def mass_diagonal(mass: MassOperator) -> Array:
    """The diagonal (nv,) of M."""
    if isinstance(mass, TreeInertia | BlockInertia):
        return mass.diagonal()
    return diagonal(mass)


def mass_size(mass: MassOperator) -> Array:
    """The trace of M, or a scale of it."""
    if isinstance(mass, TreeInertia):
        return mass.scale()
    return jnp.sum(mass.diagonal()) if isinstance(mass, BlockInertia) else trace(mass)


def mass_array(mass: MassOperator) -> Array:
    """M (nv, nv) as an array."""
    if isinstance(mass, BlockInertia):
        return mass.array()
    if not isinstance(mass, TreeInertia):
        return mass
    return mass @ jnp.eye(mass.top.nv, dtype=mass.none.dtype)
