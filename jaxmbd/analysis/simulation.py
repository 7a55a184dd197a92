"""Simulation: a time loop of integrator steps, each projected onto the constraints.

A `Watch` monitors the errors of the steps. The estimated errors e of the steps in the speeds must
be small relative to the speeds v, in root mean squares over the steps so far,
``Σ |e|² ≤ accuracy² Σ |v|²``, in each of two norms: the energy norm ``√(Σ Mᵢᵢ vᵢ²)`` with the
inertias at the start, in which heavy bodies count more than light ones, and the kinematic norm
``√(Σ (vᵢ/uᵢ)²)``, with u one radian or the mechanism's length for travels, in which all count
alike. A motion that decays to rest is not judged by rounding.

In an RK4 step of an undamped vibration e is ``z³/24`` of v, with z = ω h, and ``z⁶/72 = 8 (e/v)²``
of the energy is lost, so n steps lose at most 8 n accuracy² of it.

In a Runge-Kutta step the accelerations k1, k2, k3 at the start and twice at its middle come closer,
``|k3 − k2|`` being ``|z|/2`` of ``|k2 − k1|``. Where they do not, over the steps so far, a force
jumps from stage to stage, as dry friction at rest; e may then be zero, and ``h/6 (k3 − k2)``, for
``v̇ = λ v`` as large as e, is added to it.

If a motion starts with a fast transient, the errors of its first steps may be large relative to the
small initial speeds, yet negligible relative to later ones. A run is therefore inaccurate from the
time after which the condition is never satisfied again; a run that explodes never satisfies it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from jaxmbd import lanes
from jaxmbd.analysis.integrators import INTEGRATORS, Step, adaptive_interval, no_errors, normalise
from jaxmbd.analysis.known import efforts_at, parse_inputs
from jaxmbd.analysis.status import (
    DRIFT,
    Status,
    closing_tolerance,
    closure,
    closure_error,
    closure_slip,
    initial_status,
    open_joints,
    visible,
)
from jaxmbd.analysis.velocity import assemble_velocity
from jaxmbd.dynamics import (
    applied_efforts,
    check_determinate,
    kkt_system,
    mass_operator,
    solve_kkt,
    solve_motion,
)
from jaxmbd.graph import topology
from jaxmbd.kinematics import (
    MotionState,
    check_shape,
    closure_jacobian,
    closure_residual,
    closure_velocity,
    mechanism_length,
    motion_state,
    placed_numbers,
    row_scale,
    speed_units,
    step_coordinates,
)
from jaxmbd.lanes import check_backend, compiled, guarded, host_jit
from jaxmbd.model import Mechanism
from jaxmbd.numerics import StepTolerances, solution, tolerances


class Watch(NamedTuple):
    """State of the monitoring.

    Attributes:
        sums: over the steps, of the squares that `sizes` gives (4, 2), in the two norms.
        fastest: square of the largest speeds, in the kinematic norm.
        inaccurate: time since which the errors are too large [s]; infinite if they are not.
        diverged: time at which the run left the constraints or became infinite or NaN [s];
            infinite before.
        contradiction: closure error at the start [m] that no motion removes.
    """

    sums: Array
    fastest: Array
    inaccurate: Array
    diverged: Array
    contradiction: Array


def norms(m: MotionState) -> Array:
    """Weights (2, nv) of squared speeds: inertias [kg m², kg], and ``1/u²`` [1, 1/m²]."""
    return lax.stop_gradient(
        jnp.stack([mass_operator(m).diagonal(), 1.0 / speed_units(m.mech) ** 2])
    )


def first_watch(mech: Mechanism, weights: Array, h: Array, contradiction: Array) -> Watch:
    """The state before the first step.

    The speeds start at 1e-12 of a unit per step: those of a mechanism at rest in equilibrium are
    smaller, and only rounding.
    """
    resolved = tolerances.integration(mech.dtype).atol * speed_units(mech) / h
    never = jnp.full((), jnp.inf, mech.dtype)
    speed = weights @ lax.stop_gradient(resolved**2)
    none = jnp.zeros(2, mech.dtype)
    return Watch(jnp.stack([speed, none, none, none]), speed[1], never, never, contradiction)


JUMPS = 0.6
"""Least ratio of ``k3 − k2`` to ``k2 − k1`` at which forces jump: steps with ``|z| = 1.2``."""


def sizes(weights: Array, v: Array, errors: Array) -> Array:
    """Squares (4, 2) of a step's speeds and of its `Step.errors`, in the two norms."""
    each = lax.stop_gradient(jnp.concatenate([v[None], errors]))
    return (each * each) @ weights.T


