"""Sizes of the loads along each speed: what rounding errors of efforts are relative to."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.dynamics.armatures import rotor_efforts
from jaxmbd.dynamics.bias_forces import applied_loads, joint_efforts
from jaxmbd.dynamics.inertia import world_inertias
from jaxmbd.kinematics.motion import MotionState
from jaxmbd.kinematics.propagation import propagate_accelerations
from jaxmbd.model.numbers import GROUND
from jaxmbd.spatial.rotations import cross


def load_sizes(m: MotionState, vdot: Array) -> Array:
    """Sums (nv,) of the magnitudes of all forces and moments, times those of the motions.

    Where ``M v̇ + h = τ + Jᵀ λ`` balances, its terms cancel or are perpendicular to the motion (the
    weight of a hanging pendulum); these sums remain. Reactions do not count: near a singular
    position they may be far larger than what causes them.
    """
    acc = propagate_accelerations(m.mech, m.q, m.pos, m.vel, m.v, vdot)
    loads, efforts = applied_loads(m, None)
    gravity, force, moment = _norm(m.mech.field()), [], []
    for i, inertia in enumerate(world_inertias(m)):
        mass, w = m.mech.bodies[m.top.bodies[i]].mass, m.vel.angular[i]
        force.append(mass * (_norm(acc.linear[i]) + gravity))
        moment.append(_norm(inertia @ acc.angular[i]) + _norm(cross(w, inertia @ w)))
    for load in loads:
        if load.body != GROUND:
            i = m.top.index(load.body)
            arm = load.point - m.pos.com[i]
            force[i] = force[i] + _norm(load.force)
            moment[i] = moment[i] + _norm(load.moment) + _norm(arm) * _norm(load.force)
    total = jnp.abs(joint_efforts(m, efforts))
    if (rotors := rotor_efforts(m.mech, vdot)) is not None:
        total = total + jnp.abs(rotors)
    for i, com in enumerate(m.pos.com):
        moved = np.isin(np.arange(m.top.nv), m.top.support[i])
        along = _norm(m.pos.angular) * moment[i] + _norm(m.columns_at(com)) * force[i]
        total = total + moved.astype(along.dtype) * along
    return total


def _norm(x: Array) -> Array:
    return jnp.sqrt(jnp.sum(x * x, axis=-1))
