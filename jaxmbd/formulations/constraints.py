"""Every joint as scalar functions of the absolute coordinates of its two bodies.

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
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from jaxmbd.kinematics import Pose
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
from jaxmbd.numerics import AnyArray

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
