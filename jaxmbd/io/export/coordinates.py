"""Coordinates and speeds of a mechanism in those of a written file, and back.

A hinge's or slide's position is ``factor · q``. A ball's is the quaternion p of its coordinates, or
the conjugate where the file's tree runs the other way; its angular velocity is that of the outer
body relative to the inner one, in the outer body's axes: ``R(p)ᵀ v``, or −v. A free body has its
position and the quaternion, its speeds are ``[ẋ; R(p)ᵀ ω]``. A ball as three hinges about x, y and
z has the Bryant angles.

Screws, gears and racks are conditions between two coordinates that are polynomials.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.io.export.tree import Step, WrittenBody, WrittenTree
from jaxmbd.io.mujoco.equalities import polynomial
from jaxmbd.model import GROUND, BaseCoupling, Coupling, Gear, RackAndPinion
from jaxmbd.spatial import (
    bryant_angles,
    bryant_rates,
    bryant_rotation,
    bryant_velocity,
    quaternion_from_matrix,
    rotation_matrix,
)

HIGHEST = 4
"""Degree of the polynomials in equalities of joints."""


class JointPolynomial(NamedTuple):
    """The position of one elementary joint is a polynomial of that of another, or a constant.

    Attributes:
        name: of the condition.
        first: the joint that follows.
        second: the other one, or None.
        numbers: coefficients, the constant first.
    """

    name: str
    first: str
    second: str | None
    numbers: np.ndarray


def screws(tree: WrittenTree) -> Iterator[JointPolynomial]:
    """The travel of each screw follows its turn."""
    for name in tree.top.tree:
        for first, second in itertools.combinations(tree.steps(name), 2):
            if first.index == second.index:
                ratio = np.array([0.0, second.factor / first.factor])
                yield JointPolynomial(f"{name}.pitch", second.name, first.name, ratio)


def joint_polynomial(
    tree: WrittenTree, name: str, coupling: BaseCoupling
) -> JointPolynomial | None:
    """A coupling whose condition is a polynomial of one coordinate; None of any other."""
    terms, numbers = coupling.terms, None
    if isinstance(coupling, Gear):
        terms, numbers = terms[::-1], [coupling.offset, coupling.ratio]
    elif isinstance(coupling, RackAndPinion):
        terms, numbers = terms[::-1], [coupling.offset, coupling.radius]
    elif isinstance(coupling, Coupling) and coupling.function is polynomial and len(terms) <= 2:
        numbers = coupling.params
    first, second, *_ = (*(elementary_joint(tree, *term) for term in terms), None, None)
    if numbers is None or first is None or (second is None and len(terms) > 1):
        return None
    numbers = np.asarray(numbers, float)
    return None if len(numbers) > HIGHEST + 1 else JointPolynomial(name, first, second, numbers)


def elementary_joint(tree: WrittenTree, joint: str, index: int) -> str | None:
    """The hinge or slide of one coordinate of a joint, if there is one."""
    names = [s.name for s in tree.steps(joint) if s.index == index and s.kind in ("hinge", "slide")]
    return names[0] if names else None


CONJUGATE = np.array([1.0, -1.0, -1.0, -1.0])


class Address(NamedTuple):
    """An elementary joint in both layouts.

    Attributes:
        step: the elementary joint.
        qpos, dof: its first index in the file's positions and speeds.
        q, v: its first index in q and v.
    """

    step: Step
    qpos: int
    dof: int
    q: int
    v: int


@dataclass(frozen=True, eq=False)
class WrittenCoordinates:
    """The transformations for one file; all are functions that JAX can trace.

    Attributes:
        addresses: of the elementary joints.
        nq, nv: sizes of the mechanism's q and v.
        angles: whether balls are three hinges.
    """

    addresses: tuple[Address, ...]
    nq: int
    nv: int
    angles: bool = False

    def qpos(self, q: Array) -> Array:
        """The file's positions of coordinates q (nq,)."""
        q = jnp.asarray(q)
        return _joined({x.qpos: self._qpos(x, q) for x in self.addresses})

    def qvel(self, q: Array, v: Array) -> Array:
        """The file's speeds of speeds v (nv,) at q (nq,)."""
        q, v = jnp.asarray(q), jnp.asarray(v)
        return _joined({x.dof: self._qvel(x, q, v) for x in self.addresses})

    def q(self, qpos: Array) -> Array:
        """Coordinates (nq,) of the file's positions."""
        qpos = jnp.asarray(qpos)
        return _joined({x.q: self._q(x, qpos) for x in self._first()})

    def v(self, qpos: Array, qvel: Array) -> Array:
        """Speeds (nv,) of the file's speeds at its positions."""
        q, qvel = self.q(qpos), jnp.asarray(qvel)
        return _joined({x.v: self._v(x, q, qvel) for x in self._first()})

    def _first(self) -> list[Address]:
        """One address for each coordinate: that of a screw's turn, not of its travel."""
        return list({x.q: x for x in self.addresses[::-1]}.values())

    def _turn(self, x: Address, q: Array) -> Array:
        p = q[x.q : x.q + 4]
        return p * CONJUGATE if x.step.inverse else p

    def _qpos(self, x: Address, q: Array) -> Array:
        if x.step.kind in ("hinge", "slide"):
            return x.step.factor * q[x.q : x.q + 1]
        if x.step.kind == "free":
            return jnp.concatenate([q[x.q + 4 : x.q + 7] + x.step.at, q[x.q : x.q + 4]])
        p = self._turn(x, q)
        return bryant_angles(rotation_matrix(p)).values if self.angles else p

    def _q(self, x: Address, qpos: Array) -> Array:
        if x.step.kind in ("hinge", "slide"):
            return qpos[x.qpos : x.qpos + 1] / x.step.factor
        if x.step.kind == "free":
            return jnp.concatenate(
                [qpos[x.qpos + 3 : x.qpos + 7], qpos[x.qpos : x.qpos + 3] - x.step.at]
            )
        if self.angles:
            p = quaternion_from_matrix(bryant_rotation(qpos[x.qpos : x.qpos + 3]))
        else:
            p = qpos[x.qpos : x.qpos + 4]
        return p * CONJUGATE if x.step.inverse else p

    def _qvel(self, x: Address, q: Array, v: Array) -> Array:
        if x.step.kind in ("hinge", "slide"):
            return x.step.factor * v[x.v : x.v + 1]
        turn, omega = rotation_matrix(self._turn(x, q)), v[x.v : x.v + 3]
        if x.step.kind == "free":
            return jnp.concatenate([v[x.v + 3 : x.v + 6], turn.T @ omega])
        own = -omega if x.step.inverse else turn.T @ omega  # in the outer body's axes
        return bryant_rates(bryant_angles(turn).values, own).values if self.angles else own

    def _v(self, x: Address, q: Array, qvel: Array) -> Array:
        if x.step.kind in ("hinge", "slide"):
            return qvel[x.dof : x.dof + 1] / x.step.factor
        turn = rotation_matrix(self._turn(x, q))
        if x.step.kind == "free":
            return jnp.concatenate([turn @ qvel[x.dof + 3 : x.dof + 6], qvel[x.dof : x.dof + 3]])
        own = qvel[x.dof : x.dof + 3]
        if self.angles:
            own = bryant_velocity(bryant_angles(turn).values, own)
        return -own if x.step.inverse else turn @ own


