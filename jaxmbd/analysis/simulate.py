"""Simulation: a time loop of integrator steps, each brought back onto the constraints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from jaxmbd.analysis.adaptive import adaptive_interval
from jaxmbd.analysis.integrators import INTEGRATORS
from jaxmbd.analysis.projection import project
from jaxmbd.analysis.status import (
    Status,
    closing_tolerance,
    closure_error,
    initial_status,
    open_joints,
    visible,
)
from jaxmbd.analysis.velocity import assemble_velocity
from jaxmbd.dynamics.backend import check_backend, compiled
from jaxmbd.dynamics.forward import applied_forces, check_determinate
from jaxmbd.dynamics.friction import solve_motion
from jaxmbd.kinematics import motion_state
from jaxmbd.kinematics.closure import closure_jacobian, closure_residual, closure_velocity
from jaxmbd.kinematics.motion import check_shape
from jaxmbd.kinematics.scales import mechanism_length
from jaxmbd.lanes import guarded
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.topology import topology

Outputs = Callable[[Array, Array, Array], Any]


class Solution(NamedTuple):
    """A motion.

    Attributes:
        t: times (n,) [s].
        q: coordinates (n, nq); NaN from the step on at which a run failed.
        v: speeds (n, nv).
        outputs: what the caller's function gave at each time, stacked; None without one.
        status: a `Status` number.
        drift: largest closure error met at a saved time [m; moment rows times the length].

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


class _Options(NamedTuple):
    """What a compiled run depends on; `_Times` are its numbers."""

    method: Any
    constraints: str
    saves: int
    save_every: int
    outputs_only: bool


class _Times(NamedTuple):
    t0: Any
    dt: Any
    baumgarte_rate: Any


def simulate(
    mech: Mechanism,
    q0: Any,
    v0: Any = None,
    *,
    t1: float,
    dt: float,
    t0: float = 0.0,
    method: Any = "rk4",
    save_every: int = 1,
    inputs: Any = None,
    outputs: Outputs | None = None,
    outputs_only: bool = False,
    constraints: str = "project",
    baumgarte_rate: float | None = None,
    throw: bool = True,
    backend: str = "auto",
) -> Solution:
    """Integrate a mechanism from (q0, v0).

    One mechanism; a batch by `jax.vmap`. Under `jit` the result is differentiable, forward and
    reverse, in the mechanism, the initial state and the inputs.

    Args:
        mech: the mechanism.
        q0: coordinates (nq,), assembled.
        v0: speeds (nv,), on the constraints (see `assemble_velocity`); by default at rest.
        t1: end time [s].
        dt: step [s]; (t1 − t0)/dt is rounded to a whole number of `save_every` steps.
        t0: start time [s].
        method: "rk4", "semi_implicit_euler", or a diffrax solver (`diffrax.Dopri8()`, an implicit
            one for stiff systems): then steps are adaptive (rtol 1e-10, atol 1e-12) between
            times that are `dt` apart.
        save_every: keep every n-th step (the first state is always kept).
        inputs: efforts on joints, ``{joint: value}`` or a function of t that gives that.
        outputs: a function of (t, q, v) whose value is kept at each saved time.
        outputs_only: keep no trajectory but its first and last state: q and v are then (2, …).
        constraints: "project" each step onto position and velocity constraints (in the metric of
            the mass matrix), "baumgarte", or "none".
        baumgarte_rate: α [1/s] in ``J v̇ = γ − 2α (J v − b) − α² φ``; by default 0.1/dt.
        throw: raise on the host where the run fails.
        backend: "auto", "lanes" or "xla" (`jaxmbd.dynamics.backend`); adaptive solvers are XLA's.

    Raises:
        ValueError: an argument is out of range; on the host, q0 is not assembled (says which joint
            is open), a motion has neither inertia nor constraint, or the run diverges (says when).

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> s = mbd.simulate(m, mbd.neutral(m), [0.0], t1=0.1, dt=1e-3)
        >>> s.q.shape
        (101, 1)
    """
    options, times = _options(
        method, constraints, baumgarte_rate, t0, t1, dt, save_every, outputs_only
    )
    times = _Times(*(jnp.asarray(x, mech.dtype) for x in times))
    top = topology(mech)
    q0 = jnp.asarray(q0, mech.dtype)
    check_shape("q0", q0, top.nq)
    v0 = assemble_velocity(mech, q0, t=t0) if v0 is None else jnp.asarray(v0, mech.dtype)
    check_shape("v0", v0, top.nv)
    if inputs is not None and not callable(inputs):
        inputs = {k: jnp.asarray(x, mech.dtype) for k, x in inputs.items()}
    check_backend(backend)
    if not isinstance(method, str):
        backend = "xla"
    solution = _run(backend, options, mech, q0, v0, inputs, outputs, times)
    if throw and visible(solution.status) and int(solution.status) != Status.OK:
        _raise(mech, q0, v0, solution, float(t0))
    return solution


def _options(
    method: Any,
    constraints: str,
    rate: float | None,
    t0: float,
    t1: float,
    dt: float,
    every: int,
    outputs_only: bool,
) -> tuple[_Options, _Times]:
    if method not in INTEGRATORS and not hasattr(method, "term_structure"):
        raise ValueError(
            f"method {method!r} is unknown; give one of {list(INTEGRATORS)} or a diffrax solver"
        )
    if constraints not in ("project", "baumgarte", "none"):
        raise ValueError(f"constraints={constraints!r}; give 'project', 'baumgarte' or 'none'")
    for name, x in (("t1", t1), ("dt", dt), ("t0", t0)):
        if isinstance(x, Tracer):
            raise ValueError(
                f"{name} is traced, but sets the number of steps: give a Python number"
            )
    whole = isinstance(every, int) and every >= 1
    if not (dt > 0.0 and t1 > t0 and whole and np.all(np.isfinite([t0, t1, dt]))):
        raise ValueError(
            "need finite dt > 0, t1 > t0 and a whole save_every >= 1; got "
            f"{dt=}, {t0=}, {t1=}, {every=}"
        )
    saves = max(1, round((t1 - t0) / (dt * every)))
    step = (t1 - t0) / (saves * every)
    rate = 0.1 / step if rate is None else float(rate)
    options = _Options(method, constraints, saves, every, outputs_only)
    return options, _Times(float(t0), float(step), rate)


