"""Joint reactions: by backward recursion at tree joints, from λ at cut joints.

A joint's reaction as forces at the two ends of its bearing.

A translational joint transmits no force along its axis u, but a force f normal to it and a moment
n. The lecture text (section 4.2, figure 4.4) puts the points of the constraint at the edges of the
slider, where the bodies touch. Two forces normal to the axis, at ``c ± (ℓ/2) u`` with c the middle
of the bearing, satisfy

    F1 + F2 = f − u (u·f),   (ℓ/2) u × (F1 − F2) = n − u (u·n)

so ``F1,2 = (f − u (u·f)) / 2 ± (n × u) / ℓ``. The remainder is the force ``u·f`` along the axis
(the thrust of a revolute; zero in a translational joint) and the torque ``u·n`` about it (carried
by the key of a slider; zero in a cylindrical joint).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.dynamics.bias_forces import BodyWrenches, Inputs, add_pair, applied_loads, effort_wrench
from jaxmbd.dynamics.inertia import references, rotor_efforts
from jaxmbd.kinematics import (
    Accelerations,
    MotionState,
    check_shape,
    motion_state,
)
from jaxmbd.lanes import whole
from jaxmbd.model import Effort, Load, Mechanism, PointDrive, RubbingElement, effort_along
from jaxmbd.spatial import cross


@whole
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

    In a planar mechanism they have six components too: n_z, fₓ and f_y, and zeros, because its
    joints have no rows out of the plane. Where `mobility` names redundant rows, as of a planar
    linkage drawn in space, equilibrium does not determine them: they are the least that fit.

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
    acc = m.accelerations(vdot)
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
    add_row_forces(m, lam, loads, efforts)
    for name, effort in rubbing.items():
        efforts[name] = efforts.get(name, 0.0) + effort
    if (rotors := rotor_efforts(m.mech, acc.vdot)) is not None:
        for name in dict.fromkeys(joint for _, joint in m.mech.structure.armatures):
            efforts[name] = efforts.get(name, 0.0) - rotors[m.top.layout[name].v]
    wrenches = BodyWrenches(m)
    wrenches.resist(acc, loads)
    for name, effort in efforts.items():
        moment, force = effort_wrench(m, name, effort)
        add_pair(wrenches, name, -moment, -force)
    out = cut_wrenches(m, lam)
    for name, w in out.items():
        add_pair(wrenches, name, -w[:3], -w[3:])
    out |= _tree_reactions(m, wrenches)
    return {e.name: out[e.name] for e in m.mech.structure.joints}


def add_row_forces(
    m: MotionState,
    lam: Array,
    loads: list[Load],
    efforts: dict[str, Array],
    couples: bool = False,
) -> None:
    """Add the efforts and loads of couplings and drives, from their multipliers.

    With `couples` all of a coupling are efforts, of which motion and rows know alone.
    """
    mech = m.mech
    found: list[Load | Effort] = []
    for name in m.top.couplings:
        coupling, effort = mech.coupling(name), lam[m.top.layout[name].rows][0]
        found += coupling.efforts(m, effort) if couples else coupling.loads(m, effort)
    for name in m.top.drives:
        drive, effort = mech.drives[name], lam[m.top.layout[name].rows][0]
        if isinstance(drive, PointDrive):
            force = effort * jnp.asarray(np.eye(3)[drive.component], effort.dtype)
            x = m.position(drive.body, drive.at)
            found.append(Load(drive.body, x, force, jnp.zeros_like(force)))
        else:
            size = mech.joint(drive.joint).nv
            found.append(effort_along(drive.joint, drive.index, effort, size))
    for item in found:
        if isinstance(item, Effort):
            efforts[item.joint] = efforts.get(item.joint, 0.0) + item.value
        else:
            loads.append(item)


def _tree_reactions(m: MotionState, wrenches: BodyWrenches) -> dict[str, Array]:
    out = {}
    found = zip(m.top.tree, references(m), wrenches.carried(), m.pos.joint, strict=True)
    for i, (name, point, (moment, force), joint) in enumerate(found):
        w = jnp.concatenate([moment + cross(point - joint, force), force])
        out[name] = -w if m.top.reversed_[i] else w
    return out


class EdgeForces(NamedTuple):
    """Forces at the two edges of a bearing, world axes.

    Attributes:
        points: the edges (2, 3) [m], first the one in the direction of +axis.
        forces: forces on b, normal to the axis (2, 3) [N].
        thrust: force on b along the axis [N].
        torque: on b about the axis [N·m].

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.EdgeForces._fields
        ('points', 'forces', 'thrust', 'torque')
    """

    points: Array
    forces: Array
    thrust: Array
    torque: Array


@whole
def edge_forces(
    mech: Mechanism,
    q: Array,
    reactions: Mapping[str, Array],
    joint: str,
    length: Any,
    offset: Any = 0.0,
    *,
    slider: str | None = None,
) -> EdgeForces:
    """The reaction of a joint with one axis as forces at the two edges of its bearing.

    If both forces have the same sense, the slider is pressed against one side of its guide; if they
    are opposite, it is tilted and touches both sides.

    Args:
        mech: the mechanism.
        q: coordinates (nq,).
        reactions: constraint wrenches from `joint_reactions`, or from another formulation.
        joint: name of a joint with one axis (prismatic, cylindrical, helical, revolute).
        length: length of the bearing along the axis [m].
        offset: distance from the slider's joint point to the middle of the bearing, along the axis
            [m].
        slider: the body that the bearing moves with: a, or by default b.

    Returns:
        Edges, forces on b, thrust and torque: together the joint's whole wrench.

    Raises:
        ValueError: there is no such joint, it has no single axis, or `slider` is not one of its
            bodies.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> m = mbd.Mechanism(
        ...     bodies={"drawer": mbd.Body(mass=2.0, com=(0.3, 0, 0))},
        ...     joints={"rail": mbd.Prismatic("ground", "drawer", at=(0, 0, 0), axis=(1, 0, 0))},
        ... )
        >>> rest = jnp.zeros(1)
        >>> reactions = mbd.joint_reactions(m, rest, rest, rest, jnp.zeros(0))
        >>> edges = mbd.edge_forces(m, rest, reactions, "rail", length=0.2)
        >>> edges.forces[:, 2].round(2).tolist()  # the weight hangs 0.2 m outside the front edge
        [39.24, -19.62]
    """
    if joint not in mech.joints:
        raise ValueError(f"'{joint}' is no joint here: {list(mech.joints)}")
    kind = mech.joint(joint)
    axis = kind.bearing_axis()
    if axis is None:
        raise ValueError(
            f"joint '{joint}' is a {type(kind).__name__} and has no axis for a bearing"
        )
    if slider not in (None, kind.a, kind.b):
        raise ValueError(f"joint '{joint}': slider '{slider}' is neither '{kind.a}' nor '{kind.b}'")
    m = motion_state(mech, q)
    u = m.rotation(kind.a) @ jnp.asarray(axis, mech.dtype)
    x = m.position(kind.b, kind.point_b)
    start = m.position(kind.a, kind.point_a) if slider == kind.a else x
    middle = start + offset * u
    force = jnp.asarray(reactions[joint])[3:]
    moment = jnp.asarray(reactions[joint])[:3] + cross(x - middle, force)
    across, couple = 0.5 * (force - u * (u @ force)), cross(moment, u) / length
    half = 0.5 * length * u
    return EdgeForces(
        points=jnp.stack([middle + half, middle - half]),
        forces=jnp.stack([across + couple, across - couple]),
        thrust=u @ force,
        torque=u @ moment,
    )
