"""Monitoring of a run: the errors of its steps, and whether it stays on the constraints.

The estimated errors e of the steps in the speeds must be small relative to the speeds v, in root
mean squares over the steps so far, ``Σ |e|² ≤ accuracy² Σ |v|²``, in each of two norms: the energy
norm ``√(Σ Mᵢᵢ vᵢ²)`` with the inertias at the start, in which heavy bodies count more than light
ones, and the kinematic norm ``√(Σ (vᵢ/uᵢ)²)``, with u one radian or the mechanism's length for
travels, in which all count alike. A motion that decays to rest is not judged by rounding.

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

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.analysis.status import (
    DRIFT,
    Status,
    closing_tolerance,
    closure_error,
    closure_slip,
)
from jaxmbd.dynamics import mass_diagonal, mass_operator
from jaxmbd.kinematics import MotionState, mechanism_length, speed_units
from jaxmbd.model import Mechanism
from jaxmbd.numerics import tolerances


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
        jnp.stack([mass_diagonal(mass_operator(m)), 1.0 / speed_units(m.mech) ** 2])
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
