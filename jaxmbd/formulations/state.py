"""The motion of a mechanism from absolute coordinates, as force elements and efforts need it.

`StateMotion` is this package's own `jaxmbd.model.forces.ElementMotion`; joint coordinates, speeds
and the wrenches of efforts follow from the two bodies' poses, with the conventions that the joint
types document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxmbd.formulations.constraints import (
    TEXTBOOK,
    Sketch,
    displaced,
    drawn_com,
    points,
    screw_angle,
    sketch,
    turn,
    whole_turns,
)
from jaxmbd.kinematics import Pose, body_velocities, poses
from jaxmbd.model import (
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    Mechanism,
    Planar,
    Prismatic,
    Revolute,
    Rod,
    Spherical,
    Universal,
)
from jaxmbd.numerics import AnyArray, factor_rows

State = Mapping[str, tuple[Any, Any, Any, Any]]
"""Body to (rotation from the drawn orientation (3, 3), COM (3,) [m], ω (3,) [rad/s], velocity of
the COM (3,) [m/s]), world axes."""


def state_of(mech: Mechanism, q: AnyArray, v: AnyArray) -> State:
    """The absolute state of all bodies at coordinates q (nq,) and speeds v (nv,)."""
    q, v = jnp.asarray(q), jnp.asarray(v)
    place, twist = poses(mech, q), body_velocities(mech, q, v)
    return {n: (*place[n][:2], twist[n][:3], twist[n][3:]) for n in mech.structure.bodies}


def check_bodies(mech: Mechanism, state: State) -> None:
    """Raise a ValueError for bodies without a state."""
    if missing := [n for n in mech.structure.bodies if n not in state]:
        raise ValueError(f"state has no entry for {missing}; give (R, com, omega, v) of each")


class StateMotion:
    """The motion of all bodies as force elements need it, computed from the absolute state.

    `coordinates` gives the coordinates of joints for which they are known (an angle of several
    turns, a quaternion's sign); the others are computed from the poses, angles in (-π, π].
    """

    def __init__(
        self,
        mech: Mechanism,
        state: State,
        t: Any = 0.0,
        coordinates: Mapping[str, Any] | None = None,
    ):
        check_bodies(mech, state)
        self.mech, self.t, self.known = mech, t, dict(coordinates or {})
        self.state = {n: tuple(jnp.asarray(x, mech.dtype) for x in state[n]) for n in state}
        zero = jnp.zeros(3, mech.dtype)
        self.state["ground"] = (jnp.eye(3, dtype=mech.dtype), zero, zero, zero)
        self.sketches = {e.name: sketch(mech, mech.joint(e.name)) for e in mech.structure.joints}
        arms = [x for s in self.sketches.values() for x in (s.arm_a, s.arm_b)]
        longest = jnp.max(jnp.stack([jnp.linalg.norm(x) for x in arms]))
        self.length = jnp.where(longest > 0.0, longest, 1.0)

    def pose(self, body: str) -> Pose:
        """Rotation and COM of a body."""
        return Pose(*self.state[body][:2])

    def twist(self, body: str) -> Float[Array, "6"]:
        """[ω; v of the COM] of a body."""
        return jnp.concatenate(self.state[body][2:])

    def halves(self, name: str) -> tuple[Joint, Sketch, Pose, Pose]:
        """A joint, as drawn, with the poses of its bodies."""
        joint = self.mech.joint(name)
        return joint, self.sketches[name], self.pose(joint.a), self.pose(joint.b)

    def velocity(self, body: str, x: Array) -> Float[Array, "3"]:
        """Velocity [m/s] of the point of `body` that is at the world position `x`."""
        _, com, omega, v = self.state[body]
        return v + jnp.cross(omega, x - com)

    def point(self, body: str, at: Any) -> tuple[Array, Array]:
        """World position [m] and velocity [m/s] of the point of `body` drawn at `at`."""
        r, com = self.pose(body)
        x = com + r @ (self.drawn(at) - drawn_com(self.mech, body))
        return x, self.velocity(body, x)

    def drawn(self, at: Any) -> Array:
        """Drawn coordinates [m] of a point."""
        return self.mech.point(at)

    def rotation(self, body: str) -> Array:
        """Rotation of a body from its drawn orientation."""
        return self.state[body][0]

    def angular_velocity(self, body: str) -> Array:
        """Angular velocity [rad/s] of a body, world axes."""
        return self.state[body][2]

    def joint(self, name: str) -> tuple[Array, Array]:
        """Coordinates (nq,) and speeds (nv,) of a joint."""
        return self.coordinates(name), self.speeds(name)

    def speeds(self, name: str) -> Array:
        """Speeds (nv,) of a joint."""
        return joint_speeds(*self.halves(name), self.pair_twist(name))

    def coordinates(self, name: str) -> Array:
        """Coordinates (nq,) of a joint."""
        return self.known[name] if name in self.known else _coordinates(*self.halves(name))

    def pair_twist(self, name: str) -> Float[Array, "12"]:
        """[ω_a; v_a; ω_b; v_b] of the COMs of a joint's two bodies."""
        joint = self.mech.joint(name)
        return jnp.concatenate([self.twist(joint.a), self.twist(joint.b)])

    def on_bodies(self, name: str, wrenches: Float[Array, "6 k"]) -> Float[Array, "twists k"]:
        """Wrenches at b's joint point, on b and reversed on a, about the COMs of all bodies."""
        joint, s, a, b = self.halves(name)
        _, x = points(s, a, b)
        bodies = self.mech.structure.bodies
        out = jnp.zeros((6 * len(bodies), wrenches.shape[1]), wrenches.dtype)
        for body, pose, sign in ((joint.b, b, 1.0), (joint.a, a, -1.0)):
            if body != "ground":
                moments = jnp.cross((x - pose.position)[:, None], wrenches[3:], axis=0)
                moved = sign * jnp.concatenate([wrenches[:3] + moments, wrenches[3:]])
                i = 6 * bodies.index(body)
                out = out.at[i : i + 6].add(moved)
        return out

    def at_joint_point(self, name: str, wrench: Array) -> Float[Array, "6"]:
        """A wrench on b about its COM, moved to b's joint point."""
        _, s, a, b = self.halves(name)
        _, x = points(s, a, b)
        return jnp.concatenate([wrench[:3] - jnp.cross(x - b.position, wrench[3:]), wrench[3:]])


def joint_speeds(
    joint: Joint, s: Sketch, a: Pose, b: Pose, twists: Float[Array, "12"]
) -> Float[Array, "nv"]:
    """Speeds of a joint, ``Eᵀ [ω_b − ω_a; v_b − v_a at b's point]`` with its efforts E."""
    _, x = points(s, a, b)
    w_a, v_a, w_b, v_b = twists.reshape(4, 3)
    slide = v_b + jnp.cross(w_b, x - b.position) - v_a - jnp.cross(w_a, x - a.position)
    return effort_directions(joint, s, a, b).T @ jnp.concatenate([w_b - w_a, slide])


def speed_rows(
    joint: Joint, s: Sketch, a: Pose, b: Pose, twists: Float[Array, "12"]
) -> tuple[Float[Array, "nv 12"], Float[Array, "nv"]]:
    """J and β of a joint's accelerations ``v̇ = J ṫ + β``; ``v = J t``.

    β is the rate of the speeds along the path of constant twists.
    """

    def along(time: Array) -> Array:
        moves = time * twists
        return joint_speeds(joint, s, displaced(a, moves[:6]), displaced(b, moves[6:]), twists)

    rows = jax.jacfwd(lambda x: joint_speeds(joint, s, a, b, x))(twists)
    zero = jnp.zeros((), twists.dtype)
    return rows, jax.jvp(along, (zero,), (jnp.ones_like(zero),))[1]


def _coordinates(joint: Joint, s: Sketch, a: Pose, b: Pose) -> Float[Array, "nq"]:
    """Coordinates of b relative to a, zero as drawn."""
    start, end = points(s, a, b)
    if type(joint) not in TEXTBOOK:
        return joint.coordinates(a.rotation.T @ b.rotation, a.rotation.T @ (end - start))
    on_a, on_b = a.rotation @ s.triad_a, b.rotation @ s.triad_b
    travels = on_a.T @ (end - start)
    angle = turn(on_a, on_b)
    match joint:
        case Revolute():
            return angle[None]
        case Helical():
            return screw_angle(joint.pitch, on_a, on_b, end - start)[None]
        case Prismatic():
            return travels[:1]
        case Cylindrical():
            return jnp.stack([angle, travels[0]])
        case Planar():
            return jnp.stack([angle, travels[1], travels[2]])
        case Universal():
            # In a's axes b's own axis is A(q1) axis_b; in b's axes a's is B(-q2) axis_a.
            image_b = a.rotation.T @ on_b[:, 0]
            image_a = b.rotation.T @ on_a[:, 0]
            first = _azimuth(s.triad_a, image_b) - _azimuth(s.triad_a, s.triad_b[:, 0])
            second = _azimuth(s.triad_b, s.triad_a[:, 0]) - _azimuth(s.triad_b, image_a)
            q = jnp.stack([first, second])
            return q - whole_turns(q)
        case Spherical():
            return _euler_parameters(a.rotation.T @ b.rotation)
        case Free():
            return jnp.concatenate([_euler_parameters(a.rotation.T @ b.rotation), travels])
        case Fixed():
            return travels[:0]
    raise ValueError(f"a {type(joint).__name__} has no coordinates; name another joint")


def _azimuth(triad: Array, x: Array) -> Array:
    """Angle [rad] of `x` about the triad's axis, from e1."""
    return jnp.arctan2(triad[:, 2] @ x, triad[:, 1] @ x)


def _euler_parameters(r: Float[Array, "3 3"]) -> Float[Array, "4"]:
    """Euler parameters with e0 ≥ 0: along the longest column of the matrix ``4 p pᵀ``."""
    trace = jnp.trace(r)
    axial = jnp.stack([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]])
    corner = jnp.concatenate([(1.0 + trace)[None], axial])
    block = r + r.T + (1.0 - trace) * jnp.eye(3, dtype=r.dtype)
    square = jnp.concatenate([corner[None], jnp.concatenate([axial[:, None], block], axis=1)])
    column = square[jnp.argmax(jnp.diagonal(square))]
    return jnp.where(column[0] < 0.0, -column, column) / jnp.sqrt(column @ column)


