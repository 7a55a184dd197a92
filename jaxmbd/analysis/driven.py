"""Driven simulation: kinematic and kinetostatic analysis over a whole cycle in one call.

Positions follow the times by continuation as in `assemble`, each from the last. At each time,

    J v = b,  K v = ḟ(t)    and    J v̇ = γ,  K v̇ = f̈(t) − (velocity products),

with K the rows of the driven coordinates (Hanzaki et al. 2009, (8)-(10), partitioned into known
and unknown speeds), and efforts e and multipliers from ``M v̇ + h = Kᵀ e + Jᵀ λ``, without forming
a mass matrix.

A link between two balls may spin about the line through them. That freedom moves nothing else: its
speed is taken as zero, and its acceleration is the one that needs no moment about the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd import lanes
from jaxmbd.analysis.assembly import (
    Attempt,
    Opening,
    assemble,
    implicit_tangent,
    opening,
    outcome,
    walk,
)
from jaxmbd.analysis.drivers import Driver, Drivers, held_at, led_by_drivers, parse_drivers
from jaxmbd.analysis.freedoms import between_balls
from jaxmbd.analysis.known import (
    AnyInputs,
    Key,
    PointCoordinate,
    Problem,
    efforts_at,
    held_name,
    parse_inputs,
)
from jaxmbd.analysis.programs import program
from jaxmbd.analysis.status import Status, visible
from jaxmbd.analysis.velocity import asked_rows, held_products, is_met
from jaxmbd.dynamics import (
    actuated_columns,
    check_actuated,
    required_efforts,
    rotor_energy,
    rubbing_joints,
    share_efforts,
    world_inertias,
)
from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import (
    MotionState,
    check_shape,
    closure_gamma,
    closure_velocity,
    mechanism_length,
    motion_state,
    placed_numbers,
    speed_units,
)
from jaxmbd.lanes import check_backend, guarded
from jaxmbd.model import (
    Mechanism,
    prepared,
)
from jaxmbd.numerics import factor_rows, solution, tolerances
from jaxmbd.plumbing import outline
from jaxmbd.spatial import cross, unit


class Instant(NamedTuple):
    """Speeds, accelerations and forces at one time, with failure flags.

    Attributes:
        v, vdot: speeds and accelerations (nv,).
        effort, tau, lam: as `share_efforts` returns them.
        open_freedoms: number of freedoms that nothing determines.
        unmet: (nc + k,), one where a row contradicts the others.
        missing: (nv,), one where no effort or reaction carries a required force.
    """

    v: Array
    vdot: Array
    effort: Array
    tau: Array
    lam: Array
    open_freedoms: Array
    unmet: Array
    missing: Array


def instant(
    keys: tuple[Key, ...],
    actuated: tuple[Any, ...] | None,
    mech: Mechanism,
    t: Array,
    q: Array,
    rates: list[Array],
    accelerations: list[Array],
    inputs: AnyInputs,
) -> Instant:
    """Speeds, accelerations, efforts and multipliers at coordinates that close the loops.

    Flags are floating numbers, so that the whole result is differentiable.
    """
    top, length = topology(mech), mechanism_length(mech)
    pushed = actuated is None and any(isinstance(k, PointCoordinate) for k in keys)
    if pushed and (rubbing := rubbing_joints(mech)):
        raise ValueError(
            f"the joints {list(rubbing)} have friction, which cannot account for the force that "
            "drives a point; name the joints whose efforts produce the motion in actuated="
        )
    m = motion_state(mech, q, t=t)
    conditions = asked_rows(m, keys)
    rows = conditions.matrix
    lines = spin_lines(m)
    together = jnp.concatenate([rows, spin_rows(m, lines)])
    every = factor_rows(together, speed_units(mech) ** 2, doubt=conditions.doubt)

    def meet(target: Array, values: list[Array], spins: list[Array]) -> tuple[Array, Array]:
        target = conditions.of(jnp.concatenate([target, *(x[None] for x in values)]))
        x = every.solve(jnp.concatenate([target, *(length * s[None] for s in spins)]))
        x = solution(x, rows @ x - target, [target, length * x, q], placed_numbers(mech))
        return x, is_met(rows, x, target)

    v, met = meet(closure_velocity(m), rates, [jnp.zeros((), q.dtype)] * len(lines))
    m = motion_state(mech, q, v, t)
    efforts = efforts_at(inputs, t, q, v)
    acc = m.accelerations()
    asked = [x - y for x, y in zip(accelerations, held_products(m, acc, keys), strict=True)]
    spins = [-line.direction @ acc.angular[line.body] for line in lines]
    vdot, met_too = meet(closure_gamma(m, acc), asked, spins)
    if lines:
        acc = m.accelerations(vdot)
        required, _ = required_efforts(m, acc, efforts)
        for k, inertia in enumerate(_spin_inertias(m, lines)):
            # A unit spin alone: its inertia has to supply the moment required about the line.
            unit_spin = jnp.eye(every.rows.shape[0], dtype=q.dtype)[rows.shape[0] + k]
            alone = every.solve(length * unit_spin)
            inertia = inertia + 2.0 * rotor_energy(mech, alone)
            some = inertia > 0.0
            moment = jnp.asarray(jnp.where(some, alone @ required, 0.0))
            vdot = vdot - moment / jnp.where(some, inertia, 1.0) * alone
    acc = m.accelerations(vdot)
    required, size = required_efforts(m, acc, efforts)
    if actuated is None:
        columns = (rows[top.nc :] / conditions.held_scale[:, None]).T
    else:
        columns = actuated_columns(top, actuated)
    shared = share_efforts(m, columns, required, size, vdot, efforts)
    flags = top.nv - every.rank, ~(met & met_too), shared.missing
    flags = (flag.astype(q.dtype) for flag in flags)
    return Instant(v, vdot, shared.effort, shared.tau, shared.lam, *flags)


class SpinLine(NamedTuple):
    """The line about which a body held by two balls only may spin: world point and direction."""

    body: int
    point: Array
    direction: Array


def spin_lines(m: MotionState) -> list[SpinLine]:
    """The spin lines of all bodies held by two balls only."""
    out = []
    for i, edges in between_balls(m.mech).items():
        if len(edges) > 2:
            continue
        body, joints = m.top.bodies[i], [m.mech.joint(e.name) for e in edges]
        first, second = (m.position(body, j.point_a if j.a == body else j.point_b) for j in joints)
        out.append(SpinLine(i, first, unit(second - first)))
    return out


def spin_rows(m: MotionState, lines: list[SpinLine]) -> Array:
    """(lines, nv): rows of the angular velocities along the lines, times the mechanism's length."""
    rows = [jnp.zeros((0, m.top.nv), m.q.dtype)]
    for line in lines:
        moves = np.zeros(m.top.nv)
        moves[list(m.top.support[line.body])] = 1.0
        along = m.pos.angular @ line.direction
        rows.append((mechanism_length(m.mech) * moves.astype(along.dtype) * along)[None])
    return jnp.concatenate(rows)


