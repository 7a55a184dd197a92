"""Inverse dynamics: efforts and multipliers from a motion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from jaxmbd.dynamics.bias_forces import (
    BodyWrenches,
    Inputs,
    applied_loads,
    inertia_efforts,
    joint_efforts,
)
from jaxmbd.dynamics.friction import less_friction
from jaxmbd.dynamics.inertia import rotor_efforts
from jaxmbd.dynamics.kkt import kkt_system, least_norm, solve_kkt
from jaxmbd.graph import Topology, topology
from jaxmbd.kinematics import (
    Accelerations,
    MotionState,
    check_shape,
    closure_jacobian,
    mechanism_length,
    motion_state,
    own_rows,
    speed_units,
)
from jaxmbd.lanes import compiled, given, host_jit
from jaxmbd.model import Mechanism, finite_numbers
from jaxmbd.numerics import ldlt_rank_revealing, tolerances


def inverse_dynamics(
    mech: Mechanism,
    q: Array,
    v: Array,
    vdot: Array,
    t: Any = 0.0,
    inputs: Inputs | None = None,
    actuated: Sequence[str | tuple[str, int]] | None = None,
    *,
    backend: str = "auto",
) -> tuple[Array, Array]:
    """Efforts τ (nv,) and multipliers λ (nc,) with ``M v̇ + h = τ + inputs + Jᵀ λ``.

    In a closed loop the motion does not determine (τ, λ) uniquely. Without `actuated` all tree
    joints may have efforts, and τ is the solution with ``J M⁻¹ τ = 0``, which is zero for a free
    motion; where M has no inertia and no constraint holds either (the spin of a point mass between
    two balls) it counts with any. With `actuated` τ is zero at all other joints, and of least norm
    if the actuation is redundant (moments are divided by the mechanism's length).

    Args:
        mech: the mechanism.
        q: coordinates (nq,), on the constraints.
        v: speeds (nv,), on the constraints.
        vdot: accelerations (nv,), on the constraints.
        t: time [s].
        inputs: known additional efforts, by joint.
        actuated: the actuated tree joints, or one coordinate of a joint as ``(joint, i)``.
        backend: "auto", "lanes" or "xla" (`jaxmbd.lanes.backend`).

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
    dtype = mech.dtype
    q, v, vdot, t = (given(x, dtype) for x in (q, v, vdot, t))
    check_shape("vdot", vdot, topology(mech).nv)
    if isinstance(actuated, str):
        actuated = (actuated,)
    chosen = None if actuated is None else tuple(actuated)
    inputs = {name: given(x, dtype) for name, x in (inputs or {}).items()}
    if chosen is not None:
        actuated_columns(topology(mech), chosen)
    tau, lam, missing = _inverse(backend, chosen, mech, q, v, vdot, t, inputs)
    if actuated is not None:
        check_actuated(topology(mech), actuated, missing)
    return tau, lam


@host_jit
def _inverse(backend: str, actuated: tuple[Any, ...] | None, *args: Any) -> Any:
    return compiled(backend, partial(_efforts, actuated), *args)


def _efforts(
    actuated: tuple[Any, ...] | None,
    mech: Mechanism,
    q: Array,
    v: Array,
    vdot: Array,
    t: Any,
    inputs: Inputs,
) -> tuple[Array, Array, Array]:
    """τ, λ, and a mask of the speeds along which the actuated joints cannot balance the forces."""
    vdot = jnp.where(finite_numbers(mech), vdot, jnp.nan)  # makes all results NaN
    m = motion_state(mech, q, v, t)
    acc = m.accelerations(vdot)
    required, size = required_efforts(m, acc, inputs)
    zero, missing = jnp.zeros(m.top.nc, m.q.dtype), jnp.zeros(m.top.nv, bool)
    if actuated is not None:
        columns = actuated_columns(m.top, actuated)
        shared = share_efforts(m, columns, required, size, vdot, inputs)
        return shared.tau, shared.lam, shared.missing
    if m.top.nc == 0:
        return less_friction(m, vdot, inputs, required, lambda _: zero), zero, missing
    system = kkt_system(m)

    def carried(force: Array) -> Array:
        _, reaction = solve_kkt(system, force[:, None], zero[:, None], idle=True)
        return -least_norm(system, reaction[:, 0], m.top.row_groups)

    required = less_friction(m, vdot, inputs, required, carried)
    lam = carried(required)
    return required - system.jacobian.T @ system.own.own_multipliers(lam), lam, missing


def required_efforts(m: MotionState, acc: Accelerations, inputs: Inputs | None) -> Any:
    """``M v̇ + h − inputs`` (nv,) for the body accelerations, and the size [N·m] of its terms.

    The size is the sum of the absolute values of all moments, and of all forces times the
    mechanism's length: relative to it rounding errors are small.
    """
    loads, efforts = applied_loads(m, inputs)
    required = inertia_efforts(m, acc, loads) - joint_efforts(m, efforts)
    wrenches, length = BodyWrenches(m), mechanism_length(m.mech)
    wrenches.add_inertia(acc)
    bodies = wrenches.about_com().parts
    moments = [*(w[0] for w in bodies), *(load.moment for load in loads)]
    kinds = {joint.name: np.array(joint.kind.speeds) for joint in m.mech.structure.joints}
    moments += [jnp.where(kinds[n] == "travel", length, 1.0) * e for n, e in efforts.items()]
    if (rotors := rotor_efforts(m.mech, acc.vdot)) is not None:
        moments.append(speed_units(m.mech) * rotors)
    forces = [*(w[1] for w in bodies), *(load.force for load in loads)]
    return required, _sum_of_sizes(moments) + length * _sum_of_sizes(forces)


def _sum_of_sizes(parts: Sequence[Array]) -> Array:
    """``Σ |x|`` over all elements, which measures rounding and has no derivatives."""
    return jnp.sum(jnp.abs(lax.stop_gradient(jnp.concatenate([jnp.ravel(x) for x in parts]))))


class SharedEfforts(NamedTuple):
    """Efforts of actuators and constraints that balance the forces of a motion; NaN if none do.

    Attributes:
        effort: effort of each actuator (na,).
        tau: the same as efforts along all speeds (nv,).
        lam: multipliers (nc,).
        missing: (nv,), the speeds along which an unbalanced force remains.
    """

    effort: Array
    tau: Array
    lam: Array
    missing: Array


def share_efforts(
    m: MotionState,
    columns: Array,
    required: Array,
    size: Array,
    vdot: Array,
    inputs: Inputs | None,
) -> SharedEfforts:
    """Solve ``columns e + Jᵀ λ = required`` for e of least norm, then λ of least norm.

    With P the projector onto the velocities that the constraints allow, ``P columns e = P
    required``. Forces along travels are multiplied by the mechanism's length, so that all have the
    unit N·m. The mass matrix is not needed, so links may be massless.

    Args:
        m: the state.
        columns: (nv, na), generalised forces of unit efforts of the actuators.
        required: (nv,), ``M v̇ + h − inputs``.
        size: size of the terms of `required` [N·m], for the test of balance.
        vdot: accelerations (nv,), for the reactions that cause friction.
        inputs: known additional efforts, for the same.
    """

    def carried(force: Array) -> Array:
        return _shared(m, columns, force, size).lam

    required = less_friction(m, vdot, inputs, required, carried)
    found = _shared(m, columns, required, size)
    bad = jnp.any(found.missing)
    effort, lam = (jnp.where(bad, jnp.nan, x) for x in (found.effort, found.lam))
    tau = jnp.where(bad, jnp.nan, columns.astype(effort.dtype) @ found.effort)
    return SharedEfforts(effort, tau, lam, found.missing)


class _Shares(NamedTuple):
    effort: Array
    lam: Array
    missing: Array


def _shared(m: MotionState, columns: Array, required: Array, size: Array) -> _Shares:
    """`SharedEfforts` without friction; `effort` and `lam` are linear in `required`."""
    units = speed_units(m.mech)
    own = own_rows(m)
    rows = own.of(closure_jacobian(m)) * units
    wanted, push = units * required, units[:, None] * columns.astype(m.q.dtype)
    square = jnp.sum(push * push, axis=0)
    unit = jnp.sqrt(jnp.where(square > 0.0, square, 1.0))
    push = push / unit
    allowed, carried = _allowed(rows, jnp.concatenate([push, wanted[:, None]], axis=1))
    response, need = allowed[:, :-1], allowed[:, -1]
    if push.shape[1]:
        helps = jnp.sum(response * response, axis=0) > tolerances.redundancy(m.q.dtype)
        response = jnp.where(helps, response, 0.0)
    effort = response.T @ need
    if effort.shape[0]:
        effort = ldlt_rank_revealing(response.T @ response).least_norm(effort)
    size = size + jnp.max(jnp.abs(wanted), initial=0.0)
    missing = jnp.abs(need - response @ effort) > tolerances.carrying(m.q.dtype) * size
    lam = own.multipliers(carried(wanted - push @ effort))
    return _Shares(effort / unit, lam, missing)


def _allowed(rows: Array, forces: Array) -> tuple[Array, Callable[[Array], Array]]:
    """Projection of `forces` (nv, n) onto the allowed velocities; least-norm λ of the remainder.

    The second result is a function from one force (nv,) to the multipliers (nc,).
    """
    if rows.shape[0] == 0:
        return forces, lambda _: jnp.zeros(0, rows.dtype)
    gram = ldlt_rank_revealing(rows @ rows.T)
    return forces - rows.T @ gram.solve(rows @ forces), lambda x: gram.least_norm(rows @ x)


def actuated_columns(top: Topology, actuated: Sequence[Any]) -> Array:
    """(nv, na): unit efforts along the coordinates of the actuated joints.

    Raises:
        ValueError: a name is not that of a tree joint, or an index is out of range.
    """
    columns: list[int] = []
    for entry in actuated:
        name, index = entry if isinstance(entry, tuple) else (entry, None)
        place = top.layout[name].v if name in top.layout else None
        if place is None:
            raise ValueError(
                f"actuated joint '{name}' is not in the tree; actuate joints of "
                f"{list(top.tree)}, or cut other joints with cut="
            )
        every = range(place.start, place.stop)
        if index is not None and not 0 <= index < len(every):
            raise ValueError(f"actuated: '{name}' has {len(every)} coordinates, not {index}")
        columns += every if index is None else [every[index]]
    return jnp.asarray(np.eye(top.nv)[:, np.array(columns, int)])


def check_actuated(top: Topology, actuated: Sequence[Any], missing: Array) -> None:
    """Raise a ValueError that names the speeds with unbalanced forces; on the host only."""
    if isinstance(missing, Tracer) or not bool(np.any(np.asarray(missing))):
        return
    speeds = [n for n, bad in zip(top.speed_names, np.asarray(missing), strict=True) if bad]
    raise ValueError(
        f"the joints actuated={list(actuated)} cannot produce this motion: nothing drives "
        f"{speeds}; actuate one of them too, or take their accelerations from forward_dynamics"
    )
