"""Derivatives of forward dynamics at a state, by those of inverse dynamics.

With F the forces and rows that the equations of motion miss, at accelerations and multipliers that
are held,

    F(q, v, t) = [τ − h − M v̇ + Jᵀ λ; γ − J v̇],

which is zero for those of the state, the implicit function theorem gives

    M δv̇ − Jᵀ δλ = δF₁,   J δv̇ = δF₂,

one substitution with the factors of the state for each direction. Nothing is differentiated but
inverse dynamics: neither the mass matrix nor its factors. (J. Carpentier and N. Mansard,
"Analytical derivatives of rigid body dynamics algorithms", Robotics: Science and Systems 2018, for
trees.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.dynamics.bias_forces import Inputs, applied_loads, inertia_efforts, joint_efforts
from jaxmbd.dynamics.forward import applied_efforts
from jaxmbd.dynamics.friction import rubbing_joints, solve_motion
from jaxmbd.dynamics.kkt import solve_kkt
from jaxmbd.dynamics.reactions import add_row_forces, cut_wrenches
from jaxmbd.kinematics import MotionState, closure_gamma, coordinate_rates, motion_state
from jaxmbd.model import Load, Mechanism


def forward_slopes(
    mech: Mechanism,
    q: Array,
    v: Array,
    t: Array,
    efforts: Callable[[Any, Array, Array], Inputs | None],
    pull: Callable[[MotionState], Array],
) -> tuple[Array, Array, Array]:
    """∂v̇/∂q along the speeds (nv, nv), ∂v̇/∂v (nv, nv) and ∂v̇/∂t (nv,).

    Column k of the first is the derivative along ``q̇ = coordinate_rates(mech, q, eₖ)``. Quaternions
    have unit length.

    Args:
        mech: the mechanism.
        q: coordinates (nq,).
        v: speeds (nv,).
        t: time [s].
        efforts: (t, q, v) → inputs.
        pull: of a state, what is added to γ (nc,) to stay on the constraints.
    """

    def solved(t: Array, q: Array, v: Array) -> Any:
        m, inputs = motion_state(mech, q, v, t), efforts(t, q, v)
        force, rhs = applied_efforts(m, inputs)
        return solve_motion(m, force, rhs + pull(m), inputs)

    vdot, lam, system = solved(t, q, v)

    def missing(t: Array, q: Array, v: Array) -> tuple[Array, Array]:
        m = motion_state(mech, q, v, t)
        force, rhs = missing_efforts(m, vdot, lam, efforts(t, q, v))
        return force, rhs + pull(m)

    def along(*directions: tuple[Array, Array, Array]) -> Array:
        """δv̇ for each of some directions (δt, δq, δv), as rows."""
        if rubbing_joints(mech):  # friction depends on v̇ and λ
            return jnp.stack([jax.jvp(lambda *y: solved(*y)[0], at, d)[1] for d in directions])
        found = [jax.jvp(missing, at, d)[1] for d in directions]
        force, rhs = (jnp.stack(x, axis=1) for x in zip(*found, strict=True))
        return solve_kkt(system, force, rhs)[0].T

    at, n = (t, q, v), v.shape[0]

    def columns(given: tuple[Array, Array]) -> Array:
        unit, passing = given
        moved, none = coordinate_rates(mech, q, unit), jnp.zeros_like
        return along((passing, moved, none(v)), (none(t), none(q), unit))

    # Time is one more of the directions of the loop, not to compile another one.
    passing = np.eye(n + 1, dtype=v.dtype)[n]
    found = lax.map(columns, (jnp.eye(n + 1, n, dtype=v.dtype), jnp.asarray(passing)))
    return found[:n, 0].T, found[:n, 1].T, found[n, 0]


def missing_efforts(
    m: MotionState, vdot: Array, lam: Array, inputs: Inputs | None
) -> tuple[Array, Array]:
    """``τ − h − M v̇ + Jᵀ λ`` (nv,) without dry friction, and ``γ − J v̇`` (nc,)."""
    acc = m.accelerations(vdot)
    loads, efforts = applied_loads(m, inputs)
    add_row_forces(m, lam, loads, efforts, couples=True)
    for name, wrench in cut_wrenches(m, lam).items():
        joint, (moment, force) = m.mech.joint(name), (wrench[:3], wrench[3:])
        at = m.position(joint.b, joint.point_b)
        loads += [Load(joint.b, at, force, moment), Load(joint.a, at, -force, -moment)]
    return joint_efforts(m, efforts) - inertia_efforts(m, acc, loads), closure_gamma(m, acc)
