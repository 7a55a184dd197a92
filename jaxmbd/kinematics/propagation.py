"""Forward recursion: poses, twists and accelerations of all bodies, from the ground outward.

``t_i = A_{i,i-1} t_{i-1} + P_i q̇_i`` (Hanzaki et al. 2009, (15), (48)), in world axes, with each
twist ``t = [ω; v]`` at the centre of mass of its body.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.graph import topology
from jaxmbd.kinematics.recursion import (
    PerBody,
    Runs,
    Static,
    body_runs,
    by_joint,
    nameless,
    outward,
)
from jaxmbd.lanes import is_foreign, traced_once
from jaxmbd.model import Joint, Mechanism
from jaxmbd.spatial import cross, skew


class Positions(NamedTuple):
    """Poses of all bodies in tree order, and the columns of the joints' motion.

    Attributes:
        rotation: (3, 3) of each body, from the drawn orientation; None where it is the identity.
        com: centre of mass (3,) of each [m].
        joint: b's point of the joint from the parent to the body, (3,) of each [m].
        columns: `Columns` of each, None if the joint does not move.
        frame: rotation of the joint's body a.
        none: (0, 3), no column.
    """

    rotation: PerBody
    com: PerBody
    joint: PerBody
    columns: PerBody
    frame: PerBody
    none: Array

    @property
    def runs(self) -> Runs:
        """The runs of bodies, of which these and all other values are stacked."""
        return self.com.runs

    @property
    def angular(self) -> Array:
        """(nv, 3) angular parts of the columns of all ``P_i``, world axes."""
        return self._joined("angular")

    @property
    def slide(self) -> Array:
        """(nv, 3) their linear parts at `column_point`; zero for rotary joints."""
        return self._joined("slide")

    @property
    def column_point(self) -> Array:
        """(nv, 3) b's point of the joint of each column."""
        return self._joined("point")

    def _joined(self, field: str) -> Array:
        parts = [None if x is None else getattr(x, field) for x in self.columns.parts]
        return PerBody(self.runs, parts).joined(self.none)


class Columns(NamedTuple):
    """Columns of a joint's motion: `angular`, `slide` and `point` as in `Positions`, (n, 3)."""

    angular: Array
    slide: Array
    point: Array


class Velocities(NamedTuple):
    """Twists of all bodies in tree order: `angular` [rad/s], `linear` [m/s] of the COM."""

    angular: PerBody
    linear: PerBody


class Accelerations(NamedTuple):
    """`angular` [rad/s²] and `linear` [m/s²] accelerations of the COM of all bodies.

    They belong to the rates v̇ (nv,) of the speeds; None for the velocity-product part alone.
    """

    angular: PerBody
    linear: PerBody
    vdot: Array | None = None


def rotate(r: Array | None, x: Array) -> Array:
    """``r @ x`` for a vector, with None for the identity."""
    return x if r is None else r @ x


def compose(r: Array | None, s: Array | None) -> Array | None:
    """``r @ s``, with None for the identity."""
    if r is None or s is None:
        return s if r is None else r
    return r @ s


def _with_unit_axes(joint: Joint) -> Joint:
    """The joint with unit axes, unless methods from elsewhere read its axes."""
    return joint if is_foreign(type(joint)) else joint.with_unit_axes()


def propagate_positions(mech: Mechanism, q: Array) -> Positions:
    """Poses and motion columns of the joints at coordinates q (nq,)."""
    top, runs = topology(mech), body_runs(mech)
    joints = [mech.joint(name) for name in top.tree]
    near, far = [], []
    for joint, reversed_ in zip(joints, top.reversed_, strict=True):
        ends = mech.point(joint.point_a), mech.point(joint.point_b)
        near.append(ends[reversed_])
        far.append(ends[not reversed_])
    com = [mech.com(body) for body in top.bodies]
    origin = jnp.zeros(3, q.dtype)
    before = [origin if p < 0 else com[p] for p in top.parent]

    def step(parent: Any, joint: Joint, q: Array, arms: Any, reversed_: Static) -> _Placed:
        to_joint, to_com = arms
        motion = _relative_motion(joint, q)
        return _place(parent, to_joint, to_com, motion, reversed_=reversed_.value)

    def arms(ends: list[Array], starts: list[Array]) -> PerBody:
        return PerBody.of(runs, ends) - PerBody.of(runs, starts)

    placed = outward(
        top.parent,
        step,
        PerBody.of(runs, [nameless(j) for j in joints]).before_loops(_with_unit_axes),
        by_joint(top, runs, q, "q"),
        arms(near, before).paired(arms(com, far)),
        PerBody.of(runs, [Static(r) for r in top.reversed_]),
        carried=lambda x: (x.rotation, x.com),
        whole=lambda x: (jnp.eye(3, dtype=q.dtype) if x[0] is None else x[0], x[1]),
    )
    return Positions(*(placed.field(k) for k in range(5)), none=jnp.zeros((0, 3), q.dtype))


class _Placed(NamedTuple):
    """What `Positions` has of one body."""

    rotation: Array | None
    com: Array
    joint: Array
    columns: Columns | None
    frame: Array | None


