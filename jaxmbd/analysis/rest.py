"""Multipliers at rest, from balance alone: no inertia counts, and no mass matrix is formed.

Drives hold what they drive. What else is free is held too, so that the balance exists:

- a coordinate that no loop and no drive depends on (a wheel's spin) by an effort along it;
- the spin of a link between two balls by a moment about their line, as friction in the balls would.

Each of these efforts follows from the balance of its own freedom. A link whose spin asks for more
than a hundredth of the loads is under load, not idle, and so is any other freedom that nothing
holds: nothing balances then, and the multipliers are NaN.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.analysis.instant import SpinLine, spin_lines, spin_rows
from jaxmbd.dynamics.bias_forces import Inputs
from jaxmbd.dynamics.inverse import required_efforts, share_efforts
from jaxmbd.kinematics.motion import MotionState, motion_state
from jaxmbd.kinematics.propagation import propagate_accelerations
from jaxmbd.kinematics.scales import mechanism_length
from jaxmbd.model.forces import Torque
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.model.numbers import GROUND

_IDLE = 1e-2
"""Largest moment that holds the spin of a link, over the loads times the mechanism's length."""


def balance_at_rest(m: MotionState, inputs: Inputs | None) -> tuple[MotionState, Array]:
    """The state with the moments that hold idle spins as loads, and the multipliers λ (nc,).

    λ is of least norm where rows are redundant, and NaN if a load acts along a freedom that nothing
    holds.

    Args:
        m: the state, at rest; held coordinates are drives of its mechanism.
        inputs: efforts on joints.
    """
    still = jnp.zeros_like(m.v)
    if m.top.nc == 0:
        return m, jnp.zeros(0, m.q.dtype)
    acc = propagate_accelerations(m.mech, m.q, m.pos, m.vel, m.v, still)
    required, size = required_efforts(m, acc, inputs)
    bound = np.isin(np.arange(m.top.nv), [i for row in m.top.row_speeds for i in row])
    lines = spin_lines(m)
    spins = jnp.where(bound, spin_rows(m, lines) / mechanism_length(m.mech), 0.0)
    needed = jnp.asarray(jnp.where(bound, required, 0.0))
    shared = share_efforts(m, spins.T, needed, size, still, inputs)
    idle = jnp.all(jnp.abs(shared.effort) <= _IDLE * size)
    lam = jnp.asarray(jnp.where(idle, shared.lam, jnp.nan))
    if not lines:
        return m, lam
    held = _with_moments(m, lines, shared.effort)
    return motion_state(held, m.q, m.v, m.t), lam


def _with_moments(m: MotionState, lines: list[SpinLine], moments: Array) -> Mechanism:
    """The mechanism with moments (n,) [N·m] about the lines on their bodies."""
    forces = {}
    for line, moment in zip(lines, moments, strict=True):
        body = m.top.bodies[line.body]
        name = f"hold {body}"
        while name in m.mech.forces:
            name += "'"
        forces[name] = Torque(GROUND, body, moment * line.direction)
    return m.mech.replace(forces=forces, cut=m.top.cut)
