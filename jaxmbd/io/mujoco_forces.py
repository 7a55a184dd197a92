"""Springs, dampers, friction losses, rotors, motors and stops of a compiled MuJoCo model."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.io.imported import LeftOut
from jaxmbd.io.mujoco_bodies import Drawn, joint_kind, names_of, object_name
from jaxmbd.model.forces import (
    Actuator,
    Armature,
    ForceElement,
    JointDrag,
    JointLimit,
    PointForce,
    TorsionSpring,
)
from jaxmbd.numerics.extras import optional

Forces = dict[str, ForceElement]


def disabled(model: Any, flag: str) -> bool:
    """Whether an option of the model disables a part of its physics, for example "SPRING"."""
    mujoco = optional("mujoco", "io", "reading MJCF or URDF")
    return bool(model.opt.disableflags & getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))


def dof_numbers(drawn: Drawn, j: int, numbers: np.ndarray) -> np.ndarray:
    """The numbers (nv,) of a joint's speeds."""
    size = {"free": 6, "ball": 3}.get(joint_kind(drawn.model, j), 1)
    start = drawn.model.jnt_dofadr[j]
    return numbers[start : start + size]


def passive_forces(drawn: Drawn, velocity_scale: float) -> tuple[Forces, list[LeftOut]]:
    """Springs, dampers, friction losses and rotors of the joints, by name."""
    model, out, left = drawn.model, {}, []
    stiffness = np.where(disabled(model, "SPRING"), 0.0, model.jnt_stiffness)
    damping = np.where(disabled(model, "DAMPER"), 0.0, _damping(model))
    loss = np.where(disabled(model, "FRICTIONLOSS"), 0.0, model.dof_frictionloss)
    inertia = _inertia(model)
    found: dict[str, list[str]] = {}
    for j, name in enumerate(drawn.joints):
        k, kind = float(stiffness[j]), joint_kind(model, j)
        viscous, dry, rotor = (dof_numbers(drawn, j, x) for x in (damping, loss, inertia))
        if kind == "free" and not _frame_at_com(drawn, j):
            if viscous.any() or dry.any() or rotor.any():
                found.setdefault("free joints' own damping or inertia", []).append(name)
            viscous = dry = rotor = np.zeros(0)
        if kind in ("free", "ball") and k:
            found.setdefault("springs of balls and free joints", []).append(name)
        elif k:
            rest = model.qpos_spring[model.jnt_qposadr[j]] - model.qpos0[model.jnt_qposadr[j]]
            out[f"{name}.spring"] = TorsionSpring(name, k, float(viscous[0]), rest)
            viscous = np.zeros(1)
        if viscous.any() or dry.any():
            out[f"{name}.drag"] = JointDrag(name, _one(dry), _one(viscous), velocity_scale)
        if rotor.any():
            out[f"{name}.rotor"] = Armature(name, _one(rotor))
        if np.any(model.jnt_stiffnesspoly[j]) or dof_numbers(drawn, j, _poly(model)).any():
            found.setdefault("springs and dampers that are not linear", []).append(name)
    left = [LeftOut(what, tuple(x), "their linear part alone") for what, x in found.items()]
    return out, [x if "linear" in x.what else x._replace(consequence="absent") for x in left]


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


def on_joint(model: Any, actuator: int) -> int | None:
    """The hinge or slide on which an actuator acts; None if it acts on something else."""
    mujoco = optional("mujoco", "io", "reading MJCF or URDF")
    kinds = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
    if int(model.actuator_trntype[actuator]) not in kinds:
        return None
    joint = int(model.actuator_trnid[actuator, 0])
    return joint if joint_kind(model, joint) in ("hinge", "slide") else None


