"""Simulation: a time loop of integrator steps, each projected onto the constraints.

What the steps are wrong by is the account's (`jaxmbd.analysis.run_account`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd import lanes
from jaxmbd.analysis.known import efforts_at, parse_inputs
from jaxmbd.analysis.method_choice import choose_method
from jaxmbd.analysis.methods import (
    Adaptive,
    Equations,
    Event,
    Method,
    Seen,
    checked_events,
    chosen,
    corners_of,
    cut_at_events,
    first_seen,
    last_seen,
    normalise,
)
from jaxmbd.analysis.projection import project
from jaxmbd.analysis.run_account import (
    Account,
    StepSizes,
    after_step,
    at_saved_time,
    first_account,
    norms,
    sizes,
    verdict,
)
from jaxmbd.analysis.solution import RunEnd, Solution
from jaxmbd.analysis.status import (
    DRIFT,
    Status,
    closure,
    closure_error,
    initial_status,
    open_joints,
    visible,
)
from jaxmbd.analysis.time_grid import time_grid
from jaxmbd.analysis.velocity import assemble_velocity
from jaxmbd.dynamics import (
    applied_efforts,
    check_determinate,
    forward_slopes,
    solve_motion,
)
from jaxmbd.graph import topology
from jaxmbd.kinematics import (
    MotionState,
    check_shape,
    closure_jacobian,
    closure_residual,
    closure_velocity,
    motion_state,
)
from jaxmbd.lanes import check_backend, compiled, guarded, host_jit
from jaxmbd.model import Mechanism, increasing, prepared

Outputs = Callable[[Array, Array, Array], Any]


class Options(NamedTuple):
    """Static options of a compiled run; `Numbers` are its numerical arguments."""

    constraints: str
    saves: int
    save_every: int
    outputs_only: bool
    keep_inaccurate: bool
    events: tuple[str, ...] = ()


class Numbers(NamedTuple):
    """Numerical arguments of a run.

    Attributes:
        t0, dt: start and step [s].
        times: saved times (saves + 1,) [s], or None if they are `save_every` steps apart.
        baumgarte_rate: α of Baumgarte's method [1/s].
        accuracy: largest error of the run as a share of the motion.
        method: the method, with its numbers.
        samples_rise: whether the times of all `Sampled` increase.
        switches: values of switches at the start.
        events: what is looked for, in the order of `Options.events`.
    """

    t0: Any
    dt: Any
    times: Any
    baumgarte_rate: Any
    accuracy: Any
    method: Method
    samples_rise: Any
    switches: dict[str, Array]
    events: tuple[Event, ...] = ()


def rollout(
    o: Options,
    mech: Mechanism,
    start: RunEnd | tuple[Array, Array | None],
    inputs: Any,
    outputs: Outputs | None,
    numbers: Numbers,
) -> Solution:
    """The whole run from (q0, v0) or where another ended, to be compiled as one function."""
    mech = jax.tree_util.tree_map(jnp.asarray, prepared(mech))
    method = numbers.method
    first = start if isinstance(start, RunEnd) else _beginning(mech, method, *start, numbers)
    t0, q0, v0, given = first.t, first.q, first.v, numbers.times
    rising = numbers.samples_rise
    if given is not None:  # times that do not increase may be traced
        rising = rising & jnp.all(given[1:] > given[:-1])
    q0, v0 = (jnp.asarray(jnp.where(rising, x, jnp.nan)) for x in (q0, v0))
    watch = (o.events, numbers.events)
    memory: Any = method.first_memory(v0)
    if first.memory.shape == memory.shape:  # else that of another kind of method
        memory = first.memory
    if o.events:
        switches = {**(first.switches or {}), **numbers.switches}
        memory = memory, first_seen(*watch, first.events, switches, q0.dtype)

    def ends(n: Array) -> tuple[Array, Array, Array]:
        """Begin and end of saved interval n, and the step in it."""
        if given is not None:
            return given[n], given[n + 1], (given[n + 1] - given[n]) / o.save_every
        begin, t = (t0 + numbers.dt * (k * o.save_every).astype(t0.dtype) for k in (n, n + 1))
        return begin, t, numbers.dt

    def keep(t: Array, q: Array, v: Array) -> Any:
        return None if outputs is None else outputs(t, q, v)

    corners = corners_of(mech, inputs) if isinstance(method, Adaptive) else ()
    step, hoisted = jax.closure_convert(
        partial(_step, mech, inputs, o, numbers, first.weights, corners),
        t0, numbers.dt, q0, v0, memory,
    )  # fmt: skip

    def interval(carry: tuple[Any, Account], n: Array) -> Any:
        begin, t, h = ends(n)

        def one(carry: tuple[Any, Account], k: Array) -> tuple[tuple[Any, Account], None]:
            state, account = carry
            before, after = (begin + h * x.astype(begin.dtype) for x in (k, k + 1))
            state, found = guarded(step, before, h, *state, *hoisted)
            after = method.reached(state[2][0] if o.events else state[2], after)
            return (state, after_step(account, method, found, numbers.accuracy, after)), None

        steps = jnp.arange(o.save_every)
        (q, v, memory), account = lax.scan(jax.checkpoint(one, prevent_cse=False), carry, steps)[0]
        # At a corner of a drive what comes after it counts, whichever side t is on by rounding.
        beside = 32.0 * jnp.finfo(t.dtype).eps * jnp.abs(t) if corners else 0.0
        m = motion_state(mech, q, v, t + beside)
        if o.constraints == "project" and m.top.nc:
            found, drift = at_saved_time(account, m, t)
            if o.events:  # a state that an event left behind is not that of the time t
                ended = memory[1].over
                found = jax.tree_util.tree_map(partial(jnp.where, ended), account, found)
                drift = jnp.where(ended, 0.0, drift)
            account = found
            q, v = (jnp.asarray(jnp.where(jnp.isinf(account.diverged), x, jnp.nan)) for x in (q, v))
        else:
            drift = closure_error(m)
        trajectory = None if o.outputs_only else (q, v, memory[1].switches if o.events else {})
        return ((q, v, memory), account), (t, trajectory, keep(t, q, v), drift)

    carry = ((q0, v0, memory), first.account)
    last, (t, trajectory, kept, drift) = lax.scan(interval, carry, jnp.arange(o.saves))
    (q, v, memory), account = last
    status, failed_at = verdict(account, first.status, t0)
    lost = jnp.where(first.status == Status.OK, account.diverged, t0)
    lost = lost if o.keep_inaccurate else failed_at
    end_time, records, told, last_switches = t[-1], None, None, {}
    if o.events:
        memory, seen = memory
        last_switches = seen.switches
        records, told = last_seen(*watch, seen)
        status, failed_at, end_time = _halted(seen, status, failed_at, end_time)
    if trajectory is None:
        trajectory = jax.tree_util.tree_map(lambda x: x[None], (q, v, last_switches))
    qs, vs, positions = trajectory

    def series(first: Any, rest: Array) -> Array:
        """All rows, NaN from the time on at which the run is lost."""
        rows = jnp.concatenate([jnp.asarray(first)[None], rest])
        if not jnp.issubdtype(rows.dtype, jnp.floating):
            return rows
        at = times if rows.shape[0] == o.saves + 1 else times[:: o.saves]
        fine = (at < lost) & (at <= end_time) if o.events else at < lost
        return jnp.where(jnp.reshape(fine, (-1, *[1] * (rows.ndim - 1))), rows, jnp.nan)

    times = jnp.concatenate([t0[None], t])
    kept = jax.tree_util.tree_map(series, keep(t0, q0, v0), kept)
    positions = {n: series(switches[n], x) for n, x in positions.items()} or None
    drift = jnp.max(jnp.asarray(jnp.where(t <= failed_at, drift, 0.0)))
    error, worst = (
        (x if method.estimates else x + jnp.nan) for x in (account.share, jnp.max(account.worst))
    )
    return Solution(
        t=times,
        q=series(q0, qs),
        v=series(v0, vs),
        outputs=kept,
        status=status,
        drift=drift,
        failed_at=failed_at,
        error=error,
        worst_step=worst,
        worst_at=account.worst_at,
        steps=method.taken(memory, account.steps),
        rejected=method.rejected(memory),
        end=RunEnd(
            end_time,
            q,
            v,
            memory,
            first.weights,
            account,
            first.status,
            records,
            last_switches or None,
        ),
        events=told,
        forced=jnp.asarray(1 if inputs else 0, jnp.int32),
        switches=positions,
    )


def _halted(seen: Seen, status: Array, failed_at: Array, t: Array) -> tuple[Array, Array, Array]:
    """`Status`, time of failure and end of a run that an event may have ended before t."""
    zeno = seen.over & (seen.zeno > 0.0) & (status == Status.OK)
    status = jnp.where(zeno, Status.ZENO, status).astype(jnp.int32)
    failed_at = jnp.where(zeno, seen.halted, failed_at)
    return status, failed_at, jnp.where(seen.over, seen.halted, t)


def _beginning(
    mech: Mechanism, method: Method, q0: Array, v0: Array | None, numbers: Numbers
) -> RunEnd:
    """The start of a run, as if another had ended there; NaN off the constraints."""
    t = numbers.t0
    v0 = _at_rest(mech, q0, v0, t)
    q0 = normalise(mech, q0, v0)
    m = motion_state(mech, q0, v0, t)
    errors = closure(m)
    bad, weights = initial_status(m, errors, DRIFT), norms(m)
    q0, v0 = (jnp.where(bad == Status.OK, x, jnp.nan) for x in (q0, v0))
    account = first_account(mech, weights, v0, numbers.dt, errors.contradiction)
    return RunEnd(t, q0, v0, method.first_memory(v0), weights, account, bad.astype(jnp.int32))


def _step(
    mech: Mechanism,
    inputs: Any,
    o: Options,
    numbers: Numbers,
    weights: Array,
    corners: tuple[Array, ...],
    t: Array,
    h: Array,
    q: Array,
    v: Array,
    memory: Any,
) -> tuple[tuple[Array, Array, Any], StepSizes]:
    """The next (q, v, memory), and the sizes that the account takes in."""

    def pull(m: MotionState) -> Array:
        if o.constraints != "baumgarte":
            return jnp.zeros(m.top.nc, m.q.dtype)
        slip, alpha = closure_jacobian(m) @ m.v - closure_velocity(m), numbers.baumgarte_rate
        return -2.0 * alpha * slip - alpha**2 * closure_residual(m)

    def acceleration(s: Array, q: Array, v: Array, switches: Any = None) -> Array:
        m, efforts = motion_state(mech, q, v, s), efforts_at(inputs, s, q, v, switches)
        force, rhs = applied_efforts(m, efforts)
        return solve_motion(m, force, rhs + pull(m), efforts)[0]

    def slopes(s: Array, q: Array, v: Array, switches: Any = None) -> tuple[Array, Array, Array]:
        by = partial(efforts_at, inputs, switches=switches)
        return forward_slopes(mech, q, v, s, by, pull)

    def projected(q: Array, v: Array, s: Any) -> tuple[Array, Array]:
        held = o.constraints == "project" and topology(mech).nc
        return project(mech, q, v, s) if held else (q, v)

    equations = Equations(mech, acceleration, projected, numbers.events, slopes, corners)
    step = numbers.method.step(equations, t, q, v, h, memory)
    found = sizes(weights, v, step.v, step.estimates)
    return (step.q, step.v, step.memory), found


def simulate(
    mech: Mechanism,
    q0: Any,
    v0: Any = None,
    *,
    t1: float | None = None,
    dt: Any = None,
    t: Any = None,
    t0: Any = None,
    steps: int | None = None,
    method: Any = "rk4",
    save_every: int = 1,
    inputs: Any = None,
    events: dict[str, Event] | None = None,
    switches: dict[str, Any] | None = None,
    outputs: Outputs | None = None,
    outputs_only: bool = False,
    constraints: str = "project",
    baumgarte_rate: float | None = None,
    accuracy: float = 0.1,
    keep_inaccurate: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    throw: bool = True,
    backend: str = "auto",
) -> Solution:
    """Integrate a mechanism from (q0, v0).

    One mechanism; a batch by `jax.vmap`. Under `jit` the result is differentiable, forward and
    reverse, with respect to the mechanism, the initial state and the inputs. Outside `jit` Ctrl-C
    ends a run (by lanes, with `throw`); around a `jit` of one's own `lanes.finished` does the same.

    Args:
        mech: the mechanism.
        q0: coordinates (nq,), assembled; or `Solution.end` of a run, to go on from there, to the
            bit and with its account of errors.
        v0: speeds (nv,), on the constraints (see `assemble_velocity`); by default at rest.
        t1: end time [s], which is met exactly.
        dt: step [s]. If t1 − t0 is no multiple of ``dt · save_every``, the step is made a little
            shorter or longer, so that the nearest whole number of them ends at t1: dt=0.03 until
            t1=0.1 takes 3 steps of 0.0333 s. A method of adaptive steps takes its own, and saves
            the state every dt, by default at t1 alone.
        t: in place of t1 the times (n,) [s] at which the state is saved, from the start on, which
            are met exactly. Between two of them a method of fixed steps takes as many equal ones
            as the longest interval needs at a step of dt, or `save_every` if dt is not given.
        t0: start time [s]; by default 0, or when the run before ended.
        steps: number of steps in place of t1, a multiple of `save_every`; t0 and dt may then be
            traced.
        method: "rk4" (`RK4`), "semi_implicit_euler" (`SemiImplicitEuler`) or, for stiff systems,
            "generalized_alpha" (`GeneralizedAlpha`) of fixed steps; "dormand_prince"
            (`DormandPrince`), for high precision "dormand_prince_8" (`DormandPrince8`) or, for
            stiff systems, "rodas" (`Rodas`) of adaptive ones; "auto" for `DormandPrince` or
            `Rodas`, chosen by numbers (`choose_method` says why); such an object with its numbers;
            or a diffrax solver for a single run.
        save_every: save every n-th step (the first state is always saved).
        inputs: efforts on joints, ``{joint: value or Sampled}``, or a function of t, (t, q, v) or
            (t, q, v, switches) that returns such a dictionary of values. A function that looks up
            `Sampled` gets them as data, ``jax.tree_util.Partial(function, samples)``: adaptive
            steps end at their corners then, which they cannot see in what it closes over.
        events: ``{name: Event}``: times at which functions of the motion pass zero, with what
            happens then; by methods of adaptive steps and "rk4" (`Solution.events`).
        switches: ``{name: number}``: numbers at the start of the run that events change
            (``Event(…, sets=…)``) and `inputs` may depend on, as the state of a controller with
            hysteresis or of a latch; that of the run before stays if none is given.
        outputs: a function of (t, q, v) that is evaluated and saved at each saved time.
        outputs_only: save only the first and last state: q and v are then (2, …).
        constraints: "project" each step onto position and velocity constraints (in the metric of
            the mass matrix), "baumgarte", or "none".
        baumgarte_rate: α [1/s] in ``J v̇ = γ − 2α (J v − b) − α² φ``; by default 0.1/dt.
        accuracy: largest allowed `Solution.error`, a share of the motion; above it the run is
            INACCURATE (`jaxmbd.analysis.run_account`). By the default "rk4" needs 15 steps in a
            period of an undamped vibration for 50 periods, 25 for 450, 40 for 3000, and
            "semi_implicit_euler", whose speeds are those of half a step before, 50. Give 0.01
            where a percent counts. Of adaptive steps the estimated errors above atol are added
            up; a diffrax solver controls its errors itself.
        keep_inaccurate: keep the rows from which on the run is inaccurate (`Solution.fine`), rather
            than NaN.
        rtol: relative error of an adaptive step of a method given by name, or of a diffrax
            solver's; by default 1e-10 (4e-5 in float32).
        atol: absolute error of such a step [rad, lengths of the mechanism; 1/s]; by default 1e-12
            (5e-6 in float32).
        throw: raise an error if the run fails (outside `jit` and `vmap`).
        backend: "auto", "lanes" or "xla" (`jaxmbd.lanes.backend`); adaptive solvers use XLA.

    Raises:
        ValueError: an argument is out of range; outside `jit`, q0 is not assembled (the message
            says which joint is open), a motion has neither inertia nor constraint, or the run
            fails (it says when).

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> s = mbd.simulate(m, mbd.neutral(m), [0.0], t1=0.1, dt=1e-3)
        >>> s.q.shape
        (101, 1)
    """
    check_backend(backend)
    start = _start(mech, q0, v0, t0)
    begin = start.t if isinstance(start, RunEnd) else None
    times = begin, t, t0, t1, dt, steps, save_every
    if isinstance(method, str) and method == "auto":
        at = (start.q, start.v) if isinstance(start, RunEnd) else start
        grid = time_grid(*times, adaptive=True)
        options = {"t0": grid.t0, "t1": grid.t1, "inputs": inputs, "rtol": rtol, "atol": atol}
        method, rtol, atol = choose_method(mech, *at, **options, backend=backend).method, None, None
    method = chosen(method, mech.dtype, rtol, atol)
    before = start.switches or {} if isinstance(start, RunEnd) else {}
    watched = checked_events(events, {**before, **(switches or {})}, mech.dtype)
    grid = time_grid(*times, adaptive=isinstance(method, Adaptive))
    method = cut_at_events(method) if watched else method
    options = Options(
        constraints, grid.saves, grid.every, outputs_only, keep_inaccurate, tuple(watched)
    )
    _check_choices(options)
    rate = 0.1 / grid.dt if baumgarte_rate is None else baumgarte_rate
    numbers = Numbers(
        grid.t0, grid.dt, grid.times, rate, accuracy, method, None, dict(switches or {})
    )
    numbers = jax.tree_util.tree_map(lambda x: jnp.asarray(x, mech.dtype), numbers)
    rise = increasing((mech, inputs))
    numbers = numbers._replace(samples_rise=rise, events=tuple(watched.values()))
    inputs = parse_inputs(mech, inputs)
    if not method.compiled:
        backend = "xla"
    solution = _run(backend, options, mech, start, inputs, outputs, numbers)
    if not throw or not visible(solution.status):
        return solution
    if int(lanes.finished(solution).status) != Status.OK:
        _raise(method, *lax.stop_gradient((mech, start, solution)))
    return solution


def _start(mech: Mechanism, q0: Any, v0: Any, t0: Any) -> RunEnd | tuple[Array, Array | None]:
    """Where a run before ended, or the initial state as arrays; v0 may be None."""
    top = topology(mech)
    if isinstance(q0, RunEnd):
        if v0 is not None or t0 is not None:
            raise ValueError("the end of a run has its speeds and its time: give no v0= and no t0=")
        check_shape("q0.q", q0.q, top.nq)
        return q0
    q0 = jnp.asarray(q0, mech.dtype)
    check_shape("q0", q0, top.nq)
    if v0 is not None:
        v0 = jnp.asarray(v0, mech.dtype)
        check_shape("v0", v0, top.nv)
    return q0, v0


def _at_rest(mech: Mechanism, q0: Array, v0: Array | None, t0: Any) -> Array:
    """The initial speeds: if none are given, at rest except for the motion of drives."""
    return assemble_velocity(mech, q0, t=t0) if v0 is None else v0


def _check_choices(o: Options) -> None:
    if o.constraints not in ("project", "baumgarte", "none"):
        raise ValueError(f"constraints={o.constraints!r}; give 'project', 'baumgarte' or 'none'")


@host_jit
def _run(backend: str, options: Options, *args: Any) -> Solution:
    def whole(*args: Any) -> Solution:
        return rollout(options, *args)

    return compiled(backend, whole, *args)


def _raise(method: Method, mech: Mechanism, start: Any, solution: Solution) -> None:
    status, when = Status(int(solution.status)), float(solution.failed_at)
    q0, v0 = (start.q, start.v) if isinstance(start, RunEnd) else start
    v0 = _at_rest(mech, q0, v0, solution.t[0])
    if status == Status.NOT_ASSEMBLED:
        t0 = float(solution.t[0])
        m = motion_state(mech, q0, v0, t0)
        slip = np.asarray(closure_jacobian(m) @ v0 - closure_velocity(m))
        worst = int(np.argmax(np.abs(slip)))
        told = [open_joints(mech, q0, t0)]
        if abs(slip[worst]) > 1e-9:
            row = m.top.row_names[worst]
            told.append(f"the speeds violate the row '{row}' by {slip[worst]:.3g} m/s or rad/s")
        raise ValueError(
            f"the initial state violates the constraints: {'; '.join(told)}. Take q0 from "
            "assemble(...) and v0 from assemble_velocity(...)"
        )
    check_determinate(mech, q0)
    if status == Status.INACCURATE:
        raise ValueError(
            f"the run is inaccurate from t = {when:.6g} s on: the errors of its steps sum up to an "
            f"estimated {float(solution.error):.2g} of the motion, more than accuracy= allows (the "
            f"worst step ends at t = {float(solution.worst_at):.6g} s and has "
            f"{float(solution.worst_step):.2g}). Try a smaller dt, method='dormand_prince', "
            "method='rodas' if the system is stiff, or throw=False to see the run"
        )
    if status == Status.ZENO:
        counts = {name: int(x.count) for name, x in (solution.events or {}).items()}
        raise ValueError(
            f"the run ended (zeno) at t = {when:.6g} s: the same event happened again at once, as "
            f"impacts do whose times accumulate until a body is at rest; counts: {counts}. Go on "
            "without that event (a joint, a drive or a JointLimit holds the body), or give "
            "throw=False to see the run"
        )
    limit = ""
    if isinstance(method, Adaptive):
        limit = (
            f"; a method of adaptive steps gives up after {method.most} between two saved times: "
            "save more often, give more (most=), looser tolerances, or in t= the times at which "
            "inputs by a function jump"
        )
    raise ValueError(
        f"the run failed ({status.name.lower()}) at t = {when:.6g} s, with a drift of "
        f"{float(solution.drift):.3g} m: try a smaller dt, method='rodas' if the system is stiff, "
        "or look for a singular position there" + limit
    )
