"""The account of a run: what its steps were wrong by, and whether it is still on the constraints.

Each step is judged where it happens, and what the steps are wrong by adds up. The error of the run,
as a share of its motion, is

    ε ← ε F/F' + own/S',   S' = max(|v'|, S/(1 + |Δv|/4S)),   F' = max(F, |v'|)

with v' the speeds after the step, Δv their change in it, and own the error of the step in them,
which the method estimates (`Method.own_error`). S are the speeds of the neighbourhood, which hold
through the turning points of a vibration and are forgotten as the speeds change by some S; F are
the fastest so far: a fast transient at the start is small beside faster motion after it. The sum is
that of an undamped motion: an error neither dies out with the motion nor grows, as it does in a
chaotic one.

The speeds of semi-implicit Euler are moreover those of half a step before (`Method.lag`):
``|Δv|/2S`` is added, which does not add up, unless an event changes such speeds: it takes them for
those of its time. What events change is no part of Δv but for the neighbourhood.

All this is done in two norms, and the larger counts: the energy norm ``√(Σ Mᵢᵢ vᵢ²)`` with the
inertias at the start, in which heavy bodies count more than light ones, and the kinematic norm
``√(Σ (vᵢ/uᵢ)²)``, with u one radian or the mechanism's length for travels, in which all count
alike. The account has no derivatives, and is handed on by `Solution.end`: how a motion is cut into
runs changes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.analysis.methods import Method, Step
from jaxmbd.analysis.status import DRIFT, Status, closing_tolerance, closure_error, closure_slip
from jaxmbd.dynamics import mass_operator
from jaxmbd.kinematics import MotionState, mechanism_length, speed_units
from jaxmbd.model import Mechanism
from jaxmbd.numerics import tolerances

FORGETTING = 0.25
"""Share of a change of speeds by which the speeds of the neighbourhood are forgotten."""


class Account(NamedTuple):
    """The account of a run. Those of two numbers have one in each norm.

    Attributes:
        scale: speeds S of the neighbourhood (2,).
        fastest: largest speeds so far F (2,).
        recent: sizes ``√(e² + d²)`` of the estimates of the last two steps (2, 2).
        error: sum of the steps' own errors, a share of the motion (2,).
        lag: the largest share by which speeds are those of an earlier time (2,).
        worst: the largest own error of a step, a share of the motion (2,).
        worst_at: the end of the step that has it [s].
        inaccurate: time since which the error is too large [s]; infinite if it is not.
        diverged: time at which the run left the constraints or became infinite or NaN [s];
            infinite before.
        contradiction: closure error at the start [m] that no motion removes.
        steps: steps taken.
    """

    scale: Array
    fastest: Array
    recent: Array
    error: Array
    lag: Array
    worst: Array
    worst_at: Array
    inaccurate: Array
    diverged: Array
    contradiction: Array
    steps: Array

    @property
    def share(self) -> Array:
        """The estimated error of the run, as a share of its motion."""
        return jnp.max(self.error + self.lag)


class StepSizes(NamedTuple):
    """Sizes of a step (2,), in the two norms.

    Attributes:
        speed: of the speeds after it.
        change: of their change.
        smooth: of that without `Step.jumped`.
        estimates: of `Step.estimates`.
    """

    speed: Array
    change: Array
    smooth: Array
    estimates: tuple[Array, Array]


def norms(m: MotionState) -> Array:
    """Weights (2, nv) of squared speeds: inertias [kg m², kg], and ``1/u²`` [1, 1/m²]."""
    return lax.stop_gradient(
        jnp.stack([mass_operator(m).diagonal(), 1.0 / speed_units(m.mech) ** 2])
    )


def first_account(
    mech: Mechanism, weights: Array, v: Array, h: Array, contradiction: Array
) -> Account:
    """The account before the first step.

    Speeds count from 1e-12 of a unit per step on: those of a mechanism at rest in equilibrium are
    smaller, and only rounding. A norm that is zero for all speeds, as without any, counts as one.
    """
    v = lax.stop_gradient(v)
    resolved = lax.stop_gradient(tolerances.integration(mech.dtype).atol * speed_units(mech) / h)
    squared = weights @ jnp.maximum(v * v, resolved**2)
    speed = jnp.sqrt(jnp.where(squared > 0.0, squared, 1.0))
    never, none = jnp.full((), jnp.inf, mech.dtype), jnp.zeros(2, mech.dtype)
    unknown = jnp.full((2, 2), jnp.inf, mech.dtype)
    return Account(
        speed, speed, unknown, none, none, none, none[0], never, never, contradiction, none[0]
    )


def sizes(weights: Array, before: Array, step: Step) -> StepSizes:
    """Sizes of a step from the speeds before it."""
    change = step.v - before
    smooth = change if step.jumped is None else change - step.jumped
    each = lax.stop_gradient(jnp.stack([step.v, change, smooth, *step.estimates]))
    speed, moved, flowed, e, d = jnp.sqrt((each * each) @ weights.T)
    return StepSizes(speed, moved, flowed, (e, d))


def after_step(
    account: Account, method: Method, step: StepSizes, accuracy: Array, t: Array
) -> Account:
    """Take in a step that ended at t."""
    speed, change, smooth, estimates = lax.stop_gradient(step)
    struck = change != smooth
    change, smooth = (jnp.maximum(x, jnp.finfo(x.dtype).tiny) for x in (change, smooth))
    scale = account.scale
    scale = jnp.maximum(speed, scale * scale / (scale + FORGETTING * change))
    before = jnp.max(account.recent, axis=0)
    fastest = jnp.maximum(account.fastest, speed)
    late = method.lag * smooth / scale
    own = method.own_error(estimates, before, smooth, scale, fastest) / scale
    own = own + jnp.where(struck, late, 0.0)
    slower = account.fastest / fastest
    lag = jnp.maximum(account.lag * slower, late)
    worst = account.worst * slower
    worse = jnp.max(own) > jnp.max(worst)
    found = account._replace(
        scale=scale,
        fastest=fastest,
        recent=jnp.stack([account.recent[1], jnp.hypot(*estimates)]),
        error=account.error * slower + own,
        lag=lag,
        worst=jnp.maximum(worst, own),
        worst_at=jnp.where(worse, t, account.worst_at),
        diverged=_first(account.diverged, jnp.all(jnp.isfinite(speed)), t),
        steps=account.steps + 1.0,
    )
    fine = found.share <= accuracy
    return found._replace(inaccurate=jnp.where(fine, jnp.inf, jnp.minimum(account.inaccurate, t)))


def at_saved_time(account: Account, m: MotionState, t: Array) -> tuple[Account, Array]:
    """Check a projected state against the constraints; also its closure error [m].

    The limits are `DRIFT` times the closing tolerance for positions, and the same multiple of
    the largest speeds for speeds. What redundant rows contradict each other by at the start may
    change along the motion.
    """
    limit = DRIFT * closing_tolerance(m.q.dtype, mechanism_length(m.mech))
    limit = limit + 1e2 * account.contradiction
    drift, slip = lax.stop_gradient((closure_error(m), closure_slip(m)))
    on = (drift < limit) & (slip <= limit * account.fastest[1])
    return account._replace(diverged=_first(account.diverged, on, t)), drift


def verdict(account: Account, start: Array, t0: Array) -> tuple[Array, Array]:
    """`Status` of a whole run from that of its initial state, and the time of failure [s]."""
    inaccurate = account.inaccurate < account.diverged
    later = jnp.where(inaccurate, Status.INACCURATE, Status.DIVERGED)
    when = jnp.minimum(account.inaccurate, account.diverged)
    later = jnp.where(when < jnp.inf, later, Status.OK)
    ok = start == Status.OK
    return jnp.where(ok, later, start).astype(jnp.int32), jnp.where(ok, when, t0)


def _first(when: Array, fine: Any, t: Array) -> Array:
    return jnp.where(fine, when, jnp.minimum(when, t))
