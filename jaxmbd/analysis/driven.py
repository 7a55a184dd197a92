"""Driven simulation: kinematic and kinetostatic analysis over a whole cycle in one call.

Positions follow the times by continuation as in `assemble`, each from the last; speeds,
accelerations and efforts at each time come from `jaxmbd.analysis.instant`.

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
from jaxmbd.analysis.assembly import assemble, implicit_tangent, outcome, walk
from jaxmbd.analysis.drivers import (
    Driver,
    Drivers,
    held_at,
    led_by_drivers,
    parse_drivers,
)
from jaxmbd.analysis.inputs import AnyInputs, parse_inputs
from jaxmbd.analysis.instant import Instant, instant, spin_lines, spin_rows
from jaxmbd.analysis.known import held_name
from jaxmbd.analysis.status import Status, visible
from jaxmbd.analysis.velocity import asked_rows
from jaxmbd.dynamics.backend import check_backend, compiled, host_jit
from jaxmbd.dynamics.inverse import actuated_columns, check_actuated
from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import motion_state
from jaxmbd.kinematics.motion import check_shape
from jaxmbd.kinematics.scales import speed_units
from jaxmbd.lanes import guarded
from jaxmbd.model.mechanism import Mechanism


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
            or a constant [rad, m; a quaternion for balls].
        t: times (n,) [s]; between two of them the motion advances in steps of at most 5°.
        q0: coordinates (nq,) from which the first time is reached; by default as drawn.
        inputs: further efforts on joints, ``{joint: value}``, or a function of t or (t, q, v) that
            returns such a dictionary.
        actuated: joints, or ``(joint, i)``, whose efforts produce the motion instead of efforts
            along the driven coordinates; of least norm if there are more than needed.
        throw: raise an error if a time fails (outside `jit` and `vmap`).
        backend: "auto", "lanes" or "xla" (`jaxmbd.dynamics.backend`).

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
    chosen = None if actuated is None else tuple(actuated)
    if chosen is not None:
        actuated_columns(top, chosen)
    motion, flags = _run(backend, chosen, mech, drivers, t, q0, inputs)
    worst = jnp.max(motion.status)
    if throw and visible(worst) and int(lanes.finished(worst)) != Status.OK:
        _raise(mech, drivers, motion, flags, q0, chosen)
    return motion


class _Flags(NamedTuple):
    """The failure flags of `Instant` at each time."""

    open_freedoms: Array
    unmet: Array
    missing: Array


@host_jit
def _run(backend: str, actuated: tuple[Any, ...] | None, *args: Any) -> tuple[DrivenMotion, _Flags]:
    return compiled(backend, partial(_motion, actuated), *args)


def _motion(
    actuated: tuple[Any, ...] | None,
    mech: Mechanism,
    drivers: list[Driver],
    times: Array,
    q0: Array,
    inputs: AnyInputs,
) -> tuple[DrivenMotion, _Flags]:
    mech = jax.tree_util.tree_map(jnp.asarray, mech)
    bare, led = led_by_drivers(mech, drivers)
    drawn = jnp.asarray(neutral(mech))

    def one(carry: tuple[Array, Array, Array], t: Array) -> Any:
        guess, failed, before = carry
        place = held_at(mech, led, t)
        q, residual, status, _ = _follow(place.keys, bare, led, before, t, guess)
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
        return (q, failed, t), (found, _Flags(x.open_freedoms, x.unmet, x.missing))

    first = q0, jnp.zeros((), jnp.int32), times[0]
    return lax.scan(one, first, times)[1]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _follow(
    keys: tuple[Any, ...], mech: Mechanism, led: list[Driver], before: Array, t: Array, guess: Array
) -> tuple[Array, Array, Array, Array]:
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
    return outcome(mech, walk(keys, mech, values, t, guess, path))


@_follow.defjvp
def _follow_jvp(keys: tuple[Any, ...], primals: Any, tangents: Any) -> Any:
    (mech, led, _, t, _), (dmech, dled, _, dt, _) = primals, tangents
    out = _follow(keys, *primals)
    at, dot = (mech, led, t), (dmech, dled, dt)  # travels count from points of the mechanism
    values, dvalues = jax.jvp(lambda m, d, s: held_at(m, d, s).values, at, dot)
    return out, implicit_tangent(keys, out, (mech, values, t), (dmech, dvalues, dt))


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
        names = np.array([*top.row_names, *map(held_name, keys)])
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
