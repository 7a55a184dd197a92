"""Joint reactions: the backward recursion at tree joints, λ at cut ones."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxmbd.dynamics.bias import (
    BodyWrenches,
    Inputs,
    add_pair,
    applied_loads,
    effort_wrench,
)
from jaxmbd.dynamics.inertia import references
from jaxmbd.kinematics.motion import MotionState, check_shape, motion_state
from jaxmbd.kinematics.propagation import propagate_accelerations
from jaxmbd.model.forces import Load
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.spatial.rotations import cross


def joint_reactions(
    mech: Mechanism,
    q: Array,
    v: Array,
    vdot: Array,
    lam: Array,
    t: Any = 0.0,
    inputs: Inputs | None = None,
) -> dict[str, Array]:
    """Constraint wrench (6,) ``[n; f]`` of every joint [N·m, N], world axes.

    It acts on b, about b's joint point. At tree joints it is the backward recursion
    ``w_{i-1,i} = A' w_{i,i+1} + w_i* − w_i^e`` (Hanzaki et al. 2009, (22)), with the cut joints' λ
    among the external wrenches; at cut joints it is ``W λ``. Efforts along a joint's own
    coordinates (inputs, drives, joint torques, torsion springs) are not part of it.

    Args:
        mech: the mechanism.
        q: coordinates (nq,).
        v: speeds (nv,).
        vdot: accelerations (nv,).
        lam: multipliers (nc,).
        t: time [s].
        inputs: efforts on joints by name.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> q, rest = mbd.neutral(m) + jnp.pi / 2, jnp.zeros(1)
        >>> vdot, lam = mbd.forward_dynamics(m, q, rest)
        >>> wrench = mbd.joint_reactions(m, q, rest, vdot, lam)["hinge"]
        >>> round(float(wrench[4]), 6)
        9.81
    """
    m = motion_state(mech, q, v, t)
    vdot, lam = jnp.asarray(vdot, mech.dtype), jnp.asarray(lam, mech.dtype)
    check_shape("vdot", vdot, m.top.nv)
    check_shape("lam", lam, m.top.nc)
    acc = propagate_accelerations(mech, m.q, m.pos, m.vel, m.v, vdot)
    loads, efforts = applied_loads(m, inputs)
    for name in m.top.drives:
        drive = mech.drives[name]
        along = jnp.zeros(mech.joint(drive.joint).nv, m.q.dtype)
        along = along.at[drive.index].set(lam[m.top.layout[name].rows][0])
        efforts[drive.joint] = efforts.get(drive.joint, 0.0) + along
    wrenches = BodyWrenches(m)
    wrenches.add_inertia(acc)
    for load in loads:
        wrenches.add(Load(load.body, load.point, -load.force, -load.moment))
    for name, effort in efforts.items():
        moment, force = effort_wrench(m, name, effort)
        add_pair(wrenches, name, -moment, -force)
    out = {}
    for name in m.top.cut:
        w = m.wrenches(name)[0] @ lam[m.top.layout[name].rows]
        out[name] = w
        add_pair(wrenches, name, -w[:3], -w[3:])
    out |= _tree_reactions(m, wrenches)
    return {e.name: out[e.name] for e in mech.structure.joints}


def _tree_reactions(m: MotionState, wrenches: BodyWrenches) -> dict[str, Array]:
    moment, force = wrenches.carried()
    out = {}
    for i, (name, point) in enumerate(zip(m.top.tree, references(m), strict=True)):
        about = moment[i] + cross(point - m.pos.joint[i], force[i])
        w = jnp.concatenate([about, force[i]])
        out[name] = -w if m.top.reversed_[i] else w
    return out
