"""The motion at an instant: positions, velocities, accelerations for users and force elements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.graph import topology
from jaxmbd.kinematics.propagation import (
    Accelerations,
    Positions,
    Velocities,
    propagate_accelerations,
    propagate_positions,
    propagate_velocities,
    rotate,
)
from jaxmbd.kinematics.recursion import PerBody, nameless
from jaxmbd.lanes import KeptValues, traced_once, whole
from jaxmbd.model import GROUND, Joint, Mechanism
from jaxmbd.numerics import ltdl_solve, merged, taken
from jaxmbd.spatial import cross, skew


class Pose(NamedTuple):
    """`rotation` (3, 3) from the drawn orientation, `position` (3,) [m] of the COM.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> mbd.poses(m, mbd.neutral(m))["crank"].rotation.shape
        (3, 3)
    """

    rotation: Array
    position: Array


@jax.tree_util.register_pytree_node_class
class MotionState:
    """The motion at (t, q, v); implements the protocol `ElementMotion` of the force elements.

    A pytree, so that functions of it are traced once (`jaxmbd.lanes.caching`).

    Attributes:
        kept: what is derived from its numbers on demand.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.kinematics import MotionState, motion_state
        >>> mech = mbd.zoo.simple_pendulum()
        >>> isinstance(motion_state(mech, mbd.neutral(mech)), MotionState)
        True
    """

    def __init__(
        self,
        mech: Mechanism,
        q: Array,
        v: Array,
        t: Any,
        pos: Positions,
        vel: Velocities,
    ):
        self.mech, self.q, self.v, self.t = mech, q, v, t
        self.pos, self.vel = pos, vel
        self.top, self.kept = topology(mech), KeptValues()

    def tree_flatten(self) -> tuple[Any, None]:
        """Its numbers; what else is derived from them on demand is not passed on."""
        return (self.mech, self.q, self.v, self.t, self.pos, self.vel), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> MotionState:
        """The state again."""
        return cls(*children)

    def rotation(self, body: str) -> Array:
        """Rotation (3, 3) from the drawn orientation."""
        i = self.top.index(body)
        r = None if i < 0 else self.pos.rotation[i]
        return jnp.eye(3, dtype=self.q.dtype) if r is None else r

    def angular_velocity(self, body: str) -> Array:
        """Angular velocity (3,) [rad/s], world axes."""
        i = self.top.index(body)
        return jnp.zeros(3, self.q.dtype) if i < 0 else self.vel.angular[i]

    def position(self, body: str, at: Any) -> Array:
        """World position (3,) [m] of the point of `body` drawn at `at`."""
        i, x = self.top.index(body), self.mech.point(at)
        if i < 0:
            return x
        return self.pos.com[i] + rotate(self.pos.rotation[i], x - self.mech.com(body))

    def point(self, body: str, at: Any) -> tuple[Array, Array]:
        """World position [m] and velocity [m/s] of the point of `body` drawn at `at`."""
        x = self.position(body, at)
        return x, self.velocity_at(body, x)

    def velocity_at(self, body: str, x: Array) -> Array:
        """Velocity (3,) [m/s] of the point of `body` that coincides with the world point `x`."""
        i = self.top.index(body)
        if i < 0:
            return jnp.zeros_like(x)
        return self.vel.linear[i] + cross(self.vel.angular[i], x - self.pos.com[i])

    def columns_at(self, x: Array, speeds: Sequence[range] | None = None) -> Array:
        """(nv, 3): velocity at world point `x` per unit of each speed, of the bodies it moves.

        Of all speeds or of some.
        """
        angular, slide, point = (_some(y, speeds) for y in self._all_columns())
        return slide + cross(angular, x - point)

    def angular_columns(self, speeds: Sequence[range] | None = None) -> Array:
        """(nv, 3): angular velocity per unit of each speed, of all speeds or of some."""
        return _some(self._all_columns()[0], speeds)

    def _all_columns(self) -> tuple[Array, Array, Array]:
        pos = self.pos
        return self.kept.get("columns", lambda: (pos.angular, pos.slide, pos.column_point))

    def drawn(self, at: Any) -> Array:
        """Drawn coordinates (3,) [m] of a point."""
        return self.mech.point(at)

    def declared(self, name: str) -> Joint:
        """A joint with directions as components."""
        return self.mech.joint(name)

    def offset(self, name: str) -> tuple[Array, Array, Array]:
        """Rotations of a joint's bodies a, b, and the vector from a's point to b's, world axes."""

        def made() -> tuple[Array, Array, Array]:
            joint = self.mech.joint(name)
            d = self.position(joint.b, joint.point_b) - self.position(joint.a, joint.point_a)
            return self.rotation(joint.a), self.rotation(joint.b), d

        return self.kept.get(("offset", name), made)

    def wrenches(self, name: str) -> tuple[Array, Array]:
        """Constraint wrenches W (6, rows) of a cut joint at b's point, world axes, and Ẇ."""

        def made() -> tuple[Array, Array]:
            joint, (r_a, r_b, d) = self.mech.joint(name), self.offset(name)
            slide = self.relative_twist(name)[1]
            d_rate = slide + cross(self.angular_velocity(joint.a), d)
            spins = (skew(self.angular_velocity(body)) for body in (joint.a, joint.b))
            rates = tuple(s @ r for s, r in zip(spins, (r_a, r_b), strict=True))
            return _wrenches(nameless(joint), (r_a, r_b, d), (*rates, d_rate))

        return self.kept.get(("wrenches", name), made)

    def moves(self, a: str, b: str) -> np.ndarray:
        """(nv,): +1 for speeds that move b but not a, -1 for a but not b, else 0."""
        signs = np.zeros(self.top.nv, self.q.dtype)
        signs[list(self.top.columns(b))] += 1.0
        signs[list(self.top.columns(a))] -= 1.0
        return signs

    def accelerations(self, vdot: Array | None = None) -> Accelerations:
        """Those of all bodies for v̇ (nv,); by default the velocity-product part alone."""
        return propagate_accelerations(self.mech, self.q, self.pos, self.vel, self.v, vdot)

    def relative_twist(self, name: str) -> tuple[Array, Array]:
        """Twist of b relative to a at b's joint point, world axes.

        Its linear part is a sum over Jacobian columns, which are needed anyway, so that most
        mechanisms do not need the velocities of the centres of mass.
        """
        joint = self.mech.joint(name)
        x = self.position(joint.b, joint.point_b)
        signs = self.moves(joint.a, joint.b)
        moving = merged([range(k, k + 1) for k in np.flatnonzero(signs)])
        spin = self.angular_velocity(joint.b) - self.angular_velocity(joint.a)
        rates = jnp.asarray(signs[signs != 0.0]) * taken(self.v, moving)
        return spin, rates @ self.columns_at(x, moving)

    def coordinates(self, name: str) -> Array:
        """Coordinates of a joint, in the tree or cut (a cut joint's angles are in (-π, π])."""
        place = self.top.layout[name]
        if place.q is not None:
            return self.q[place.q]
        r_a, r_b, d = self.offset(name)
        return self.mech.joint(name).coordinates(r_a.T @ r_b, r_a.T @ d)

    def joint(self, name: str) -> tuple[Array, Array]:
        """Coordinates and speeds of a joint, in the tree or cut."""
        place, joint = self.top.layout[name], self.mech.joint(name)
        if place.q is not None:
            return self.q[place.q], self.v[place.v]
        q = self.coordinates(name)
        if joint.nv == 0:
            return q, q
        r_a = self.rotation(joint.a)
        s_w, s_v = joint.subspace(q)
        spin, slide = self.relative_twist(name)
        rhs = s_w.T @ (r_a.T @ spin) + s_v.T @ (r_a.T @ slide)
        return q, ltdl_solve(s_w.T @ s_w + s_v.T @ s_v, rhs)


