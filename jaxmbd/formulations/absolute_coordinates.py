"""Absolute coordinates: every joint as scalar functions of them, and the motion that they give.

A body's absolute coordinates are its rotation R from the drawn orientation and the position x of
its centre of mass. Each joint type is a combination of textbook conditions (Nikravesh; the lecture
text's table 3.2; the row counts of Ghaedrahmati et al. 2019, appendix): coincident points,
perpendicular body-fixed directions, a point on an axis or in a plane, a distance, an angle, a
travel proportional to an angle. Velocity Jacobians and the right-hand sides of the acceleration
equations are derivatives of these functions along motions of the bodies, so that no screws,
subspaces or wrenches are used.

Functions take a joint, the `Sketch` of it as drawn, the poses of its bodies a and b, and their
twists ``[ω_a; v_a; ω_b; v_b]`` about the COMs in world axes. Only the data of these joint types are
used; none of their methods is called. Any other joint type, and the planar form of a joint, uses
its own `residual` and `wrenches`. Force rows come before moment rows, and all rows increase with
the motion of b relative to a.

`StateMotion` is this package's own `jaxmbd.model.forces.ElementMotion`; joint coordinates, speeds
and the wrenches of efforts follow from the two bodies' poses, with the conventions that the joint
types document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

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

TEXTBOOK: tuple[type[Joint], ...] = (
    *(Revolute, Prismatic, Helical, Cylindrical, Universal, Spherical, Planar, Free, Fixed, Rod),
)
"""Joint types of which only the data are used."""


def rows_are_lengths(joint: Joint) -> np.ndarray:
    """Whether each row of a joint is a length [m] with a force [N]; the others are angles [rad]."""
    return np.array([kind == "force" for kind in joint.rows], bool)


class Sketch(NamedTuple):
    """The geometry of a joint as drawn: arms from the two COMs, a triad of directions on each."""

    arm_a: Float[Array, "3"]
    arm_b: Float[Array, "3"]
    triad_a: Float[Array, "3 3"]
    """Columns (axis, e1, e2), right-handed, fixed in a."""
    triad_b: Float[Array, "3 3"]
    """The columns on b that should coincide with a's; for a universal joint those of its axis."""
    drawn: Float[Array, "3"]
    """From a's joint point to b's as drawn [m]."""