def _spin_inertias(m: MotionState, lines: list[SpinLine]) -> list[Array]:
    """Moments of inertia [kg m²] about the lines; zero where they are only rounding."""
    inertias, out = world_inertias(m), []
    for i, point, u in lines:
        inertia, mass, arm = inertias[i], m.mech.bodies[m.top.bodies[i]].mass, m.pos.com[i] - point
        offset = cross(u, arm)
        about = u @ inertia @ u + mass * (offset @ offset)
        enough = about > tolerances.rounding(u.dtype) * (jnp.trace(inertia) + mass * (arm @ arm))
        out.append(jnp.where(enough, about, 0.0))
    return out


class DrivenMotion(NamedTuple):
    """A driven motion, one row for each time.

    Attributes:
        t: times (n,) [s].
        q: coordinates (n, nq); NaN from the first time at which the mechanism does not assemble.
        v, vdot: speeds and accelerations (n, nv).
        effort: efforts (n, k) along the driven coordinates in the order of `known`, or along the
            actuated ones [N·m for an angle, N for a travel or a point].
        tau: the same efforts along all speeds (n, nv).
        lam: multipliers (n, nc).
        residual: closure error (n,) [m; moment rows times the mechanism's length].
        status: a `Status` number for each time (n,).

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> turn = mbd.simulate_driven(
        ...     mbd.zoo.simple_pendulum(), {"hinge": lambda t: 0.5 * t}, t=np.linspace(0, 1, 5)
        ... )
        >>> turn.tau.shape
        (5, 1)
    """

    t: Array
    q: Array
    v: Array
    vdot: Array
    effort: Array
    tau: Array
    lam: Array
    residual: Array
    status: Array

    __str__ = outline