@eqx.filter_jit
def _run(backend: str, options: _Options, *args: Any) -> Solution:
    return compiled(backend, partial(_motion, options), *args)


def _motion(
    o: _Options,
    mech: Mechanism,
    q0: Array,
    v0: Array,
    inputs: Any,
    outputs: Outputs | None,
    times: _Times,
) -> Solution:
    mech = jax.tree_util.tree_map(jnp.asarray, mech)
    bad = initial_status(mech, q0, v0, times.t0)
    q0 = jnp.where(bad == Status.OK, q0, jnp.nan)
    start, dt = times.t0, times.dt

    def keep(t: Array, q: Array, v: Array) -> Any:
        return None if outputs is None else outputs(t, q, v)

    step, hoisted = jax.closure_convert(partial(_step, mech, inputs, o, times), start, q0, v0)

    def one(carry: tuple[Array, Array], k: Array) -> tuple[tuple[Array, Array], None]:
        t = start + dt * k.astype(start.dtype)
        return guarded(step, t, *carry, *hoisted), None

    def interval(carry: tuple[Array, Array], n: Array) -> Any:
        steps = n * o.save_every + jnp.arange(o.save_every)
        q, v = lax.scan(jax.checkpoint(one, prevent_cse=False), carry, steps)[0]
        t = start + dt * ((n + 1) * o.save_every).astype(q.dtype)
        drift = closure_error(motion_state(mech, q, t=t))
        trajectory = None if o.outputs_only else (q, v)
        return (q, v), (t, trajectory, keep(t, q, v), drift)

    (q, v), (t, trajectory, kept, drift) = lax.scan(interval, (q0, v0), jnp.arange(o.saves))
    qs, vs = (q[None], v[None]) if trajectory is None else trajectory
    status = jnp.where(jnp.all(jnp.isfinite(q)) & jnp.all(jnp.isfinite(v)), bad, Status.DIVERGED)
    status = jnp.where(bad == Status.OK, status, bad)
    tolerance = 1e3 * closing_tolerance(q0.dtype, mechanism_length(mech))
    off = (o.constraints == "project") & (status == Status.OK) & ~(jnp.max(drift) < tolerance)
    status = jnp.where(off, Status.DIVERGED, status).astype(jnp.int32)

    def series(first: Any, rest: Array) -> Array:
        whole = jnp.concatenate([jnp.asarray(first)[None], rest])
        return (
            jnp.where(off, jnp.nan, whole) if jnp.issubdtype(whole.dtype, jnp.floating) else whole
        )

    kept = jax.tree_util.tree_map(series, keep(start, q0, v0), kept)
    times_kept = jnp.concatenate([start[None], t])
    return Solution(times_kept, series(q0, qs), series(v0, vs), kept, status, jnp.max(drift))


def _step(
    mech: Mechanism, inputs: Any, o: _Options, times: _Times, t: Array, q: Array, v: Array
) -> tuple[Array, Array]:
    def acceleration(s: Array, q: Array, v: Array) -> Array:
        m = motion_state(mech, q, v, s)
        efforts: Any = inputs(s) if callable(inputs) else inputs
        force, rhs = applied_forces(m, efforts)
        if o.constraints == "baumgarte":
            slip = closure_jacobian(m) @ v - closure_velocity(m)
            alpha = times.baumgarte_rate
            rhs = rhs - 2.0 * alpha * slip - alpha**2 * closure_residual(m)
        return solve_motion(m, force, rhs, efforts)[0]

    if isinstance(o.method, str):
        q, v = INTEGRATORS[o.method](mech, acceleration, t, q, v, times.dt)
    else:
        q, v = adaptive_interval(mech, o.method, acceleration, t, q, v, times.dt)
    if o.constraints == "project" and topology(mech).nc:
        q, v = project(mech, q, v, t + times.dt)
    return q, v


def _raise(mech: Mechanism, q0: Array, v0: Array, solution: Solution, t0: float) -> None:
    status = Status(int(solution.status))
    if status == Status.NOT_ASSEMBLED:
        m = motion_state(mech, q0, v0, t0)
        slip = np.asarray(closure_jacobian(m) @ v0 - closure_velocity(m))
        worst = int(np.argmax(np.abs(slip)))
        raise ValueError(
            f"the initial state is not on the constraints: {open_joints(mech, q0, t0)}; the row "
            f"'{m.top.row_names[worst]}' moves at {slip[worst]:.3g} m/s or rad/s. Take q0 from "
            "assemble(...) and v0 from assemble_velocity(...)"
        )
    check_determinate(mech, q0)
    bad = ~np.all(np.isfinite(np.asarray(solution.q)), axis=1)
    when = float(solution.t[int(np.argmax(bad))]) if bad.any() else t0
    raise ValueError(
        f"the run failed ({status.name.lower()}) at t = {when:.6g} s, with a drift of "
        f"{float(solution.drift):.3g} m: try a smaller dt, an implicit diffrax solver where it is "
        "stiff, or look for a singular position there"
    )
