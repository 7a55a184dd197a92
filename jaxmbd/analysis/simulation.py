"""Simulation: a time loop of integrator steps, each projected onto the constraints.

What the steps are wrong by is the account's (`jaxmbd.analysis.run_account`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd import lanes
from jaxmbd.analysis.equations import PROJECTED, equations_of
from jaxmbd.analysis.known import parse_inputs
from jaxmbd.analysis.method_choice import choose_method
from jaxmbd.analysis.methods import (
    Adaptive,
    Cut,
    Event,
    Method,
    Watch,
    checked_events,
    chosen,
    corners_of,
    cut_at_events,
    normalise,
)
from jaxmbd.analysis.programs import program
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
from jaxmbd.analysis.time_grid import AT_END, TimeGrid, time_grid
from jaxmbd.analysis.velocity import assemble_velocity
from jaxmbd.dynamics import Embedding, check_determinate, embedding
from jaxmbd.graph import topology
from jaxmbd.kinematics import check_shape, closure_jacobian, closure_velocity, motion_state
from jaxmbd.lanes import check_backend, guarded
from jaxmbd.model import Mechanism, increasing, prepared

Outputs = Callable[[Array, Array, Array], Any]


class Options(NamedTuple):
    """Static options of a compiled run; `Numbers` are its numerical arguments."""

    constraints: str
    outputs_only: bool
    keep_inaccurate: bool
    embedding: Embedding | None = None


class Numbers(NamedTuple):
    """Numerical arguments of a run.

    Attributes:
        grid: the times.
        baumgarte_rate: α of Baumgarte's method [1/s].
        accuracy: largest error of the run as a share of the motion.
        method: the method, with its numbers.
        samples_rise: whether the times of all `Sampled` increase.
        switches: values of switches at the start.
        watch: what is looked for.
    """

    grid: TimeGrid
    baumgarte_rate: Any
    accuracy: Any
    method: Method
    samples_rise: Any
    switches: dict[str, Array]
    watch: Watch = Watch()


class Row(NamedTuple):
    """What is saved at a time t [s]; `state` is (q, v, switches), or None if it is not."""

    t: Array
    state: Any
    outputs: Any


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
    method, grid, watch = numbers.method, numbers.grid, numbers.watch
    first = start if isinstance(start, RunEnd) else _beginning(mech, method, *start, numbers)
    rising = _times_rise(numbers, first.t)
    q0, v0 = (jnp.where(rising, x, jnp.nan) for x in (first.q, first.v))
    memory: Any = method.first_memory(v0)
    if first.memory.shape == memory.shape:  # else that of another kind of method
        memory = first.memory
    switches = {**(first.switches or {}), **numbers.switches}
    memory = watch.begun(memory, first.events, switches)
    held = None if watch.events else switches or None
    corners = corners_of(mech, inputs) if isinstance(method, Adaptive) else ()
    step, hoisted = jax.closure_convert(
        partial(_step, mech, inputs, o, numbers, held, first.weights, corners),
        first.t, grid.dt, q0, v0, memory,
    )  # fmt: skip

    def row(t: Array, q: Array, v: Array, memory: Any) -> Row:
        kept = None if outputs is None else outputs(t, q, v)
        return Row(t, (q, v, watch.switches(memory, switches)), kept)

    def interval(carry: tuple[Any, Account], n: Array) -> Any:
        begin, t, h = grid.interval(n)

        def one(carry: tuple[Any, Account], k: Array) -> tuple[tuple[Any, Account], None]:
            state, account = carry
            before, after = (begin + h * x.astype(begin.dtype) for x in (k, k + 1))
            state, found = guarded(step, before, h, *state, *hoisted)
            after = method.reached(watch.own(state[2]), after)
            return (state, after_step(account, method, found, numbers.accuracy, after)), None

        steps = jnp.arange(grid.every)
        (q, v, memory), account = lax.scan(jax.checkpoint(one, prevent_cse=False), carry, steps)[0]
        # At a corner of a drive what comes after it counts, whichever side t is on by rounding.
        beside = 32.0 * jnp.finfo(t.dtype).eps * jnp.abs(t) if corners else 0.0
        m = motion_state(mech, q, v, t + beside)
        if o.constraints in PROJECTED and m.top.nc:
            # A state that an event left behind is not that of the time t.
            account, drift = watch.unless_over(memory, at_saved_time(account, m, t), (account, 0.0))
            q, v = (jnp.asarray(jnp.where(jnp.isinf(account.diverged), x, jnp.nan)) for x in (q, v))
        else:
            drift = closure_error(m)
        saved = row(t, q, v, memory)
        saved = saved._replace(state=None) if o.outputs_only else saved
        return ((q, v, memory), account), (saved, drift)

    begun, carry = row(first.t, q0, v0, memory), ((q0, v0, memory), first.account)
    (state, account), (rows, drift) = lax.scan(interval, carry, jnp.arange(grid.saves))
    if o.outputs_only:
        *qv, last = state
        ends = (*qv, watch.switches(last, switches))
        rows = rows._replace(state=jax.tree_util.tree_map(lambda x: x[None], ends))
    q, v, memory = state
    ended = first._replace(q=q, v=v, memory=memory, account=account, switches=switches)
    return _solution(o, numbers, ended, begun, rows, drift, inputs)


def _times_rise(numbers: Numbers, begin: Array) -> Array:
    """Whether the times of all samples increase, and saved ones from where the run begins.

    Another may have ended earlier than is thought, by an event.
    """
    times, rise = numbers.grid.times, jnp.asarray(numbers.samples_rise)
    if times is None:
        return rise
    near = jnp.abs(begin - times[0]) <= AT_END * (times[1] - times[0])
    return rise & near & jnp.all(times[1:] > times[:-1])


def _solution(
    o: Options, numbers: Numbers, ended: RunEnd, first: Row, rows: Row, drift: Array, inputs: Any
) -> Solution:
    """What a run returns, of its rows at saved times and of the `drift` there.

    `ended` is where it ended, but for the time and the events of the method's memory.
    """
    method, watch, account, t0 = numbers.method, numbers.watch, ended.account, first.t
    status, failed_at = verdict(account, ended.status, t0)
    lost = jnp.where(ended.status == Status.OK, account.diverged, t0)
    lost = lost if o.keep_inaccurate else failed_at
    status, failed_at, end_time = watch.ended(ended.memory, status, failed_at, rows.t[-1])
    records, memory = watch.records(ended.memory), watch.own(ended.memory)
    times = jnp.concatenate([t0[None], rows.t])
    fine = (times < lost) & (times <= end_time) if watch.events else times < lost

    def series(fine: Array, first: Any, rest: Array) -> Array:
        """All rows, NaN from the time on at which the run is lost."""
        every = jnp.concatenate([jnp.asarray(first)[None], rest])
        if not jnp.issubdtype(every.dtype, jnp.floating):
            return every
        return jnp.where(jnp.reshape(fine, (-1, *[1] * (every.ndim - 1))), every, jnp.nan)

    kept = fine[:: len(fine) - 1] if o.outputs_only else fine
    q, v, positions = jax.tree_util.tree_map(partial(series, kept), first.state, rows.state)
    outputs = jax.tree_util.tree_map(partial(series, fine), first.outputs, rows.outputs)
    error, worst = (
        (x if method.estimates else x + jnp.nan) for x in (account.share, jnp.max(account.worst))
    )
    return Solution(
        t=times,
        q=q,
        v=v,
        outputs=outputs,
        status=status,
        drift=jnp.max(jnp.asarray(jnp.where(rows.t <= failed_at, drift, 0.0))),
        failed_at=failed_at,
        error=error,
        worst_step=worst,
        worst_at=account.worst_at,
        steps=method.taken(memory, account.steps),
        rejected=method.rejected(memory),
        end=ended._replace(
            t=end_time,
            memory=memory,
            events=records,
            switches=watch.switches(ended.memory, ended.switches or {}) or None,
        ),
        events=watch.told(records),
        forced=jnp.asarray(1 if inputs else 0, jnp.int32),
        switches=positions or None,
    )


def _beginning(
    mech: Mechanism, method: Method, q0: Array, v0: Array | None, numbers: Numbers
) -> RunEnd:
    """The start of a run, as if another had ended there; NaN off the constraints."""
    t = numbers.grid.t0
    v0 = _at_rest(mech, q0, v0, t)
    q0 = normalise(mech, q0, v0)
    m = motion_state(mech, q0, v0, t)
    errors = closure(m)
    bad, weights = initial_status(m, errors, DRIFT), norms(m)
    q0, v0 = (jnp.where(bad == Status.OK, x, jnp.nan) for x in (q0, v0))
    account = first_account(mech, weights, v0, numbers.grid.dt, errors.contradiction)
    return RunEnd(t, q0, v0, method.first_memory(v0), weights, account, bad.astype(jnp.int32))


def run_start(
    mech: Mechanism, q0: Array, v0: Array, *, dt: Any, method: Any = "rk4", t0: Any = 0.0
) -> RunEnd:
    """Where a run of steps dt [s] begins, as if another had ended there; its status says if it can.

    For callers that go on from there by `simulate` in many short runs, while tracing.
    """
    grid = TimeGrid(1, 1, *(jnp.asarray(x, mech.dtype) for x in (t0, dt)))
    numbers = Numbers(grid, 0.0, 0.0, chosen(method, mech.dtype, None, None), True, {})
    mech = jax.tree_util.tree_map(jnp.asarray, prepared(mech))
    return _beginning(mech, numbers.method, q0, v0, numbers)


def _step(
    mech: Mechanism,
    inputs: Any,
    o: Options,
    numbers: Numbers,
    held: dict[str, Array] | None,
    weights: Array,
    corners: tuple[Array, ...],
    t: Array,
    h: Array,
    q: Array,
    v: Array,
    memory: Any,
) -> tuple[tuple[Array, Array, Any], StepSizes]:
    """The next (q, v, memory), and the sizes that the account takes in.

    `held` are the switches of a run in which no event changes them.
    """
    equations = equations_of(
        mech,
        inputs,
        o.constraints,
        numbers.baumgarte_rate,
        held,
        o.embedding,
        events=numbers.watch.events,
        corners=corners,
    )
    step = numbers.method.step(equations, t, q, v, h, memory)
    return (step.q, step.v, step.memory), sizes(weights, v, step)


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
        method: "rk4" (`RK4`), "semi_implicit_euler" (`SemiImplicitEuler`), for long conservative
            runs "variational" (`Variational`) or, for stiff systems, "generalized_alpha"
            (`GeneralizedAlpha`) of fixed steps; "dormand_prince"
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
            happens then (`Solution.events`). A step of fixed length is made again with a
            shorter one, to end at the event with the method's own error; not by a diffrax solver.
        switches: ``{name: number}``: numbers at the start of the run that events change
            (``Event(…, sets=…)``) and `inputs` may depend on, as the state of a controller with
            hysteresis or of a latch; that of the run before stays if none is given.
        outputs: a function of (t, q, v) that is evaluated and saved at each saved time.
        outputs_only: save only the first and last state: q and v are then (2, …).
        constraints: "project" each step onto position and velocity constraints (in the metric of
            the mass matrix), the "stages" of each step as well, "baumgarte", or "none".
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
    begin, before = (start.t, start.switches or {}) if isinstance(start, RunEnd) else (None, {})
    known = {**before, **(switches or {})}
    times = begin, t, t0, t1, dt, steps, save_every
    if isinstance(method, str) and method == "auto":
        at = (start.q, start.v) if isinstance(start, RunEnd) else start
        grid = time_grid(*times, adaptive=True)
        options = {"t0": grid.t0, "t1": grid.t1, "inputs": inputs, "rtol": rtol, "atol": atol}
        options["switches"] = known
        method, rtol, atol = choose_method(mech, *at, **options, backend=backend).method, None, None
    method = chosen(method, mech.dtype, rtol, atol)
    watch = checked_events(events, known if events else switches or {}, mech.dtype)
    grid = time_grid(*times, adaptive=isinstance(method, Adaptive))
    if constraints not in (*PROJECTED, "baumgarte", "none"):
        raise ValueError(f"{constraints=}; give 'project', 'stages', 'baumgarte' or 'none'")
    if constraints == "stages" and not method.explicit:
        raise ValueError(
            f"constraints='stages' with method={method!r}: only RK4 and explicit adaptive methods "
            "have stages to project; give constraints='project'"
        )
    method = cut_at_events(method) if watch.events else method
    options = Options(constraints, outputs_only, keep_inaccurate, embedding(mech))
    rate = 0.1 / grid.dt if baumgarte_rate is None else baumgarte_rate
    numbers = Numbers(grid, rate, accuracy, method, None, dict(switches or {}))
    numbers = jax.tree_util.tree_map(lambda x: jnp.asarray(x, mech.dtype), numbers)
    numbers = numbers._replace(samples_rise=increasing((mech, inputs)), watch=watch)
    inputs = parse_inputs(mech, inputs)
    if not method.compiled:
        backend = "xla"
    solution = program(backend, rollout, options, mech, start, inputs, outputs, numbers)
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
    if hasattr(q0, "q"):
        cure = "its end, q0=run.end" if isinstance(q0, Solution) else "its coordinates, q0=found.q"
        raise ValueError(f"q0 is a whole {type(q0).__name__}; give {cure}")
    if isinstance(q0, Mapping):
        raise ValueError("q0 is a dictionary; give coordinates, q0=assemble(mech, known=…).q")
    q0 = jnp.asarray(q0, mech.dtype)
    check_shape("q0", q0, top.nq)
    if v0 is not None:
        v0 = jnp.asarray(v0, mech.dtype)
        check_shape("v0", v0, top.nv)
    return q0, v0


def _at_rest(mech: Mechanism, q0: Array, v0: Array | None, t0: Any) -> Array:
    """The initial speeds: if none are given, at rest except for the motion of drives."""
    return assemble_velocity(mech, q0, t=t0) if v0 is None else v0


def _raise(method: Method, mech: Mechanism, start: Any, solution: Solution) -> None:
    status, when = Status(int(solution.status)), float(solution.failed_at)
    q0, v0 = (start.q, start.v) if isinstance(start, RunEnd) else start
    v0 = _at_rest(mech, q0, v0, solution.t[0])
    if status == Status.NOT_ASSEMBLED:
        t0 = float(solution.t[0])
        m = motion_state(mech, q0, v0, t0)
        slip = np.asarray(closure_jacobian(m) @ v0 - closure_velocity(m))
        worst = int(np.argmax(np.abs(slip)))
        told = [text for text in [open_joints(mech, q0, t0, 1e-9)] if text]
        if abs(slip[worst]) > 1e-9:
            row = m.top.row_names[worst]
            told.append(f"the speeds violate the row '{row}' by {slip[worst]:.3g} m/s or rad/s")
        told = told or [open_joints(mech, q0, t0)]
        raise ValueError(
            f"the initial state violates the constraints: {'; '.join(told)}. Take q0 from "
            "assemble(...) and v0 from assemble_velocity(...)"
        )
    check_determinate(mech, q0)
    if status == Status.INACCURATE:
        error, worst = float(solution.error), float(solution.worst_step)
        sum_of_errors = f"an estimated {error:.2g} of" if error < np.inf else "more than all of"
        share = f"and has {worst:.2g}" if worst < np.inf else "in numbers beyond all bounds"
        raise ValueError(
            f"the run is inaccurate from t = {when:.6g} s on: the errors of its steps sum up to "
            f"{sum_of_errors} the motion, more than accuracy= allows (the worst step ends at "
            f"t = {float(solution.worst_at):.6g} s {share}). Try a smaller dt, "
            "method='dormand_prince', "
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
    cure = "try a smaller dt,"
    if isinstance(method, Adaptive) and not isinstance(method, Cut):
        cure = (
            f"a method of adaptive steps gives up after {method.most} between two saved times: "
            "save more often, give more (most=), looser tolerances, or in t= the times at which "
            "inputs by a function jump; else try"
        )
    raise ValueError(
        f"the run failed ({status.name.lower()}) at t = {when:.6g} s, with a drift of "
        f"{float(solution.drift):.3g} m: {cure} method='rodas' if the system is stiff, "
        "or look for a singular position there"
    )