def simulate_driven(
    mech: Mechanism,
    known: Drivers | None = None,
    *,
    t: Any,
    q0: Any = None,
    inputs: Any = None,
    actuated: Sequence[str | tuple[str, int]] | None = None,
    throw: bool = True,
    backend: str = "auto",
) -> DrivenMotion:
    """Positions, speeds, accelerations and efforts of a mechanism driven by functions of time.

    One mechanism; a batch by `jax.vmap`. Under `jit` it is differentiable, forward and reverse,
    in the mechanism, the times and the functions' parameters, by the implicit function theorem.

    Args:
        mech: the mechanism; its own `drives` are followed too (their efforts are in `lam`).
        known: driven coordinates, with the keys of `assemble`: ``{joint: fn}``,
            ``{(joint, i): fn}``, ``{PointCoordinate(...): fn}``, ``{PointTravel(...): fn}``; `fn`
            is a function of t, a pair ``(fn, params)`` for ``fn(t, params)``, twice differentiable,
            a `Sampled`, or a constant [rad, m; a quaternion for balls].
        t: times (n,) [s]; between two of them the motion advances in steps of at most 5°.
        q0: coordinates (nq,) from which the first time is reached; by default as drawn.
        inputs: further efforts on joints, ``{joint: value or Sampled}``, or a function of t or
            (t, q, v) that returns a dictionary of values.
        actuated: joints, or ``(joint, i)``, whose efforts produce the motion instead of efforts
            along the driven coordinates; of least norm if there are more than needed.
        throw: raise an error if a time fails (outside `jit` and `vmap`).
        backend: "auto", "lanes" or "xla" (`jaxmbd.lanes.backend`).

    Raises:
        ValueError: `known` or `actuated` names an unknown part; outside `jit`, the mechanism does
            not assemble (the message says when, and which joint is open), the driven coordinates
            contradict each other or leave a freedom undetermined (it says which), or `actuated`
            cannot produce the motion.

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> crank = lambda t: 2 * np.pi / 0.6 * t
        >>> run = mbd.simulate_driven(mbd.zoo.rssr(), {"crank": crank}, t=np.linspace(0, 0.1, 3))
        >>> run.lam.shape, bool(run.residual.max() < 1e-12)
        ((3, 3), True)
    """
    check_backend(backend)
    top, t = topology(mech), jnp.asarray(t, mech.dtype)
    if t.ndim != 1 or t.shape[0] == 0:
        raise ValueError(f"t has shape {t.shape}; give at least one time, as (n,)")
    q0 = jnp.asarray(neutral(mech) if q0 is None else q0, mech.dtype)
    check_shape("q0", q0, top.nq)
    inputs = parse_inputs(mech, inputs)
    drivers = parse_drivers(mech, known)
    if isinstance(actuated, str):
        actuated = (actuated,)
    chosen = None if actuated is None else tuple(actuated)
    if chosen is not None:
        actuated_columns(top, chosen)
    motion, flags = program(backend, _motion, chosen, mech, drivers, t, q0, inputs)
    worst = jnp.max(motion.status)
    if throw and visible(worst) and int(lanes.finished(worst)) != Status.OK:
        _raise(*lax.stop_gradient((mech, drivers, motion, flags, q0)), chosen)
    return motion


class _Flags(NamedTuple):
    """The failure flags of `Instant` at each time, and where the search for it ended."""

    open_freedoms: Array
    unmet: Array
    missing: Array
    closest: Array


