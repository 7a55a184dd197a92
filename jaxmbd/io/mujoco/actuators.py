"""Actuators of a compiled MuJoCo model: on joints and fixed tendons, at sites, of balls.

An actuator without gain, whose bias is constant and which acts on a site along the axes of a site
of the ground, is a force and a torque in global axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.io.conversion import LeftOut, LeftOutNotes, UniqueNames
from jaxmbd.io.mujoco.bodies import Drawn, joint_kind, names_of
from jaxmbd.io.mujoco.compile import mujoco_reader
from jaxmbd.io.mujoco.forces import FixedTendon, Forces, disabled, on_joint, transmission
from jaxmbd.model import GROUND, Actuator, BodyActuator, ForceElement, PointForce, Torque


def motors(drawn: Drawn) -> tuple[Forces, dict[str, str], list[LeftOut]]:
    """Actuators by name, the model's names of them, and what is left out of them."""
    model, known = drawn.model, {}
    out: Forces = {}
    left = LeftOutNotes()
    if disabled(model, "ACTUATION"):
        return out, known, []
    own = names_of(model, "actuator", model.nu)
    paths = [transmission(model, i) for i in range(model.nu)]
    pulled = [j for path in paths if path is not None for j in path.joints]
    # Those that keep their names come first: no new name may be one of theirs.
    names = UniqueNames([*drawn.joints, *own])
    for i, (name, path) in enumerate(zip(own, paths, strict=True)):
        key = name if name not in drawn.joints else names.unique(name, "motor")
        if path is None and (loads := constant_loads(drawn, i, key, names)):
            out |= loads
            continue
        reasons = _refusals(drawn, i, path)
        for reason in reasons:
            left.add(*reason, name)
        if any(text == "absent" for _, text in reasons):
            continue
        known[name] = key
        if path is None:
            out[key] = _body_motor(drawn, i)
            continue
        limited = [j for j in path.joints if model.jnt_actfrclimited[j]]
        alone = len(path.joints) == 1 and pulled.count(path.joints[0]) == 1
        if limited and not alone:
            left.add("joint ranges of summed efforts", "ignored", name)
        out[key] = _motor(drawn, i, path, alone)
    return out, known, left.rows()


def _refusals(drawn: Drawn, i: int, path: FixedTendon | None) -> list[tuple[str, str]]:
    """Why an actuator is not as in the model, each with what that means; "absent" if it is not."""
    model, mujoco = drawn.model, mujoco_reader()
    dyn, gain, bias = mujoco.mjtDyn, mujoco.mjtGain, mujoco.mjtBias
    if path is None and not _turns_with_a_body(drawn, i):
        return [("actuators of spatial tendons, sites on sites, adhesion", "absent")]
    affine = int(model.actuator_gaintype[i]) == gain.mjGAIN_AFFINE
    fixed = int(model.actuator_gaintype[i]) == gain.mjGAIN_FIXED
    if not (fixed or (affine and not model.actuator_gainprm[i, 1:3].any())):
        return [("actuators whose gain depends on the state", "absent")]
    if int(model.actuator_biastype[i]) not in (bias.mjBIAS_NONE, bias.mjBIAS_AFFINE):
        return [("actuators with a bias of their own", "absent")]
    lagging = int(model.actuator_dyntype[i]) in (
        dyn.mjDYN_FILTER,
        dyn.mjDYN_FILTEREXACT,
        dyn.mjDYN_INTEGRATOR,
    )
    plain = lagging or int(model.actuator_dyntype[i]) == dyn.mjDYN_NONE
    if not plain or model.actuator_plugin[i] >= 0:
        return [("actuators with dynamics of their own", "absent")]
    tied = on_joint(model, i) is None and path is not None
    of_tendon = tied and (model.actuator_armature[i] or model.actuator_damping[i])
    curved = model.actuator_dampingpoly[i].any()
    limitations = {
        ("activations of actuators", "the control is the activation"): lagging,
        ("delays of actuators", "none"): _delayed(model, i),
        ("actuators whose damping is not linear", "its linear part alone"): curved,
        ("armature and damping of actuators of tendons", "none"): of_tendon,
        ("tendons' ranges of summed forces", "ignored"): tied
        and model.tendon_actfrclimited[model.actuator_trnid[i, 0]],
    }
    return [row for row, applies in limitations.items() if applies]


def _delayed(model: Any, i: int) -> bool:
    return bool(np.any(getattr(model, "actuator_delay", np.zeros(model.nu))[i]))


def _motor(drawn: Drawn, i: int, path: FixedTendon, alone: bool) -> Actuator:
    model, (joints, coefficients) = drawn.model, path
    gear = float(model.actuator_gear[i, 0])
    start = coefficients @ model.qpos0[model.jnt_qposadr[list(joints)]]
    bias = model.actuator_biasprm[i, :3].copy() * (model.actuator_biastype[i] != 0)
    bias[0] += bias[1] * gear * start
    limits = [np.array([-np.inf, np.inf])]
    if alone and model.jnt_actfrclimited[joints[0]] and gear * coefficients[0]:
        limits.append(np.sort(model.jnt_actfrcrange[joints[0]] / (gear * coefficients[0])))
    names = tuple(drawn.joints[j] for j in joints)
    return Actuator(
        names[0] if len(names) == 1 else names,
        gear * (float(coefficients[0]) if len(names) == 1 else coefficients),
        float(model.actuator_gainprm[i, 0]),
        bias,
        **_ranges(model, i, limits),
    )


