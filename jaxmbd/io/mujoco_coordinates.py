"""MuJoCo's coordinates and speeds, qpos and qvel, in those of a mechanism, and back.

A hinge's or slide's q is ``qpos − qpos0``, zero as drawn. Let B be the drawn orientation of a body
and p the quaternion from its drawn orientation. A ball's qpos u gives ``p = B u B⁻¹``; its qvel is
the relative angular velocity in the body's own axes, so that with U the rotation of u
``v = B U qvel``. A free joint's qpos is the position x of the body's frame and its orientation X,
``p = X B⁻¹``; with r from the frame to the centre of mass, in the body's axes, the displacement is
``x + X r − (x₀ + B r)``. Its qvel is ``[ẋ; ω in the body's axes]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.spatial.rotations import cross, quaternion_product, rotation_matrix

CONJUGATE = np.array([1.0, -1.0, -1.0, -1.0])


class MujocoJoint(NamedTuple):
    """A joint in both layouts.

    Attributes:
        kind: "free", "ball" or "scalar".
        qpos, dof: its first index in qpos and qvel.
        q, v: slices of a mechanism's q and v.
        drawn: B as a quaternion (4,).
        start: qpos as drawn.
        arm: r (3,) [m] of a free joint.
    """

    kind: str
    qpos: int
    dof: int
    q: slice
    v: slice
    drawn: np.ndarray
    start: np.ndarray
    arm: np.ndarray


@dataclass(frozen=True, eq=False)
class MujocoCoordinates:
    """The transformations for one model; all are functions that JAX can trace."""

    joints: tuple[MujocoJoint, ...]
    nq: int
    nv: int

    def q(self, qpos: Array) -> Array:
        """Coordinates (nq,) of qpos."""
        parts = {j.q.start: _to_q(j, jnp.asarray(qpos)) for j in self.joints}
        return _joined(parts)

    def v(self, qpos: Array, qvel: Array) -> Array:
        """Speeds (nv,) of qvel at qpos."""
        parts = {j.v.start: _to_v(j, jnp.asarray(qpos), jnp.asarray(qvel)) for j in self.joints}
        return _joined(parts)

    def qpos(self, q: Array) -> Array:
        """MuJoCo's qpos of coordinates q (nq,)."""
        return _joined({j.qpos: _to_qpos(j, jnp.asarray(q)) for j in self.joints})

    def qvel(self, q: Array, v: Array) -> Array:
        """MuJoCo's qvel of speeds v (nv,) at q (nq,)."""
        qpos, v = self.qpos(q), jnp.asarray(v)
        return _joined({j.dof: _to_qvel(j, qpos, v) for j in self.joints})


def _joined(parts: dict[int, Array]) -> Array:
    return jnp.concatenate([jnp.zeros(0), *(parts[k] for k in sorted(parts))])


def _to_q(j: MujocoJoint, qpos: Array) -> Array:
    if j.kind == "scalar":
        return qpos[j.qpos : j.qpos + 1] - j.start
    if j.kind == "ball":
        u = quaternion_product(jnp.asarray(j.drawn), qpos[j.qpos : j.qpos + 4])
        return quaternion_product(u, jnp.asarray(j.drawn * CONJUGATE))
    place, turn = qpos[j.qpos : j.qpos + 3], qpos[j.qpos + 3 : j.qpos + 7]
    com = j.start[:3] + rotation_matrix(jnp.asarray(j.drawn)) @ j.arm
    p = quaternion_product(turn, jnp.asarray(j.drawn * CONJUGATE))
    return jnp.concatenate([p, place + rotation_matrix(turn) @ j.arm - com])


def _to_qpos(j: MujocoJoint, q: Array) -> Array:
    own = q[j.q]
    if j.kind == "scalar":
        return own + j.start
    if j.kind == "ball":
        u = quaternion_product(jnp.asarray(j.drawn * CONJUGATE), own)
        return quaternion_product(u, jnp.asarray(j.drawn))
    turn = quaternion_product(own[:4], jnp.asarray(j.drawn))
    com = j.start[:3] + rotation_matrix(jnp.asarray(j.drawn)) @ j.arm
    return jnp.concatenate([own[4:] + com - rotation_matrix(turn) @ j.arm, turn])


def _axes(j: MujocoJoint, qpos: Array) -> Array:
    """Rotation from the axes of the model's angular velocity to those of the mechanism's."""
    if j.kind == "ball":
        u = rotation_matrix(qpos[j.qpos : j.qpos + 4])
        return rotation_matrix(jnp.asarray(j.drawn)) @ u
    return rotation_matrix(qpos[j.qpos + 3 : j.qpos + 7])


def _to_v(j: MujocoJoint, qpos: Array, qvel: Array) -> Array:
    if j.kind == "scalar":
        return qvel[j.dof : j.dof + 1]
    axes = _axes(j, qpos)
    if j.kind == "ball":
        return axes @ qvel[j.dof : j.dof + 3]
    omega = axes @ qvel[j.dof + 3 : j.dof + 6]
    return jnp.concatenate([omega, qvel[j.dof : j.dof + 3] + cross(omega, axes @ j.arm)])


def _to_qvel(j: MujocoJoint, qpos: Array, v: Array) -> Array:
    own = v[j.v]
    if j.kind == "scalar":
        return own
    axes = _axes(j, qpos)
    if j.kind == "ball":
        return axes.T @ own
    omega = own[:3]
    return jnp.concatenate([own[3:] - cross(omega, axes @ j.arm), axes.T @ omega])