def _motion(
    actuated: tuple[Any, ...] | None,
    mech: Mechanism,
    drivers: list[Driver],
    times: Array,
    q0: Array,
    inputs: AnyInputs,
) -> tuple[DrivenMotion, _Flags]:
    mech, drivers = prepared((mech, drivers))
    mech = jax.tree_util.tree_map(jnp.asarray, mech)
    bare, led = led_by_drivers(mech, drivers)
    drawn = jnp.asarray(neutral(mech))

    def one(carry: tuple[Array, Array, Array], t: Array) -> Any:
        guess, failed, before = carry
        place = held_at(mech, led, t)
        q, residual, status, _, closest = _follow(place.keys, bare, led, before, t, guess)
        failed = jnp.asarray(jnp.where(failed == Status.OK, status, failed))
        ok = failed == Status.OK
        held = held_at(mech, drivers, t)
        solve, hoisted = partial(instant, held.rate_keys, actuated), [inputs]
        state = mech, t, jnp.where(ok, q, drawn), held.rates, held.accelerations
        if callable(inputs):
            solve, hoisted = jax.closure_convert(partial(solve, inputs=inputs), *state)
        x: Instant = guarded(solve, *state, *hoisted)
        moves = ok & (x.open_freedoms == 0.0) & jnp.all(x.unmet == 0.0)
        finite = jnp.all(jnp.isfinite(x.tau)) & jnp.all(jnp.isfinite(x.vdot))
        status = jnp.where(finite, Status.OK, Status.NON_FINITE)
        status = jnp.where(moves & jnp.all(x.missing == 0.0), status, Status.SINGULAR)
        status = jnp.where(ok, status, failed).astype(jnp.int32)
        fields: list[Array] = [x.v, x.vdot, x.effort, x.tau, x.lam]
        parts: list[Any] = [jnp.where(moves, y, jnp.nan) for y in fields]
        q = jnp.asarray(jnp.where(ok, q, jnp.nan))
        found = DrivenMotion(*[t, q, *parts, residual, status])
        return (q, failed, t), (found, _Flags(x.open_freedoms, x.unmet, x.missing, closest))

    first = q0, jnp.zeros((), jnp.int32), times[0]
    return lax.scan(one, first, times)[1]


class DrivenCourse(NamedTuple):
    """A driven motion while tracing, and how it ended.

    Attributes:
        motion: the motion, one row for each time.
        keys: the coordinate of each effort of the motion; empty where joints are named as actuated.
        status: the first `Status` that is not OK.
        opening: what stayed open then (`places` of `keys`).
        failed_at: the time [s]; NaN if nothing failed.
    """

    motion: DrivenMotion
    keys: tuple[Key, ...]
    status: Array
    opening: Opening
    failed_at: Array


def driven_course(
    mech: Mechanism, known: Drivers, t: Array, inputs: Any, actuated: tuple[Any, ...] | None
) -> DrivenCourse:
    """What `simulate_driven` computes from the drawn configuration, with the cause of a failure."""
    drivers, q0 = parse_drivers(mech, known), jnp.asarray(neutral(mech), mech.dtype)
    motion, flags = _motion(actuated, mech, drivers, t, q0, parse_inputs(mech, inputs))
    k = jnp.argmax(motion.status != Status.OK)
    status, held = motion.status[k], held_at(mech, drivers, t[k])
    opened = opening(held.keys, mech, held.values, t[k], flags.closest[k])
    shut = status != Status.NOT_ASSEMBLED
    opened = Opening(jnp.where(shut, -1, opened.place), jnp.where(shut, jnp.nan, opened.distance))
    failed_at = jnp.where(status == Status.OK, jnp.nan, t[k])
    return DrivenCourse(
        motion, held.rate_keys if actuated is None else (), status, opened, failed_at
    )


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _follow(
    keys: tuple[Any, ...], mech: Mechanism, led: list[Driver], before: Array, t: Array, guess: Array
) -> Attempt:
    """Assemble at `t`, following the drivers' functions from the solution at time `before`.

    If the guess does not satisfy them there (before the first time) the difference is reduced to
    zero linearly on the way.
    """

    def path(s: Array, start: list[Array]) -> list[Array]:
        on_way = held_at(mech, led, before + s * (t - before)).values
        here = held_at(mech, led, before).values
        return [
            x if jnp.ndim(x) else x + (1.0 - s) * (x0 - x1)
            for x, x0, x1 in zip(on_way, start, here, strict=True)
        ]

    values = held_at(mech, led, t).values
    done = walk(Problem(keys, mech, values, t), guess, path)
    return Attempt(*outcome(mech, done), done.q)


