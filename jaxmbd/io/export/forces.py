"""Force elements as MJCF has them: attributes of joints, tendons, and actuators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmbd.io.conversion import LeftOutNotes, UniqueNames
from jaxmbd.io.export.tree import Sites, Step, WrittenTree
from jaxmbd.model import (
    GROUND,
    Actuator,
    Armature,
    BodyActuator,
    ForceElement,
    JointDrag,
    JointLimit,
    JointTorque,
    PointForce,
    SpringDamper,
    Torque,
    TorsionBar,
    TorsionSpring,
    vector_in_space,
)

Attributes = dict[str, Any]
FAR = 1e9
"""The other end of a range that has one end [rad or m]."""


class WrittenForces:
    """The force elements of a mechanism.

    Attributes:
        joints: attributes of each elementary joint, by name.
        tendons: of each tendon, with its two ``sites``, or its ``joints`` and their factors.
        actuators: of each actuator.
        controls: those that are not zero, by actuator.
        names: those of all forces, tendons and loads.
        left_out: what has no equal.
    """

    def __init__(self, tree: WrittenTree, sites: Sites, names: UniqueNames):
        self.tree, self.sites, self.names = tree, sites, names
        self.joints: dict[str, Attributes] = {}
        self.tendons: dict[str, Attributes] = {}
        self.actuators: dict[str, Attributes] = {}
        self.controls: dict[str, float] = {}
        self.left_out = LeftOutNotes()
        self.springs: dict[str, tuple[float, float]] = {}
        self.spring_names: dict[str, list[str]] = {}
        self._world: str | None = None
        for name in tree.mech.structure.forces:
            force = tree.mech.forces[name]
            write = _WRITERS.get(type(force))
            if write is None:
                self.left_out.add(f"forces of type {type(force).__name__}", "absent", name)
            else:
                write(self, name, force)
        _together(self)

    def step(self, name: str, joint: str, index: int = 0) -> Step | None:
        """The hinge or slide of one coordinate of a joint; without it, that is noted."""
        for step in self.tree.steps(joint):
            if step.index == index and step.kind in ("hinge", "slide"):
                return step
        self.left_out.add("forces on cut joints", "absent", name)
        return None

    def world(self) -> str:
        """A site at the origin of the ground."""
        if self._world is None:
            self._world = self.sites.add(GROUND, "world", np.zeros(3))
        return self._world


def _together(out: WrittenForces) -> None:
    """The springs of each elementary joint as one."""
    for step, (k, moment) in out.springs.items():
        if k:
            out.joints[step] |= {"stiffness": k, "springref": moment / k}
        elif moment:
            for name in out.spring_names[step]:
                what, text = "springs that cancel each other", "their constant moment is absent"
                out.left_out.add(what, text, name)


def _number(x: Any) -> float:
    return float(np.asarray(x))


def _torsion_spring(out: WrittenForces, name: str, force: TorsionSpring) -> None:
    step = out.step(name, force.joint, force.index)
    if step is None:
        return
    if force.law is not None:
        out.left_out.add("springs with a law of their own", "their linear part alone", name)
    own = out.joints.setdefault(step.name, {})
    k, moment = out.springs.get(step.name, (0.0, 0.0))
    more = _number(force.stiffness)
    out.springs[step.name] = k + more, moment + more * _number(force.free_angle)
    out.spring_names.setdefault(step.name, []).append(name)
    own["damping"] = own.get("damping", 0.0) + _number(force.damping)


def _per_speed(out: WrittenForces, name: str, joint: str, numbers: Any, attribute: str) -> None:
    """Numbers of a joint's speeds as attributes of its elementary joints."""
    steps = out.tree.steps(joint)
    if not steps:
        out.left_out.add("forces on cut joints", "absent", name)
        return
    nv = out.tree.mech.joints[joint].nv
    each = np.broadcast_to(np.asarray(numbers, float), (nv,))
    for step in steps:
        if step.kind in ("ball", "free"):
            own = each[:3] if step.kind == "ball" else each
            if np.any(own != own[0]):
                out.left_out.add("what differs along the speeds of a ball", "absent", name)
                continue
            value = own[0]
        elif any(s.index == step.index for s in steps[: steps.index(step)]):
            continue  # the travel of a screw
        else:
            ball = any(s.kind == "ball" for s in steps)
            value = each[step.index - ball]  # a quaternion has one number more than its speeds
        if value:
            own = out.joints.setdefault(step.name, {})
            own[attribute] = own.get(attribute, 0.0) + float(value)


def _drag(out: WrittenForces, name: str, force: JointDrag) -> None:
    _per_speed(out, name, force.joint, force.viscous, "damping")
    _per_speed(out, name, force.joint, force.dry, "frictionloss")


def _armature(out: WrittenForces, name: str, force: Armature) -> None:
    _per_speed(out, name, force.joint, force.inertia, "armature")


def _limit(out: WrittenForces, name: str, force: JointLimit) -> None:
    step = out.step(name, force.joint, force.index)
    if step is not None:
        lower = -FAR if force.lower is None else _number(force.lower)
        upper = FAR if force.upper is None else _number(force.upper)
        own = out.joints.setdefault(step.name, {})
        before = own.get("range", (-FAR, FAR))
        both = max(lower, before[0]), min(upper, before[1])
        if both[0] >= both[1]:
            out.left_out.add("joint limits that exclude each other", "absent", name)
            return
        own.update(range=both, limited="true")
        out.left_out.add("stiffnesses of joint limits", "ranges, as hard as MuJoCo has them", name)


