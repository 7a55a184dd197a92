"""Forward dynamics: accelerations and multipliers from forces."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.dynamics.bias_forces import Inputs, applied_loads, inertia_efforts, joint_efforts
from jaxmbd.dynamics.friction import rubbing_joints, solve_motion
from jaxmbd.dynamics.inertia import rotor_energy
from jaxmbd.dynamics.kkt import indeterminate, kkt_system, least_norm
from jaxmbd.kinematics import MotionState, closure_gamma, motion_state
from jaxmbd.lanes import compiled, given, host_jit, whole
from jaxmbd.model import Mechanism, finite_numbers, has_literal_zeros


def applied_efforts(m: MotionState, inputs: Inputs | None) -> tuple[Array, Array]:
    """``τ − h`` (nv,) without dry friction, and γ (nc,), at a state."""
    acc = m.accelerations()
    loads, efforts = applied_loads(m, inputs)
    force = joint_efforts(m, efforts) - inertia_efforts(m, acc, loads)
    return force, closure_gamma(m, acc)


def forward_dynamics(
    mech: Mechanism,
    q: Array,
    v: Array,
    t: Any = 0.0,
    inputs: Inputs | None = None,
    *,
    backend: str = "auto",
) -> tuple[Array, Array]:
    """Accelerations v̇ (nv,) and multipliers λ (nc,) of ``M v̇ + h = τ + Jᵀ λ``, ``J v̇ = γ``.

    λ are the constraint forces of a on b [N, N·m]; for redundant rows the solution of least norm.

    There is no status, so that nothing is spent on it in a loop: `check_state` says whether a state
    is on the constraints, determinate, and well enough conditioned to be trusted. A state off the
    constraints, or one that leaves few digits, gives finite numbers here.

    JAX converts the numbers of a mechanism at every call from the host: for many calls give
    ``jax.device_put(mech)``, or close over the mechanism in a `jax.jit` of your own.

    Args:
        mech: the mechanism.
        q: coordinates (nq,), on the constraints.
        v: speeds (nv,), on the constraints.
        t: time [s].
        inputs: efforts on joints by name, a scalar or (nv,) each [N·m or N].
        backend: "auto", "lanes" or "xla" (`jaxmbd.lanes.backend`).

    Raises:
        ValueError: on the host, if a motion has neither inertia nor constraint, or if a joint jams
            by its own friction; inside `jit` the result is NaN.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> vdot, lam = mbd.forward_dynamics(m, mbd.neutral(m), jnp.zeros(1))
        >>> round(float(vdot[0]), 6)
        9.81
    """
    dtype = mech.dtype
    q, v, t = given(q, dtype), given(v, dtype), given(t, dtype)
    inputs = {name: given(x, dtype) for name, x in (inputs or {}).items()}
    vdot, lam = _forward(backend, has_literal_zeros(mech), mech, q, v, t, inputs)
    if not isinstance(vdot, Tracer) and np.isnan(np.asarray(vdot)).any():
        check_determinate(mech, jnp.asarray(q))
        check_jamming(mech)
    return vdot, lam


@host_jit
def _forward(backend: str, check: bool, *args: Any) -> tuple[Array, Array]:
    return compiled(backend, partial(_accelerations, check=check), *args)


def _accelerations(
    mech: Mechanism, q: Array, v: Array, t: Any, inputs: Inputs | None, *, check: bool = False
) -> tuple[Array, Array]:
    m = motion_state(mech, q, v, t)
    force, rhs = applied_efforts(m, inputs)
    vdot, lam, system = solve_motion(m, force, rhs, inputs)
    lam = least_norm(system, lam, m.top.row_groups)
    if not check:
        return vdot, lam
    fine = finite_numbers(mech)
    return jnp.where(fine, vdot, jnp.nan), jnp.where(fine, lam, jnp.nan)


def check_determinate(mech: Mechanism, q: Array) -> None:
    """Raise a ValueError that names the motions that are indeterminate; on the host only."""
    m = motion_state(mech, q)
    if not np.all(np.isfinite(np.asarray(m.q))):
        raise ValueError("q is not finite: take it from assemble(...) and check its status")
    system = kkt_system(m)
    if not np.all(np.isfinite(np.asarray(system.mass.array()))):
        raise ValueError("a parameter of the mechanism is not finite: print(mech) shows them all")

    if names := [n for n, x in zip(m.top.speed_names, indeterminate(system), strict=True) if x]:
        raise ValueError(
            f"the motion along {names} has neither inertia nor constraint: give the bodies that "
            "it moves a mass or an inertia, or constrain it"
        )


def check_jamming(mech: Mechanism) -> None:
    """Raise a ValueError if there is friction, the only cause left for a NaN; on the host only."""
    if rubbing := rubbing_joints(mech):
        raise ValueError(
            f"friction of the joints {list(rubbing)} and the reactions that it causes have no "
            "common solution: one of them jams by its own friction; lower its coefficient, or give "
            "its bearings a larger length"
        )


@whole
def kinetic_energy(mech: Mechanism, q: Array, v: Array) -> Array:
    """½ Σ (m v·v + ω·I ω) over the bodies, and ½ Σ a v² of the armatures [J].

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> float(mbd.kinetic_energy(m, mbd.neutral(m), [2.0]))
        2.0
    """
    m = motion_state(mech, q, v)
    total = jnp.zeros((), m.q.dtype)
    for i, body in enumerate(m.top.bodies):
        part, w, u = mech.bodies[body], m.vel.angular[i], m.vel.linear[i]
        r = m.rotation(body)
        w = r.T @ w
        total = total + 0.5 * (part.mass * (u @ u) + w @ (mech.inertia(body) @ w))
    return total + rotor_energy(mech, m.v) if mech.structure.armatures else total


@whole
def potential_energy(mech: Mechanism, q: Array, t: Any = 0.0) -> Array:
    """Weight ``−m g·x`` and the force elements' potentials [J] (constant forces ``−F·x``).

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> round(float(mbd.potential_energy(m, [1.0])), 3)
        -8.255
    """
    m = motion_state(mech, q, t=t)
    total, gravity = jnp.zeros((), m.q.dtype), mech.field()
    for i, body in enumerate(m.top.bodies):
        total = total - mech.bodies[body].mass * (gravity @ m.pos.com[i])
    for name in mech.structure.forces:
        total = total + mech.forces[name].energy(m)
    return total
