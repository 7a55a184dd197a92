"""The two halves of a joint as points and directions of its bodies, as drawn.

A half is a point and, if the joint type needs them, three orthogonal directions: the axis and two
more. Only a joint's data are used; none of its methods is called.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

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

KNOWN: tuple[type[Joint], ...] = (
    *(Revolute, Prismatic, Helical, Cylindrical, Universal, Spherical, Planar, Free, Fixed, Rod),
    *(PointOnLine, PointOnPlane, ParallelAxes, PerpendicularAxes),
)
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
