"""Forward recursion: poses, twists and accelerations of all bodies, from the ground outward.

``t_i = A_{i,i-1} t_{i-1} + P_i q̇_i`` (Hanzaki et al. 2009, (15), (48)), in world axes, with each
twist ``t = [ω; v]`` at the centre of mass of its body.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.graph import Topology, topology
from jaxmbd.model.joints import Joint
from jaxmbd.model.joints.base import J
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.model.numbers import changed
from jaxmbd.numerics.traced_once import traced_once
from jaxmbd.spatial.rotations import cross, skew


class Positions(NamedTuple):
    """Poses of all bodies in tree order, and the columns of the joints' motion.

    Attributes:
        rotation: (3, 3) each, from the drawn orientation; None where it is the identity.
        com: centre of mass (3,) each [m].
        joint: b's point of the joint from the parent to the body, (3,) each [m].
        angular: (nv, 3) angular parts of the columns of all ``P_i``, world axes.
        slide: (nv, 3) their linear parts at `column_point`; zero for rotary joints.
        column_point: (nv, 3) b's point of the joint of each column.
    """

    rotation: tuple[Array | None, ...]
    com: tuple[Array, ...]
    joint: tuple[Array, ...]
    angular: Array
    slide: Array
    column_point: Array


class Velocities(NamedTuple):
    """Twists of all bodies in tree order: `angular` [rad/s], `linear` [m/s] of the COM."""

    angular: tuple[Array, ...]
    linear: tuple[Array, ...]


class Accelerations(NamedTuple):
    """`angular` [rad/s²] and `linear` [m/s²] accelerations of the COM of all bodies."""

    angular: tuple[Array, ...]
    linear: tuple[Array, ...]


def rotate(r: Array | None, x: Array) -> Array:
    """``r @ x`` for a vector, with None for the identity."""
    return x if r is None else r @ x


def compose(r: Array | None, s: Array | None) -> Array | None:
    """``r @ s``, with None for the identity."""
    if r is None or s is None:
        return s if r is None else r
    return r @ s


def by_joint(top: Topology, x: Array, kind: str = "v") -> Sequence[Array]:
    """The parts of x that belong to the tree joints: of coordinates ("q") or of speeds ("v")."""
    places = [getattr(top.layout[name], kind) for name in top.tree]
    return lax.split(x, [place.stop - place.start for place in places])


def nameless(joint: J) -> J:
    """A joint without names and points, on which its motion does not depend.

    Joints of one type then are pytrees of one type, so that functions of them are traced once.
    """
    return changed(joint, a="", b="", **dict.fromkeys(joint.points))


def propagate_positions(mech: Mechanism, q: Array) -> Positions:
    """Poses and motion columns of the joints at coordinates q (nq,)."""
    top = topology(mech)
    parts = by_joint(top, jnp.asarray(q), "q")
    placed: list[_Placed] = []
    for name, body, p, reversed_, qi in zip(
        top.tree, top.bodies, top.parent, top.reversed_, parts, strict=True
    ):
        joint = mech.joint(name)
        near, far = joint.point_a, joint.point_b
        near, far = (mech.point(x) for x in ((far, near) if reversed_ else (near, far)))
        parent = None
        if p >= 0:
            parent = placed[p].rotation, placed[p].com, mech.com(top.bodies[p])
        motion = _relative_motion(nameless(joint), qi)
        placed.append(_place(parent, near, far, mech.com(body), motion, reversed_=reversed_))
    moving = [x for x in placed if x.angular is not None]
    none = jnp.zeros((0, 3), q.dtype)
    return Positions(
        tuple(x.rotation for x in placed),
        tuple(x.com for x in placed),
        tuple(x.joint for x in placed),
        *(
            jnp.concatenate([*(getattr(x, field) for x in moving), none])
            for field in ("angular", "slide", "column_point")
        ),
    )


class _Placed(NamedTuple):
    """What `Positions` has of one body; the columns are None if the joint does not move."""

    rotation: Array | None
    com: Array
    joint: Array
    angular: Array | None
    slide: Array | None
    column_point: Array | None


@traced_once
def _relative_motion(joint: Joint, q: Array) -> Any:
    """Rotation, translation and subspace of a joint, in a's axes; None for what it does not do."""
    return joint.rotation(q), joint.translation(q), joint.subspace(q) if joint.nv else None


@partial(traced_once, static=("reversed_",))
def _place(
    parent: Any, near: Array, far: Array, com: Array, motion: Any, *, reversed_: bool
) -> _Placed:
    """Place a body by the `motion` of its joint (`_relative_motion`).

    `parent` has the parent's rotation, COM, and COM as drawn, and is None for the ground; `near`
    and `far` are the joint's points as drawn, on the parent and on the body, `com` the body's COM
    as drawn; `reversed_` says whether the parent is the joint's body b.
    """
    turn, shift, subspace = motion
    r_p, x = None, near
    if parent is not None:
        r_p, com_p, drawn_p = parent
        x = com_p + rotate(r_p, near - drawn_p)
    if reversed_:
        r = r_a = compose(r_p, None if turn is None else turn.T)
        at, x = x, x if shift is None else x - rotate(r_a, shift)
    else:
        r, r_a = compose(r_p, turn), r_p
        at = x = x if shift is None else x + rotate(r_a, shift)
    columns = None, None, None
    if subspace is not None:
        sign = -1.0 if reversed_ else 1.0
        w, u = (sign * _rotate_columns(r_a, s) for s in subspace)
        columns = w, u, jnp.broadcast_to(at, w.shape)
    return _Placed(r, x + rotate(r, com - far), at, *columns)


