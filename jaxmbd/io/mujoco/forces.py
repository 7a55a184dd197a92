"""Springs, dampers, friction losses, rotors and stops of a compiled MuJoCo model."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.io.imported import LeftOut
from jaxmbd.io.mujoco.bodies import Drawn, joint_kind, names_of
from jaxmbd.io.mujoco.transmissions import on_joint
from jaxmbd.model import (
    GROUND,
    Armature,
    ForceElement,
    JointDrag,
    JointLimit,
    PointForce,
    TorsionSpring,
)
from jaxmbd.plumbing import optional

Forces = dict[str, ForceElement]
ENDLESS = 1.5e9
"""A range of this width [rad or m] is none: URDF demands one of every slide."""


CONSTRAINTS = ("EQUALITY", "FRICTIONLOSS", "LIMIT", "CONTACT")


def disabled(model: Any, flag: str) -> bool:
    """Whether an option of the model disables a part of its physics, for example "SPRING"."""
    flags = optional("mujoco", "io", "reading MJCF or URDF").mjtDisableBit
    names = (flag, "CONSTRAINT") if flag in CONSTRAINTS else (flag,)
    return any(bool(model.opt.disableflags & getattr(flags, f"mjDSBL_{n}")) for n in names)


def dof_numbers(drawn: Drawn, j: int, numbers: np.ndarray) -> np.ndarray:
    """The numbers (nv,) of a joint's speeds."""
    size = {"free": 6, "ball": 3}.get(joint_kind(drawn.model, j), 1)
    start = drawn.model.jnt_dofadr[j]
    return numbers[start : start + size]


_OWN_OF_FREE = "free joints' own damping or inertia", "absent"
_BALL_SPRINGS = "springs of balls and free joints", "absent"
_CURVED = "springs and dampers that are not linear", "their linear part alone"
"""What is left out, and what that means."""


def passive_forces(drawn: Drawn, velocity_scale: float) -> tuple[Forces, list[LeftOut]]:
    """Springs, dampers, friction losses and rotors of the joints, by name."""
    model, out = drawn.model, {}
    stiffness = np.where(disabled(model, "SPRING"), 0.0, model.jnt_stiffness)
    damping = np.where(disabled(model, "DAMPER"), 0.0, _damping(model))
    loss = np.where(disabled(model, "FRICTIONLOSS"), 0.0, model.dof_frictionloss)
    inertia = _inertia(model)
    found: dict[tuple[str, str], list[str]] = {}
    for j, name in enumerate(drawn.joints):
        k, kind = float(stiffness[j]), joint_kind(model, j)
        viscous, dry, rotor = (dof_numbers(drawn, j, x) for x in (damping, loss, inertia))
        if kind == "free" and not _frame_at_com(drawn, j):
            if viscous.any() or dry.any() or rotor.any():
                found.setdefault(_OWN_OF_FREE, []).append(name)
            viscous = dry = rotor = np.zeros(0)
        if kind in ("free", "ball") and k:
            found.setdefault(_BALL_SPRINGS, []).append(name)
        elif k:
            rest = model.qpos_spring[model.jnt_qposadr[j]] - model.qpos0[model.jnt_qposadr[j]]
            out[f"{name}.spring"] = TorsionSpring(name, k, float(viscous[0]), rest)
            viscous = np.zeros(1)
        if viscous.any() or dry.any():
            out[f"{name}.drag"] = JointDrag(name, _one(dry), _one(viscous), velocity_scale)
        if rotor.any():
            out[f"{name}.rotor"] = Armature(name, _one(rotor))
        if np.any(model.jnt_stiffnesspoly[j]) or dof_numbers(drawn, j, _poly(model)).any():
            found.setdefault(_CURVED, []).append(name)
    return out, [LeftOut(what, tuple(x), text) for (what, text), x in found.items()]


def _poly(model: Any) -> np.ndarray:
    return np.abs(model.dof_dampingpoly).sum(axis=1)


def _one(x: np.ndarray) -> Any:
    """One number where all are equal."""
    return float(x[0]) if len(x) and np.all(x == x[0]) else x.copy()


def _frame_at_com(drawn: Drawn, j: int) -> bool:
    """Whether a free body's frame is at its centre of mass, so that its speeds are the same."""
    body = drawn.model.jnt_bodyid[j]
    parts = np.flatnonzero(drawn.model.body_weldid == body)
    masses = drawn.model.body_mass[parts]
    arm = masses @ drawn.data.xipos[parts] / masses.sum() - drawn.data.xpos[body]
    return bool(np.abs(arm).max() <= 1e-12)


def _geared(model: Any, numbers: np.ndarray, per_actuator: np.ndarray) -> np.ndarray:
    """Numbers of speeds, and what actuators add behind their gears."""
    total = numbers.copy()
    for i in range(model.nu):
        j = on_joint(model, i)
        if j is not None and per_actuator[i]:
            total[model.jnt_dofadr[j]] += model.actuator_gear[i, 0] ** 2 * per_actuator[i]
    return total


def _inertia(model: Any) -> np.ndarray:
    return _geared(model, model.dof_armature, model.actuator_armature)


def _damping(model: Any) -> np.ndarray:
    return _geared(model, model.dof_damping, model.actuator_damping)


def limits_of(drawn: Drawn) -> dict[str, tuple[float, float]]:
    """Ranges of the coordinates of hinges and slides, by joint."""
    model, out = drawn.model, {}
    if disabled(model, "LIMIT"):
        return out
    for j, name in enumerate(drawn.joints):
        if model.jnt_limited[j] and joint_kind(model, j) in ("hinge", "slide"):
            lower, upper = model.jnt_range[j] - model.qpos0[model.jnt_qposadr[j]]
            if upper - lower < ENDLESS:
                out[name] = (float(lower), float(upper))
    return out


def stops(limits: dict[str, tuple[float, float]], stiffness: float) -> Forces:
    """A stop at each end of each range."""
    return {
        f"{name}.stop": JointLimit(name, *ends, stiffness=stiffness)
        for name, ends in limits.items()
    }


def floats(drawn: Drawn) -> Forces:
    """What carries the bodies of which the model compensates the weight."""
    model, out = drawn.model, {}
    if disabled(model, "GRAVITY"):
        return out
    names = names_of(model, "body", model.nbody, (GROUND,))
    for i in np.flatnonzero(model.body_gravcomp):
        force = -model.body_gravcomp[i] * model.body_mass[i] * model.opt.gravity
        if drawn.bodies[i] != GROUND and force.any():
            at = drawn.data.xipos[i].copy()
            out[f"{names[i]}.gravcomp"] = PointForce(drawn.bodies[i], at, force)
    return out
