"""States at any time of a run, between its saved states (dense output).

In an interval of h from (q0, v0) to (q1, v1) the coordinates are ``q = step(q0, c)``, c (nv,) being
the change along the speeds with which `step_coordinates` leaves the first end; so quaternions stay
unit. What is interpolated is c, from its value, rate and second rate at both ends: c is zero at the
first and `coordinate_change` at the second, and its rates follow from ``q̇ = rate(q, v)`` and v̇ of
forward dynamics. With s the share of the interval, quintic Hermite interpolation is (Hairer,
Nørsett, Wanner, Solving ODEs I, II.6) the integral of the cubic one of the rates,

    c = h ċ0 (s − s³ + s⁴/2) + h ċ1 (s³ − s⁴/2)
        + h² c̈0 (s²/2 − 2 s³/3 + s⁴/4) + h² c̈1 (s⁴/4 − s³/3) + e s³ (10 − 15 s + 6 s²),

    e = c1 − h (ċ0 + ċ1)/2 − h² (c̈0 − c̈1)/12,

e being what the trapezoidal rule with end corrections misses. The error is h⁶ times the sixth
derivative over 46 080, and O(h⁵) of the rates.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from jaxmbd.analysis.known import AnyInputs, efforts_at, parse_inputs
from jaxmbd.analysis.programs import program
from jaxmbd.analysis.projection import project
from jaxmbd.analysis.solution import Solution
from jaxmbd.analysis.status import closing_tolerance, closure_error, visible
from jaxmbd.dynamics import forward_dynamics
from jaxmbd.graph import topology
from jaxmbd.kinematics import (
    coordinate_change,
    coordinate_rates,
    mechanism_length,
    motion_state,
    speeds_of_rates,
    step_coordinates,
)
from jaxmbd.lanes import check_backend, guarded
from jaxmbd.model import Mechanism
from jaxmbd.numerics import tolerances


def states_at(
    mech: Mechanism,
    solution: Solution,
    t: Any,
    *,
    inputs: Any = None,
    backend: str = "auto",
) -> tuple[Array, Array]:
    """Coordinates and speeds at any times of a run, between its saved states.

    Each time's state is interpolated from the two saved ones around it, of sixth order in q and
    fifth in v (`jaxmbd.analysis.dense_output`), and then projected onto the constraints in position
    and velocity. Accelerations and multipliers there are what `forward_dynamics` gives.

    The interval that counts is that between saved states: at `save_every` steps, the error of
    interpolation is that of an interval so long. Where a force jumps or has a kink within the
    interval, as at a stop or by an input that is held, the order is lost in it, and where an impact
    or a jump of the state lies in it (`Event`) the result is NaN. The state is never better than
    the saved ones.

    One run; a batch by `jax.vmap` or `lanes.vmap`. Differentiable by the mechanism, the run, the
    times and the inputs, forward and reverse.

    Args:
        mech: the mechanism of the run.
        solution: the run, with its saved states (not by ``outputs_only=True``).
        t: times [s], a number or an array (…), in any order; they may be traced.
        inputs: efforts on joints, as those of the run (`simulate`).
        backend: "auto", "lanes" or "xla" (`jaxmbd.lanes.backend`).

    Returns:
        q (…, nq) and v (…, nv); NaN where one of the two saved states is, between which an event
        changed the motion, where no state on the constraints is found, as may be beside a singular
        position, and outside of the run.

    Raises:
        ValueError: the run has saved no states on the way; outside `jit`, a time is not within it,
            or it had inputs and none are given (inside, the result is NaN then).

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> run = mbd.simulate(m, [0.1], t1=0.1, dt=1e-2)
        >>> q, v = mbd.states_at(m, run, [0.012, 0.05])
        >>> fine = mbd.simulate(m, [0.1], t1=0.012, dt=1e-3)
        >>> bool(abs(q[0] - fine.q[-1]) < 1e-8), bool(abs(q[1] - run.q[5]) < 1e-12)
        (True, True)
    """
    check_backend(backend)
    check_rows(solution)
    t = jnp.asarray(t, mech.dtype)
    forgotten, sudden = inputs_forgotten(solution, inputs), sudden_changes(solution)
    rows = rows_of(solution)
    inputs = parse_inputs(mech, inputs)
    q, v = program(backend, _states, mech, rows, sudden, forgotten, t.reshape(-1), inputs)
    if visible(solution.status) and not isinstance(q, Tracer):
        _check_within(np.asarray(t), np.asarray(rows[0]))
    return q.reshape(*t.shape, -1), v.reshape(*t.shape, -1)


def check_rows(solution: Solution) -> None:
    """Raise a ValueError if the run has not saved its states."""
    if solution.q.shape[-2] != solution.t.shape[-1]:
        raise ValueError(
            f"the run has {solution.t.shape[-1]} saved times but {solution.q.shape[-2]} states: "
            "run it without outputs_only=True"
        )


def inputs_forgotten(solution: Solution, inputs: Any) -> Array:
    """Whether the run had inputs and none are given; outside `jit` that is a ValueError."""
    forgotten = (jnp.asarray(solution.forced) > 0) & (not inputs)
    if visible(forgotten) and forgotten:
        raise ValueError("the run had inputs=, which move it between its saved states: give them")
    return forgotten


Rows = tuple[Array, Array, Array, dict[str, Array]]
"""t (n,), q (n, nq), v (n, nv), and each switch (n,)."""


def rows_of(solution: Solution) -> Rows:
    """Those of a run."""
    rows: Any = (solution.t, solution.q, solution.v, solution.switches or {})
    return jax.tree_util.tree_map(jnp.asarray, rows)


def _check_within(t: np.ndarray, rows: np.ndarray) -> None:
    slack = _slack(rows)
    if np.all((t >= rows[0] - slack) & (t <= rows[-1] + slack)):
        return
    raise ValueError(
        f"t = {t.min():g} … {t.max():g} s is not within the run, which is from {rows[0]:g} to "
        f"{rows[-1]:g} s"
    )


def _slack(rows: Any) -> Any:
    """What rounding may put the ends of a run beside where they were meant [s]."""
    ends = abs(rows[0]) + abs(rows[-1])
    return tolerances.rounding(rows.dtype, 8) * ends


def _states(
    mech: Mechanism,
    rows: Rows,
    sudden: list[tuple[Array, Array, Array]],
    forgotten: Array,
    times: Array,
    inputs: AnyInputs,
) -> tuple[Array, Array]:
    """The states at times (m,)."""
    mech = jax.tree_util.tree_map(jnp.asarray, mech)
    t, slack = rows[0], _slack(rows[0])
    ends = jax.tree_util.tree_map(lambda x: x[:2], rows)
    state, hoisted = jax.closure_convert(partial(_between, mech, inputs), t[0], ends)

    def at(time: Array) -> tuple[Array, Array]:
        within = (time >= t[0] - slack) & (time <= t[-1] + slack) & ~forgotten
        k = jnp.clip(jnp.searchsorted(t, time), 1, t.shape[0] - 1) - 1
        ends = jax.tree_util.tree_map(lambda x: lax.dynamic_slice_in_dim(x, k, 2), rows)
        q, v = guarded(state, jnp.clip(time, t[0], t[-1]), ends, *hoisted)
        for happened, unknown in (changes_within(x, ends[0]) for x in sudden):
            within = within & ~(unknown | happened & (time != ends[0][1]))
        q, v = (jnp.asarray(jnp.where(within, x, jnp.nan)) for x in (q, v))
        return q, v

    return lax.map(at, times)


class Interval(NamedTuple):
    """The motion between two states.

    Attributes:
        t: time at the first end [s].
        h: length [s].
        q: coordinates at both ends (2, nq).
        first: ``h ċ`` at both ends (2, nv).
        second: ``h² c̈`` at both ends (2, nv).
        missed: e (nv,).
        opened: the larger closure error of both ends [m].
    """

    t: Array
    h: Array
    q: Array
    first: Array
    second: Array
    missed: Array
    opened: Array

    @classmethod
    def between(cls, mech: Mechanism, inputs: AnyInputs, ends: Rows) -> Interval:
        """That between the two rows at both ends, with the switches of the first."""
        t, q, _, switches = ends
        switches = {name: x[0] for name, x in switches.items()}
        h = t[1] - t[0]

        def change(end: tuple[Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            """``c, h ċ, h² c̈`` (nv,) at an end, and its closure error."""
            t, now, v = end
            efforts = efforts_at(inputs, t, now, v, switches)
            vdot, _ = forward_dynamics(mech, now, v, t, efforts, backend="xla")

            def rate(now: Array, v: Array) -> Array:
                along = coordinate_rates(mech, now, v)
                return jax.jvp(partial(coordinate_change, mech, q[0]), (now,), (along,))[1]

            first, second = jax.jvp(rate, (now, v), (coordinate_rates(mech, now, v), vdot))
            opened = _opened(mech, t, now, v)
            return coordinate_change(mech, q[0], now), h * first, h * h * second, opened

        # A loop, so that the dynamics is compiled once.
        c, first, second, opened = lax.map(change, ends[:3])
        missed = c[1] - 0.5 * (first[0] + first[1]) - (second[0] - second[1]) / 12.0
        return cls(t[0], h, q, first, second, missed, jnp.max(opened))

    def state(self, mech: Mechanism, time: Array) -> tuple[Array, Array]:
        """Coordinates and speeds at a time, on the constraints; NaN where none are found."""
        s, h, first, second = (time - self.t) / self.h, self.h, self.first, self.second
        cubic = s**3 - 0.5 * s**4
        c = (
            first[0] * (s - cubic)
            + first[1] * cubic
            + second[0] * (0.5 * s**2 - 2.0 / 3.0 * s**3 + 0.25 * s**4)
            + second[1] * (0.25 * s**4 - s**3 / 3.0)
            + self.missed * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
        )
        blend = 3.0 * s**2 - 2.0 * s**3
        rate = (
            first[0] * (1.0 - blend)
            + first[1] * blend
            + second[0] * (s - 2.0 * s**2 + s**3)
            + second[1] * (s**3 - s**2)
            + _but_noise(self.missed, self.q) * 30.0 * (s * (1.0 - s)) ** 2
        ) / h
        here, along = jax.jvp(partial(step_coordinates, mech, self.q[0]), (c,), (rate,))
        v = speeds_of_rates(mech, here, along)
        if not topology(mech).nc:
            return here, v
        # Between saved states far apart one projection is not exact.
        q, v = lax.fori_loop(0, 2, lambda _, x: project(mech, x[0], x[1], time), (here, v))
        limit = closing_tolerance(q.dtype, mechanism_length(mech)) + 10.0 * self.opened
        closed = _opened(mech, time, q, v) <= limit
        q, v = (jnp.asarray(jnp.where(closed, x, jnp.nan)) for x in (q, v))
        return q, v


Sudden = tuple[Array, Array, Array]
"""Of an event how often it happened, the first times [s], and whether the motion changes there."""


def sudden_changes(solution: Solution) -> list[Sudden]:
    """Those of a run."""
    return [(x.count, x.t, x.acts) for x in (solution.events or {}).values()]


def changes_within(sudden: Sudden, ends: Array) -> tuple[Array, Array]:
    """Whether the motion changed between two times (2,), and whether that is not known."""
    count, at, acts = sudden
    unknown = (count > at.shape[0]) & (ends[1] > at[-1])  # only the first times are recorded
    return acts & jnp.any((at > ends[0]) & (at <= ends[1])), acts & unknown


def _between(
    mech: Mechanism,
    inputs: AnyInputs,
    time: Array,
    ends: Rows,
) -> tuple[Array, Array]:
    """The state at a time from those at both ends."""
    return Interval.between(mech, inputs, ends).state(mech, time)


def _opened(mech: Mechanism, t: Array, q: Array, v: Array) -> Array:
    """The closure error of a state [m], without derivatives."""
    return lax.stop_gradient(closure_error(motion_state(mech, q, v, t)))


def _but_noise(missed: Array, q: Array) -> Array:
    """`missed` without what is rounding of q: over a short h that would be much of the speeds."""
    noise = tolerances.rounding(q.dtype, 8) * jnp.max(jnp.abs(q), initial=0.0)
    return missed - lax.stop_gradient(jnp.where(jnp.abs(missed) <= noise, missed, 0.0))