@_follow.defjvp
def _follow_jvp(keys: tuple[Any, ...], primals: Any, tangents: Any) -> Any:
    (mech, led, _, t, _), (dmech, dled, _, dt, _) = primals, tangents
    out: Attempt = _follow(keys, *primals)
    at, dot = (mech, led, t), (dmech, dled, dt)  # travels count from points of the mechanism
    values, dvalues = jax.jvp(lambda m, d, s: held_at(m, d, s).values, at, dot)
    dot = Problem(keys, dmech, dvalues, dt)
    q, *none = implicit_tangent(out[:4], Problem(keys, mech, values, t), dot)
    return out, Attempt(q, none[0], none[1], none[2], jnp.zeros_like(out.closest))


def _raise(
    mech: Mechanism,
    drivers: list[Driver],
    motion: DrivenMotion,
    flags: _Flags,
    q0: Array,
    actuated: tuple[Any, ...] | None,
) -> None:
    k = int(np.argmax(np.asarray(motion.status) != Status.OK))
    t, status = motion.t[k], Status(int(motion.status[k]))
    when = f"the driven motion fails ({status.name.lower()}) at t = {float(t):.6g} s: "
    if status == Status.SINGULAR:
        flags = jax.tree_util.tree_map(lambda x: np.asarray(x)[k], flags)
        _raise_singular(mech, drivers, motion.q[k], t, flags, actuated, when)
    if status == Status.NOT_ASSEMBLED:
        bare, led = led_by_drivers(mech, drivers)
        try:
            assemble(bare, {d.key: d(t) for d in led}, q0 if k == 0 else motion.q[k - 1], t=t)
        except ValueError as error:
            raise ValueError(f"{when}{error}") from None
    raise ValueError(
        f"{when}found numbers that are not finite; look at the functions in known and at the "
        "mechanism's numbers, print(mech) shows them all"
    )


def _raise_singular(
    mech: Mechanism,
    drivers: list[Driver],
    q: Array,
    t: Array,
    flags: _Flags,
    actuated: tuple[Any, ...] | None,
    when: str,
) -> None:
    top, keys = topology(mech), held_at(mech, drivers, t).rate_keys
    if flags.open_freedoms:
        raise ValueError(
            f"{when}known= leaves {int(flags.open_freedoms)} freedom(s) open, along "
            f"{_open_speeds(keys, mech, q, t)}: drive or hold as many of them in known=, or use "
            "simulate; if as many coordinates are driven as there are degrees of freedom, this is "
            "a dead centre"
        )
    if np.any(flags.unmet):
        names = np.array([*top.row_names, *(held_name(mech, key) for key in keys)])
        raise ValueError(
            f"{when}no motion satisfies all constraints and drivers: "
            f"{', '.join(names[flags.unmet > 0])} contradict the others; drive fewer coordinates"
        )
    check_actuated(top, [d.key for d in drivers] if actuated is None else actuated, flags.missing)


def _open_speeds(keys: tuple[Any, ...], mech: Mechanism, q: Array, t: Array) -> list[str]:
    """Names of the speeds that nothing determines."""

    @jax.jit
    def rows_at(mech: Mechanism, q: Array, t: Array) -> Array:
        m = motion_state(mech, q, t=t)
        rows = jnp.concatenate([asked_rows(m, keys).matrix, spin_rows(m, spin_lines(m))])
        return rows * speed_units(mech)

    top, rows = topology(mech), np.asarray(rows_at(mech, q, t))
    _, sizes, vh = np.linalg.svd(np.concatenate([rows, np.zeros((top.nv, top.nv))]))
    null = vh[sizes <= 1e-4 * max(sizes[0], 1e-300)]
    moved = np.max(np.abs(null), axis=0, initial=0.0) > 1e-6
    return [n for n, x in zip(top.speed_names, moved, strict=True) if x]
