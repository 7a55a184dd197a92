"""Backward recursion of wrenches: efforts along the speeds from body accelerations and loads.

``τ_i = P_iᵀ w_i``, ``w_i = (inertia wrench) − (loads) + Σ_children A'ᵀ w_c`` (Hanzaki et al. 2009,
(22)): for the velocity-product accelerations alone this is the bias h, for the full accelerations
it is ``M v̇ + h``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxmbd.dynamics.inertia import columns_at_references, references, world_inertias
from jaxmbd.kinematics.motion import MotionState, motion_state
from jaxmbd.kinematics.propagation import (
    Accelerations,
    by_joint,
    propagate_accelerations,
)
from jaxmbd.model.forces import Effort, Load
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.model.numbers import GROUND
from jaxmbd.numerics.ltdl import ltdl_solve
from jaxmbd.numerics.traced_once import traced_once
from jaxmbd.spatial.rotations import cross

Inputs = Mapping[str, Any]
"""Effort along a joint's coordinates, by joint name: a scalar or (nv,) [N·m or N]."""


class BodyWrenches:
    """Accumulates wrenches on all bodies, about their centres of mass, world axes."""

    def __init__(self, m: MotionState):
        zero = jnp.zeros(3, m.q.dtype)
        self.m = m
        self.moment = [zero] * len(m.top.bodies)
        self.force = [zero] * len(m.top.bodies)

    def add(self, load: Load) -> None:
        """Add a load; loads on the ground are ignored."""
        if load.body == GROUND:
            return
        i = self.m.top.index(load.body)
        arm = load.point - self.m.pos.com[i]
        self.moment[i] = self.moment[i] + load.moment + cross(arm, load.force)
        self.force[i] = self.force[i] + load.force

    def add_inertia(self, acc: Accelerations) -> None:
        """Add inertia wrenches minus weight: ``[I α + ω × I ω; m (a − g)]``."""
        gravity = self.m.mech.field()
        for i, inertia in enumerate(world_inertias(self.m)):
            mass = self.m.mech.bodies[self.m.top.bodies[i]].mass
            moment, force = _inertia_wrench(
                mass, inertia, self.m.vel.angular[i], acc.angular[i], acc.linear[i] - gravity
            )
            self.moment[i], self.force[i] = self.moment[i] + moment, self.force[i] + force

    def carried(self) -> tuple[list[Array], list[Array]]:
        """Total moment and force on each body with all its descendants.

        Moments are about the reference point of the branch (`references`), so that they are plain
        sums.
        """
        m, force = self.m, list(self.force)
        moment = [
            _moved(n, f, com, point)
            for n, f, com, point in zip(self.moment, force, m.pos.com, references(m), strict=True)
        ]
        for i in range(len(moment) - 1, -1, -1):
            p = m.top.parent[i]
            if p >= 0:
                moment[p] = moment[p] + moment[i]
                force[p] = force[p] + force[i]
        return moment, force

    def efforts(self) -> Array:
        """``Nᵀ w`` (nv,): the generalised forces of the wrenches."""
        moment, force = self.carried()
        columns = (self.m.pos.angular, columns_at_references(self.m))
        parts = zip(*(by_joint(self.m.top, x) for x in columns), moment, force, strict=True)
        return jnp.concatenate([_along(*part) for part in parts])


@traced_once
def _inertia_wrench(
    mass: Array, inertia: Array, w: Array, alpha: Array, acc: Array
) -> tuple[Array, Array]:
    return inertia @ alpha + cross(w, inertia @ w), mass * acc


@traced_once
def _moved(moment: Array, force: Array, com: Array, point: Array) -> Array:
    """The moment about a point of a wrench about a centre of mass."""
    return moment + cross(com - point, force)


@traced_once
def _along(w: Array, u: Array, moment: Array, force: Array) -> Array:
    """The efforts (n,) of a wrench along motions w, u (n, 3)."""
    return w @ moment + u @ force