def _rotate_columns(r: Array | None, s: Array) -> Array:
    """Columns of `s` (3, n) in world axes, as rows (n, 3)."""
    return s.T if r is None else (r @ s).T


def propagate_velocities(mech: Mechanism, pos: Positions, v: Array) -> Velocities:
    """Twists ``ω_i = ω_p + Ω``, ``v_i = v_p + ω_p × (c_i − c_p) + U + Ω × (c_i − O)``.

    ``[Ω; U] = P q̇`` is the relative twist at b's joint point O.
    """
    top = topology(mech)
    twists: list[tuple[Array, Array]] = []
    for i, (p, columns) in enumerate(zip(top.parent, _columns(top, pos, v), strict=True)):
        parent = None if p < 0 else (*twists[p], pos.com[p])
        twists.append(_twist(parent, pos.joint[i], pos.com[i], columns))
    return Velocities(*(tuple(x) for x in zip(*twists, strict=True)))


def _columns(top: Topology, pos: Positions, *values: Array) -> list[tuple[Array, ...] | None]:
    """The parts of `values` (nv,) and the columns of each joint; None if it does not move."""
    every = (*values, pos.angular, pos.slide)
    parts = zip(*(by_joint(top, x) for x in every), strict=True)
    return [part if part[0].shape[0] else None for part in parts]


@traced_once
def _twist(parent: Any, at: Array, com: Array, columns: Any) -> tuple[Array, Array]:
    w = u = jnp.zeros_like(com)
    if parent is not None:
        w, u, com_p = parent
        u = u + cross(w, com - com_p)
    if columns is not None:
        v, angular, slide = columns
        spin = v @ angular
        w = w + spin
        u = u + v @ slide + cross(spin, com - at)
    return w, u


@traced_once
def slope(alpha: Array, w: Array) -> Array:
    """``α̃ + ω̃ω̃`` (3, 3): maps an arm in a body to the relative acceleration of its ends."""
    return skew(alpha) + jnp.outer(w, w) - (w @ w) * jnp.eye(3, dtype=w.dtype)


def propagate_accelerations(
    mech: Mechanism, q: Array, pos: Positions, vel: Velocities, v: Array, vdot: Array | None = None
) -> Accelerations:
    """``ṫ_i = A ṫ_p + P q̈ + (Ȧ t_p + Ṗ q̇)``; without `vdot` the velocity-product part alone.

    At b's joint point O, with ω_a the angular velocity of the joint's body a and
    ``[Ω; U] = R_a S q̇`` the relative twist, the joint adds to that part ``ω_a × Ω + R_a Ṡ_ω q̇``
    (angular) and ``2 ω_a × U + R_a Ṡ_v q̇`` (linear).
    """
    top = topology(mech)
    parts = by_joint(top, q, "q")
    moving = _columns(top, pos, v)
    driven = [None] * len(moving) if vdot is None else _columns(top, pos, vdot)
    found: list[tuple[Array, Array]] = []
    for i, (name, p) in enumerate(zip(top.tree, top.parent, strict=True)):
        parent = None if p < 0 else (*found[p], vel.angular[p], pos.com[p])
        a = i if top.reversed_[i] else p
        w_a = vel.angular[a] if a >= 0 else None
        rate, mine = None, moving[i]
        if mine is not None and (joint := mech.joint(name)).moving_subspace:
            r_a = pos.rotation[a] if a >= 0 else None
            rate = _moving_subspace(
                nameless(joint), parts[i], mine[0], r_a, reversed_=top.reversed_[i]
            )
        w, at, com = vel.angular[i], pos.joint[i], pos.com[i]
        found.append(_acceleration(parent, w, at, com, w_a, mine, rate, driven[i]))
    return Accelerations(*(tuple(x) for x in zip(*found, strict=True)))


@partial(traced_once, static=("reversed_",))
def _moving_subspace(
    joint: Joint, q: Array, v: Array, r_a: Array | None, *, reversed_: bool
) -> tuple[Array, Array]:
    """``R_a Ṡ_ω q̇`` and ``R_a Ṡ_v q̇``."""
    _, rates = jax.jvp(joint.subspace, (q,), (joint.rate(q, v),))
    sign = -1.0 if reversed_ else 1.0
    w, u = (sign * rotate(r_a, s @ v) for s in rates)
    return w, u


@traced_once
def _acceleration(
    parent: Any,
    w: Array,
    at: Array,
    com: Array,
    w_a: Array | None,
    moving: Any,
    rate: Any,
    driven: Any,
) -> tuple[Array, Array]:
    """Angular and linear acceleration of a body with angular velocity w, joint point and COM.

    `parent` has the parent's accelerations, angular velocity and COM, and is None for the ground,
    as is `w_a`, the angular velocity of the joint's body a; `moving` has the joint's speeds and
    columns, None if it has none; `rate` what a change of its subspace adds; `driven` its
    accelerations and columns.
    """
    alpha = acc = jnp.zeros_like(com)
    if parent is not None:
        alpha, acc, w_p, com_p = parent
        acc = acc + slope(alpha, w_p) @ (at - com_p)
    if moving is not None and w_a is not None:
        v, angular, slide = moving
        alpha = alpha + cross(w_a, v @ angular)
        acc = acc + 2.0 * cross(w_a, v @ slide)
    if rate is not None:
        alpha, acc = alpha + rate[0], acc + rate[1]
    if driven is not None:
        vdot, angular, slide = driven
        alpha = alpha + vdot @ angular
        acc = acc + vdot @ slide
    return alpha, acc + slope(alpha, w) @ (com - at)
