"""Loop closure: residual, Jacobian and acceleration bias of cut joints and drives.

One code for all joint types: with W (6, rows) the joint's constraint wrenches at b's point and
``V = [Ω; U]`` the twist of b relative to a there, the rows are ``Wᵀ V = 0`` and, differentiated,
``Wᵀ V̇ + Ẇᵀ V = 0``.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.kinematics.motion import MotionState, motion_state
from jaxmbd.kinematics.propagation import Accelerations, propagate_accelerations, slope
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.spatial.rotations import cross


def closure_residual(m: MotionState) -> Array:
    """φ (nc,): closure errors of the cut joints, then of the drives at the state's time."""
    parts = [jnp.zeros(0, m.q.dtype)]
    for name in m.top.cut:
        joint = m.mech.joint(name)
        drawn = m.drawn(joint.point_b) - m.drawn(joint.point_a)
        parts.append(joint.residual(*m.offset(name), drawn))
    for name in m.top.drives:
        drive = m.mech.drives[name]
        q = m.coordinates(drive.joint)[drive.index]
        parts.append((q - drive.value(jnp.asarray(m.t, q.dtype))[0])[None])
    return jnp.concatenate(parts)


def closure_jacobian(m: MotionState) -> Array:
    """J (nc, nv): ``J v`` is the velocity of b minus that of a along the constraint wrenches."""
    blocks = [jnp.zeros((0, m.top.nv), m.q.dtype)]
    for name in m.top.cut:
        joint = m.mech.joint(name)
        w, _ = m.wrenches(name)
        x = m.position(joint.b, joint.point_b)
        signs = m.moves(joint.a, joint.b)
        rows = w[:3].T @ m.pos.angular.T + w[3:].T @ m.columns_at(x).T
        blocks.append(jnp.where(signs == 0.0, 0.0, signs * rows))
    for name in m.top.drives:
        row = np.zeros((1, m.top.nv))
        row[0, _driven_speed(m, name)] = 1.0
        blocks.append(jnp.asarray(row, m.q.dtype))
    return jnp.concatenate(blocks)


def closure_gamma(m: MotionState, acc: Accelerations) -> Array:
    """γ (nc,) with ``J v̇ = γ``; `acc` holds the velocity-product accelerations."""
    parts = [jnp.zeros(0, m.q.dtype)]
    for name in m.top.cut:
        parts.append(-_row_acceleration(m, acc, name))
    for name in m.top.drives:
        drive = m.mech.drives[name]
        parts.append(drive.value(jnp.asarray(m.t, m.q.dtype))[2][None])
    return jnp.concatenate(parts)


def closure_velocity(m: MotionState) -> Array:
    """The right side of ``J v = b`` (nc,): zero for joints, the prescribed rates for drives."""
    rates = [
        m.mech.drives[name].value(jnp.asarray(m.t, m.q.dtype))[1][None] for name in m.top.drives
    ]
    return jnp.concatenate([jnp.zeros(m.top.nc - len(rates), m.q.dtype), *rates])


def _driven_speed(m: MotionState, drive: str) -> int:
    d = m.mech.drives[drive]
    place = m.top.layout[d.joint].v
    assert place is not None
    return place.start + d.index


def _row_acceleration(m: MotionState, acc: Accelerations, name: str) -> Array:
    """``Wᵀ V̇ + Ẇᵀ V`` (rows,) of a cut joint for the body accelerations `acc`.

    ``V̇ = [α_b − α_a; a_b(O) − a_a(O) − ω_a × U]``: O moves with b, so the point of a that lies
    at O slips back along it with U.
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


def constraint_residual(mech: Mechanism, q: Array, t: Any = 0.0) -> Array:
    """Closure error φ (nc,) of cut joints and drives [m in force rows, rad in moment rows].

    Rows stand as in ``topology(mech).layout[joint].rows``: force rows first.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> bool(abs(mbd.constraint_residual(m, mbd.neutral(m))).max() < 1e-15)
        True
    """
    return closure_residual(motion_state(mech, q, t=t))


def constraint_jacobian(mech: Mechanism, q: Array) -> Array:
    """J (nc, nv): ``J v`` = velocity of b minus that of a; equals ∂φ/∂q where φ = 0.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> mbd.constraint_jacobian(m, mbd.neutral(m)).shape
        (3, 5)
    """
    return closure_jacobian(motion_state(mech, q))


def gamma(mech: Mechanism, q: Array, v: Array, t: Any = 0.0) -> Array:
    """γ (nc,) of the acceleration level ``J v̇ = γ``: ``−J̇ v``, and f̈ for a drive.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> mbd.gamma(m, mbd.neutral(m), [1.0, 0, 0, 0, 0]).shape
        (3,)
    """
    m = motion_state(mech, q, v, t)
    return closure_gamma(m, propagate_accelerations(mech, m.q, m.pos, m.vel, m.v))
