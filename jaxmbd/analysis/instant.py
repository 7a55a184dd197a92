"""Kinetostatics at one instant: speeds, accelerations and efforts of a driven mechanism.

    J v = b,  K v = ḟ(t)    and    J v̇ = γ,  K v̇ = f̈(t) − (velocity products),

with K the rows of the driven coordinates (Hanzaki et al. 2009, (8)-(10), partitioned into known
and unknown speeds), and efforts e and multipliers from ``M v̇ + h = Kᵀ e + Jᵀ λ``, without forming
a mass matrix.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.analysis.inputs import AnyInputs, efforts_at
from jaxmbd.analysis.known import Key, PointCoordinate
from jaxmbd.analysis.velocity import asked_rows, held_products, is_met
from jaxmbd.dynamics.armatures import rotor_energy
from jaxmbd.dynamics.friction import rubbing_joints
from jaxmbd.dynamics.inertia import world_inertias
from jaxmbd.dynamics.inverse import actuated_columns, required_efforts, share_efforts
from jaxmbd.graph import topology
from jaxmbd.kinematics import motion_state
from jaxmbd.kinematics.closure import closure_gamma, closure_velocity
from jaxmbd.kinematics.motion import MotionState
from jaxmbd.kinematics.propagation import propagate_accelerations
from jaxmbd.kinematics.scales import mechanism_length, placed_numbers, speed_units
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.numerics import tolerances
from jaxmbd.numerics.consistency import solution
from jaxmbd.numerics.least_norm import factor_rows
from jaxmbd.spatial.rotations import cross, unit


class Instant(NamedTuple):
    """Speeds, accelerations and forces at one time, with failure flags.

    Attributes:
        v, vdot: speeds and accelerations (nv,).
        effort, tau, lam: as `share_efforts` returns them.
        open_freedoms: number of freedoms that nothing determines.
        unmet: (nc + k,), one where a row contradicts the others.
        missing: (nv,), one where no effort or reaction carries a required force.
    """

    v: Array
    vdot: Array
    effort: Array
    tau: Array
    lam: Array
    open_freedoms: Array
    unmet: Array
    missing: Array


def instant(
    keys: tuple[Key, ...],
    actuated: tuple[Any, ...] | None,
    mech: Mechanism,
    t: Array,
    q: Array,
    rates: list[Array],
    accelerations: list[Array],
    inputs: AnyInputs,
) -> Instant:
    """Speeds, accelerations, efforts and multipliers at coordinates that close the loops.

    Flags are floating numbers, so that the whole result is differentiable.
    """
    top, length = topology(mech), mechanism_length(mech)
    pushed = actuated is None and any(isinstance(k, PointCoordinate) for k in keys)
    if pushed and (rubbing := rubbing_joints(mech)):
        raise ValueError(
            f"the joints {list(rubbing)} have friction, which cannot account for the force that "
            "drives a point; name the joints whose efforts produce the motion in actuated="
        )
    m = motion_state(mech, q, t=t)
    conditions = asked_rows(m, keys)
    rows = conditions.matrix
    lines = spin_lines(m)
    together = jnp.concatenate([rows, spin_rows(m, lines)])
    every = factor_rows(together, speed_units(mech) ** 2, doubt=conditions.doubt)

    def meet(target: Array, values: list[Array], spins: list[Array]) -> tuple[Array, Array]:
        target = conditions.of(jnp.concatenate([target, *(x[None] for x in values)]))
        x = every.solve(jnp.concatenate([target, *(length * s[None] for s in spins)]))
        x = solution(x, rows @ x - target, [target, length * x, q], placed_numbers(mech))
        return x, is_met(rows, x, target)

    v, met = meet(closure_velocity(m), rates, [jnp.zeros((), q.dtype)] * len(lines))
    m = motion_state(mech, q, v, t)
    efforts = efforts_at(inputs, t, q, v)
    acc = propagate_accelerations(mech, m.q, m.pos, m.vel, m.v)
    asked = [x - y for x, y in zip(accelerations, held_products(m, acc, keys), strict=True)]
    spins = [-line.direction @ acc.angular[line.body] for line in lines]
    vdot, met_too = meet(closure_gamma(m, acc), asked, spins)
    if lines:
        acc = propagate_accelerations(mech, m.q, m.pos, m.vel, m.v, vdot)
        required, _ = required_efforts(m, acc, efforts)
        for k, inertia in enumerate(_spin_inertias(m, lines)):
            # A unit spin alone: its inertia has to supply the moment required about the line.
            unit_spin = jnp.eye(every.rows.shape[0], dtype=q.dtype)[rows.shape[0] + k]
            alone = every.solve(length * unit_spin)
            inertia = inertia + 2.0 * rotor_energy(mech, alone)
            some = inertia > 0.0
            moment = jnp.asarray(jnp.where(some, alone @ required, 0.0))
            vdot = vdot - moment / jnp.where(some, inertia, 1.0) * alone
    acc = propagate_accelerations(mech, m.q, m.pos, m.vel, m.v, vdot)
    required, size = required_efforts(m, acc, efforts)
    if actuated is None:
        columns = (rows[top.nc :] / conditions.held_scale[:, None]).T
    else:
        columns = actuated_columns(top, actuated)
    shared = share_efforts(m, columns, required, size, vdot, efforts)
    flags = top.nv - every.rank, ~(met & met_too), shared.missing
    flags = (flag.astype(q.dtype) for flag in flags)
    return Instant(v, vdot, shared.effort, shared.tau, shared.lam, *flags)


class SpinLine(NamedTuple):
    """The line about which a body held by two balls only may spin: world point and direction."""

    body: int
    point: Array
    direction: Array


def spin_lines(m: MotionState) -> list[SpinLine]:
    """The spin lines of all bodies held by two balls only."""
    out = []
    for i, body in enumerate(m.top.bodies):
        edges = [e for e in m.mech.structure.joints if body in (e.a, e.b)]
        if len(edges) != 2 or not all(e.kind.ball for e in edges):
            continue
        joints = [m.mech.joint(e.name) for e in edges]
        first, second = (m.position(body, j.point_a if j.a == body else j.point_b) for j in joints)
        out.append(SpinLine(i, first, unit(second - first)))
    return out


def spin_rows(m: MotionState, lines: list[SpinLine]) -> Array:
    """(lines, nv): rows of the angular velocities along the lines, times the mechanism's length."""
    rows = [jnp.zeros((0, m.top.nv), m.q.dtype)]
    for line in lines:
        moves = np.zeros(m.top.nv)
        moves[list(m.top.support[line.body])] = 1.0
        along = m.pos.angular @ line.direction
        rows.append((mechanism_length(m.mech) * moves.astype(along.dtype) * along)[None])
    return jnp.concatenate(rows)


def _spin_inertias(m: MotionState, lines: list[SpinLine]) -> list[Array]:
    """Moments of inertia [kg m²] about the lines; zero where they are only rounding."""
    inertias, out = world_inertias(m), []
    for i, point, u in lines:
        inertia, mass, arm = inertias[i], m.mech.bodies[m.top.bodies[i]].mass, m.pos.com[i] - point
        offset = cross(u, arm)
        about = u @ inertia @ u + mass * (offset @ offset)
        enough = about > tolerances.rounding(u.dtype) * (jnp.trace(inertia) + mass * (arm @ arm))
        out.append(jnp.where(enough, about, 0.0))
    return out
