"""Positions and speeds of a file's joints, qpos and qvel, in those of a mechanism, and back.

A hinge's or slide's position is ``factor · q + start``. Let B be the orientation of a body's frame
as drawn, p the quaternion of its rotation from there, and U the rotation of a quaternion u.

* A ball's qpos u gives ``p = B u B⁻¹``; its qvel is the angular velocity in the body's own axes,
  ``v = B U qvel``. Where the file's tree runs the other way, u is that of the conjugate of p, and
  ``v = −qvel``. As three hinges about x, y and z it has the Bryant angles of U.
* A free joint's qpos is the position x of the body's frame and its orientation X, ``p = X B⁻¹``;
  with r from the frame to the centre of mass, in the body's axes, the displacement is
  ``x + X r − (x₀ + B r)``. Its qvel is ``[ẋ; ω in the body's axes]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.spatial import (
    bryant_angles,
    bryant_rates,
    bryant_rotation,
    bryant_velocity,
    cross,
    quaternion_from_matrix,
    quaternion_product,
    rotation_matrix,
)

CONJUGATE = np.array([1.0, -1.0, -1.0, -1.0])
SIZES = {"scalar": (1, 1), "angles": (3, 3), "ball": (4, 3), "free": (7, 6)}
"""How many positions and speeds a joint of a file has."""


class FileJoint(NamedTuple):
    """A joint in both layouts.

    Attributes:
        kind: a hinge or slide, a ball by its Bryant angles or its quaternion, or a free body.
        qpos, dof: its first index in qpos and qvel.
        q, v: its first index in a mechanism's q and v.
        start: qpos as drawn (1,) of a hinge or slide; the position (3,) of a free body.
        factor: of a hinge's or slide's coordinate.
        inverse: whether a ball turns the other way round.
        drawn: B as a quaternion (4,).
        arm: r (3,) [m] of a free joint.
    """

    kind: Literal["scalar", "angles", "ball", "free"]
    qpos: int
    dof: int
    q: int
    v: int
    start: Any = 0.0
    factor: float = 1.0
    inverse: bool = False
    drawn: np.ndarray = np.array([1.0, 0.0, 0.0, 0.0])
    arm: np.ndarray = np.zeros(3)


@dataclass(frozen=True, eq=False)
class FileCoordinates:
    """The transformations for one file; all are functions that JAX can trace.

    Attributes:
        joints: those of the file.
        nq, nv: sizes of the mechanism's q and v.
    """

    joints: tuple[FileJoint, ...]
    nq: int
    nv: int

    def q(self, qpos: Array) -> Array:
        """Coordinates (nq,) of qpos."""
        # Of the turn and the travel of a screw, which have one coordinate, the first gives it.
        return _joined({j.q: _to_q(j, qpos) for j in self.joints[::-1]})

    def v(self, qpos: Array, qvel: Array) -> Array:
        """Speeds (nv,) of qvel at qpos."""
        return _joined({j.v: _to_v(j, qpos, qvel) for j in self.joints[::-1]})

    def qpos(self, q: Array) -> Array:
        """The file's positions of coordinates q (nq,)."""
        return _joined({j.qpos: _to_qpos(j, q) for j in self.joints})

    def qvel(self, q: Array, v: Array) -> Array:
        """The file's speeds of speeds v (nv,) at q (nq,)."""
        qpos = self.qpos(q)
        return _joined({j.dof: _to_qvel(j, qpos, v) for j in self.joints})


def _part(x: Any, first: int, size: int) -> Array:
    """Some of the numbers; a slice of a NumPy array compiles nothing."""
    return jnp.asarray(x[first : first + size])


def _joined(parts: dict[int, Array]) -> Array:
    return jnp.concatenate([np.zeros(0), *(parts[k] for k in sorted(parts))])


def _turn(j: FileJoint, qpos: Array) -> Array:
    """The rotation U of a ball, X of a free body."""
    if j.kind == "angles":
        return bryant_rotation(_part(qpos, j.qpos, 3))
    return rotation_matrix(_part(qpos, j.qpos + 3 * (j.kind == "free"), 4))


def _to_q(j: FileJoint, qpos: Array) -> Array:
    own = _part(qpos, j.qpos, SIZES[j.kind][0])
    if j.kind == "scalar":
        return (own - j.start) / j.factor
    if j.kind == "free":
        com = j.start + rotation_matrix(jnp.asarray(j.drawn)) @ j.arm
        p = quaternion_product(own[3:], j.drawn * CONJUGATE)
        return jnp.concatenate([p, own[:3] + _turn(j, qpos) @ j.arm - com])
    u = quaternion_from_matrix(_turn(j, qpos)) if j.kind == "angles" else own
    p = quaternion_product(quaternion_product(j.drawn, u), j.drawn * CONJUGATE)
    return p * CONJUGATE if j.inverse else p


def _to_qpos(j: FileJoint, q: Array) -> Array:
    if j.kind == "scalar":
        return j.factor * _part(q, j.q, 1) + j.start
    p = _part(q, j.q, 4)
    if j.kind == "free":
        turn = quaternion_product(p, j.drawn)
        com = j.start + rotation_matrix(jnp.asarray(j.drawn)) @ j.arm
        place = _part(q, j.q + 4, 3) + com - rotation_matrix(turn) @ j.arm
        return jnp.concatenate([place, turn])
    p = p * CONJUGATE if j.inverse else p
    u = quaternion_product(quaternion_product(j.drawn * CONJUGATE, p), j.drawn)
    return bryant_angles(rotation_matrix(u)).values if j.kind == "angles" else u


def _axes(j: FileJoint, qpos: Array) -> Array:
    """What takes the angular velocity in the body's own axes to the mechanism's (3, 3)."""
    if j.inverse:
        return -jnp.eye(3)
    turn = _turn(j, qpos)
    return turn if j.kind == "free" else rotation_matrix(jnp.asarray(j.drawn)) @ turn


def _to_v(j: FileJoint, qpos: Array, qvel: Array) -> Array:
    own = _part(qvel, j.dof, SIZES[j.kind][1])
    if j.kind == "scalar":
        return own / j.factor
    axes = _axes(j, qpos)
    if j.kind == "free":
        omega = axes @ own[3:]
        return jnp.concatenate([omega, own[:3] + cross(omega, axes @ j.arm)])
    if j.kind == "angles":
        own = bryant_velocity(_part(qpos, j.qpos, 3), own)
    return axes @ own


def _to_qvel(j: FileJoint, qpos: Array, v: Array) -> Array:
    own = _part(v, j.v, SIZES[j.kind][1])
    if j.kind == "scalar":
        return j.factor * own
    axes = _axes(j, qpos)
    if j.kind == "free":
        return jnp.concatenate([own[3:] - cross(own[:3], axes @ j.arm), axes.T @ own[:3]])
    own = axes.T @ own
    if j.kind == "angles":
        return bryant_rates(_part(qpos, j.qpos, 3), own).values
    return own