def effort_wrench(m: MotionState, name: str, effort: Array) -> tuple[Array, Array]:
    """The wrench ``E (EᵀE)⁻¹ τ`` of a joint effort on b, at b's joint point, world axes."""
    joint = m.mech.joint(name)
    e_w, e_v = joint.effort_columns(m.coordinates(name))
    y = ltdl_solve(e_w.T @ e_w + e_v.T @ e_v, effort)
    r_a = m.rotation(joint.a)
    return r_a @ (e_w @ y), r_a @ (e_v @ y)


def applied_loads(m: MotionState, inputs: Inputs | None) -> tuple[list[Load], dict[str, Array]]:
    """Loads on bodies and total efforts on joints, from force elements and `inputs`."""
    loads: list[Load] = []
    efforts: dict[str, Array] = {}
    for name in m.mech.structure.forces:
        for item in m.mech.forces[name].loads(m):
            if isinstance(item, Effort):
                efforts[item.joint] = efforts.get(item.joint, 0.0) + item.value
            else:
                loads.append(item)
    for name, value in (inputs or {}).items():
        if name not in m.mech.joints or not m.mech.joint(name).can_be_in_tree:
            known = [e.name for e in m.mech.structure.joints if e.kind.can_be_in_tree]
            raise ValueError(
                f"inputs name the joint '{name}', which takes no effort; known: {known}"
            )
        effort, nv = jnp.asarray(value, m.q.dtype), m.mech.joint(name).nv
        if effort.shape not in ((), (nv,)):
            raise ValueError(
                f"the input on joint '{name}' has shape {effort.shape}; give one number or ({nv},)"
            )
        effort = jnp.broadcast_to(effort, (nv,))
        efforts[name] = efforts.get(name, 0.0) + effort
    return loads, efforts


def joint_efforts(m: MotionState, efforts: Mapping[str, Array]) -> Array:
    """Generalised forces (nv,) of joint efforts: direct for tree joints, wrench pairs for cut."""
    tree = {n: e for n, e in efforts.items() if m.top.layout[n].v is not None}
    parts = [jnp.zeros(0, m.q.dtype)]
    for name in m.top.tree:
        place = m.top.layout[name].v
        assert place is not None
        parts.append(tree.get(name, jnp.zeros(place.stop - place.start, m.q.dtype)))
    total = jnp.concatenate(parts)
    cut = {n: e for n, e in efforts.items() if n not in tree}
    if not cut:
        return total
    wrenches = BodyWrenches(m)
    for name, effort in cut.items():
        add_pair(wrenches, name, *effort_wrench(m, name, effort))
    return total + wrenches.efforts()


def add_pair(wrenches: BodyWrenches, name: str, moment: Array, force: Array) -> None:
    """Add a wrench on a joint's body b, at b's point, and the opposite wrench on a."""
    m = wrenches.m
    joint = m.mech.joint(name)
    x = m.position(joint.b, joint.point_b)
    wrenches.add(Load(joint.b, x, force, moment))
    wrenches.add(Load(joint.a, x, -force, -moment))


def inertia_efforts(m: MotionState, acc: Accelerations, loads: list[Load]) -> Array:
    """``Nᵀ (inertia wrenches − weight − loads)`` (nv,) for given body accelerations."""
    wrenches = BodyWrenches(m)
    wrenches.add_inertia(acc)
    for load in loads:
        wrenches.add(Load(load.body, load.point, -load.force, -load.moment))
    return wrenches.efforts()


def bias(mech: Mechanism, q: Array, v: Array, t: Any = 0.0) -> Array:
    """Bias h (nv,) in ``M v̇ + h = τ + Jᵀ λ``: velocity products, weight and force elements.

    Args:
        mech: the mechanism.
        q: coordinates (nq,).
        v: speeds (nv,).
        t: time [s], for laws that depend on it.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> round(float(mbd.bias(m, mbd.neutral(m), jnp.zeros(1))[0]), 6)
        -9.81
    """
    m = motion_state(mech, q, v, t)
    acc = propagate_accelerations(mech, m.q, m.pos, m.vel, m.v)
    loads, efforts = applied_loads(m, None)
    return inertia_efforts(m, acc, loads) - joint_efforts(m, efforts)