def _some(x: Array, speeds: Sequence[range] | None) -> Array:
    return x if speeds is None else taken(x, speeds)


@traced_once
def _wrenches(joint: Joint, at: Any, rates: Any) -> tuple[Array, Array]:
    w, w_rate = jax.jvp(joint.wrenches, at, rates)
    return w, w_rate


def motion_state(mech: Mechanism, q: Array, v: Array | None = None, t: Any = 0.0) -> MotionState:
    """Propagate positions and velocities once; all other kinematics are derived from the result.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.kinematics import motion_state
        >>> mech = mbd.zoo.simple_pendulum()
        >>> motion_state(mech, mbd.neutral(mech)).rotation("bob").shape
        (3, 3)
    """
    top = topology(mech)
    q = jnp.asarray(q, mech.dtype)
    v = jnp.zeros(top.nv, q.dtype) if v is None else jnp.asarray(v, mech.dtype)
    check_shape("q", q, top.nq)
    check_shape("v", v, top.nv)
    t = t if isinstance(t, Array) else np.asarray(t, q.dtype)
    return MotionState(mech, q, v, t, *_propagated(mech, q, v))


@partial(traced_once, runs=lambda mech, *_: mech.joints)
def _propagated(mech: Mechanism, q: Array, v: Array) -> tuple[Positions, Velocities]:
    pos = propagate_positions(mech, q)
    return pos, propagate_velocities(mech, pos, v)