def cross_matrix(a: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """The matrix of ``a ×``."""
    return jnp.cross(a[None, :], jnp.eye(3, dtype=a.dtype)).T


def _unit(x: AnyArray) -> Array:
    x = jnp.asarray(x)
    return x / jnp.linalg.norm(x)


def _triad(axis: AnyArray, first: Array | None = None) -> Array:
    """Columns (axis, e1, e2); e1 is `first`, or a global axis, made perpendicular to the axis."""
    u = _unit(axis)
    start = jnp.eye(3, dtype=u.dtype)[jnp.argmin(jnp.abs(u))] if first is None else first
    e1 = _unit(start - (u @ start) * u)
    return jnp.stack([u, e1, jnp.cross(u, e1)], axis=1)


def _least_turn(start: AnyArray, end: AnyArray) -> Array:
    """The smallest rotation that takes the direction `start` to `end`."""
    p, q = _unit(start), _unit(end)
    c, v = p @ q, jnp.cross(p, q)
    return c * jnp.eye(3, dtype=v.dtype) + cross_matrix(v) + jnp.outer(v, v) / (1.0 + c)


def drawn_com(mech: Mechanism, body: str) -> Float[Array, "3"]:
    """Drawn COM [m]; the ground's is the origin."""
    return jnp.zeros(3, mech.dtype) if body == "ground" else mech.com(body)


def sketch(mech: Mechanism, joint: Joint) -> Sketch:
    """The joint as drawn, from its data: `at`, `at_a`, `at_b`, its axes."""
    com_a, com_b = drawn_com(mech, joint.a), drawn_com(mech, joint.b)
    if isinstance(joint, Free):
        point_a = point_b = com_b
    else:
        point_a, point_b = mech.point(joint.point_a), mech.point(joint.point_b)
    triad_a = triad_b = jnp.eye(3, dtype=mech.dtype)
    if type(joint) not in TEXTBOOK:
        pass
    elif isinstance(joint, Universal):
        triad_a, triad_b = _triad(joint.axis_a), _triad(joint.axis_b)
    elif isinstance(joint, Planar):
        triad_a = triad_b = _triad(joint.normal, jnp.asarray(joint.x_axis))
    elif isinstance(joint, (Revolute, Prismatic, Helical, Cylindrical)):
        triad_a = triad_b = _triad(joint.axis)
        if joint.axis_b is not None:
            triad_b = _least_turn(joint.axis_b, joint.axis).T @ triad_a
    return Sketch(point_a - com_a, point_b - com_b, triad_a, triad_b, point_b - point_a)


def points(s: Sketch, a: Pose, b: Pose) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
    """World positions [m] of the joint point on a and of that on b."""
    return a.position + a.rotation @ s.arm_a, b.position + b.rotation @ s.arm_b


def constraint(joint: Joint, s: Sketch, a: Pose, b: Pose) -> Float[Array, "rows"]:
    """The constraint functions φ of a joint, which are zero if it is assembled.

    Returns:
        Lengths [m], then angles [rad] to first order. Rows of directions that deviate by more than
        90° are increased by 2, so that an upside-down body is no solution.
    """
    start, end = points(s, a, b)
    d = end - start
    if type(joint) not in TEXTBOOK:
        return joint.residual(a.rotation, b.rotation, d, s.drawn)
    on_a, on_b = a.rotation @ s.triad_a, b.rotation @ s.triad_b
    off_axis = on_a[:, 1:].T @ d
    match joint:
        case Revolute():
            return jnp.concatenate([d, _parallel(on_a, on_b)])
        case Cylindrical():
            return jnp.concatenate([off_axis, _parallel(on_a, on_b)])
        case Helical():
            slip = on_a[:, 0] @ d - joint.pitch * screw_angle(joint.pitch, on_a, on_b, d)
            return jnp.concatenate([off_axis, slip[None], _parallel(on_a, on_b)])
        case Prismatic():
            return jnp.concatenate([off_axis, _same_orientation(on_a, on_b)])
        case Fixed():
            return jnp.concatenate([d, _same_orientation(on_a, on_b)])
        case Planar():
            return jnp.concatenate([(on_a[:, 0] @ d)[None], _parallel(on_a, on_b)])
        case Spherical():
            return d
        case Universal():
            drawn = _angle(s.triad_a[:, 0], s.triad_b[:, 0])
            return jnp.concatenate([d, (drawn - _angle(on_a[:, 0], on_b[:, 0]))[None]])
        case Rod():
            length = jnp.linalg.norm(s.drawn) if joint.length is None else joint.length
            return (jnp.linalg.norm(d) - length)[None]
        case Free():
            return jnp.zeros(0, d.dtype)
    raise TypeError(f"no constraint functions for a {type(joint).__name__} joint")


def _parallel(on_a: Array, on_b: Array) -> Array:
    """Two rows: b's axis stays perpendicular to e2 and e1 of a (turns about e1, e2)."""
    axis = on_b[:, 0]
    rows = jnp.stack([-(axis @ on_a[:, 2]), axis @ on_a[:, 1]])
    return rows + jnp.where(axis @ on_a[:, 0] < 0.0, 2.0, 0.0)


def _same_orientation(on_a: Array, on_b: Array) -> Array:
    """Three rows: perpendicular pairs of the two triads (turns about axis, e1, e2)."""
    dots = on_a.T @ on_b
    rows = jnp.stack([dots[2, 1], dots[0, 2], dots[1, 0]])
    return rows + jnp.where(jnp.trace(dots) < 1.0, 2.0, 0.0)


def _angle(p: Array, q: Array) -> Array:
    """Angle [rad] in (0, π) between two directions."""
    return jnp.arctan2(jnp.linalg.norm(jnp.cross(p, q)), p @ q)


def turn(on_a: Array, on_b: Array) -> Float[Array, ""]:
    """Angle [rad] in (-π, π] about the common axis from a's triad to b's."""
    dots = on_a[:, 1:].T @ on_b[:, 1:]
    return jnp.arctan2(dots[1, 0] - dots[0, 1], dots[0, 0] + dots[1, 1])


def screw_angle(pitch: AnyArray, on_a: Array, on_b: Array, d: Array) -> Float[Array, ""]:
    """Angle [rad] of a helical joint, with full turns determined from the travel along `d`."""
    angle, pitch = turn(on_a, on_b), jnp.asarray(pitch)
    travel = on_a[:, 0] @ d
    wanted = jnp.where(pitch == 0.0, angle, travel / jnp.where(pitch == 0.0, 1.0, pitch))
    return angle + whole_turns(wanted - angle)


def whole_turns(angle: Array) -> Array:
    """The multiple of 2π nearest to an angle, as a constant."""
    return 2.0 * jnp.pi * jnp.round(jax.lax.stop_gradient(angle) / (2.0 * jnp.pi))


def displaced(pose: Pose, move: Float[Array, "6"]) -> Pose:
    """The pose after the small move [θ; u]: ``exp(θ̃) R`` to second order, ``x + u``.

    First and second derivatives at ``move = 0`` are those of the exponential map itself.
    """
    w = cross_matrix(move[:3])
    r = pose.rotation + w @ pose.rotation + 0.5 * (w @ (w @ pose.rotation))
    return Pose(r, pose.position + move[3:])


def linearised(
    phi: Callable[[Pose, Pose], Array], a: Pose, b: Pose, twists: Float[Array, "12"]
) -> tuple[Float[Array, "rows"], Float[Array, "rows 12"], Float[Array, "rows"]]:
    """φ, its velocity Jacobian and γ: ``φ̇ = J t`` and ``φ̈ = J ṫ − γ`` along a motion.

    Returns:
        φ; J with respect to ``[ω_a; v_a; ω_b; v_b]``; and γ, minus the second derivative of φ
        along the path ``R(s) = exp(ω̃ s) R``, ``x(s) = x + v s`` of constant twists.
    """

    def moved(moves: Array) -> Array:
        return phi(displaced(a, moves[:6]), displaced(b, moves[6:]))

    phi_now, jacobian, second = expanded(moved, jnp.zeros_like(twists), twists)
    return phi_now, jacobian, -second


def expanded(
    function: Callable[[Array], Array], y: Float[Array, "n"], rate: Float[Array, "n"]
) -> tuple[Array, Array, Array]:
    """f(y), ∂f/∂y, and the second derivative of f along the straight line ``y + ẏ s``."""

    def along(x: Array) -> Array:
        return jax.jvp(function, (x,), (rate,))[1]

    return function(y), jax.jacfwd(function)(y), jax.jvp(along, (y,), (rate,))[1]


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

    def declared(self, name: str) -> Joint:
        """A joint with directions as components."""
        return self.mech.joint(name)

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