def after_step(watch: Watch, found: Array, accuracy: Array, t: Array) -> Watch:
    """Take in the `sizes` of a step that ended at t."""
    found = lax.stop_gradient(found)
    finite = jnp.all(jnp.isfinite(found))
    fastest = jnp.maximum(watch.fastest, found[0, 1])
    sums = watch.sums + found
    speed, error, last, first = sums
    error = error + jnp.where(last > JUMPS**2 * first, last, 0.0)
    fine = jnp.all(error <= accuracy**2 * speed)
    inaccurate = jnp.where(fine, jnp.inf, jnp.minimum(watch.inaccurate, t))
    diverged = _first(watch.diverged, finite, t)
    return Watch(sums, fastest, inaccurate, diverged, watch.contradiction)


def at_saved_time(watch: Watch, m: MotionState, t: Array) -> tuple[Watch, Array]:
    """Check a projected state against the constraints; also its closure error [m].

    The limits are `DRIFT` times the closing tolerance for positions, and the same multiple of
    the largest speeds for speeds. What redundant rows contradict each other by at the start may
    change along the motion.
    """
    limit = DRIFT * closing_tolerance(m.q.dtype, mechanism_length(m.mech))
    limit = limit + 1e2 * watch.contradiction
    drift, slip = lax.stop_gradient((closure_error(m), closure_slip(m)))
    on = (drift < limit) & (slip <= limit * jnp.sqrt(watch.fastest))
    return watch._replace(diverged=_first(watch.diverged, on, t)), drift


def verdict(watch: Watch, start: Array, t0: Array) -> tuple[Array, Array]:
    """`Status` of a whole run from that of its initial state, and the time of failure [s]."""
    inaccurate = watch.inaccurate < watch.diverged
    later = jnp.where(inaccurate, Status.INACCURATE, Status.DIVERGED)
    when = jnp.minimum(watch.inaccurate, watch.diverged)
    later = jnp.where(when < jnp.inf, later, Status.OK)
    ok = start == Status.OK
    return jnp.where(ok, later, start).astype(jnp.int32), jnp.where(ok, when, t0)


def _first(when: Array, fine: Any, t: Array) -> Array:
    return jnp.where(fine, when, jnp.minimum(when, t))


