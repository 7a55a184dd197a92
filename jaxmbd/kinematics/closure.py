"""Loop closure: residual, Jacobian and acceleration bias of cut joints, couplings and drives.

The same code serves all joint types: with W (6, rows) the joint's constraint wrenches at b's point
and ``V = [Ω; U]`` the twist of b relative to a there, the rows are ``Wᵀ V = 0`` and,
differentiated, ``Wᵀ V̇ + Ẇᵀ V = 0``. Couplings and drives are rows on coordinates of joints or of
points.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.kinematics.motion import MotionState, motion_state
from jaxmbd.kinematics.propagation import Accelerations, slope
from jaxmbd.lanes import traced_once, whole
from jaxmbd.model import GROUND, Mechanism, PointDrive
from jaxmbd.numerics import AnyRows, BlockRows, taken
from jaxmbd.spatial import cross


def _all(m: MotionState, *_: Any) -> Any:
    return m.mech.joints, m.mech.couplings, m.mech.drives


@partial(traced_once, runs=_all)
def closure_residual(m: MotionState) -> Array:
    """φ (nc,): closure errors of cut joints, couplings and drives, at the state's time."""
    parts = [jnp.zeros(0, m.q.dtype)]
    for name in m.top.cut:
        joint = m.mech.joint(name)
        drawn = m.drawn(joint.point_b) - m.drawn(joint.point_a)
        parts.append(joint.residual(*m.offset(name), drawn))
    for name in m.top.couplings:
        parts.append(m.mech.coupling(name).condition(_coupled(m, name)[0])[None])
    for name in m.top.drives:
        drive = m.mech.drives[name]
        if isinstance(drive, PointDrive):
            x = m.position(drive.body, drive.at)[drive.component]
        else:
            x = m.coordinates(drive.joint)[drive.index]
        parts.append((x - drive.value(jnp.asarray(m.t, x.dtype))[0])[None])
    return jnp.concatenate(parts)


@partial(traced_once, runs=lambda m: (m.mech.joints, m.mech.couplings))
def closure_jacobian(m: MotionState) -> Array:
    """J (nc, nv): ``J v`` is the velocity of b minus that of a along the constraint wrenches."""
    every = (range(m.top.nv),)
    none = jnp.zeros((0, m.top.nv), m.q.dtype)
    return jnp.concatenate([none, *(_rows(m, name, every) for name in _constraints(m))])


@partial(traced_once, runs=lambda m: (m.mech.joints, m.mech.couplings))
def closure_rows(m: MotionState) -> AnyRows:
    """J, stored by `Topology.loop_blocks` if the mechanism has them."""
    sparsity = m.top.loop_blocks
    if sparsity is None:
        return closure_jacobian(m)
    blocks = []
    for i, rows in enumerate(sparsity.rows):
        names = [n for n in _constraints(m) if _place(m, n).start in rows]
        blocks.append(jnp.concatenate([_rows(m, n, sparsity.speeds(i)) for n in names]))
    return BlockRows(tuple(blocks), sparsity)


def _constraints(m: MotionState) -> tuple[str, ...]:
    """Names in the order of their rows."""
    return m.top.cut + m.top.couplings + m.top.drives


def _place(m: MotionState, name: str) -> slice:
    rows = m.top.layout[name].rows
    assert rows is not None
    return rows


def _rows(m: MotionState, name: str, speeds: Sequence[range]) -> Array:
    """The rows of J of one cut joint, coupling or drive; some columns."""
    if name in m.top.cut:
        joint = m.mech.joint(name)
        w, _ = m.wrenches(name)
        x = m.position(joint.b, joint.point_b)
        signs = _chosen(m.moves(joint.a, joint.b), speeds)
        rows = w[:3].T @ m.angular_columns(speeds).T + w[3:].T @ m.columns_at(x, speeds).T
        return jnp.where(signs == 0.0, 0.0, signs * rows)
    if name in m.top.couplings:
        slope = m.mech.coupling(name).slope(_coupled(m, name)[0])
        row = jnp.zeros(sum(map(len, speeds)), m.q.dtype)
        for i, (joint, index) in enumerate(m.mech.couplings[name].terms):
            row = row + slope[i] * _chosen(_unit_row(m, joint, index), speeds)
        return row[None]
    drive = m.mech.drives[name]
    if isinstance(drive, PointDrive):
        return taken(point_row(m, drive.body, drive.at, drive.component), speeds)[None]
    row = _chosen(_unit_row(m, drive.joint, drive.index), speeds)
    return jnp.asarray(row, m.q.dtype)[None]


def _chosen(x: np.ndarray, speeds: Sequence[range]) -> np.ndarray:
    """Some elements of an array that is known while tracing."""
    return np.concatenate([x[part.start : part.stop] for part in speeds])


@partial(traced_once, runs=_all)
def closure_gamma(m: MotionState, acc: Accelerations) -> Array:
    """γ (nc,) with ``J v̇ = γ``, for the velocity-product accelerations; for others ``γ − J v̇``."""
    parts = [jnp.zeros(0, m.q.dtype)]
    for name in m.top.cut:
        parts.append(-_row_acceleration(m, acc, name))
    for name in m.top.couplings:
        coupling, (q, v) = m.mech.coupling(name), _coupled(m, name)
        parts.append(-coupling.curvature(q, v)[None])
        if acc.vdot is not None:
            rates = [acc.vdot[_speed(m, *term)] for term in coupling.terms]
            parts[-1] = parts[-1] - coupling.slope(q) @ jnp.stack(rates)
    for name in m.top.drives:
        drive = m.mech.drives[name]
        wanted = drive.value(jnp.asarray(m.t, m.q.dtype))[2]
        if isinstance(drive, PointDrive):
            wanted = wanted - point_acceleration(m, acc, drive.body, drive.at)[drive.component]
        elif acc.vdot is not None:
            wanted = wanted - acc.vdot[_speed(m, drive.joint, drive.index)]
        parts.append(wanted[None])
    return jnp.concatenate(parts)


