"""The decoupled natural orthogonal complement (DeNOC) as dense matrices.

``t = N q̇``, ``N = N_l N_d`` (Hanzaki et al. 2009, (17), (47)–(51)): `N_l` (6n, 6n) is lower block
triangular with the twist propagations ``A_ij``, `N_d` (6n, nv) block diagonal with the joint
columns ``P_i``. These matrices are for study and tests; the engine uses the recursions instead.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.dynamics.bias_forces import BodyWrenches, Inputs, applied_loads, joint_efforts
from jaxmbd.dynamics.inertia import armature_diagonal, world_inertias
from jaxmbd.kinematics import MotionState, motion_state
from jaxmbd.model import Load, Mechanism
from jaxmbd.spatial import skew


class DeNOC(NamedTuple):
    """The matrices of ``N_dᵀ N_lᵀ (M ṫ + W M E t) = N_dᵀ N_lᵀ w``, twists at the centres of mass.

    Attributes:
        n_l: (6n, 6n).
        n_d: (6n, nv).
        mass: (6n, 6n) ``diag(I_i, m_i 1)``.
        gyro: (6n, 6n) ``W``, the angular velocities' cross-product matrices.
        twist: (6n,) ``t = N_l N_d v``.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> mbd.denoc(m, mbd.neutral(m)).n_d.shape
        (18, 5)
    """

    n_l: Array
    n_d: Array
    mass: Array
    gyro: Array
    twist: Array


def denoc(mech: Mechanism, q: Array, v: Array | None = None) -> DeNOC:
    """The DeNOC matrices of the tree at (q, v), bodies in the order of ``topology(mech)``.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> d = mbd.denoc(m, mbd.neutral(m))
        >>> n = d.n_l @ d.n_d
        >>> bool(abs(n.T @ d.mass @ n - mbd.mass_matrix(m, mbd.neutral(m))).max() < 1e-15)
        True
    """
    return _denoc(motion_state(mech, q, v))


def _denoc(m: MotionState) -> DeNOC:
    n, dtype = len(m.top.bodies), m.q.dtype
    eye, zero = jnp.eye(3, dtype=dtype), jnp.zeros((3, 3), dtype)
    n_l = jnp.zeros((6 * n, 6 * n), dtype)
    n_d = jnp.zeros((6 * n, m.top.nv), dtype)
    for i, name in enumerate(m.top.tree):
        block, j = slice(6 * i, 6 * i + 6), i
        while j >= 0:
            arm = skew(m.pos.com[i] - m.pos.com[j])
            propagation = jnp.block([[eye, zero], [-arm, eye]])
            n_l = n_l.at[block, 6 * j : 6 * j + 6].set(propagation)
            j = m.top.parent[j]
        place = m.top.layout[name].v
        at_com = m.columns_at(m.pos.com[i])[place]
        column = jnp.concatenate([m.pos.angular[place].T, at_com.T])
        n_d = n_d.at[block, place].set(column)
    blocks = [
        jnp.block([[inertia, zero], [zero, jnp.asarray(m.mech.bodies[b].mass) * eye]])
        for b, inertia in zip(m.top.bodies, world_inertias(m), strict=True)
    ]
    spins = [jnp.block([[skew(w), zero], [zero, skew(w)]]) for w in m.vel.angular]
    mass = jax.scipy.linalg.block_diag(*blocks)
    gyro = jax.scipy.linalg.block_diag(*spins)
    return DeNOC(n_l, n_d, mass, gyro, n_l @ n_d @ m.v)


def denoc_equations(
    mech: Mechanism, q: Array, v: Array, t: Any = 0.0, inputs: Inputs | None = None
) -> tuple[Array, Array]:
    """Joint-space ``Nᵀ M N`` (nv, nv), with armatures, and ``τ − h`` (nv,) by the dense matrices.

    ``h = Nᵀ (M Ṅ v + W M E t − w)``, with ``Ṅ v`` by differentiating ``N(q) v`` along the motion.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mass, force = mbd.denoc_equations(m, mbd.neutral(m), jnp.zeros(1))
        >>> round(float(force[0] / mass[0, 0]), 6)
        9.81
    """
    m = motion_state(mech, q, v, t)
    d = _denoc(m)
    rates = [
        m.mech.joint(name).rate(m.q[m.top.layout[name].q], m.v[m.top.layout[name].v])
        for name in m.top.tree
        if m.mech.joint(name).nv
    ]
    qdot = jnp.concatenate([*rates, jnp.zeros(0, m.q.dtype)])
    _, ndot_v = jax.jvp(lambda x: denoc(mech, x, m.v).twist, (m.q,), (qdot,))
    keep_spin = jnp.tile(jnp.array([1.0, 1, 1, 0, 0, 0], m.q.dtype), len(m.top.bodies))
    wrench = d.mass @ ndot_v + d.gyro @ (d.mass @ (keep_spin * d.twist))
    loads, efforts = applied_loads(m, inputs)
    external = BodyWrenches(m)
    for load in loads:
        external.add(load)
    for i, body in enumerate(m.top.bodies):
        weight = mech.bodies[body].mass * mech.field()
        external.add(Load(body, m.pos.com[i], weight, jnp.zeros_like(weight)))
    applied = jnp.concatenate([x for wrench in external.about_com() for x in wrench])
    n, rotors = d.n_l @ d.n_d, armature_diagonal(mech)
    mass = n.T @ d.mass @ n
    mass = mass if rotors is None else mass + jnp.diag(rotors)
    return mass, n.T @ (applied - wrench) + joint_efforts(m, efforts)
