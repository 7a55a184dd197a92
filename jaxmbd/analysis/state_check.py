"""Checks of a state: on the constraints, determinate and well enough conditioned."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.analysis.status import Status, closure_error, closure_slip, initial_status
from jaxmbd.dynamics.backend import compiled
from jaxmbd.dynamics.forward import applied_efforts
from jaxmbd.dynamics.friction import solve_motion
from jaxmbd.dynamics.kkt import conditioning, rows_met
from jaxmbd.graph import topology
from jaxmbd.kinematics import motion_state
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.numerics import tolerances


class StateCheck(NamedTuple):
    """How far results at a state can be trusted.

    Attributes:
        status: a `Status` number; INACCURATE if rounding alone may cause relative errors of 5e-7
            in the accelerations, or if they violate a constraint by as much.
        conditioning: between zero and one: the smallest ratio of a pivot to its diagonal element
            in the mass matrix M, times that in ``J M⁻¹ Jᵀ``. The relative error of accelerations
            is about ``ε / conditioning``.
        residual: largest closure error [m; moment rows times the mechanism's length].
        slip: largest violation of the velocity constraints [m/s; likewise].

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.rssr()
        >>> mbd.check_state(m, mbd.neutral(m)).status.item()
        0
    """

    status: Array
    conditioning: Array
    residual: Array
    slip: Array


def check_state(
    mech: Mechanism, q: Any, v: Any = None, *, t: Any = 0.0, backend: str = "auto"
) -> StateCheck:
    """Status and conditioning of a state, for functions that return none (`forward_dynamics`, …).

    A body a million times heavier than the others, or farther away, leaves few significant digits
    for the bodies that it carries: the equations are then solved less accurately than required.

    Args:
        mech: the mechanism.
        q: coordinates (nq,).
        v: speeds (nv,); by default at rest.
        t: time [s].
        backend: "auto", "lanes" or "xla" (`jaxmbd.dynamics.backend`).

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.double_pendulum()
        >>> bool(mbd.check_state(m, mbd.neutral(m)).conditioning > 0.1)
        True
    """
    q, t = jnp.asarray(q, mech.dtype), jnp.asarray(t, mech.dtype)
    v = jnp.zeros(topology(mech).nv, q.dtype) if v is None else jnp.asarray(v, q.dtype)
    return _check(backend, mech, q, v, t)


@eqx.filter_jit
def _check(backend: str, *args: Any) -> StateCheck:
    return compiled(backend, _examine, *args)


def _examine(mech: Mechanism, q: Array, v: Array, t: Array) -> StateCheck:
    status, m = initial_status(mech, q, v, t), motion_state(mech, q, v, t)
    force, rhs = applied_efforts(m, None)
    vdot, _, system = solve_motion(m, force, rhs, None)
    kept = conditioning(system)
    enough = kept * tolerances.carrying(q.dtype) > tolerances.rounding(q.dtype)
    fine = (status != Status.OK) | (enough & rows_met(system, vdot, rhs))
    status = jnp.where(fine, status, Status.INACCURATE).astype(jnp.int32)
    return StateCheck(status, kept, closure_error(m), closure_slip(m))
