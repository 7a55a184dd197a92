"""Mass matrix by composite inertias: ``M = N_dᵀ (N_lᵀ diag(M_i) N_l) N_d``, recursively.

The diagonal blocks of the matrix in parentheses are the inertias of composite bodies: a body with
all its descendants. A column of M is the composite inertia times the joint's motion column,
multiplied by the motion columns of the joints that support it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.graph import topology
from jaxmbd.kinematics import (
    Columns,
    MotionState,
    PerBody,
    by_joint,
    each,
    motion_state,
    outward,
)
from jaxmbd.lanes import nothing, traced_once, whole
from jaxmbd.model import Armature, Mechanism
from jaxmbd.numerics import (
    ltdl,
    ltdl_backward,
    ltdl_forward,
    symmetric,
    tolerances,
)
from jaxmbd.spatial import cross


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


def world_inertias(m: MotionState) -> PerBody:
    """Inertia (3, 3) [kg m²] of each body about its COM, world axes: ``R I Rᵀ``."""

    def made() -> PerBody:
        drawn = [m.mech.inertia(body) for body in m.top.bodies]
        return _world_inertias(m.pos.rotation, PerBody.of(m.pos.runs, drawn))

    return m.kept.get("inertias", made)


@traced_once
def _world_inertias(rotations: PerBody, drawn: PerBody) -> PerBody:
    return each(_turned, rotations, drawn)


def _turned(r: Array | None, inertia: Array) -> Array:
    return inertia if r is None else symmetric(r @ inertia @ r.T)


def references(m: MotionState) -> PerBody:
    """Reference point of each body's composite inertia, common to a branch from the ground.

    It is the point of the branch's first joint, where linear parts of rotary motion columns vanish;
    of the joint's two points the first body's, if it can move away from the other. Its centre of
    mass would not do: if that is far away, the inertias of all others are small differences.
    """
    return outward(m.top.parent, _first, PerBody.of(m.pos.runs, _branch_points(m)))


def _first(above: Array | None, own: Array | None) -> Array | None:
    return own if above is None else above


def _branch_points(m: MotionState) -> list[Array | None]:
    """The reference points that begin at a body, else None."""
    out: list[Array | None] = []
    for i, p in enumerate(m.top.parent):
        point = m.mech.joint(m.top.tree[i]).point_a
        if p >= 0:
            out.append(None)
        elif _stays_behind(m, i):
            out.append(m.position(m.top.bodies[i], point))
        else:
            out.append(m.pos.joint[i])
    return out


def _stays_behind(m: MotionState, i: int) -> bool:
    """Whether body i can move away from b's point of its joint, because b is the parent."""
    name = m.top.tree[i]
    return m.top.reversed_[i] and m.mech.joint(name).translation(m.coordinates(name)) is not None


def composite_inertias(m: MotionState, inertias: Sequence[Array]) -> list[CompositeInertia]:
    """Composite inertias, summed from the leaves to the root."""
    total = []
    for i, (body, point) in enumerate(zip(m.top.bodies, references(m), strict=True)):
        mass = jnp.asarray(m.mech.bodies[body].mass)
        total.append(_about(point, mass, m.pos.com[i], inertias[i]))
    for i in range(len(total) - 1, -1, -1):
        p = m.top.parent[i]
        if p >= 0:
            total[p] = _sum(total[p], total[i])
    return total


@traced_once
def _about(point: Array, mass: Array, com: Array, inertia: Array) -> CompositeInertia:
    """The inertia of one body about a point."""
    r = com - point
    second = symmetric(jnp.outer(mass * r, r))
    shift = jnp.trace(second) * jnp.eye(3, dtype=r.dtype) - second
    return CompositeInertia(mass, mass * r, inertia + shift)


@traced_once
def _sum(a: CompositeInertia, b: CompositeInertia) -> CompositeInertia:
    return CompositeInertia(*(x + y for x, y in zip(a, b, strict=True)))


def joint_space_inertia(m: MotionState) -> Array:
    """M (nv, nv) from the composite inertias; zero between branches."""
    return inertia_blocks(m, (range(m.top.nv),))[0]


def inertia_blocks(m: MotionState, parts: tuple[range, ...]) -> tuple[Array, ...]:
    """The diagonal blocks of M for consecutive parts of the speeds, trees from the ground."""
    return _blocks(m, world_inertias(m), parts)


@partial(traced_once, static=("parts",), runs=nothing)
def _blocks(m: MotionState, inertias: PerBody, parts: tuple[range, ...]) -> tuple[Array, ...]:
    composite = composite_inertias(m, inertias)
    linear, angular = columns_at_references(m), m.angular_columns()
    columns = zip(*(by_joint(m.top, m.pos.runs, x) for x in (angular, linear)), strict=True)
    momenta = [_momenta(c, *wu) for c, wu in zip(composite, columns, strict=True)]
    spin, momentum = (jnp.concatenate(x) for x in zip(*momenta, strict=True))
    rows = [[jnp.zeros((0, len(part)), m.q.dtype)] for part in parts]
    rotors = armature_diagonal(m.mech)
    k = 0
    for name, support in zip(m.top.tree, m.top.support, strict=True):
        place = m.top.layout[name].v
        assert place is not None
        while place.start >= parts[k].stop and place.stop > place.start:
            k += 1
        part = slice(parts[k].start, place.stop)
        block = spin[place] @ angular[part].T + momentum[place] @ linear[part].T
        block = jnp.where(np.isin(np.arange(part.start, part.stop), support), block, 0.0)
        none = np.zeros((block.shape[0], parts[k].stop - part.stop), block.dtype)
        rows[k].append(jnp.concatenate([block, none], axis=1))
    blocks = tuple(symmetric(jnp.concatenate(x).T) for x in rows)
    if rotors is None:
        return blocks
    along = [rotors[part.start : part.stop] for part in parts]
    return tuple(x + jnp.diag(a) for x, a in zip(blocks, along, strict=True))


