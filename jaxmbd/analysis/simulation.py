"""Simulation: a time loop of integrator steps, each projected onto the constraints."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd import lanes
from jaxmbd.analysis.inputs import parse_inputs
from jaxmbd.analysis.integrators import INTEGRATORS
from jaxmbd.analysis.rollout import Numbers, Options, Outputs, Solution, rollout
from jaxmbd.analysis.status import Status, open_joints, visible
from jaxmbd.analysis.velocity import assemble_velocity
from jaxmbd.dynamics.backend import check_backend, compiled, host_jit
from jaxmbd.dynamics.forward import check_determinate
from jaxmbd.graph import topology
from jaxmbd.kinematics import motion_state
from jaxmbd.kinematics.closure import closure_jacobian, closure_velocity
from jaxmbd.kinematics.motion import check_shape
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.numerics import tolerances


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
        t1: end time [s]; (t1 − t0)/dt is rounded to a whole number of `save_every` steps.
        dt: step [s].
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
            of a run (`jaxmbd.analysis.watch`); above it the run is INACCURATE, as an undamped
            vibration with fewer than 15 steps per period by "rk4", 81 by "semi_implicit_euler".
            A diffrax solver controls its errors itself.
        rtol: relative error of a diffrax solver's step; by default 1e-10 (4e-5 in float32).
        atol: absolute error of such a step; by default 1e-12 (5e-6 in float32).
        throw: raise an error if the run fails (outside `jit` and `vmap`).
        backend: "auto", "lanes" or "xla" (`jaxmbd.dynamics.backend`); adaptive solvers use XLA.

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
        _raise(mech, q0, v0, solution)
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
        raise ValueError(
            f"the initial state violates the constraints: {open_joints(mech, q0, t0)}; the speeds "
            f"violate the row '{m.top.row_names[worst]}' by {slip[worst]:.3g} m/s or rad/s. Take "
            "q0 from assemble(...) and v0 from assemble_velocity(...)"
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
