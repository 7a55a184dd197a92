"""Forward recursion: poses, twists and accelerations of all bodies, from the ground outward.

``t_i = A_{i,i-1} t_{i-1} + P_i q̇_i`` (Hanzaki et al. 2009, (15), (48)), in world axes, with each
twist ``t = [ω; v]`` at the centre of mass of its body.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.graph import Topology, topology
from jaxmbd.model.joints import Joint
from jaxmbd.model.mechanism import Mechanism
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


def propagate_positions(mech: Mechanism, q: Array) -> Positions:
    """Poses and motion columns of the joints at coordinates q (nq,)."""
    top = topology(mech)
    q = jnp.asarray(q)
    rotations: list[Array | None] = []
    coms, points, angular, slide, column_point = [], [], [], [], []
    for i, name in enumerate(top.tree):
        joint, p = mech.joint(name), top.parent[i]
        qi = q[top.layout[name].q]
        r_p = rotations[p] if p >= 0 else None
        anchor = joint.point_b if top.reversed_[i] else joint.point_a
        x = _material_point(mech, top, p, r_p, coms, anchor)
        r, com, at, r_a = _child_pose(mech, joint, qi, top.reversed_[i], r_p, x, top.bodies[i])
        rotations.append(r)
        coms.append(com)
        points.append(at)
        if joint.nv:
            sign = -1.0 if top.reversed_[i] else 1.0
            w, u = (sign * _rotate_columns(r_a, s) for s in joint.subspace(qi))
            angular.append(w)
            slide.append(u)
            column_point.append(jnp.broadcast_to(at, w.shape))
    none = jnp.zeros((0, 3), q.dtype)
    return Positions(
        tuple(rotations),
        tuple(coms),
        tuple(points),
        jnp.concatenate([*angular, none]),
        jnp.concatenate([*slide, none]),
        jnp.concatenate([*column_point, none]),
    )


def _rotate_columns(r: Array | None, s: Array) -> Array:
    """Columns of `s` (3, n) in world axes, as rows (n, 3)."""
    return s.T if r is None else (r @ s).T


def _material_point(
    mech: Mechanism, top: Topology, i: int, r: Array | None, coms: list[Array], ref: object
) -> Array:
    x = mech.point(ref)
    return x if i < 0 else coms[i] + rotate(r, x - mech.com(top.bodies[i]))


def _child_pose(
    mech: Mechanism,
    joint: Joint,
    q: Array,
    reversed_: bool,
    r_p: Array | None,
    x: Array,
    child: str,
) -> tuple[Array | None, Array, Array, Array | None]:
    """Rotation and COM of the child, b's joint point, and the rotation of the joint's body a."""
    turn, shift = joint.rotation(q), joint.translation(q)
    com = mech.com(child)
    if not reversed_:
        r_a, at = r_p, x if shift is None else x + rotate(r_p, shift)
        r = compose(r_a, turn)
        return r, at + rotate(r, com - mech.point(joint.point_b)), at, r_a
    r_a = compose(r_p, None if turn is None else turn.T)
    x_a = x if shift is None else x - rotate(r_a, shift)
    return r_a, x_a + rotate(r_a, com - mech.point(joint.point_a)), x, r_a


def propagate_velocities(mech: Mechanism, pos: Positions, v: Array) -> Velocities:
    """Twists ``ω_i = ω_p + Ω``, ``v_i = v_p + ω_p × (c_i − c_p) + U + Ω × (c_i − O)``.

    ``[Ω; U] = P q̇`` is the relative twist at b's joint point O.
    """
    top = topology(mech)
    zero = jnp.zeros(3, pos.angular.dtype)
    angular, linear = [], []
    for i, name in enumerate(top.tree):
        p, place = top.parent[i], top.layout[name].v
        w, u = zero, zero
        if p >= 0:
            w = angular[p]
            u = linear[p] + cross(w, pos.com[i] - pos.com[p])
        if mech.joint(name).nv:
            spin = v[place] @ pos.angular[place]
            w = w + spin
            u = u + v[place] @ pos.slide[place] + cross(spin, pos.com[i] - pos.joint[i])
        angular.append(w)
        linear.append(u)
    return Velocities(tuple(angular), tuple(linear))


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
    zero = jnp.zeros(3, pos.angular.dtype)
    angular, linear = [], []
    for i, name in enumerate(top.tree):
        p, joint = top.parent[i], mech.joint(name)
        alpha, at, com = zero, pos.joint[i], pos.com[i]
        acc = zero
        if p >= 0:
            alpha = angular[p]
            acc = linear[p] + slope(alpha, vel.angular[p]) @ (at - pos.com[p])
        place = top.layout[name].v
        if joint.nv:
            turn, slide = _velocity_products(mech, top, i, q, pos, vel, v)
            alpha, acc = alpha + turn, acc + slide
        if vdot is not None and joint.nv:
            alpha = alpha + vdot[place] @ pos.angular[place]
            acc = acc + vdot[place] @ pos.slide[place]
        acc = acc + slope(alpha, vel.angular[i]) @ (com - at)
        angular.append(alpha)
        linear.append(acc)
    return Accelerations(tuple(angular), tuple(linear))


def _velocity_products(
    mech: Mechanism,
    top: Topology,
    i: int,
    q: Array,
    pos: Positions,
    vel: Velocities,
    v: Array,
) -> tuple[Array, Array]:
    """Velocity-product accelerations of joint i: angular, and linear at b's point."""
    name, p = top.tree[i], top.parent[i]
    joint, place = mech.joint(name), top.layout[name]
    vi = v[place.v]
    spin = vi @ pos.angular[place.v]
    slide = vi @ pos.slide[place.v]
    turn_rate = slide_rate = jnp.zeros_like(spin)
    a = i if top.reversed_[i] else p
    if a >= 0:
        w = vel.angular[a]
        turn_rate, slide_rate = cross(w, spin), 2.0 * cross(w, slide)
    if joint.moving_subspace:
        qi = q[place.q]
        _, (s_w, s_v) = jax.jvp(joint.subspace, (qi,), (joint.rate(qi, vi),))
        sign = -1.0 if top.reversed_[i] else 1.0
        r_a = pos.rotation[a] if a >= 0 else None
        turn_rate = turn_rate + sign * rotate(r_a, s_w @ vi)
        slide_rate = slide_rate + sign * rotate(r_a, s_v @ vi)
    return turn_rate, slide_rate
