"""Backward recursion of wrenches: efforts along the speeds from body accelerations and loads.

``τ_i = P_iᵀ w_i``, ``w_i = (inertia wrench) − (loads) + Σ_children A'ᵀ w_c`` (Hanzaki et al. 2009,
(22)): for the velocity-product accelerations alone this is the bias h, for the full accelerations
it is ``M v̇ + h``.

Sizes of the loads along each speed: what rounding errors of efforts are relative to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.dynamics.inertia import references, rotor_efforts, shifted_columns, world_inertias
from jaxmbd.kinematics import (
    Accelerations,
    MotionState,
    PerBody,
    each,
    inward,
    motion_state,
)
from jaxmbd.lanes import traced_once, whole
from jaxmbd.model import GROUND, Controlled, Effort, Load, Mechanism
from jaxmbd.numerics import ltdl_solve
from jaxmbd.plumbing import meant
from jaxmbd.spatial import cross

Inputs = Mapping[str, Any]
"""Effort along a joint's coordinates, by joint name: a scalar or (nv,) [N·m or N]; the control of
an actuator by its name."""


class BodyWrenches:
    """Accumulates wrenches on all bodies, about their centres of mass, world axes."""

    def __init__(self, m: MotionState):
        self.m = m
        self._loads: dict[int, Wrench] = {}
        self._inertia: PerBody | None = None

    def add(self, load: Load) -> None:
        """Add a load; loads on the ground are ignored."""
        if load.body == GROUND:
            return
        i = self.m.top.index(load.body)
        arm = load.point - self.m.pos.com[i]
        wrench = load.moment + cross(arm, load.force), load.force
        known = self._loads.get(i)
        self._loads[i] = wrench if known is None else _sum(known, wrench)

    def resist(self, acc: Accelerations, loads: list[Load]) -> None:
        """Add inertia wrenches minus weight and loads."""
        self.add_inertia(acc)
        for load in loads:
            self.add(Load(load.body, load.point, -load.force, -load.moment))

    def add_inertia(self, acc: Accelerations) -> None:
        """Add inertia wrenches minus weight: ``[I α + ω × I ω; m (a − g)]``."""
        m, gravity = self.m, self.m.mech.field()
        runs = m.pos.runs
        masses = [jnp.asarray(m.mech.bodies[body].mass) for body in m.top.bodies]

        def step(*given: Any) -> Wrench:
            return _inertia_wrench(gravity, *given)

        self._inertia = each(
            step,
            PerBody.of(runs, masses),
            world_inertias(m),
            m.vel.angular,
            acc.angular,
            acc.linear,
        )

    def carried(self) -> PerBody:
        """Total moment and force on each body with all its descendants.

        Moments are about the reference point of the branch (`references`), so that they are plain
        sums.
        """
        return self._gathered().field(0)

    def efforts(self) -> Array:
        """``Nᵀ w`` (nv,): the generalised forces of the wrenches."""
        return self._gathered().field(1).joined(jnp.zeros(0, self.m.q.dtype))

    def _gathered(self) -> PerBody:
        """For each body what it carries, and the efforts of that."""
        m = self.m

        def step(below: Wrench | None, wrench: Wrench, com: Array, *joint: Any) -> Any:
            point = joint[1]
            total = _gather(below, wrench, com, point)
            return (total, _along(shifted_columns(*joint), total)), total

        given = self.about_com(), m.pos.com, m.pos.columns, references(m), m.pos.joint
        return inward(m.top.parent, step, *given)

    def about_com(self) -> PerBody:
        """Total moment and force on each body, about its centre of mass."""
        runs, zero = self.m.pos.runs, jnp.zeros(3, self.m.q.dtype)
        parts = []
        for k, run in enumerate(runs):
            part = None if self._inertia is None else self._inertia.parts[k]
            if part is None or any(i in self._loads for i in run):
                loads = [self._loads.get(i, (zero, zero)) for i in run]
                load = PerBody.of((range(len(run)),), loads).parts[0]
                part = load if part is None else _sum(part, load)
            parts.append(part)
        return PerBody(runs, parts)


Wrench = tuple[Array, Array]
"""Moment and force."""


def _sum(a: Wrench, b: Wrench) -> Wrench:
    return a[0] + b[0], a[1] + b[1]


@traced_once
def _inertia_wrench(
    gravity: Array, mass: Array, inertia: Array, w: Array, alpha: Array, acc: Array
) -> Wrench:
    return inertia @ alpha + cross(w, inertia @ w), mass * (acc - gravity)


@traced_once
def _gather(below: Wrench | None, wrench: Wrench, com: Array, point: Array) -> Wrench:
    """The wrench on a body and its descendants about a point; `wrench` is about its COM."""
    moment, force = wrench
    moment = moment + cross(com - point, force)
    return (moment, force) if below is None else _sum((moment, force), below)


@traced_once
def _along(columns: tuple[Array, Array], wrench: Wrench) -> Array:
    """The efforts (n,) of a wrench along motions w, u (n, 3)."""
    (w, u), (moment, force) = columns, wrench
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
    if inputs is not None and not isinstance(inputs, Mapping):
        raise ValueError(f"inputs are {inputs!r}; give a dictionary {{joint: value}}")
    inputs = dict(inputs or {})
    for name in m.mech.structure.forces:
        element = m.mech.forces[name]
        if name in inputs and name not in m.mech.joints and isinstance(element, Controlled):
            element = element.controlled(inputs.pop(name))
        for item in element.loads(m):
            if isinstance(item, Effort):
                efforts[item.joint] = efforts.get(item.joint, 0.0) + item.value
            else:
                loads.append(item)
    for name, value in inputs.items():
        if name not in m.mech.joints or not m.mech.joint(name).can_be_in_tree:
            known = [e.name for e in m.mech.structure.joints if e.kind.can_be_in_tree]
            known += [n for n, f in m.mech.forces.items() if isinstance(f, Controlled)]
            raise ValueError(
                f"inputs name '{name}', which is no joint or actuator that takes an effort"
                f"{meant(name, known)}; known: {known}"
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
    """``Nᵀ (inertia wrenches − weight − loads) + a v̇`` (nv,), with the armatures a."""
    wrenches = BodyWrenches(m)
    wrenches.resist(acc, loads)
    rotors = rotor_efforts(m.mech, acc.vdot)
    return wrenches.efforts() if rotors is None else wrenches.efforts() + rotors


@whole
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
    acc = m.accelerations()
    loads, efforts = applied_loads(m, None)
    return inertia_efforts(m, acc, loads) - joint_efforts(m, efforts)


def load_sizes(m: MotionState, vdot: Array) -> Array:
    """Sums (nv,) of the magnitudes of all forces and moments, times those of the motions.

    Where ``M v̇ + h = τ + Jᵀ λ`` balances, its terms cancel or are perpendicular to the motion (the
    weight of a hanging pendulum); these sums remain. Reactions do not count: near a singular
    position they may be far larger than what causes them.
    """
    acc = m.accelerations(vdot)
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
