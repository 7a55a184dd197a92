"""The outcome of a computation: a status inside `jit`, an exception outside.

`check_state` says of one state whether it is on the constraints, determinate and well conditioned.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer
from jax.flatten_util import ravel_pytree

from jaxmbd.analysis.programs import program
from jaxmbd.dynamics import (
    System,
    applied_efforts,
    applied_loads,
    armature_diagonal,
    conditioning,
    determinate,
    inertia_efforts,
    joint_efforts,
    kkt_system,
    least_norm,
    load_sizes,
    rows_met,
    rubbing_joints,
    solve_motion,
    world_inertias,
)
from jaxmbd.graph import topology
from jaxmbd.kinematics import (
    MotionState,
    closure_jacobian,
    closure_residual,
    closure_rows,
    closure_velocity,
    constraint_residual,
    digit_doubt,
    mechanism_length,
    motion_state,
    own_rows,
    row_scale,
    speed_units,
    step_coordinates,
    stored_jacobian,
)
from jaxmbd.lanes import given, rarely
from jaxmbd.model import Mechanism, finite_numbers, finite_squares
from jaxmbd.numerics import AnyRows, Doubt, dense, factor_rows, largest, only, tolerances


class Status(IntEnum):
    """Outcome of a computation, one number for each sample.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Status(1).name
        'NOT_ASSEMBLED'
    """

    OK = 0
    NOT_ASSEMBLED = 1
    SINGULAR = 2
    DIVERGED = 3
    NON_FINITE = 4
    INACCURATE = 5
    ZENO = 6


def visible(x: Any) -> bool:
    """Whether `x` is a concrete status of one sample, so that a failure can raise an error."""
    return not isinstance(x, Tracer) and np.ndim(x) == 0


def closing_tolerance(dtype: Any, length: Array) -> Array:
    """Largest closure error [m] of a configuration that counts as assembled."""
    return tolerances.closing(dtype) * length


def open_joints(mech: Mechanism, q: Any, t: float = 0.0, least: float = -1.0) -> str:
    """How far each loop that is open by more than `least` is open at q, the worst first."""
    top = topology(mech)
    residual = np.asarray(constraint_residual(mech, q, t))
    kinds = np.array(top.row_kinds)
    found = []
    for name in (*top.cut, *top.couplings, *top.drives):
        rows = top.layout[name].rows
        size = np.abs(residual[rows])
        if not size.size:
            continue  # a Free joint beside others
        unit = ["m" if k == "force" else "rad" for k in kinds[rows]]
        worst = int(np.argmax(np.where(np.isnan(size), np.inf, size)))
        found.append((size[worst], f"joint '{name}' is open by {size[worst]:.3g} {unit[worst]}"))
    return "; ".join(text for x, text in sorted(found, reverse=True) if not x <= least)


def closure_error(m: MotionState) -> Array:
    """Largest closure error [m; moment rows times the mechanism's length]."""
    return jnp.max(jnp.abs(row_scale(m) * closure_residual(m)), initial=0.0)


def closure_slip(m: MotionState) -> Array:
    """Largest violation of the velocity constraints [m/s; moment rows times the length]."""
    slip = closure_rows(m) @ m.v - closure_velocity(m)
    return jnp.max(jnp.abs(row_scale(m) * slip), initial=0.0)


class Closure(NamedTuple):
    """Errors of the constraints, apart from what redundant rows contradict each other by.

    Attributes:
        opened: largest closure error [m] that a motion can remove.
        slip: the same of the velocity constraints [m/s].
        contradiction: largest closure error that no motion removes [m].
        slip_contradiction: the same of the velocity constraints [m/s].
    """

    opened: Array
    slip: Array
    contradiction: Array
    slip_contradiction: Array


def closure(m: MotionState) -> Closure:
    """`Closure` of a state; on the constraints without looking for redundant rows."""
    own = own_rows(m)
    rows = stored_jacobian(m, own)
    slip = rows @ m.v - own.of(closure_velocity(m))
    errors = jnp.stack([own.of(closure_residual(m)), slip])
    rows, errors, doubt = lax.stop_gradient((rows, errors, digit_doubt(m)))
    units = lax.stop_gradient(speed_units(m.mech))
    most = jnp.max(jnp.abs(errors), axis=1, initial=0.0)
    closed = most[0] < closing_tolerance(m.q.dtype, mechanism_length(m.mech))
    none = jnp.zeros_like(most)
    if m.top.nc < 2:
        return Closure(*most, *none)
    # Also behind it: reverse mode stops at results, not at arguments.
    opened, left = lax.stop_gradient(
        rarely(~closed, _parted, (most, none), rows, units, errors, doubt)
    )
    return Closure(*opened, *left)


def _parted(rows: AnyRows, units: Array, errors: Array, doubt: Doubt) -> tuple[Array, Array]:
    factors = factor_rows(rows, units * units, doubt=doubt)
    removable = jnp.stack([factors.consistent(x) for x in errors])
    left = errors - removable
    return jnp.max(jnp.abs(removable), axis=1), jnp.max(jnp.abs(left), axis=1)


DRIFT = 1e3
"""Largest closure error in a run, in multiples of `closing_tolerance`. The last projection of a
step leaves the square of what the step itself opened the loops by."""


def _reach(m: MotionState) -> Array:
    """The longest lever of a loop [m], at most the mechanism's length: a body may be far away."""
    length = mechanism_length(m.mech)
    forces = np.array([k == "force" for k in m.top.row_kinds], bool)
    angles = np.array([k == "angle" for k in m.top.speed_kinds], bool)
    if not (forces.any() and angles.any()):
        return length
    reach = largest(only(closure_rows(m), forces, angles))
    return lax.stop_gradient(jnp.where(reach > 0.0, jnp.minimum(reach, length), length))


def initial_status(m: MotionState, errors: Closure | None = None, drift: float = 1.0) -> Array:
    """`Status` of an initial state: whether finite, on the constraints, and determinate.

    Redundant rows may contradict each other by `tolerances.CONTRADICTION`.

    Args:
        m: the state.
        errors: its `closure`.
        drift: how far it may be off the constraints, in multiples of `closing_tolerance`; `DRIFT`
            where the state may be the end of a run.
    """
    errors = closure(m) if errors is None else errors
    opened, slip, left, left_slip = errors
    length = mechanism_length(m.mech)
    tolerance = drift * closing_tolerance(m.q.dtype, length)
    bound = tolerances.CONTRADICTION
    size = jnp.max(jnp.abs(m.v) / speed_units(m.mech), initial=0.0)
    speed = 1e2 * tolerance * (1.0 + size)
    # Runs meet the kept rows, which differ from those of least squares by what others contradict.
    apart = tolerances.TURNED_BY_OPENING * left
    closed = (opened < tolerance + apart) & (slip < speed + apart * size)
    reach = _reach(m)
    closed = closed & (left <= bound * reach) & (left_slip <= 1e1 * bound * reach * size)
    finite = jnp.all(jnp.isfinite(m.q)) & jnp.all(jnp.isfinite(m.v)) & jnp.isfinite(opened)
    finite = finite & finite_numbers(m.mech)
    status = jnp.where(determinate(kkt_system(m)), Status.OK, Status.SINGULAR)
    status = jnp.where(closed, status, Status.NOT_ASSEMBLED)
    return jnp.where(finite, status, Status.NON_FINITE)


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
    return program(backend, _examine, mech, q, v, t)


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
    fine = fine & ~_inertia_lost(m, system) & finite_squares(mech)
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
    off = jnp.abs(system.mass.diagonal() - own)
    return jnp.any(off > 0.5 * jnp.abs(own) + _least_inertias(m, system))


def _required(m: MotionState, vdot: Array) -> Array:
    """``M v̇ + h`` (nv,) without a mass matrix."""
    acc = m.accelerations(vdot)
    loads, efforts = applied_loads(m, None)
    return inertia_efforts(m, acc, loads) - joint_efforts(m, efforts)


def _weights(m: MotionState, system: System) -> Array:
    """``1/√Mᵢᵢ`` (nv,): light bodies count as heavy ones do, down to 1e-12 of their inertia."""
    return 1.0 / jnp.sqrt(jnp.abs(system.mass.diagonal()) + _least_inertias(m, system))


def _least_inertias(m: MotionState, system: System) -> Array:
    """1e-12 of the largest inertia, along each speed (nv,); one where there is none."""
    units = speed_units(m.mech)
    least = 1e-12 * jnp.max(jnp.abs(system.mass.diagonal()) * units**2, initial=0.0)
    return jnp.asarray(jnp.where(least > 0.0, least, 1.0) / units**2)


def _row_size(m: MotionState, system: System, vdot: Array, force: Array, rhs: Array) -> Array:
    """Size of the terms of ``J v̇ = γ`` [m/s²], also where v̇ vanishes because loads balance.

    Besides v̇ and γ it counts the accelerations that the forces would cause one by one, and
    gravity.
    """
    units, mass = speed_units(m.mech), system.mass.diagonal()
    alone = jnp.asarray(jnp.where(mass > 0.0, jnp.abs(force) / mass, 0.0))
    fastest = jnp.max(jnp.stack([jnp.abs(vdot), alone]) / units, initial=0.0)
    rows = jnp.max(jnp.abs(dense(system.jacobian)) * units, initial=0.0) * fastest
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
