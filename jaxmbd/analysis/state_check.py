"""Whether a state can be computed with: on the constraints, determinate, and well enough posed."""

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
    """What may be expected of results at a state.

    Attributes:
        status: a `Status` number; INACCURATE where rounding alone may reach 5e-7 of accelerations,
            or those found miss a constraint by as much.
        conditioning: between zero and one: what the pivots of the equations keep of their diagonal
            elements. Accelerations lose about ``ε`` over it of their precision.
        residual: largest closure error [m; moment rows times the mechanism's length].
        slip: largest speed off the constraints [m/s; likewise].

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
    """Status and conditioning of a state, for a batch of `forward_dynamics` and its like.

    One body a million times farther or heavier than others leaves few digits to what it carries:
    the equations are then solved, but to less than is asked of them.

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
