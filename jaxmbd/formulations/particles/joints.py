"""Joints in point coordinates: their halves as points and directions, and conditions on these.

A half is a point and, if the joint type needs them, three orthogonal directions: the axis and two
more. Only a joint's data are used; none of its methods is called.

All conditions are polynomials of at most second degree in the particles' coordinates (Attia,
section 3), except the angles needed for helical joints, drives and efforts. Each is a length [m];
its multiplier is a force [N].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxmbd.formulations.absolute_coordinates import TEXTBOOK, screw_angle, turn
from jaxmbd.model import (
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    Mechanism,
    ParallelAxes,
    PerpendicularAxes,
    Planar,
    PointOnLine,
    PointOnPlane,
    Prismatic,
    Revolute,
    Rod,
    Spherical,
    Universal,
)
from jaxmbd.spatial import cross, perpendicular_pair, rotation_between, unit

SHARED: dict[type[Joint], int] = {Spherical: 1, Universal: 1, Revolute: 2}
"""Number of particles that the two bodies of a tree joint share; a fixed joint shares all."""

KNOWN = (*TEXTBOOK, PointOnLine, PointOnPlane, ParallelAxes, PerpendicularAxes)
"""Joint types that have conditions in point coordinates here."""


class Half(NamedTuple):
    """A joint's half on one body, as drawn or, moved, in world axes."""

    point: Float[Array, "3"]
    triad: Float[Array, "3 3"] | None = None
    """Rows (axis, e1, e2); None where the joint has only a point there."""

    @property
    def directions(self) -> Float[Array, "3 3"]:
        """The triad, which must exist."""
        if self.triad is None:
            raise TypeError("this half of a joint has a point only")
        return self.triad


def halves(mech: Mechanism, name: str) -> tuple[Half, Half]:
    """The halves of a joint on a and on b, each in its body's drawn coordinates.

    The triads coincide if the joint is assembled with all its coordinates zero. Those of a
    universal joint are (its own axis, the other axis made perpendicular to it, …): each angle is
    found from the position of the other axis.

    Raises:
        ValueError: for a joint type that has no conditions on points here.
    """
    joint = mech.joint(name)
    if type(joint) not in KNOWN:
        raise ValueError(
            f"joint '{name}' is a {type(joint).__name__}, which has no conditions on points here; "
            f"known are {[k.__name__ for k in KNOWN]}"
        )
    if isinstance(joint, Free):
        return Half(mech.com(joint.b)), Half(mech.com(joint.b))
    start, end = mech.point(joint.point_a), mech.point(joint.point_b)
    match joint:
        case Rod() | Spherical():
            return Half(start), Half(end)
        case PointOnLine():
            return Half(start, _triad(joint.axis)), Half(end)
        case PointOnPlane():
            return Half(start, _triad(joint.normal)), Half(end)
        case Universal() | PerpendicularAxes():
            a, b = joint.axis_a, joint.axis_b
            return Half(start, _triad(a, b)), Half(end, _triad(b, a))
        case Planar():
            triad = _triad(joint.normal, joint.x_axis)
            return Half(start, triad), Half(end, triad)
        case Fixed():
            triad = jnp.eye(3, dtype=mech.dtype)
            return Half(start, triad), Half(end, triad)
    axis, axis_b = joint.axis, joint.axis_b  # type: ignore[attr-defined]
    triad = _triad(axis)
    if axis_b is None:
        return Half(start, triad), Half(end, triad)
    turn = rotation_between(triad[0], unit(jnp.asarray(axis_b)))
    return Half(start, triad), Half(end, triad @ turn.T)


def _triad(axis: Any, other: Any = None) -> Float[Array, "3 3"]:
    """Rows (unit axis, `other` made perpendicular to it or any such vector, axis × that)."""
    axis = unit(jnp.asarray(axis))
    if other is None:
        return jnp.stack([axis, *perpendicular_pair(axis)])
    other = jnp.asarray(other, axis.dtype)
    e1 = unit(other - (axis @ other) * axis)
    return jnp.stack([axis, e1, cross(axis, e1)])


def attached(mech: Mechanism, body: str) -> list[tuple[str, Any]]:
    """(joint, point as declared) for every joint with a point on `body`, as declared."""
    out = []
    for edge in mech.structure.joints:
        joint = mech.joints[edge.name]
        if joint.points:
            out += [(edge.name, joint.point_a)] if edge.a == body else []
            out += [(edge.name, joint.point_b)] if edge.b == body else []
    return out