def _spring(out: WrittenForces, name: str, force: SpringDamper) -> None:
    drawn = force.implied(out.tree.mech.point)["free_length"]
    free = _number(drawn if force.free_length is None else force.free_length)
    k, c, preload = (_number(x) for x in (force.stiffness, force.damping, force.preload))
    if force.law is not None:
        out.left_out.add("springs with a law of their own", "their linear part alone", name)
    if preload and not (k and free - preload / k >= 0.0):
        out.left_out.add("preloads that no length of a spring gives", "absent", name)
        preload = 0.0
    length = free - (preload / k if k else 0.0)
    sites = out.sites.name(force.a, force.at_a), out.sites.name(force.b, force.at_b)
    found = {"sites": sites, "stiffness": k, "damping": c, "springlength": (length, length)}
    out.tendons[name] = found


def _torsion_bar(out: WrittenForces, name: str, force: TorsionBar) -> None:
    steps = [out.step(name, joint, index) for joint, index in force.coordinates]
    names = [step.name for step in steps if step is not None]
    if len(names) < 2:
        return
    offset = _number(force.offset)
    sign = -1.0 if offset < 0.0 else 1.0  # the length -1 has a meaning of its own in MJCF
    out.tendons[name] = {
        "joints": ((names[0], sign), (names[1], -sign * _number(force.ratio))),
        "stiffness": _number(force.stiffness),
        "damping": _number(force.damping),
        "springlength": (sign * offset, sign * offset),
    }


def _actuator(out: WrittenForces, name: str, force: Actuator) -> None:
    steps = [out.step(name, joint, force.index) for joint in force.joints]
    names = [step.name for step in steps if step is not None]
    if len(names) < len(steps):
        return
    gears = np.atleast_1d(np.asarray(force.gear, float))
    found: Attributes = {"joint": names[0], "gear": gears[0]}
    if len(names) > 1:
        tendon = out.names.unique(f"{name}.sum", "tendon")
        out.tendons[tendon] = {"joints": tuple(zip(names, gears, strict=True))}
        found = {"tendon": tendon, "gear": 1.0}
    _controlled(out, name, force, found)


def _controlled(out: WrittenForces, name: str, force: Any, found: Attributes) -> None:
    """An actuator with what all have: gain, bias, ranges, and its control."""
    bias = np.atleast_1d(np.asarray(force.bias, float))
    found |= {"gainprm": _number(force.gain), "biastype": "affine", "biasprm": bias}
    for attribute, ends in (("ctrl", force.control_range), ("force", force.force_range)):
        if ends is not None:
            found |= {f"{attribute}limited": "true", f"{attribute}range": np.asarray(ends)}
    out.actuators[name] = found
    if control := _number(force.control):
        out.controls[name] = control


def _body_actuator(out: WrittenForces, name: str, force: BodyActuator) -> None:
    if force.a != GROUND or force.b == GROUND:
        out.left_out.add("actuators between two bodies", "absent", name)
        return
    # A site has global axes at the reference configuration, where b may be turned.
    turn = out.tree.poses[force.b].rotation
    wrench = [turn @ np.asarray(x, float) for x in (force.force, force.moment)]
    site = out.sites.name(force.b, force.at)
    _controlled(out, name, force, {"site": site, "gear": np.concatenate(wrench)})


def _joint_torque(out: WrittenForces, name: str, force: JointTorque) -> None:
    if force.law is not None:
        out.left_out.add("torques with a law of their own", "their constant part alone", name)
    joint = out.tree.mech.joints[force.joint]
    each = np.broadcast_to(np.asarray(force.torque, float), (joint.nv,))
    if not each.any():
        return
    if any(s.kind in ("ball", "free") for s in out.tree.steps(force.joint)):
        out.left_out.add("torques on balls and free joints", "absent", name)
        return
    for index in np.flatnonzero(each):
        step = out.step(name, force.joint, int(index))
        if step is not None:
            own = name
            if np.count_nonzero(each) > 1:
                own = out.names.unique(f"{name}.{index}", "load")
            out.actuators[own] = {"joint": step.name, **_constant(each[index])}


def _constant(force: float) -> Attributes:
    return {"gainprm": 0.0, "biastype": "affine", "biasprm": float(force)}


def _point_force(out: WrittenForces, name: str, force: PointForce) -> None:
    if force.law is not None:
        out.left_out.add("forces with a law of their own", "their constant part alone", name)
    push = np.asarray(vector_in_space(np.asarray(force.force, float)))
    if push.any() and force.b != GROUND:
        site = out.sites.name(force.b, force.at)
        _load(out, name, site, np.concatenate([push, np.zeros(3)]))


def _torque(out: WrittenForces, name: str, force: Torque) -> None:
    if force.law is not None:
        out.left_out.add("torques with a law of their own", "their constant part alone", name)
    turn = np.asarray(vector_in_space(np.asarray(force.torque, float)))
    for body, sign in ((force.b, 1.0), (force.a, -1.0)):
        own = name if sign > 0.0 else out.names.unique(f"{name}.reaction", "load")
        if body != GROUND and turn.any():
            origin = next(b.origin for b in out.tree.bodies if b.name == body)
            site = out.sites.add(body, own, origin)
            _load(out, own, site, np.concatenate([np.zeros(3), sign * turn]))


def _load(out: WrittenForces, name: str, site: str, wrench: np.ndarray) -> None:
    out.actuators[name] = {
        "site": site,
        "refsite": out.world(),
        "gear": wrench,
        **_constant(1.0),
    }


_WRITERS: dict[type[ForceElement], Callable[[WrittenForces, str, Any], None]] = {
    TorsionSpring: _torsion_spring,
    JointDrag: _drag,
    Armature: _armature,
    JointLimit: _limit,
    SpringDamper: _spring,
    TorsionBar: _torsion_bar,
    Actuator: _actuator,
    BodyActuator: _body_actuator,
    JointTorque: _joint_torque,
    PointForce: _point_force,
    Torque: _torque,
}