def check_shape(name: str, x: Array, size: int) -> None:
    """Check the length of a vector.

    Raises:
        ValueError: the shape is wrong; the message names the vector and the right shape.
    """
    if x.shape != (size,):
        raise ValueError(
            f"{name} has shape {x.shape}, but this mechanism takes ({size},); for a batch, wrap "
            "the call in jax.vmap"
        )


@whole
def poses(mech: Mechanism, q: Array) -> dict[str, Pose]:
    """Pose of every body, the ground included, at coordinates q (nq,).

    Returns:
        `Pose` by body name: rotation (3, 3) from the drawn orientation, position (3,) of the COM
        [m] (of the ground: the origin).

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.poses(m, mbd.neutral(m))["bob"].position.tolist()
        [-1.0, 0.0, 0.0]
    """
    m = motion_state(mech, q)
    q, pos = m.q, m.pos
    eye = jnp.eye(3, dtype=q.dtype)
    out = {GROUND: Pose(eye, jnp.zeros(3, q.dtype))}
    for body, r, com in zip(topology(mech).bodies, pos.rotation, pos.com, strict=True):
        out[body] = Pose(eye if r is None else r, com)
    return out


@whole
def point_position(mech: Mechanism, q: Array, body: str, point: Any) -> Array:
    """World position (3,) [m] of the point of `body` drawn at `point` (a name or coordinates).

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.point_position(m, mbd.neutral(m), "bob", (-2.0, 0, 0)).tolist()
        [-2.0, 0.0, 0.0]
    """
    return motion_state(mech, q).position(body, point)


@whole
def point_velocity(mech: Mechanism, q: Array, v: Array, body: str, point: Any) -> Array:
    """World velocity (3,) [m/s] of the point of `body` drawn at `point`.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.point_velocity(m, mbd.neutral(m), [1.0], "bob", (-2.0, 0, 0))[1].item()
        -2.0
    """
    return motion_state(mech, q, v).point(body, point)[1]


@whole
def body_jacobian(mech: Mechanism, q: Array, body: str, point: Any = None) -> Array:
    """Jacobian J (6, nv) of a body: ``J v = [ω; velocity of a point]`` [rad/s, m/s], world axes.

    Its last three rows are the Jacobian of the point; ``Jᵀ [n; f]`` are the efforts of a moment n
    and of a force f at the point. Speeds of closed loops are not independent: those that close them
    have ``constraint_jacobian(mech, q) @ v = 0``.

    Args:
        mech: the mechanism.
        q: coordinates (nq,).
        body: its name.
        point: where the point of `body` is drawn, a name or coordinates; by default its COM.

    Raises:
        ValueError: there is no body of that name, or it is the ground.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.body_jacobian(m, mbd.neutral(m), "bob", (-2.0, 0, 0))[:, 0].tolist()
        [0.0, 0.0, 1.0, 0.0, -2.0, 0.0]
    """
    m = motion_state(mech, q)
    if m.top.index(body) < 0:
        raise ValueError("the ground does not move: give body= the name of a body")
    x = m.position(body, mech.com(body) if point is None else point)
    moved = m.moves(GROUND, body)[:, None]
    return jnp.concatenate([moved * m.angular_columns(), moved * m.columns_at(x)], axis=1).T