def closure_velocity(m: MotionState) -> Array:
    """The right-hand side of ``J v = b`` (nc,): the prescribed rates for drives, else zero."""
    return _prescribed(m) if m.top.drives else jnp.zeros(m.top.nc, m.q.dtype)


@partial(traced_once, runs=lambda m: m.mech.drives)
def _prescribed(m: MotionState) -> Array:
    rates = [
        m.mech.drives[name].value(jnp.asarray(m.t, m.q.dtype))[1][None] for name in m.top.drives
    ]
    return jnp.concatenate([jnp.zeros(m.top.nc - len(rates), m.q.dtype), *rates])


def _unit_row(m: MotionState, joint: str, index: int) -> np.ndarray:
    """(nv,): 1 at the speed of a tree joint's coordinate, else 0."""
    row = np.zeros(m.top.nv, m.q.dtype)
    row[_speed(m, joint, index)] = 1.0
    return row


def _speed(m: MotionState, joint: str, index: int) -> int:
    """Place among the speeds of a tree joint's coordinate."""
    place = m.top.layout[joint].v
    assert place is not None
    return place.start + index


def _coupled(m: MotionState, coupling: str) -> tuple[Array, Array]:
    """The joint coordinates in a coupling, and their rates."""
    pairs = [(m.joint(joint), index) for joint, index in m.mech.couplings[coupling].terms]
    q = jnp.stack([q[index] for (q, _), index in pairs])
    return q, jnp.stack([v[index] for (_, v), index in pairs])


def point_row(m: MotionState, body: str, at: Any, component: int) -> Array:
    """(nv,): Jacobian row of one velocity component of the point of `body` drawn at `at`."""
    moves = m.moves(GROUND, body)
    columns = m.columns_at(m.position(body, at))[:, component]
    return jnp.where(moves == 0.0, 0.0, columns)


def _row_acceleration(m: MotionState, acc: Accelerations, name: str) -> Array:
    """``Wᵀ V̇ + Ẇᵀ V`` (rows,) of a cut joint for the body accelerations `acc`.

    ``V̇ = [α_b − α_a; a_b(O) − a_a(O) − ω_a × U]``: O is fixed in b and moves relative to a with
    the velocity U, so different points of a are at O.
    """
    joint = m.mech.joint(name)
    x = m.position(joint.b, joint.point_b)
    spin, slide = m.relative_twist(name)
    w, w_rate = m.wrenches(name)
    alpha_b, acc_b = _acceleration_at(m, acc, joint.b, x)
    alpha_a, acc_a = _acceleration_at(m, acc, joint.a, x)
    angular = alpha_b - alpha_a
    linear = acc_b - acc_a - cross(m.angular_velocity(joint.a), slide)
    return w[:3].T @ angular + w[3:].T @ linear + w_rate[:3].T @ spin + w_rate[3:].T @ slide


def _acceleration_at(
    m: MotionState, acc: Accelerations, body: str, x: Array
) -> tuple[Array, Array]:
    i = m.top.index(body)
    if i < 0:
        return jnp.zeros_like(x), jnp.zeros_like(x)
    alpha = acc.angular[i]
    return alpha, acc.linear[i] + slope(alpha, m.vel.angular[i]) @ (x - m.pos.com[i])


def point_acceleration(m: MotionState, acc: Accelerations, body: str, at: Any) -> Array:
    """Acceleration (3,) [m/s²] of the point of `body` drawn at `at`."""
    return _acceleration_at(m, acc, body, m.position(body, at))[1]


@whole
def constraint_residual(mech: Mechanism, q: Array, t: Any = 0.0) -> Array:
    """Closure error φ (nc,) of cut joints, couplings, drives [m in force, rad in moment rows].

    Rows are ordered as in ``topology(mech).layout[joint].rows``, of each joint force rows first.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> bool(abs(mbd.constraint_residual(m, mbd.neutral(m))).max() < 1e-15)
        True
    """
    return closure_residual(motion_state(mech, q, t=t))


@whole
def constraint_jacobian(mech: Mechanism, q: Array) -> Array:
    """J (nc, nv): ``J v`` is the velocity of b relative to a; where φ = 0 it is ``∂φ/∂q q̇``.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> mbd.constraint_jacobian(m, mbd.neutral(m)).shape
        (3, 5)
    """
    return closure_jacobian(motion_state(mech, q))


@whole
def gamma(mech: Mechanism, q: Array, v: Array, t: Any = 0.0) -> Array:
    """γ (nc,) of the acceleration level ``J v̇ = γ``: ``−J̇ v``, and f̈ for a drive.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> mbd.gamma(m, mbd.neutral(m), [1.0, 0, 0, 0, 0]).shape
        (3,)
    """
    m = motion_state(mech, q, v, t)
    return closure_gamma(m, m.accelerations())
