"""How far loops miss with coordinates held: errors, their Jacobian and curvature.

Held joint coordinates, and driven ones, are set exactly and do not move; the other speeds are free.
The errors are those of cut joints, couplings, point drives and held points, all in metres (moment
rows times the mechanism's length), divided by that length.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis.known import JointCoordinate, Key, PointCoordinate, known_values
from jaxmbd.graph import topology
from jaxmbd.kinematics import motion_state, step_coordinates
from jaxmbd.kinematics.closure import closure_residual
from jaxmbd.kinematics.scales import mechanism_length, row_scale, speed_units
from jaxmbd.model.drive import Drive
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.numerics.jacobian import jacobian


class Case(NamedTuple):
    """What is differentiated with respect to: the mechanism, the held values and the time [s]."""

    mech: Mechanism
    values: list[Array]
    t: Array


def unit_length(case: Case) -> Array:
    """The mechanism's length [m] as a unit, without derivative."""
    return lax.stop_gradient(mechanism_length(case.mech))


def settings(keys: tuple[Key, ...], case: Case) -> list[tuple[JointCoordinate, Array]]:
    """The joint coordinates that do not move, and their values: held ones, then driven ones."""
    held = [
        (key, value)
        for key, value in zip(keys, case.values, strict=True)
        if isinstance(key, JointCoordinate)
    ]
    driven = [
        (JointCoordinate(drive.joint, drive.index), drive.value(case.t)[0])
        for drive in case.mech.drives.values()
        if isinstance(drive, Drive)
    ]
    return held + driven


def with_settings(keys: tuple[Key, ...], case: Case, q: Array) -> Array:
    """Coordinates (nq,) with the held and driven ones at their values."""
    layout = topology(case.mech).layout
    for key, value in settings(keys, case):
        place = layout[key.joint].q
        assert place is not None
        if key.index is not None:
            place = slice(place.start + key.index, place.start + key.index + 1)
        new = jnp.reshape(value, (place.stop - place.start,)).astype(q.dtype)
        q = jnp.concatenate([q[: place.start], new, q[place.stop :]])
    return q


def free_speeds(keys: tuple[Key, ...], mech: Mechanism) -> tuple[int, ...]:
    """Indices of the speeds that are neither held nor driven."""
    top = topology(mech)
    free = np.ones(top.nv, bool)
    drives = [d for d in mech.drives.values() if isinstance(d, Drive)]
    still = [JointCoordinate(d.joint, d.index) for d in drives]
    for key in [*still, *(k for k in keys if isinstance(k, JointCoordinate))]:
        place = top.layout[key.joint].v
        assert place is not None
        free[place if key.index is None else place.start + key.index] = False
    return tuple(int(i) for i in np.flatnonzero(free))


def error_count(keys: tuple[Key, ...], mech: Mechanism) -> int:
    """How many errors there are."""
    return len(_kept(mech)) + sum(isinstance(key, PointCoordinate) for key in keys)


def _kept(mech: Mechanism) -> list[int]:
    """The closure rows that are errors here: all but those of drives of joints."""
    top = topology(mech)
    kept = np.ones(top.nc, bool)
    for name, drive in mech.drives.items():
        if isinstance(drive, Drive):
            kept[top.layout[name].rows] = False
    return [int(i) for i in np.flatnonzero(kept)]


def errors(keys: tuple[Key, ...], case: Case, q: Array) -> Array:
    """The errors (n,) [m] at q."""
    m = motion_state(case.mech, q, t=case.t)
    rows = (row_scale(m) * closure_residual(m))[np.array(_kept(case.mech), int)]
    chosen = [
        (key, value)
        for key, value in zip(keys, case.values, strict=True)
        if isinstance(key, PointCoordinate)
    ]
    now = known_values(m, tuple(key for key, _ in chosen))
    held = [x - value for x, (_, value) in zip(now, chosen, strict=True)]
    return jnp.concatenate([rows, jnp.stack(held)]) if held else rows


def moved(keys: tuple[Key, ...], case: Case, q: Array, change: Array) -> Array:
    """Q after a change along the free speeds, travels in units of the mechanism's length."""
    spread = np.eye(topology(case.mech).nv)[:, list(free_speeds(keys, case.mech))]
    units = lax.stop_gradient(speed_units(case.mech))
    whole = jnp.asarray(spread, q.dtype) @ change
    return step_coordinates(case.mech, q, units * whole)


class Misfit(NamedTuple):
    """At one configuration, in units of the mechanism's length.

    Attributes:
        error: r (n,).
        rows: J = ∂r/∂x (n, nf), x along the free speeds.
        curvature: H = ∂(Jᵀu)/∂x (nf, nf), with u fixed.
    """

    error: Array
    rows: Array
    curvature: Array


def misfit(keys: tuple[Key, ...], case: Case, q: Array, u: Array, through: Array) -> Misfit:
    """Errors and their derivatives; the errors are projected by the matrix `through` (n, n)."""

    def of(x: Array) -> tuple[Array, Array]:
        r, pull = jax.vjp(lambda y: _at(keys, case, q, y, through), x)
        return r, pull(u)[0]

    start = jnp.zeros(len(free_speeds(keys, case.mech)), q.dtype)
    rows, curvature = jacobian(of, start)
    return Misfit(_at(keys, case, q, start, through), rows, curvature)


def error_rows(keys: tuple[Key, ...], case: Case, q: Array) -> tuple[Array, Array]:
    """R (n,) and J (n, nf), in units of the mechanism's length."""
    start = jnp.zeros(len(free_speeds(keys, case.mech)), q.dtype)
    eye = jnp.eye(error_count(keys, case.mech), dtype=q.dtype)
    rows = jacobian(lambda x: _at(keys, case, q, x, eye), start)
    return _at(keys, case, q, start, eye), rows


def _at(keys: tuple[Key, ...], case: Case, q: Array, x: Array, through: Array) -> Array:
    return through @ errors(keys, case, moved(keys, case, q, x)) / unit_length(case)


def stationarity(
    keys: tuple[Key, ...], case: Case, q: Array, u: Array, s: Array, through: Array
) -> Array:
    """The conditions (n + nf + 1,) of a dead centre: r = s u, Jᵀu = 0, |u| = 1.

    Where the errors span fewer dimensions than their number, `through` projects onto that span, and
    the rest of u has to vanish.
    """
    start = jnp.zeros(len(free_speeds(keys, case.mech)), q.dtype)
    base = with_settings(keys, case, q)
    r, pull = jax.vjp(lambda x: _at(keys, case, base, x, through), start)
    return jnp.concatenate([r - s * u - (u - through @ u), pull(u)[0], 0.5 * (u @ u - 1.0)[None]])