def distance_rows(
    now: Float[Array, "rows 3"], drawn: Float[Array, "rows 3"]
) -> Float[Array, "rows"]:
    """``(|r_i − r_j|² − d_ij²) / 2 d_ij``, (4.1)-(4.6): to first order the change of length."""
    square = jnp.sum(drawn * drawn, axis=1)
    return (jnp.sum(now * now, axis=1) - square) / (2.0 * jnp.sqrt(square))


def joint_rows(
    joint: Joint, a: Half, b: Half, drawn: tuple[Half, Half], arm: Array
) -> Float[Array, "rows"]:
    """All conditions of a joint on the points of its halves.

    Force rows come before moment rows (the latter multiplied by the length `arm`), and all increase
    with the motion of b relative to a.
    """
    d = b.point - a.point
    match joint:
        case Free():
            return d[:0]
        case Spherical():
            return d
        case Rod():
            return _rod_row(joint, d, drawn)
        case PointOnLine():
            return a.directions[1:] @ d
        case PointOnPlane():
            return a.directions[:1] @ d
    axis, e1, e2 = a.directions
    axis_b, f1, _ = b.directions
    off_axis = jnp.stack([e1 @ d, e2 @ d])
    # A point on b's axis at the distance `arm` does not move along a's e2 and e1.
    lean = arm * jnp.stack([-(e2 @ axis_b), e1 @ axis_b])
    twist = arm * (e2 @ f1)[None]
    match joint:
        case Revolute():
            return jnp.concatenate([d, lean])
        case Universal():
            return jnp.concatenate([d, _tilt_row(axis @ axis_b, drawn, arm)[None]])
        case Cylindrical():
            return jnp.concatenate([off_axis, lean])
        case Helical():
            angle = screw_angle(joint.pitch, a.directions.T, b.directions.T, d)
            slip = axis @ d - joint.pitch * angle
            return jnp.concatenate([off_axis, slip[None], lean])
        case Prismatic():
            return jnp.concatenate([off_axis, twist, lean])
        case Fixed():
            return jnp.concatenate([d, twist, lean])
        case Planar():
            return jnp.concatenate([(axis @ d)[None], lean])
        case ParallelAxes():
            return lean
        case PerpendicularAxes():
            cosine = 0.0 if joint.angle is None else jnp.cos(joint.angle)
            return arm * (axis @ axis_b - cosine)[None]
    raise TypeError(f"no conditions for a {type(joint).__name__} joint")


def _tilt_row(cosine: Array, drawn: tuple[Half, Half], arm: Array) -> Array:
    """Two axes keep their drawn angle."""
    return arm * (cosine - drawn[0].directions[0] @ drawn[1].directions[0])


def _rod_row(joint: Rod, d: Array, drawn: tuple[Half, Half]) -> Float[Array, "1"]:
    """``(|d|² − l²) / 2 l``: λ is positive in compression [N]."""
    if joint.length is None:
        return distance_rows(d[None], (drawn[1].point - drawn[0].point)[None])
    length = jnp.asarray(joint.length)
    return ((d @ d - length * length) / (2.0 * length))[None]


def joint_angles_and_travels(joint: Joint, a: Half, b: Half) -> Float[Array, "nq"] | None:
    """Coordinates of b relative to a from its points, where their rates are the joint's speeds.

    None for joints with quaternions, whose rates are not the speeds, and without coordinates.
    """
    if a.triad is None or b.triad is None:
        return None
    d = b.point - a.point
    on_a, on_b, travels = a.triad.T, b.triad.T, a.triad @ d
    match joint:
        case Revolute():
            return turn(on_a, on_b)[None]
        case Helical():
            return screw_angle(joint.pitch, on_a, on_b, d)[None]
        case Prismatic():
            return travels[:1]
        case Cylindrical():
            return jnp.stack([turn(on_a, on_b), travels[0]])
        case Planar():
            return jnp.stack([turn(on_a, on_b), travels[1], travels[2]])
        case Universal():
            first = jnp.arctan2(a.triad[2] @ b.triad[0], a.triad[1] @ b.triad[0])
            second = -jnp.arctan2(b.triad[2] @ a.triad[0], b.triad[1] @ a.triad[0])
            return jnp.stack([first, second])
    return None