def _joined(parts: dict[int, Array]) -> Array:
    return jnp.concatenate([jnp.zeros(0), *(parts[k] for k in sorted(parts))])


def written_coordinates(tree: WrittenTree, *, angles: bool = False) -> WrittenCoordinates:
    """Coordinates of a file that lists the tree's bodies, each below its parent, in their order."""
    found, qpos, dof = [], 0, 0
    for body in _depth_first(tree):
        for step in body.steps:
            place = tree.top.layout[step.joint]
            assert place.q is not None and place.v is not None
            quaternion = tree.mech.joints[step.joint].nq - tree.mech.joints[step.joint].nv
            behind = step.index - (quaternion if step.index else 0)
            found.append(
                Address(step, qpos, dof, place.q.start + step.index, place.v.start + behind)
            )
            qpos += {"free": 7, "ball": 3 if angles else 4}.get(step.kind, 1)
            dof += {"free": 6, "ball": 3}.get(step.kind, 1)
    return WrittenCoordinates(tuple(found), tree.top.nq, tree.top.nv, angles)


def _depth_first(tree: WrittenTree) -> list[WrittenBody]:
    out, stack = [], [GROUND]
    while stack:
        name = stack.pop()
        out += [b for b in tree.bodies if b.name == name]
        stack += [b.name for b in tree.bodies[::-1] if b.parent == name]
    return out