@traced_once
def _relative_motion(joint: Joint, q: Array) -> Any:
    """Rotation, translation and subspace of a joint, in a's axes; None for what it does not do."""
    return joint.rotation(q), joint.translation(q), joint.subspace(q) if joint.nv else None


@partial(traced_once, static=("reversed_",))
def _place(parent: Any, to_joint: Array, to_com: Array, motion: Any, *, reversed_: bool) -> _Placed:
    """Place a body by the `motion` of its joint (`_relative_motion`).

    `parent` has the parent's rotation and COM, and is None for the ground; `to_joint` leads from
    that COM to the joint's point on the parent, `to_com` from its point on the body to the body's
    COM, as drawn; `reversed_` says whether the parent is the joint's body b.
    """
    turn, shift, subspace = motion
    r_p, x = None, to_joint
    if parent is not None:
        r_p, com_p = parent
        x = com_p + rotate(r_p, to_joint)
    if reversed_:
        r = r_a = compose(r_p, None if turn is None else turn.T)
        at, x = x, x if shift is None else x - rotate(r_a, shift)
    else:
        r, r_a = compose(r_p, turn), r_p
        at = x = x if shift is None else x + rotate(r_a, shift)
    columns = None
    if subspace is not None:
        sign = -1.0 if reversed_ else 1.0
        w, u = (sign * _rotate_columns(r_a, s) for s in subspace)
        columns = Columns(w, u, jnp.broadcast_to(at, w.shape))
    return _Placed(r, x + rotate(r, to_com), at, columns, r_a)


def _rotate_columns(r: Array | None, s: Array) -> Array:
    """Columns of `s` (3, n) in world axes, as rows (n, 3)."""
    return s.T if r is None else (r @ s).T


def propagate_velocities(mech: Mechanism, pos: Positions, v: Array) -> Velocities:
    """Twists ``ω_i = ω_p + Ω``, ``v_i = v_p + ω_p × (c_i − c_p) + U + Ω × (c_i − O)``.

    ``[Ω; U] = P q̇`` is the relative twist at b's joint point O.
    """
    top = topology(mech)
    speeds = by_joint(top, pos.runs, v)
    twists = outward(top.parent, _twist, pos.joint, pos.com, pos.columns, speeds)
    return Velocities(twists.field(0), twists.field(1))


@traced_once
def _twist(
    parent: Any, at: Array, com: Array, columns: Columns | None, v: Array
) -> tuple[Array, Array, Array]:
    """The twist of a body, and its COM; so of the parent, which is None for the ground."""
    w = u = jnp.zeros_like(com)
    if parent is not None:
        w, u, com_p = parent
        u = u + cross(w, com - com_p)
    if columns is not None:
        spin = v @ columns.angular
        w = w + spin
        u = u + v @ columns.slide + cross(spin, com - at)
    return w, u, com


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
    top, runs = topology(mech), pos.runs
    none = PerBody(runs, [None] * len(runs))

    def step(parent: Any, joint: Joint, reversed_: Static, *given: Any) -> Any:
        q, v, r_a, w, at, com, columns, vdot = given
        w_p = None if parent is None else parent[3]
        rate = None
        if joint.moving_subspace and columns is not None:
            rate = _moving_subspace(joint, q, v, r_a, reversed_=reversed_.value)
        w_a = w if reversed_.value else w_p
        return _acceleration(parent, w, at, com, w_a, columns, v, rate, vdot)

    found = outward(
        top.parent,
        step,
        PerBody.of(runs, [nameless(mech.joint(name)) for name in top.tree]),
        PerBody.of(runs, [Static(r) for r in top.reversed_]),
        by_joint(top, runs, q, "q"),
        by_joint(top, runs, v),
        pos.frame,
        vel.angular,
        pos.joint,
        pos.com,
        pos.columns,
        none if vdot is None else by_joint(top, runs, vdot),
    )
    return Accelerations(found.field(0), found.field(1), vdot)


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
    columns: Columns | None,
    v: Array,
    rate: Any,
    vdot: Array | None,
) -> tuple[Array, Array, Array, Array, Array]:
    """Accelerations, COM, angular velocity and slope of a body; so of the parent, None if ground.

    `at` is its joint's point; `w_a` the angular velocity of the joint's body a, None for the
    ground; `v` and `vdot` are the joint's speeds and their rates (None for zero), `rate` is what a
    change of its subspace adds.
    """
    alpha = acc = jnp.zeros_like(com)
    if parent is not None:
        alpha, acc, com_p, _, slope_p = parent
        acc = acc + slope_p @ (at - com_p)
    if columns is not None and w_a is not None:
        alpha = alpha + cross(w_a, v @ columns.angular)
        acc = acc + 2.0 * cross(w_a, v @ columns.slide)
    if rate is not None:
        alpha, acc = alpha + rate[0], acc + rate[1]
    if columns is not None and vdot is not None:
        alpha = alpha + vdot @ columns.angular
        acc = acc + vdot @ columns.slide
    own = slope(alpha, w)
    return alpha, acc + own @ (com - at), com, w, own
