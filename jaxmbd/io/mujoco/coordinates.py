"""MuJoCo's coordinates and speeds, qpos and qvel, in those of a mechanism, and back.

A hinge's or slide's q is ``qpos − qpos0``, zero as drawn. Let B be the drawn orientation of a body
and p the quaternion from its drawn orientation. A ball's qpos u gives ``p = B u B⁻¹``; its qvel is
the relative angular velocity in the body's own axes, so that with U the rotation of u
``v = B U qvel``. A free joint's qpos is the position x of the body's frame and its orientation X,
``p = X B⁻¹``; with r from the frame to the centre of mass, in the body's axes, the displacement is
``x + X r − (x₀ + B r)``. Its qvel is ``[ẋ; ω in the body's axes]``.

Of known numbers, as NumPy arrays, all functions give NumPy arrays, without compiling anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

CONJUGATE = np.array([1.0, -1.0, -1.0, -1.0])


def _functions(*numbers: Any) -> Any:
    """NumPy if all numbers are its arrays, else JAX."""
    return np if all(isinstance(x, np.ndarray) for x in numbers) else jnp


def _known(x: Any) -> Any:
    return x if isinstance(x, Array) else np.asarray(x)


def _product(p: Any, q: Any) -> Any:
    """Hamilton's product ``p ∘ q`` of quaternions, scalar first."""
    xp = _functions(p, q)
    p0, p1, p2, p3 = (p[i] for i in range(4))
    left = ((p0, -p1, -p2, -p3), (p1, p0, -p3, p2), (p2, p3, p0, -p1), (p3, -p2, p1, p0))
    return xp.stack([sum(a * q[i] for i, a in enumerate(row)) for row in left])


def _matrix(p: Any) -> Any:
    """The rotation matrix (3, 3) of a quaternion, which need not be of unit length."""
    xp = _functions(p)
    e0, e1, e2, e3 = (p[i] for i in range(4))
    two = 2.0 / (e0 * e0 + e1 * e1 + e2 * e2 + e3 * e3)
    rows = [
        [1.0 - two * (e2 * e2 + e3 * e3), two * (e1 * e2 - e0 * e3), two * (e1 * e3 + e0 * e2)],
        [two * (e1 * e2 + e0 * e3), 1.0 - two * (e1 * e1 + e3 * e3), two * (e2 * e3 - e0 * e1)],
        [two * (e1 * e3 - e0 * e2), two * (e2 * e3 + e0 * e1), 1.0 - two * (e1 * e1 + e2 * e2)],
    ]
    return xp.stack([xp.stack(row) for row in rows])


def _cross(a: Any, b: Any) -> Any:
    pairs = ((1, 2), (2, 0), (0, 1))
    return _functions(a, b).stack([a[i] * b[j] - a[j] * b[i] for i, j in pairs])


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
        parts = {j.q.start: _to_q(j, _known(qpos)) for j in self.joints}
        return _joined(parts)

    def v(self, qpos: Array, qvel: Array) -> Array:
        """Speeds (nv,) of qvel at qpos."""
        parts = {j.v.start: _to_v(j, _known(qpos), _known(qvel)) for j in self.joints}
        return _joined(parts)

    def qpos(self, q: Array) -> Array:
        """MuJoCo's qpos of coordinates q (nq,)."""
        return _joined({j.qpos: _to_qpos(j, _known(q)) for j in self.joints})

    def qvel(self, q: Array, v: Array) -> Array:
        """MuJoCo's qvel of speeds v (nv,) at q (nq,)."""
        qpos, v = self.qpos(q), _known(v)
        return _joined({j.dof: _to_qvel(j, qpos, v) for j in self.joints})


def _concatenated(parts: list[Any]) -> Any:
    return _functions(*parts).concatenate([np.zeros(0), *parts])


def _joined(parts: dict[int, Array]) -> Array:
    return _concatenated([parts[k] for k in sorted(parts)])


def _to_q(j: MujocoJoint, qpos: Array) -> Array:
    if j.kind == "scalar":
        return qpos[j.qpos : j.qpos + 1] - j.start
    if j.kind == "ball":
        u = _product(j.drawn, qpos[j.qpos : j.qpos + 4])
        return _product(u, j.drawn * CONJUGATE)
    place, turn = qpos[j.qpos : j.qpos + 3], qpos[j.qpos + 3 : j.qpos + 7]
    com = j.start[:3] + _matrix(j.drawn) @ j.arm
    p = _product(turn, j.drawn * CONJUGATE)
    return _concatenated([p, place + _matrix(turn) @ j.arm - com])


def _to_qpos(j: MujocoJoint, q: Array) -> Array:
    own = q[j.q]
    if j.kind == "scalar":
        return own + j.start
    if j.kind == "ball":
        u = _product(j.drawn * CONJUGATE, own)
        return _product(u, j.drawn)
    turn = _product(own[:4], j.drawn)
    com = j.start[:3] + _matrix(j.drawn) @ j.arm
    return _concatenated([own[4:] + com - _matrix(turn) @ j.arm, turn])


def _axes(j: MujocoJoint, qpos: Array) -> Array:
    """Rotation from the axes of the model's angular velocity to those of the mechanism's."""
    if j.kind == "ball":
        u = _matrix(qpos[j.qpos : j.qpos + 4])
        return _matrix(j.drawn) @ u
    return _matrix(qpos[j.qpos + 3 : j.qpos + 7])


def _to_v(j: MujocoJoint, qpos: Array, qvel: Array) -> Array:
    if j.kind == "scalar":
        return qvel[j.dof : j.dof + 1]
    axes = _axes(j, qpos)
    if j.kind == "ball":
        return axes @ qvel[j.dof : j.dof + 3]
    omega = axes @ qvel[j.dof + 3 : j.dof + 6]
    return _concatenated([omega, qvel[j.dof : j.dof + 3] + _cross(omega, axes @ j.arm)])


def _to_qvel(j: MujocoJoint, qpos: Array, v: Array) -> Array:
    own = v[j.v]
    if j.kind == "scalar":
        return own
    axes = _axes(j, qpos)
    if j.kind == "ball":
        return axes.T @ own
    omega = own[:3]
    return _concatenated([own[3:] - _cross(omega, axes @ j.arm), axes.T @ omega])