def motors(drawn: Drawn) -> tuple[Forces, dict[str, str], list[LeftOut]]:
    """Actuators by name, the model's names of them, and what is left out of them."""
    model, out, known = drawn.model, {}, {}
    found: dict[tuple[str, str], list[str]] = {}
    if disabled(model, "ACTUATION"):
        return out, known, []
    own = names_of(model, "actuator", model.nu)
    carried = [on_joint(model, i) for i in range(model.nu)]
    for i, (name, j) in enumerate(zip(own, carried, strict=True)):
        reason, consequence = _refusal(model, i, j)
        if reason:
            found.setdefault((reason, consequence), []).append(name)
        if j is None or consequence == "absent":
            continue
        alone = carried.count(j) == 1
        if model.jnt_actfrclimited[j] and not alone:
            found.setdefault(("joint ranges of summed efforts", "ignored"), []).append(name)
        key = name if name not in drawn.joints else f"{name}.motor"
        out[key], known[name] = _motor(drawn, i, j, alone), key
    left = [LeftOut(reason, tuple(x), text) for (reason, text), x in found.items()]
    return out, known, left


def _refusal(model: Any, i: int, joint: int | None) -> tuple[str, str]:
    """Why an actuator is not as in the model, and what that means; empty if it is."""
    mujoco = optional("mujoco", "io", "reading MJCF or URDF")
    dyn, gain, bias = mujoco.mjtDyn, mujoco.mjtGain, mujoco.mjtBias
    if joint is None:
        return "actuators of tendons, sites, bodies or balls", "absent"
    affine = int(model.actuator_gaintype[i]) == gain.mjGAIN_AFFINE
    fixed = int(model.actuator_gaintype[i]) == gain.mjGAIN_FIXED
    if not (fixed or (affine and not model.actuator_gainprm[i, 1:3].any())):
        return "actuators whose gain depends on the state", "absent"
    if int(model.actuator_biastype[i]) not in (bias.mjBIAS_NONE, bias.mjBIAS_AFFINE):
        return "actuators with a bias of their own", "absent"
    lags = (dyn.mjDYN_FILTER, dyn.mjDYN_FILTEREXACT, dyn.mjDYN_INTEGRATOR)
    if int(model.actuator_dyntype[i]) in lags:
        return "activations of actuators", "the control is the activation"
    if int(model.actuator_dyntype[i]) != dyn.mjDYN_NONE or model.actuator_plugin[i] >= 0:
        return "actuators with dynamics of their own", "absent"
    if model.actuator_dampingpoly[i].any():
        return "actuators whose damping is not linear", "its linear part alone"
    return "", ""


def _motor(drawn: Drawn, i: int, j: int, alone: bool) -> Actuator:
    model = drawn.model
    gear, start = float(model.actuator_gear[i, 0]), model.qpos0[model.jnt_qposadr[j]]
    bias = model.actuator_biasprm[i, :3].copy() * (model.actuator_biastype[i] != 0)
    bias[0] += bias[1] * gear * start
    ends = [np.array([-np.inf, np.inf])]
    if model.actuator_forcelimited[i]:
        ends.append(model.actuator_forcerange[i])
    if alone and model.jnt_actfrclimited[j] and gear:
        ends.append(np.sort(model.jnt_actfrcrange[j] / gear))
    force = np.array([max(x[0] for x in ends), min(x[1] for x in ends)])
    control = None
    if model.actuator_actnum[i]:
        control = model.actuator_actrange[i] if model.actuator_actlimited[i] else None
    elif model.actuator_ctrllimited[i] and not disabled(model, "CLAMPCTRL"):
        control = model.actuator_ctrlrange[i]
    return Actuator(
        drawn.joints[j],
        gear,
        float(model.actuator_gainprm[i, 0]),
        bias,
        control_range=None if control is None else control.copy(),
        force_range=force if np.isfinite(force).all() else None,
    )


def limits_of(drawn: Drawn) -> dict[str, tuple[float, float]]:
    """Ranges of the coordinates of hinges and slides, by joint."""
    model, out = drawn.model, {}
    if disabled(model, "LIMIT"):
        return out
    for j, name in enumerate(drawn.joints):
        if model.jnt_limited[j] and joint_kind(model, j) in ("hinge", "slide"):
            lower, upper = model.jnt_range[j] - model.qpos0[model.jnt_qposadr[j]]
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
    for i in np.flatnonzero(model.body_gravcomp):
        force = -model.body_gravcomp[i] * model.body_mass[i] * model.opt.gravity
        if drawn.bodies[i] != "ground" and force.any():
            name = object_name(model, "body", int(i))
            at = drawn.data.xipos[i].copy()
            out[f"{name}.gravcomp"] = PointForce(drawn.bodies[i], at, force)
    return out
