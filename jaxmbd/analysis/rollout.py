"""The time loop of a simulation: steps, projection, saved results, and the time of a failure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.analysis.adaptive import adaptive_interval
from jaxmbd.analysis.inputs import efforts_at
from jaxmbd.analysis.integrators import INTEGRATORS, Step, no_errors, normalise
from jaxmbd.analysis.projection import project
from jaxmbd.analysis.status import DRIFT, Status, closure, closure_error, initial_status
from jaxmbd.analysis.watch import (
    Watch,
    after_step,
    at_saved_time,
    first_watch,
    norms,
    sizes,
    verdict,
)
from jaxmbd.dynamics.forward import applied_efforts
from jaxmbd.dynamics.friction import solve_motion
from jaxmbd.graph import topology
from jaxmbd.kinematics import motion_state
from jaxmbd.kinematics.closure import closure_jacobian, closure_residual, closure_velocity
from jaxmbd.lanes import guarded
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.numerics.tolerances import StepTolerances

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