def project(mech: Mechanism, q: Array, v: Array, t: Any = 0.0) -> tuple[Array, Array]:
    """The nearest state on the constraints, in the metric of the mass matrix.

    Two Newton passes, each ``M δ = Jᵀ λ, J δ = −φ`` for q and ``M (v' − v) = Jᵀ λ, J v' = b`` for
    v: errors after an integration step are small and converge quadratically, so that only rounding
    is left after the second pass.

    Errors of the size of rounding are not corrected: at a distance δ from a singular position,
    correcting them would move q by rounding/δ and v by rounding/δ², which the next step would
    amplify again (a four-bar would jump where its links pass their common line).

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> q, v = mbd.project(m, mbd.neutral(m) + 1e-6, jnp.zeros(5))
        >>> bool(abs(mbd.constraint_residual(m, q)).max() < 1e-12)
        True
    """

    def correct(_: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        q, v = state
        m = motion_state(mech, q, v, t)
        jacobian, phi = closure_jacobian(m), closure_residual(m)
        slip = closure_velocity(m) - jacobian @ v
        noise = tolerances.rounding(v.dtype, 8)
        largest = jnp.max(jnp.abs(jacobian), initial=0.0)
        errors = jnp.stack(
            [
                _but_rounding(-phi, noise * mechanism_length(mech)),
                _but_rounding(slip, noise * largest * jnp.sum(jnp.abs(v))),
            ],
            axis=1,
        )
        no_force = jnp.zeros((v.shape[0], 2), v.dtype)
        change, _ = solve_kkt(kkt_system(m), no_force, errors, test=False, metric=True)
        # The last pass corrects rounding, so its residual is compared with the size of the state.
        miss = row_scale(m)[:, None] * (jacobian @ change - errors)
        flat = solution(change.reshape(-1), miss, [q, v, change], placed_numbers(mech))
        change = flat.reshape(change.shape)
        return step_coordinates(mech, q, change[:, 0]), v + change[:, 1]

    return lax.fori_loop(0, 2, correct, (jnp.asarray(q), jnp.asarray(v)))


def _but_rounding(errors: Array, noise: Array) -> Array:
    """Errors with those below `noise` set to zero; their derivatives are kept."""
    return errors - lax.stop_gradient(jnp.where(jnp.abs(errors) <= noise, errors, 0.0))


Outputs = Callable[[Array, Array, Array], Any]


class Solution(NamedTuple):
    """A simulated motion.

    Attributes:
        t: times (n,) [s].
        q: coordinates (n, nq); NaN from the time on at which the run failed.
        v: speeds (n, nv); likewise.
        outputs: results of the caller's function at each time, stacked; None without one.
        status: a `Status` number.
        drift: largest closure error at a saved time [m; moment rows times the length].
        failed_at: time at which the run failed [s]; infinite if it did not.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.simulate(m, [0.1], t1=0.02, dt=1e-3).status.item()
        0
    """

    t: Array
    q: Array
    v: Array
    outputs: Any
    status: Array
    drift: Array
    failed_at: Array


class Options(NamedTuple):
    """Static options of a compiled run; `Numbers` are its numerical arguments."""

    method: Any
    constraints: str
    saves: int
    save_every: int
    outputs_only: bool


class Numbers(NamedTuple):
    """Numerical arguments of a run.

    Attributes:
        t0, dt: start and step [s].
        baumgarte_rate: α of Baumgarte's method [1/s].
        accuracy: largest error of a step as a share of the speeds.
        tolerances: tolerances of an adaptive solver.
    """

    t0: Any
    dt: Any
    baumgarte_rate: Any
    accuracy: Any
    tolerances: StepTolerances


def rollout(
    o: Options,
    mech: Mechanism,
    q0: Array,
    v0: Array,
    inputs: Any,
    outputs: Outputs | None,
    numbers: Numbers,
) -> Solution:
    """The whole run, to be compiled as one function."""
    mech = jax.tree_util.tree_map(jnp.asarray, mech)
    start, dt = numbers.t0, numbers.dt
    q0 = normalise(mech, q0, v0)
    m0 = motion_state(mech, q0, v0, start)
    errors = closure(m0)
    bad, weights = initial_status(m0, errors, DRIFT), norms(m0)
    q0, v0 = (jnp.where(bad == Status.OK, x, jnp.nan) for x in (q0, v0))
    watch = first_watch(mech, weights, dt, errors.contradiction)

    def at(k: Array) -> Array:
        return start + dt * k.astype(start.dtype)

    def keep(t: Array, q: Array, v: Array) -> Any:
        return None if outputs is None else outputs(t, q, v)

    integrator = INTEGRATORS.get(o.method) if isinstance(o.method, str) else None
    memory = v0[:0] if integrator is None else integrator.memory(v0)
    step, hoisted = jax.closure_convert(
        partial(_step, mech, inputs, o, numbers, weights), start, q0, v0, memory
    )

    def one(carry: tuple[Any, Watch], k: Array) -> tuple[tuple[Any, Watch], None]:
        state, watch = carry
        state, found = guarded(step, at(k), *state, *hoisted)
        return (state, after_step(watch, found, numbers.accuracy, at(k + 1))), None

    def interval(carry: tuple[Any, Watch], n: Array) -> Any:
        steps = n * o.save_every + jnp.arange(o.save_every)
        (q, v, memory), watch = lax.scan(jax.checkpoint(one, prevent_cse=False), carry, steps)[0]
        t = at((n + 1) * o.save_every)
        m = motion_state(mech, q, v, t)
        if o.constraints == "project" and m.top.nc:
            watch, drift = at_saved_time(watch, m, t)
            q, v = (jnp.asarray(jnp.where(jnp.isinf(watch.diverged), x, jnp.nan)) for x in (q, v))
        else:
            drift = closure_error(m)
        trajectory = None if o.outputs_only else (q, v)
        return ((q, v, memory), watch), (t, trajectory, keep(t, q, v), drift)

    first = ((q0, v0, memory), watch)
    last, (t, trajectory, kept, drift) = lax.scan(interval, first, jnp.arange(o.saves))
    (q, v, _), watch = last
    status, failed_at = verdict(watch, bad, start)
    qs, vs = (q[None], v[None]) if trajectory is None else trajectory

    def series(first: Any, rest: Array) -> Array:
        """All rows, NaN from the time of failure on."""
        rows = jnp.concatenate([jnp.asarray(first)[None], rest])
        if not jnp.issubdtype(rows.dtype, jnp.floating):
            return rows
        fine = (times if rows.shape[0] == o.saves + 1 else times[:: o.saves]) < failed_at
        return jnp.where(jnp.reshape(fine, (-1, *[1] * (rows.ndim - 1))), rows, jnp.nan)

    times = jnp.concatenate([start[None], t])
    kept = jax.tree_util.tree_map(series, keep(start, q0, v0), kept)
    drift = jnp.max(jnp.asarray(jnp.where(t <= failed_at, drift, 0.0)))
    return Solution(times, series(q0, qs), series(v0, vs), kept, status, drift, failed_at)


def _step(
    mech: Mechanism,
    inputs: Any,
    o: Options,
    numbers: Numbers,
    weights: Array,
    t: Array,
    q: Array,
    v: Array,
    memory: Array,
) -> tuple[tuple[Array, Array, Array], Array]:
    """The next (q, v, memory), and the `sizes` of the step's speeds and errors."""

    def acceleration(s: Array, q: Array, v: Array) -> Array:
        m = motion_state(mech, q, v, s)
        efforts = efforts_at(inputs, s, q, v)
        force, rhs = applied_efforts(m, efforts)
        if o.constraints == "baumgarte":
            slip = closure_jacobian(m) @ v - closure_velocity(m)
            alpha = numbers.baumgarte_rate
            rhs = rhs - 2.0 * alpha * slip - alpha**2 * closure_residual(m)
        return solve_motion(m, force, rhs, efforts)[0]

    if isinstance(o.method, str):
        step = INTEGRATORS[o.method].step(mech, acceleration, t, q, v, numbers.dt, memory)
    else:
        q, v = adaptive_interval(
            mech, o.method, acceleration, t, q, v, numbers.dt, numbers.tolerances
        )
        step = Step(q, v, no_errors(v), memory)
    q, v = step.q, step.v
    if o.constraints == "project" and topology(mech).nc:
        q, v = project(mech, q, v, t + numbers.dt)
    return (q, v, step.memory), sizes(weights, v, step.errors)


def simulate(
    mech: Mechanism,
    q0: Any,
    v0: Any = None,
    *,
    t1: float | None = None,
    dt: Any,
    t0: Any = 0.0,
    steps: int | None = None,
    method: Any = "rk4",
    save_every: int = 1,
    inputs: Any = None,
    outputs: Outputs | None = None,
    outputs_only: bool = False,
    constraints: str = "project",
    baumgarte_rate: float | None = None,
    accuracy: float = 3e-3,
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
        q0: coordinates (nq,), assembled.
        v0: speeds (nv,), on the constraints (see `assemble_velocity`); by default at rest.
        t1: end time [s], which is met exactly.
        dt: step [s]. If t1 − t0 is no multiple of ``dt · save_every``, the step is made a little
            shorter or longer, so that the nearest whole number of them ends at t1: dt=0.03 until
            t1=0.1 takes 3 steps of 0.0333 s.
        t0: start time [s].
        steps: number of steps in place of t1, a multiple of `save_every`; t0 and dt may then be
            traced.
        method: "rk4", "semi_implicit_euler", or a diffrax solver (an implicit one for stiff
            systems), which takes adaptive steps between times `dt` apart.
        save_every: save every n-th step (the first state is always saved).
        inputs: efforts on joints, ``{joint: value}``, or a function of t or (t, q, v) that returns
            such a dictionary.
        outputs: a function of (t, q, v) that is evaluated and saved at each saved time.
        outputs_only: save only the first and last state: q and v are then (2, …).
        constraints: "project" each step onto position and velocity constraints (in the metric of
            the mass matrix), "baumgarte", or "none".
        baumgarte_rate: α [1/s] in ``J v̇ = γ − 2α (J v − b) − α² φ``; by default 0.1/dt.
        accuracy: largest allowed error of the steps, as a share of the speeds, root mean squares
            of a run (`jaxmbd.analysis.simulation`); above it the run is INACCURATE, as an undamped
            vibration with fewer than 15 steps per period by "rk4", 81 by "semi_implicit_euler".
            A diffrax solver controls its errors itself.
        rtol: relative error of a diffrax solver's step; by default 1e-10 (4e-5 in float32).
        atol: absolute error of such a step; by default 1e-12 (5e-6 in float32).
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
    options = Options(method, constraints, *_count(t0, t1, dt, steps, save_every), outputs_only)
    _check_choices(options)
    dt = dt if t1 is None else (float(t1) - float(t0)) / (options.saves * save_every)
    rate = 0.1 / dt if baumgarte_rate is None else baumgarte_rate
    within = tolerances.integration(mech.dtype, rtol, atol)
    numbers = Numbers(t0, dt, rate, accuracy, within)
    numbers = jax.tree_util.tree_map(lambda x: jnp.asarray(x, mech.dtype), numbers)
    q0, v0 = _start(mech, q0, v0)
    inputs = parse_inputs(mech, inputs)
    if not isinstance(method, str):
        backend = "xla"
    solution = _run(backend, options, mech, q0, v0, inputs, outputs, numbers)
    if not throw or not visible(solution.status):
        return solution
    if int(lanes.finished(solution).status) != Status.OK:
        _raise(*lax.stop_gradient((mech, q0, v0, solution)))
    return solution


def _start(mech: Mechanism, q0: Any, v0: Any) -> tuple[Array, Array | None]:
    """The initial state as arrays; v0 may be None."""
    top, q0 = topology(mech), jnp.asarray(q0, mech.dtype)
    check_shape("q0", q0, top.nq)
    if v0 is not None:
        v0 = jnp.asarray(v0, mech.dtype)
        check_shape("v0", v0, top.nv)
    return q0, v0


def _at_rest(mech: Mechanism, q0: Array, v0: Array | None, t0: Any) -> Array:
    """The initial speeds: if none are given, at rest except for the motion of drives."""
    return assemble_velocity(mech, q0, t=t0) if v0 is None else v0


def _count(t0: Any, t1: Any, dt: Any, steps: Any, every: Any) -> tuple[int, int]:
    """The number of saved states, and the number of steps between them."""
    if not (isinstance(every, int) and every >= 1):
        raise ValueError(f"save_every={every!r}; give a whole number, at least one")
    if (t1 is None) == (steps is None):
        raise ValueError("give either t1= or steps=, and not both: they set the end of the run")
    for name, x in (("dt", dt), ("t0", t0), ("t1", 1.0 if t1 is None else t1)):
        if isinstance(x, Tracer):
            if steps is None:
                raise ValueError(
                    f"{name} is traced, but sets the number of steps: give steps= in place of t1="
                )
        elif not np.isfinite(x) or (name == "dt" and not x > 0.0):
            raise ValueError(f"need finite times and dt > 0; got {name}={x}")
    if steps is not None:
        if not (isinstance(steps, int) and steps >= 1 and steps % every == 0):
            raise ValueError(f"{steps=}; give a multiple of save_every={every}, at least one")
        return steps // every, every
    if not t1 > t0:
        raise ValueError(f"need t1 > t0; got {t0=}, {t1=}")
    return max(1, round((t1 - t0) / (dt * every))), every


def _check_choices(o: Options) -> None:
    if o.method not in INTEGRATORS and not hasattr(o.method, "term_structure"):
        raise ValueError(
            f"method {o.method!r} is unknown; give one of {list(INTEGRATORS)} or a diffrax solver"
        )
    if o.constraints not in ("project", "baumgarte", "none"):
        raise ValueError(f"constraints={o.constraints!r}; give 'project', 'baumgarte' or 'none'")


@host_jit
def _run(backend: str, options: Options, *args: Any) -> Solution:
    def whole(mech: Mechanism, q0: Array, v0: Array | None, *rest: Any) -> Solution:
        return rollout(options, mech, q0, _at_rest(mech, q0, v0, rest[-1].t0), *rest)

    return compiled(backend, whole, *args)


def _raise(mech: Mechanism, q0: Array, v0: Array | None, solution: Solution) -> None:
    status, when = Status(int(solution.status)), float(solution.failed_at)
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
            f"the run is inaccurate from t = {when:.6g} s on: the estimated error of a step is a "
            "larger share of the speeds than accuracy= allows. Try a smaller dt, an implicit "
            "diffrax solver if the system is stiff, or throw=False to see the part before"
        )
    raise ValueError(
        f"the run failed ({status.name.lower()}) at t = {when:.6g} s, with a drift of "
        f"{float(solution.drift):.3g} m: try a smaller dt, an implicit diffrax solver if the "
        "system is stiff, or look for a singular position there"
    )
