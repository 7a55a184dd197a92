"""Inverse dynamics: efforts and multipliers from a motion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.dynamics.backend import compiled
from jaxmbd.dynamics.bias import Inputs, applied_loads, generalised_efforts, inertia_forces
from jaxmbd.dynamics.kkt import System, kkt_system, least_norm, solve_kkt
from jaxmbd.kinematics.motion import MotionState, check_shape, motion_state
from jaxmbd.kinematics.propagation import propagate_accelerations
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.spatial.factor import ldlt_rank_revealing, ldlt_solve
from jaxmbd.topology import Topology, topology


def inverse_dynamics(
    mech: Mechanism,
    q: Array,
    v: Array,
    vdot: Array,
    t: Any = 0.0,
    inputs: Inputs | None = None,
    actuated: Sequence[str] | None = None,
    *,
    backend: str = "auto",
) -> tuple[Array, Array]:
    """Efforts τ (nv,) and multipliers λ (nc,) with ``M v̇ + h = τ + inputs + Jᵀ λ``.

    In a closed loop the motion leaves part of (τ, λ) free. Without `actuated` every tree joint
    may help and τ is the one that does no work against the constraints (``J M⁻¹ τ = 0``): zero for
    a free motion. With `actuated` τ is zero elsewhere, and of least norm where the actuation is
    redundant.

    Args:
        mech: the mechanism.
        q: coordinates (nq,), on the constraints.
        v: speeds (nv,), on the constraints.
        vdot: accelerations (nv,), on the constraints.
        t: time [s].
        inputs: efforts that act besides, by joint.
        actuated: names of the actuated tree joints.
        backend: "auto", "lanes" or "xla" (`jaxmbd.dynamics.backend`).

    Raises:
        ValueError: an actuated joint is unknown or cut; on the host, the actuated joints cannot
            produce the motion (inside `jit` τ and λ are NaN).

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> rest = jnp.zeros(1)
        >>> tau, _ = mbd.inverse_dynamics(m, mbd.neutral(m), rest, rest)
        >>> round(float(tau[0]), 6)
        -9.81
    """
    q, v, vdot, t = (jnp.asarray(x, mech.dtype) for x in (q, v, vdot, t))
    check_shape("vdot", vdot, topology(mech).nv)
    chosen = None if actuated is None else tuple(actuated)
    inputs = {name: jnp.asarray(x, mech.dtype) for name, x in (inputs or {}).items()}
    if chosen is not None:
        _columns(topology(mech), chosen)
    tau, lam, missing = _inverse(backend, chosen, mech, q, v, vdot, t, inputs)
    if actuated is not None:
        _check_actuated(topology(mech), actuated, missing)
    return tau, lam


@eqx.filter_jit
def _inverse(backend: str, actuated: tuple[str, ...] | None, *args: Any) -> Any:
    return compiled(backend, partial(_efforts, actuated), *args)


def _efforts(
    actuated: tuple[str, ...] | None,
    mech: Mechanism,
    q: Array,
    v: Array,
    vdot: Array,
    t: Any,
    inputs: Inputs,
) -> tuple[Array, Array, Array]:
    """τ, λ, and the speeds that the actuated joints cannot move."""
    m = motion_state(mech, q, v, t)
    acc = propagate_accelerations(mech, m.q, m.pos, m.vel, m.v, vdot)
    loads, efforts = applied_loads(m, inputs)
    required = inertia_forces(m, acc, loads) - generalised_efforts(m, efforts)
    zero, missing = jnp.zeros(m.top.nc, m.q.dtype), jnp.zeros(m.top.nv, bool)
    if actuated is None and m.top.nc == 0:
        return required, zero, missing
    system = kkt_system(m)
    if actuated is None:
        tau = required
    else:
        tau, missing = _least_effort(m, system, required, _columns(m.top, actuated))
        tau = jnp.where(jnp.any(missing), jnp.nan, tau)
        required = required - tau
    _, reaction = solve_kkt(system, required[:, None], zero[:, None])
    reaction = least_norm(system, reaction[:, 0])
    if actuated is None:
        tau = required + system.jacobian.T @ (reaction / system.scale)
    return tau, -reaction, missing


def _columns(top: Topology, actuated: Sequence[str]) -> np.ndarray:
    columns: list[int] = []
    for name in actuated:
        place = top.layout[name].v if name in top.layout else None
        if place is None:
            raise ValueError(
                f"actuated joint '{name}' is not in the tree; actuated may name "
                f"{list(top.tree)}, and cut= chooses other cuts"
            )
        columns += range(place.start, place.stop)
    return np.array(columns, int)


def _least_effort(
    m: MotionState, system: System, required: Array, columns: np.ndarray
) -> tuple[Array, Array]:
    """Least τ on `columns` whose motion is that of `required`, and the speeds it cannot move.

    With ``K = M⁻¹ − M⁻¹Jᵀ A⁻¹ J M⁻¹`` the motion that a force causes, ``K E τ = K required``.
    """
    eye = jnp.asarray(np.eye(m.top.nv)[:, columns], m.q.dtype)
    forces = jnp.concatenate([eye, required[:, None]], axis=1)
    motions, _ = solve_kkt(system, forces, jnp.zeros((m.top.nc, forces.shape[1]), m.q.dtype))
    response, wanted = motions[:, :-1], motions[:, -1]
    eps = float(jnp.finfo(m.q.dtype).eps)
    factors = ldlt_rank_revealing(response @ response.T, eps**0.64)
    effort = response.T @ ldlt_solve(*factors, wanted[:, None])[:, 0]
    size = jnp.max(jnp.abs(wanted))
    missing = jnp.abs(response @ effort - wanted) > eps**0.4 * (1e-300 + size)
    return eye @ effort, missing


def _check_actuated(top: Topology, actuated: Sequence[str], missing: Array) -> None:
    if isinstance(missing, Tracer) or not bool(np.any(np.asarray(missing))):
        return
    speeds = [n for n, bad in zip(top.speed_names, np.asarray(missing), strict=True) if bad]
    raise ValueError(
        f"the joints actuated={list(actuated)} cannot produce this motion: nothing drives "
        f"{speeds}; actuate one of them too"
    )
