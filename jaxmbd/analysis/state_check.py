"""Checks of a state: on the constraints, determinate and well enough conditioned."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree

from jaxmbd.analysis.status import Status, closure, closure_error, closure_slip, initial_status
from jaxmbd.dynamics import (
    System,
    applied_efforts,
    applied_loads,
    armature_diagonal,
    conditioning,
    inertia_efforts,
    joint_efforts,
    least_norm,
    load_sizes,
    mass_diagonal,
    rows_met,
    rubbing_joints,
    solve_motion,
    world_inertias,
)
from jaxmbd.graph import topology
from jaxmbd.kinematics import (
    MotionState,
    closure_jacobian,
    mechanism_length,
    motion_state,
    propagate_accelerations,
    speed_units,
    step_coordinates,
)
from jaxmbd.lanes import compiled, given, host_jit
from jaxmbd.model import Mechanism
from jaxmbd.numerics import dense, tolerances


class StateCheck(NamedTuple):
    """How far results at a state can be trusted.

    Attributes:
        status: a `Status` number; NON_FINITE if the accelerations are; INACCURATE if they violate
            a constraint or the balance of forces by more than 5e-7 of the terms, inertia forces
            among them, or if rounding the given numbers alone may cause as much.
        conditioning: between zero and one: the smallest ratio of a pivot to its diagonal element
            in the mass matrix M, times that in ``J M⁻¹ Jᵀ``. The relative error of accelerations
            is about ``ε / conditioning``.
        residual: largest closure error [m; moment rows times the mechanism's length].
        slip: largest violation of the velocity constraints [m/s; likewise].
        contradiction: the part of `residual` that no motion removes, because redundant rows
            contradict each other [m]; zero where the loops are closed to rounding.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> mbd.check_state(m, mbd.neutral(m)).status.item()
        0
    """

    status: Array
    conditioning: Array
    residual: Array
    slip: Array
    contradiction: Array


def check_state(
    mech: Mechanism, q: Any, v: Any = None, *, t: Any = 0.0, backend: str = "auto"
) -> StateCheck:
    """Status and conditioning of a state, for functions that return none (`forward_dynamics`, …).

    A body a million times heavier than the others, or farther away, leaves few significant digits
    for the bodies that it carries: the equations are then solved less accurately than required.
    Springs so stiff that their strain is only rounding, and drawings 1e9 lengths away from the
    origin, lose their digits before they are solved.

    Args:
        mech: the mechanism.
        q: coordinates (nq,).
        v: speeds (nv,); by default at rest.
        t: time [s].
        backend: "auto", "lanes" or "xla" (`jaxmbd.lanes.backend`).

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.double_pendulum()
        >>> bool(mbd.check_state(m, mbd.neutral(m)).conditioning > 0.1)
        True
    """
    q, t = given(q, mech.dtype), given(t, mech.dtype)
    v = jnp.zeros(topology(mech).nv, q.dtype) if v is None else jnp.asarray(v, q.dtype)
    return _check(backend, mech, q, v, t)


@host_jit
def _check(backend: str, *args: Any) -> StateCheck:
    return compiled(backend, _examine, *args)


def _examine(mech: Mechanism, q: Array, v: Array, t: Array) -> StateCheck:
    m = motion_state(mech, q, v, t)
    errors = closure(m)
    status = initial_status(m, errors)
    force, rhs = applied_efforts(m, None)
    vdot, lam, system = solve_motion(m, force, rhs, None)
    kept, allowed = conditioning(system), tolerances.carrying(q.dtype)
    size = load_sizes(m, vdot)
    weight = _weights(m, system)

    def small(efforts: Array) -> Array:
        most = jnp.max(weight * jnp.abs(efforts), initial=0.0)
        return ~(most > allowed * jnp.max(weight * size, initial=0.0))  # NaN: laws at their edges

    fine = kept * allowed > tolerances.rounding(q.dtype, m.top.nv + m.top.nc)
    fine = fine & rows_met(system, vdot, rhs, _row_size(m, system, vdot, force, rhs))
    fine = fine & ~_inertia_lost(m, system)
    required = _required(m, vdot)
    if rubbing_joints(m.mech):  # λ includes friction, so only the error of M v̇ is known
        unbalanced = required - system.mass @ vdot + force
    else:
        lam = least_norm(system, lam, m.top.row_groups)  # as forward dynamics returns it
        unbalanced = required - closure_jacobian(m).T @ lam
    fine = fine & small(unbalanced) & small(_lost_digits(m, vdot, required))
    found = jnp.where(fine, Status.OK, Status.INACCURATE)
    found = jnp.where(jnp.all(jnp.isfinite(vdot)), found, Status.NON_FINITE)
    status = jnp.where(status == Status.OK, found, status).astype(jnp.int32)
    return StateCheck(status, kept, closure_error(m), closure_slip(m), errors.contradiction)


def _inertia_lost(m: MotionState, system: System) -> Array:
    """Whether rounding moves the inertia along a speed by half, as of bodies 1e8 lengths away.

    M is of inertias about points on the joints; here each body's ``ωᵀ I ω + m u²`` is about its own
    centre of mass, which no distance makes larger. Links without inertia have none to lose.
    """
    spins, speeds = m.pos.angular, np.arange(m.top.nv)
    rotors = armature_diagonal(m.mech)
    own = jnp.zeros(m.top.nv, m.q.dtype) if rotors is None else rotors
    for i, inertia in enumerate(world_inertias(m)):
        moved = jnp.asarray(np.isin(speeds, m.top.support[i]), own.dtype)
        along, mass = m.columns_at(m.pos.com[i]), m.mech.bodies[m.top.bodies[i]].mass
        own = own + moved * jnp.sum((spins @ inertia) * spins + mass * along**2, axis=1)
    off = jnp.abs(mass_diagonal(system.mass) - own)
    return jnp.any(off > 0.5 * jnp.abs(own) + _least_inertias(m, system))


def _required(m: MotionState, vdot: Array) -> Array:
    """``M v̇ + h`` (nv,) without a mass matrix."""
    acc = propagate_accelerations(m.mech, m.q, m.pos, m.vel, m.v, vdot)
    loads, efforts = applied_loads(m, None)
    return inertia_efforts(m, acc, loads) - joint_efforts(m, efforts)


def _weights(m: MotionState, system: System) -> Array:
    """``1/√Mᵢᵢ`` (nv,): light bodies count as heavy ones do, down to 1e-12 of their inertia."""
    return 1.0 / jnp.sqrt(jnp.abs(mass_diagonal(system.mass)) + _least_inertias(m, system))


def _least_inertias(m: MotionState, system: System) -> Array:
    """1e-12 of the largest inertia, along each speed (nv,); one where there is none."""
    units = speed_units(m.mech)
    least = 1e-12 * jnp.max(jnp.abs(mass_diagonal(system.mass)) * units**2, initial=0.0)
    return jnp.asarray(jnp.where(least > 0.0, least, 1.0) / units**2)


def _row_size(m: MotionState, system: System, vdot: Array, force: Array, rhs: Array) -> Array:
    """Size of the terms of ``J v̇ = γ`` [m/s²], also where v̇ vanishes because loads balance.

    Besides v̇ and γ it counts the accelerations that the forces would cause one by one, and gravity.
    """
    units, mass = speed_units(m.mech), mass_diagonal(system.mass)
    alone = jnp.asarray(jnp.where(mass > 0.0, jnp.abs(force) / mass, 0.0))
    largest = jnp.max(jnp.stack([jnp.abs(vdot), alone]) / units, initial=0.0)
    rows = jnp.max(jnp.abs(dense(system.jacobian)) * units, initial=0.0) * largest
    given = jnp.max(jnp.abs(system.own.scale * rhs), initial=0.0)
    return rows + given + jnp.max(jnp.abs(m.mech.field()))


def _lost_digits(m: MotionState, vdot: Array, required: Array) -> Array:
    """Changes (nv,) of ``M v̇ + h`` by one rounding of every number of the mechanism and the state.

    A statistical estimate: the largest of three changes, in each of which every number is moved by
    its own ε, up or down at random. Differences, not derivatives, so that the rounding errors of
    intermediate results count too, as those of the length of a stiff spring. The coordinates are
    moved besides by the rounding of places that lie as far out as the farthest point: as drawn they
    are zeros, which have no ε, and the places of bodies are those of the drawing by luck only.
    """
    leaves, tree = jax.tree_util.tree_flatten((m.mech, m.q, m.v))
    places = [i for i, x in enumerate(leaves) if jnp.issubdtype(x.dtype, jnp.floating)]
    numbers, restore = ravel_pytree([leaves[i] for i in places])
    place = _farthest(m.mech) / mechanism_length(m.mech) * speed_units(m.mech)

    def efforts(moved: Array, shift: Array) -> Array:
        given = dict(zip(places, restore(moved), strict=True))
        whole = [given.get(i, x) for i, x in enumerate(leaves)]
        mech, q, v = jax.tree_util.tree_unflatten(tree, whole)
        return _required(motion_state(mech, step_coordinates(mech, q, shift), v, m.t), vdot)

    def change(step: Array) -> Array:
        own, along = step[: numbers.size], step[numbers.size :]
        return jnp.abs(efforts(numbers + own * numbers, along * place) - required)

    signs = np.random.default_rng(0).choice([-1.0, 1.0], (3, numbers.size + m.top.nv))
    steps = jnp.asarray(signs, numbers.dtype) * tolerances.rounding(numbers.dtype)
    return jnp.max(lax.map(change, steps), axis=0)


def _farthest(mech: Mechanism) -> Array:
    """The largest coordinate [m] of the drawing, or its length if that is larger."""
    places = [mech.point(name) for name in mech.structure.points]
    places += [mech.com(body) for body in mech.structure.bodies]
    return jnp.maximum(jnp.max(jnp.abs(jnp.stack(places))), mechanism_length(mech))
