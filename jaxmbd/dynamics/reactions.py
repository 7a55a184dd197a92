"""Joint reactions: by backward recursion at tree joints, from λ at cut joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.dynamics.armatures import rotor_efforts
from jaxmbd.dynamics.bias_forces import (
    BodyWrenches,
    Inputs,
    add_pair,
    applied_loads,
    effort_wrench,
)
from jaxmbd.dynamics.inertia import references
from jaxmbd.kinematics.motion import MotionState, check_shape, motion_state
from jaxmbd.kinematics.propagation import Accelerations, propagate_accelerations
from jaxmbd.model.drive import PointDrive
from jaxmbd.model.forces import Load
from jaxmbd.model.forces.base import RubbingElement
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

    It acts on b, with moments about b's joint point. At tree joints it follows from the backward
    recursion ``w_{i-1,i} = A' w_{i,i+1} + w_i* − w_i^e`` (Hanzaki et al. 2009, (22)), with the λ of
    cut joints among the external wrenches; at cut joints it is ``W λ``. Efforts along a joint's own
    coordinates (inputs, drives, couplings, joint torques, torsion springs, friction, rotors) are
    not included.

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
    return reactions_and_friction(m, acc, lam, inputs)[0]


def reactions_and_friction(
    m: MotionState, acc: Accelerations, lam: Array, inputs: Inputs | None
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Constraint wrenches of all joints, and the Coulomb friction efforts that they cause.

    The friction of cut joints follows from λ; with it the constraint wrenches of the tree joints
    follow, and from these the friction of the tree joints.
    """
    rubbing = rubbing_efforts(m, cut_wrenches(m, lam))
    wrenches = constraint_wrenches(m, acc, lam, inputs, rubbing)
    rubbing = rubbing_efforts(m, wrenches)
    for name, effort in rubbing.items():
        if name not in m.top.cut:
            wrenches[name] = wrenches[name] - jnp.concatenate(effort_wrench(m, name, effort))
    return wrenches, rubbing


def cut_wrenches(m: MotionState, lam: Array) -> dict[str, Array]:
    """Constraint wrench ``W λ`` (6,) of every cut joint."""
    return {n: m.wrenches(n)[0] @ lam[m.top.layout[n].rows] for n in m.top.cut}


def rubbing_efforts(m: MotionState, wrenches: Mapping[str, Array]) -> dict[str, Array]:
    """Coulomb friction efforts of the joints whose constraint wrenches are given."""
    out: dict[str, Array] = {}
    for name in m.mech.structure.forces:
        element = m.mech.forces[name]
        if not isinstance(element, RubbingElement) or element.joint not in wrenches:
            continue
        effort = rubbing_effort(m, element, wrenches[element.joint])
        out[element.joint] = out.get(element.joint, 0.0) + effort
    return out


def rubbing_effort(m: MotionState, element: RubbingElement, wrench: Array) -> Array:
    """Coulomb friction effort (nv,) of one element, for the constraint wrench of its joint."""
    joint, (q, v) = m.mech.joint(element.joint), m.joint(element.joint)
    r_a = m.rotation(joint.a)
    felt = jnp.concatenate([r_a.T @ wrench[:3], r_a.T @ wrench[3:]])
    bearing: Any = joint.bearing  # not None: checked by validation
    return element.rubbing(bearing, joint.subspace(q), v, felt)


def constraint_wrenches(
    m: MotionState,
    acc: Accelerations,
    lam: Array,
    inputs: Inputs | None,
    rubbing: Mapping[str, Array],
) -> dict[str, Array]:
    """Constraint wrench (6,) of every joint, at b's point, for given accelerations of the bodies.

    `rubbing` holds additional friction efforts; that of a tree joint affects only its own wrench.
    """
    loads, efforts = applied_loads(m, inputs)
    _add_rows(m, lam, loads, efforts)
    for name, effort in rubbing.items():
        efforts[name] = efforts.get(name, 0.0) + effort
    if (rotors := rotor_efforts(m.mech, acc.vdot)) is not None:
        for name in dict.fromkeys(joint for _, joint in m.mech.structure.armatures):
            efforts[name] = efforts.get(name, 0.0) - rotors[m.top.layout[name].v]
    wrenches = BodyWrenches(m)
    wrenches.add_inertia(acc)
    for load in loads:
        wrenches.add(Load(load.body, load.point, -load.force, -load.moment))
    for name, effort in efforts.items():
        moment, force = effort_wrench(m, name, effort)
        add_pair(wrenches, name, -moment, -force)
    out = cut_wrenches(m, lam)
    for name, w in out.items():
        add_pair(wrenches, name, -w[:3], -w[3:])
    out |= _tree_reactions(m, wrenches)
    return {e.name: out[e.name] for e in m.mech.structure.joints}


def _add_rows(m: MotionState, lam: Array, loads: list[Load], efforts: dict[str, Array]) -> None:
    """Add the efforts and loads of couplings and drives, from their multipliers."""
    mech, terms = m.mech, []
    for name in m.top.couplings:
        coupling, effort = mech.couplings[name], lam[m.top.layout[name].rows][0]
        q = jnp.stack([m.coordinates(joint)[index] for joint, index in coupling.terms])
        slope = coupling.slope(q)
        terms += [(*term, effort * slope[i]) for i, term in enumerate(coupling.terms)]
    for name in m.top.drives:
        drive, effort = mech.drives[name], lam[m.top.layout[name].rows][0]
        if isinstance(drive, PointDrive):
            force = effort * jnp.asarray(np.eye(3)[drive.component], effort.dtype)
            x = m.position(drive.body, drive.at)
            loads.append(Load(drive.body, x, force, jnp.zeros_like(force)))
        else:
            terms.append((drive.joint, drive.index, effort))
    for joint, index, effort in terms:
        along = jnp.zeros(mech.joint(joint).nv, m.q.dtype).at[index].set(effort)
        efforts[joint] = efforts.get(joint, 0.0) + along


def _tree_reactions(m: MotionState, wrenches: BodyWrenches) -> dict[str, Array]:
    out = {}
    found = zip(m.top.tree, references(m), wrenches.carried(), m.pos.joint, strict=True)
    for i, (name, point, (moment, force), joint) in enumerate(found):
        w = jnp.concatenate([moment + cross(point - joint, force), force])
        out[name] = -w if m.top.reversed_[i] else w
    return out