@traced_once
def _momenta(c: CompositeInertia, w: Array, u: Array) -> tuple[Array, Array]:
    """Moments and forces (n, 3) of unit motions w, u (n, 3): ``I w + c × u``, ``m u + w × c``."""
    moment = c.moment[None]
    return w @ c.inertia + cross(moment, u), c.mass * u + cross(w, moment)


def columns_at_references(m: MotionState) -> Array:
    """Linear parts (nv, 3) of the motion columns at the reference points of their branches."""
    found = each(shifted_columns, m.pos.columns, references(m), m.pos.joint)
    return found.field(1).joined(m.pos.none)


def shifted_columns(columns: Columns | None, point: Array, joint: Array) -> tuple[Array, Array]:
    """Angular and linear parts (n, 3) of a joint's columns, about a point."""
    if columns is None:
        none = jnp.zeros((0, 3), joint.dtype)
        return none, none
    w, u, _ = columns
    return w, u if point is joint else _shifted(w, u, point, joint)


@traced_once
def _shifted(w: Array, u: Array, point: Array, joint: Array) -> Array:
    return u + cross(w, (point - joint)[None])


class BlockInertia(eqx.Module):
    """M as an operator: its diagonal blocks, of the trees that hang from the ground or one for all.

    Attributes:
        blocks: M of each part.
        parts: its speeds.
    """

    blocks: tuple[Array, ...]
    parts: tuple[range, ...] = eqx.field(static=True)

    def __matmul__(self, x: Array) -> Array:
        pairs = zip(self.blocks, self.parts, strict=True)
        return jnp.concatenate([b @ x[p.start : p.stop] for b, p in pairs])

    def diagonal(self) -> Array:
        """The diagonal (nv,) of M."""
        return jnp.concatenate([jnp.diagonal(b) for b in self.blocks])

    def scale(self) -> Array:
        """The trace of M."""
        return jnp.sum(self.diagonal())

    def array(self) -> Array:
        """M (nv, nv)."""
        if len(self.blocks) == 1:
            return self.blocks[0]
        return self @ jnp.eye(self.parts[-1].stop, dtype=self.blocks[0].dtype)

    def factored(self) -> tuple[BlockFactor, Array, Array]:
        """L, the pivots D (nv,), and whether each exceeds its rounding error; others are 1."""
        found = [ltdl(b, tolerances.rounding(b.dtype, 64) * jnp.diagonal(b)) for b in self.blocks]
        lower, pivots, sound = zip(*found, strict=True)
        return BlockFactor(lower, self.parts), jnp.concatenate(pivots), jnp.concatenate(sound)


class BlockFactor(eqx.Module):
    """The factor L of `BlockInertia`: those of its blocks."""

    lower: tuple[Array, ...]
    parts: tuple[range, ...] = eqx.field(static=True)

    def backward(self, b: Array) -> Array:
        """``L⁻ᵀ b`` (nv, m)."""
        pairs = zip(self.lower, self.parts, strict=True)
        return jnp.concatenate([ltdl_backward(k, b[p.start : p.stop]) for k, p in pairs])

    def backward_rows(self, jacobian: Array) -> Array:
        """``L⁻ᵀ Jᵀ`` (nv, nc)."""
        return self.backward(jacobian.T)

    def forward(self, y: Array) -> Array:
        """``L⁻¹ y`` (nv, m)."""
        pairs = zip(self.lower, self.parts, strict=True)
        return jnp.concatenate([ltdl_forward(k, y[p.start : p.stop]) for k, p in pairs])


def block_inertia(m: MotionState) -> BlockInertia:
    """M in the blocks of `Topology.loop_blocks`, or in one."""
    blocks = m.top.loop_blocks
    parts = (range(m.top.nv),) if blocks is None else blocks.columns
    return BlockInertia(inertia_blocks(m, parts), parts)


@whole
def mass_matrix(mech: Mechanism, q: Array) -> Array:
    """M (nv, nv) of the tree: ``½ vᵀ M v`` is the kinetic energy for speeds v.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.mass_matrix(m, mbd.neutral(m)).shape
        (1, 1)
    """
    return joint_space_inertia(motion_state(mech, q))


def armature_diagonal(mech: Mechanism) -> Array | None:
    """Σ a (nv,) of all armatures [kg m² or kg]; None without any, so that they cost nothing."""
    if not mech.structure.armatures:
        return None
    top = topology(mech)
    total = jnp.zeros(top.nv, jnp.asarray(mech.gravity).dtype)
    for name, joint in mech.structure.armatures:
        place, element = top.layout[joint].v, mech.forces[name]
        assert place is not None and isinstance(element, Armature)
        total = total.at[place].add(element.along(place.stop - place.start))
    return total


def rotor_efforts(mech: Mechanism, vdot: Array | None) -> Array | None:
    """``a v̇`` (nv,), what the rotors take of the efforts; None without v̇ or without any."""
    if vdot is None or (along := armature_diagonal(mech)) is None:
        return None
    return along * vdot


def rotor_energy(mech: Mechanism, v: Array) -> Array | float:
    """``½ Σ a v²`` [J]."""
    along = armature_diagonal(mech)
    return 0.0 if along is None else 0.5 * jnp.sum(along * v * v)