def _ranges(model: Any, i: int, limits: list[np.ndarray]) -> dict[str, np.ndarray | None]:
    """The ranges of control and force; that of the force is also within `limits`."""
    if model.actuator_forcelimited[i]:
        limits = [*limits, model.actuator_forcerange[i]]
    force = np.array([max(x[0] for x in limits), min(x[1] for x in limits)])
    control = None
    if model.actuator_actnum[i]:
        control = model.actuator_actrange[i] if model.actuator_actlimited[i] else None
    elif model.actuator_ctrllimited[i] and not disabled(model, "CLAMPCTRL"):
        control = model.actuator_ctrlrange[i]
    return {
        "control_range": None if control is None else control.copy(),
        "force_range": force if np.isfinite(force).all() else None,
    }


def _turns_with_a_body(drawn: Drawn, i: int) -> bool:
    """Whether an actuator is at a site alone, or of a ball, and does not depend on the state."""
    model = drawn.model
    kinds = mujoco_reader().mjtTrn
    kind, (first, second) = int(model.actuator_trntype[i]), model.actuator_trnid[i]
    if kind == kinds.mjTRN_SITE:
        # Without another site its length is always zero, but not its rate.
        moves = drawn.bodies[model.site_bodyid[first]] != GROUND
        return (
            moves
            and second < 0
            and not (model.actuator_biastype[i] and model.actuator_biasprm[i, 2])
        )
    ball = kind in (kinds.mjTRN_JOINT, kinds.mjTRN_JOINTINPARENT)
    free = not (model.actuator_biastype[i] and model.actuator_biasprm[i, 1:3].any())
    return ball and joint_kind(model, first) == "ball" and free


def _body_motor(drawn: Drawn, i: int) -> BodyActuator:
    """Of a site, in its axes, or of a ball, in the axes of the body above it or below."""
    model, data = drawn.model, drawn.data
    kinds = mujoco_reader().mjtTrn
    kind, on = int(model.actuator_trntype[i]), int(model.actuator_trnid[i, 0])
    gear, force = model.actuator_gear[i].copy(), np.zeros(3)
    if kind == kinds.mjTRN_SITE:
        axes = data.site_xmat[on].reshape(3, 3)
        ends = GROUND, drawn.bodies[model.site_bodyid[on]]
        at, force, moment = data.site_xpos[on].copy(), axes @ gear[:3], axes @ gear[3:]
    else:
        body = int(model.jnt_bodyid[on])
        below = drawn.bodies[model.body_parentid[body]]
        ends, at = (below, drawn.bodies[body]), data.xanchor[on].copy()
        moment = drawn.frame(body) @ gear[:3]
        if kind == kinds.mjTRN_JOINTINPARENT:
            # MuJoCo's axes are the body's without the ball's turn, not those of the body above.
            ends, moment = ends[::-1], -moment
    constant = float(model.actuator_biasprm[i, 0]) * bool(model.actuator_biastype[i])
    return BodyActuator(
        ends[1],
        at,
        force,
        moment,
        ends[0],
        float(model.actuator_gainprm[i, 0]),
        constant,
        **_ranges(model, i, [np.array([-np.inf, np.inf])]),
    )


def constant_loads(
    drawn: Drawn, actuator: int, name: str, names: UniqueNames
) -> dict[str, ForceElement]:
    """Force and torque of an actuator that gives a constant load; empty for another one.

    The force has the name that is given, and so has a torque alone.
    """
    mujoco = mujoco_reader()
    model = drawn.model
    if int(model.actuator_trntype[actuator]) != mujoco.mjtTrn.mjTRN_SITE:
        return {}
    site, reference = model.actuator_trnid[actuator]
    if reference < 0 or drawn.bodies[model.site_bodyid[reference]] != GROUND:
        return {}
    body = drawn.bodies[model.site_bodyid[site]]
    if not _is_constant(model, actuator) or body == GROUND:
        return {}
    axes = drawn.data.site_xmat[reference].reshape(3, 3)
    push = model.actuator_biasprm[actuator, 0] * model.actuator_gear[actuator]
    force, torque = axes @ push[:3], axes @ push[3:]
    at = names_of(model, "site", model.nsite)[site]
    out: dict[str, ForceElement] = {}
    if force.any():
        out[name] = PointForce(body, at, force)
    if torque.any():
        own = names.unique(f"{name}.torque", "load") if force.any() else name
        out[own] = Torque(GROUND, body, torque)
    return out


def _is_constant(model: Any, i: int) -> bool:
    mujoco = mujoco_reader()
    return bool(
        int(model.actuator_gaintype[i]) == mujoco.mjtGain.mjGAIN_FIXED
        and int(model.actuator_biastype[i]) == mujoco.mjtBias.mjBIAS_AFFINE
        and int(model.actuator_dyntype[i]) == mujoco.mjtDyn.mjDYN_NONE
        and not model.actuator_gainprm[i, 0]
        and not np.any(model.actuator_biasprm[i, 1:3])
        and not model.actuator_forcelimited[i]
    )
