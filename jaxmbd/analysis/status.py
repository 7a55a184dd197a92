"""The outcome of a computation: a status inside `jit`, an exception outside."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from jaxmbd.dynamics import determinate, kkt_system
from jaxmbd.graph import topology
from jaxmbd.kinematics import (
    MotionState,
    closure_residual,
    closure_rows,
    closure_velocity,
    constraint_residual,
    digit_doubt,
    mechanism_length,
    own_rows,
    row_scale,
    speed_units,
    stored_jacobian,
)
from jaxmbd.lanes import rarely
from jaxmbd.model import Mechanism, finite_numbers
from jaxmbd.numerics import Doubt, Rows, factor_rows, largest, only, tolerances


class Status(IntEnum):
    """Outcome of a computation, one number for each sample.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Status(1).name
        'NOT_ASSEMBLED'
    """

    OK = 0
    NOT_ASSEMBLED = 1
    SINGULAR = 2
    DIVERGED = 3
    NON_FINITE = 4
    INACCURATE = 5


def visible(x: Any) -> bool:
    """Whether `x` is a concrete status of one sample, so that a failure can raise an error."""
    return not isinstance(x, Tracer) and np.ndim(x) == 0


def closing_tolerance(dtype: Any, length: Array) -> Array:
    """Largest closure error [m] of a configuration that counts as assembled."""
    return tolerances.closing(dtype) * length


def open_joints(mech: Mechanism, q: Any, t: float = 0.0) -> str:
    """How far each loop is open at q, the worst first, for messages."""
    top = topology(mech)
    residual = np.asarray(constraint_residual(mech, q, t))
    kinds = np.array(top.row_kinds)
    found = []
    for name in (*top.cut, *top.couplings, *top.drives):
        rows = top.layout[name].rows
        size = np.abs(residual[rows])
        unit = ["m" if k == "force" else "rad" for k in kinds[rows]]
        worst = int(np.argmax(np.where(np.isnan(size), np.inf, size)))
        found.append((size[worst], f"joint '{name}' is open by {size[worst]:.3g} {unit[worst]}"))
    return "; ".join(text for _, text in sorted(found, reverse=True))


def closure_error(m: MotionState) -> Array:
    """Largest closure error [m; moment rows times the mechanism's length]."""
    return jnp.max(jnp.abs(row_scale(m) * closure_residual(m)), initial=0.0)


def closure_slip(m: MotionState) -> Array:
    """Largest violation of the velocity constraints [m/s; moment rows times the length]."""
    slip = closure_rows(m) @ m.v - closure_velocity(m)
    return jnp.max(jnp.abs(row_scale(m) * slip), initial=0.0)


class Closure(NamedTuple):
    """Errors of the constraints, apart from what redundant rows contradict each other by.

    Attributes:
        opened: largest closure error [m] that a motion can remove.
        slip: the same of the velocity constraints [m/s].
        contradiction: largest closure error that no motion removes [m].
        slip_contradiction: the same of the velocity constraints [m/s].
    """

    opened: Array
    slip: Array
    contradiction: Array
    slip_contradiction: Array


def closure(m: MotionState) -> Closure:
    """`Closure` of a state; on the constraints without looking for redundant rows."""
    own = own_rows(m)
    rows = stored_jacobian(m, own)
    slip = rows @ m.v - own.of(closure_velocity(m))
    errors = jnp.stack([own.of(closure_residual(m)), slip])
    rows, errors, doubt = lax.stop_gradient((rows, errors, digit_doubt(m)))
    units = lax.stop_gradient(speed_units(m.mech))
    most = jnp.max(jnp.abs(errors), axis=1, initial=0.0)
    closed = most[0] < closing_tolerance(m.q.dtype, mechanism_length(m.mech))
    none = jnp.zeros_like(most)
    if m.top.nc < 2:
        return Closure(*most, *none)
    # Also behind it: reverse mode stops at results, not at arguments.
    opened, left = lax.stop_gradient(
        rarely(~closed, _parted, (most, none), rows, units, errors, doubt)
    )
    return Closure(*opened, *left)


def _parted(rows: Rows, units: Array, errors: Array, doubt: Doubt) -> tuple[Array, Array]:
    factors = factor_rows(rows, units * units, doubt=doubt)
    removable = jnp.stack([factors.consistent(x) for x in errors])
    left = errors - removable
    return jnp.max(jnp.abs(removable), axis=1), jnp.max(jnp.abs(left), axis=1)


DRIFT = 1e3
"""Largest closure error in a run, in multiples of `closing_tolerance`. The last projection of a
step leaves the square of what the step itself opened the loops by."""


def _reach(m: MotionState) -> Array:
    """The longest lever of a loop [m], at most the mechanism's length: a body may be far away."""
    length = mechanism_length(m.mech)
    forces = np.array([k == "force" for k in m.top.row_kinds], bool)
    angles = np.array([k == "angle" for k in m.top.speed_kinds], bool)
    if not (forces.any() and angles.any()):
        return length
    reach = largest(only(closure_rows(m), forces, angles))
    return lax.stop_gradient(jnp.where(reach > 0.0, jnp.minimum(reach, length), length))


def initial_status(m: MotionState, errors: Closure | None = None, drift: float = 1.0) -> Array:
    """`Status` of an initial state: whether finite, on the constraints, and determinate.

    Redundant rows may contradict each other by `tolerances.CONTRADICTION`.

    Args:
        m: the state.
        errors: its `closure`.
        drift: how far it may be off the constraints, in multiples of `closing_tolerance`; `DRIFT`
            where the state may be the end of a run.
    """
    errors = closure(m) if errors is None else errors
    opened, slip, left, left_slip = errors
    length = mechanism_length(m.mech)
    tolerance = drift * closing_tolerance(m.q.dtype, length)
    bound = tolerances.CONTRADICTION
    size = jnp.max(jnp.abs(m.v) / speed_units(m.mech), initial=0.0)
    speed = 1e2 * tolerance * (1.0 + size)
    # Runs meet the kept rows, which differ from those of least squares by what others contradict.
    apart = tolerances.TURNED_BY_OPENING * left
    closed = (opened < tolerance + apart) & (slip < speed + apart * size)
    reach = _reach(m)
    closed = closed & (left <= bound * reach) & (left_slip <= 1e1 * bound * reach * size)
    finite = jnp.all(jnp.isfinite(m.q)) & jnp.all(jnp.isfinite(m.v)) & jnp.isfinite(opened)
    finite = finite & finite_numbers(m.mech)
    status = jnp.where(determinate(kkt_system(m)), Status.OK, Status.SINGULAR)
    status = jnp.where(closed, status, Status.NOT_ASSEMBLED)
    return jnp.where(finite, status, Status.NON_FINITE)