def effort_directions(joint: Joint, s: Sketch, a: Pose, b: Pose) -> Float[Array, "6 nv"]:
    """Wrenches [n; f] at b's point on b, world axes, that are unit efforts along the coordinates.

    They are dual to the joint's motions: their powers are the speeds.
    """
    if type(joint) not in TEXTBOOK:
        return _own_directions(joint, s, a, b)
    on_a = a.rotation @ s.triad_a
    u, e1, e2 = on_a.T
    none = jnp.zeros_like(u)
    match joint:
        case Revolute() | Helical():
            columns = [(u, none)]
        case Prismatic():
            columns = [(none, u)]
        case Cylindrical():
            columns = [(u, none), (none, u)]
        case Planar():
            columns = [(u, none), (none, e1), (none, e2)]
        case Universal():
            other = b.rotation @ s.triad_b[:, 0]
            normal = jnp.cross(u, other)
            normal = normal / (normal @ normal)  # never zero: the axes keep their angle
            columns = [(jnp.cross(other, normal), none), (jnp.cross(normal, u), none)]
        case Spherical():
            columns = [(x, none) for x in a.rotation.T]
        case Free():
            columns = [(x, none) for x in a.rotation.T] + [(none, x) for x in a.rotation.T]
        case Fixed() | Rod():
            return jnp.zeros((6, 0), u.dtype)
        case _:
            raise TypeError(f"no efforts for a {type(joint).__name__} joint")
    return jnp.stack([jnp.concatenate(c) for c in columns], axis=1)


def _own_directions(joint: Joint, s: Sketch, a: Pose, b: Pose) -> Float[Array, "6 nv"]:
    """Directions for any other joint type: ``E (EᵀE)⁻¹`` with its own effort columns E."""
    if not joint.can_be_in_tree:
        raise TypeError(f"no efforts for a {type(joint).__name__} joint")
    if joint.nv == 0:
        return jnp.zeros((6, 0), a.rotation.dtype)
    moments, forces = joint.effort_columns(_coordinates(joint, s, a, b))
    own = jnp.concatenate([a.rotation @ moments, a.rotation @ forces])
    return factor_rows(own.T).solve(jnp.eye(joint.nv, dtype=own.dtype))