@whole
def body_velocities(mech: Mechanism, q: Array, v: Array) -> dict[str, Array]:
    """Twist (6,) ``[ω; v of the COM]`` [rad/s, m/s] of every moving body, world axes.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.body_velocities(m, mbd.neutral(m), [3.0])["bob"][2].item()
        3.0
    """
    vel = motion_state(mech, q, v).vel
    return _by_name(mech, vel.angular, vel.linear)


@whole
def body_accelerations(mech: Mechanism, q: Array, v: Array, vdot: Array) -> dict[str, Array]:
    """Acceleration (6,) ``[ω̇; v̇ of the COM]`` [rad/s², m/s²] of every moving body, world axes.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.body_accelerations(m, mbd.neutral(m), [0.0], [2.0])["bob"][4].item()
        -2.0
    """
    m, vdot = motion_state(mech, q, v), jnp.asarray(vdot)
    check_shape("vdot", vdot, m.top.nv)
    acc = m.accelerations(vdot)
    return _by_name(mech, acc.angular, acc.linear)


@whole
def joint_coordinates(mech: Mechanism, q: Array) -> dict[str, Array]:
    """Coordinates of every joint except rods; angles of cut joints are in (-π, π].

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> list(mbd.joint_coordinates(m, mbd.neutral(m)))
        ['crank', 'A', 'B', 'rocker']
    """
    m = motion_state(mech, q)
    return {e.name: m.coordinates(e.name) for e in mech.structure.joints if e.kind.can_be_in_tree}


def coordinate_rates(mech: Mechanism, q: Array, v: Array) -> Array:
    """q̇ (nq,) for the speeds v (nv,); of quaternions ``ṗ = ½ (0, v) ∘ p``.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> mbd.coordinate_rates(m, mbd.neutral(m), [0, 0, 0, 1.0, 0]).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.5, 0.0]
    """
    return _by_joint(mech, "rate", jnp.asarray(q), v)


def speeds_of_rates(mech: Mechanism, q: Array, rate: Array) -> Array:
    """The speeds v (nv,) with ``coordinate_rates(mech, q, v) = rate``."""
    top = topology(mech)
    parts = [jnp.zeros(0, q.dtype)]
    for name in top.tree:
        place = top.layout[name].q
        parts.append(mech.joint(name).speeds_of_rate(q[place], rate[place]))
    return jnp.concatenate(parts)


def step_coordinates(mech: Mechanism, q: Array, change: Array) -> Array:
    """Coordinates (nq,) after a small `change` (nv,) along the speeds; quaternions stay unit.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.step_coordinates(m, mbd.neutral(m), [0.1]).tolist()
        [0.1]
    """
    return _by_joint(mech, "step", jnp.asarray(q), change)


def coordinate_change(mech: Mechanism, start: Array, q: Array) -> Array:
    """The `change` (nv,) with which `step_coordinates` takes `start` to q (nq,).

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> from jaxmbd.kinematics import coordinate_change
        >>> mech = mbd.zoo.rssr()
        >>> q, step = jnp.array(mbd.neutral(mech)), jnp.full(mbd.topology(mech).nv, 0.1)
        >>> moved = mbd.step_coordinates(mech, q, step)
        >>> bool(jnp.allclose(coordinate_change(mech, q, moved), step))
        True
    """
    top = topology(mech)
    parts = [jnp.zeros(0, q.dtype)]
    for name in top.tree:
        place, joint = top.layout[name].q, mech.joint(name)
        parts.append(joint.change(start[place], q[place]))
    return jnp.concatenate(parts)


@partial(traced_once, static=("method",), runs=lambda mech, *_: mech.joints)
def _by_joint(mech: Mechanism, method: str, q: Array, v: Array) -> Array:
    top = topology(mech)
    q, v = jnp.asarray(q, mech.dtype), jnp.asarray(v, mech.dtype)
    check_shape("q", q, top.nq)
    check_shape("v", v, top.nv)
    parts = [jnp.zeros(0, q.dtype)]
    for name in top.tree:
        place, joint = top.layout[name], mech.joint(name)
        if joint.nv:
            parts.append(getattr(joint, method)(q[place.q], v[place.v]))
    return jnp.concatenate(parts)


def _by_name(mech: Mechanism, angular: PerBody, linear: PerBody) -> dict[str, Array]:
    bodies = topology(mech).bodies
    return {b: jnp.concatenate([w, u]) for b, w, u in zip(bodies, angular, linear, strict=True)}
