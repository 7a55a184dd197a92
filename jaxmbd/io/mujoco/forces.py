"""Forces of a compiled MuJoCo model: of its joints and tendons, and of its actuators.

A fixed tendon is a linear combination of joint coordinates. A spatial tendon through two sites,
around nothing, is a spring-damper; where an equality holds its length it is a rod. Others, around
shapes, are none that mechanisms have.

Actuators act on joints and fixed tendons, at sites, on balls. One without gain, whose bias is
constant and which acts on a site along the axes of a site of the ground, is a force and a torque in
global axes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.io.conversion import LeftOut, LeftOutNotes, UniqueNames
from jaxmbd.io.mujoco.bodies import Drawn, joint_kind, names_of
from jaxmbd.io.mujoco.compile import mujoco_reader
from jaxmbd.model import (
    GROUND,
    Actuator,
    Armature,
    BodyActuator,
    Coupling,
    ForceElement,
    JointDrag,
    PointForce,
    Rod,
    SpringDamper,
    Torque,
    TorsionBar,
    TorsionSpring,
    register_law,
)

Forces = dict[str, ForceElement]
ENDLESS = 1.5e9
"""A range of this width [rad or m] is none: URDF demands one of every slide."""


CONSTRAINTS = ("EQUALITY", "FRICTIONLOSS", "LIMIT", "CONTACT")


def disabled(model: Any, flag: str) -> bool:
    """Whether an option of the model disables a part of its physics, for example "SPRING"."""
    flags = mujoco_reader().mjtDisableBit
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
    damping = _geared(model, model.dof_damping, model.actuator_damping)
    damping = np.where(disabled(model, "DAMPER"), 0.0, damping)
    loss = np.where(disabled(model, "FRICTIONLOSS"), 0.0, model.dof_frictionloss)
    inertia = _geared(model, model.dof_armature, model.actuator_armature)
    curved = np.abs(model.dof_dampingpoly).sum(axis=1)
    left = LeftOutNotes()
    for j, name in enumerate(drawn.joints):
        k, kind = float(stiffness[j]), joint_kind(model, j)
        viscous, dry, rotor = (dof_numbers(drawn, j, x) for x in (damping, loss, inertia))
        if kind == "free" and not _frame_at_com(drawn, j):
            if viscous.any() or dry.any() or rotor.any():
                left.add(*_OWN_OF_FREE, name)
            viscous = dry = rotor = np.zeros(0)
        if kind in ("free", "ball") and k:
            left.add(*_BALL_SPRINGS, name)
        elif k:
            rest = model.qpos_spring[model.jnt_qposadr[j]] - model.qpos0[model.jnt_qposadr[j]]
            out[f"{name}.spring"] = TorsionSpring(name, k, float(viscous[0]), rest)
            viscous = np.zeros(1)
        if viscous.any() or dry.any():
            out[f"{name}.drag"] = JointDrag(name, _one(dry), _one(viscous), velocity_scale)
        if rotor.any():
            out[f"{name}.rotor"] = Armature(name, _one(rotor))
        if np.any(model.jnt_stiffnesspoly[j]) or dof_numbers(drawn, j, curved).any():
            left.add(*_CURVED, name)
    return out, left.rows()


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


class FixedTendon(NamedTuple):
    """The length ``Σ coefficientᵢ qposᵢ`` of different joints, by their numbers in the model."""

    joints: tuple[int, ...]
    coefficients: np.ndarray


def fixed_tendon(model: Any, tendon: int) -> FixedTendon | None:
    """One of the model's tendons; None if it is a spatial one."""
    wrap = mujoco_reader().mjtWrap
    first, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
    own = range(first, first + count)
    if any(int(model.wrap_type[i]) != wrap.mjWRAP_JOINT for i in own):
        return None
    sums: dict[int, float] = {}
    for i in own:
        joint = int(model.wrap_objid[i])
        sums[joint] = sums.get(joint, 0.0) + float(model.wrap_prm[i])
    return FixedTendon(tuple(sums), np.array(list(sums.values())))


NO_TENDON = FixedTendon((), np.zeros(0))


def on_joint(model: Any, actuator: int) -> int | None:
    """The hinge or slide on which an actuator acts; None if it acts on something else."""
    mujoco = mujoco_reader()
    kinds = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
    if int(model.actuator_trntype[actuator]) not in kinds:
        return None
    joint = int(model.actuator_trnid[actuator, 0])
    return joint if joint_kind(model, joint) in ("hinge", "slide") else None


def transmission(model: Any, actuator: int) -> FixedTendon | None:
    """The coordinate of an actuator before its gear; None if it is not one of hinges and slides."""
    joint = on_joint(model, actuator)
    if joint is not None:
        return FixedTendon((joint,), np.ones(1))
    kinds = mujoco_reader().mjtTrn
    if int(model.actuator_trntype[actuator]) == kinds.mjTRN_TENDON:
        return fixed_tendon(model, int(model.actuator_trnid[actuator, 0]))
    return None


def _ends(drawn: Drawn, tendon: int) -> tuple[str, str, str, str] | None:
    """Bodies and points at the ends of a straight tendon between two bodies, else None."""
    kind, model = mujoco_reader().mjtWrap.mjWRAP_SITE, drawn.model
    start, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
    if count != 2 or any(int(k) != kind for k in model.wrap_type[start : start + 2]):
        return None
    sites = [int(k) for k in model.wrap_objid[start : start + 2]]
    a, b = (drawn.bodies[model.site_bodyid[k]] for k in sites)
    names = names_of(model, "site", model.nsite)
    return None if a == b else (a, b, names[sites[0]], names[sites[1]])


class LinearSpring(NamedTuple):
    """Spring and damper of a tendon: ``stiffness (length − rest) + damping rate``."""

    stiffness: float
    damping: float
    rest: float


def linear_spring(model: Any, tendon: int) -> LinearSpring | None:
    """What a tendon does by itself; None if that is nothing, not linear, or slack between."""
    stiffness = 0.0 if disabled(model, "SPRING") else float(model.tendon_stiffness[tendon])
    damping = 0.0 if disabled(model, "DAMPER") else float(model.tendon_damping[tendon])
    shortest, longest = model.tendon_lengthspring[tendon]
    slack = stiffness and shortest != longest
    curved = model.tendon_stiffnesspoly[tendon].any() or model.tendon_dampingpoly[tendon].any()
    if slack or curved or not (stiffness or damping):
        return None
    return LinearSpring(stiffness, damping, shortest)


def springs(drawn: Drawn) -> dict[str, SpringDamper]:
    """Springs and dampers of straight tendons, by name, which are linear and never slack."""
    model, out = drawn.model, {}
    for i, name in enumerate(names_of(model, "tendon", model.ntendon, drawn.joints)):
        spring, ends = linear_spring(model, i), _ends(drawn, i)
        if spring is not None and ends is not None:
            out[name] = SpringDamper(*ends, *spring)
    return out


def rod(drawn: Drawn, first: int, second: int, offset: float) -> Rod | None:
    """The rod of an equality of a straight tendon, by their numbers in the model.

    Args:
        drawn: the model.
        first: the tendon.
        second: another one; −1 if the length is constant.
        offset: of the length from that of the reference configuration [m].

    Returns:
        None if it is another equality.
    """
    ends = _ends(drawn, first)
    if second >= 0 or ends is None:
        return None
    return Rod(*ends, length=drawn.model.tendon_length0[first] + offset)


@register_law("polynomial_of_a_tendon")
def polynomial_of_a_tendon(q: Array, params: Any) -> Array:
    """``l₁ − Σ_k params["polynomial"]_k l₂ᵏ`` of the combinations ``l = params["ratios"] q``."""
    ratios = params["ratios"]
    first = second = jnp.zeros_like(q[0])
    for i in range(ratios.shape[1]):
        first, second = first + ratios[0, i] * q[i], second + ratios[1, i] * q[i]
    total, power = 0.0, 1.0
    for k in range(params["polynomial"].shape[0]):
        total, power = total + params["polynomial"][k] * power, power * second
    return first - total


def tendon_equality(drawn: Drawn, first: int, second: int, numbers: np.ndarray) -> Coupling | None:
    """``l₁ − l₁₀ = Σ_k numbers_k (l₂ − l₂₀)ᵏ`` of two fixed tendons; the second may be −1.

    Returns:
        None if one of them is spatial.
    """
    both = [fixed_tendon(drawn.model, k) if k >= 0 else NO_TENDON for k in (first, second)]
    parts = [x for x in both if x is not None]
    if len(parts) < 2:
        return None
    joints = tuple(dict.fromkeys(j for x in parts for j in x.joints))
    ratios = np.zeros((2, len(joints)))
    for row, tendon in zip(ratios, parts, strict=True):
        row[[joints.index(j) for j in tendon.joints]] = tendon.coefficients
    last = int(np.max(np.flatnonzero(numbers), initial=0)) if second >= 0 else 0
    params = {"ratios": ratios, "polynomial": numbers[: last + 1].copy()}
    return Coupling(tuple(drawn.joints[j] for j in joints), polynomial_of_a_tendon, params)


def joint_springs(drawn: Drawn) -> dict[str, TorsionSpring | TorsionBar]:
    """Springs and dampers of fixed tendons of one joint or two, which are linear and never slack.

    With the length ``c₁ q₁ + c₂ q₂ = c₁ x`` a tendon's stiffness k is one of ``c₁² k`` along x.
    """
    model, out = drawn.model, {}
    for i, name in enumerate(names_of(model, "tendon", model.ntendon, drawn.joints)):
        spring, tendon = linear_spring(model, i), fixed_tendon(model, i)
        if spring is None or tendon is None:
            continue
        joints, numbers = tendon
        if len(joints) > 2 or not numbers.all():
            continue
        drawn_length = numbers @ model.qpos0[model.jnt_qposadr[list(joints)]]
        names, first = [drawn.joints[j] for j in joints], numbers[0]
        rest = (spring.rest - drawn_length) / first
        along = spring.stiffness * first**2, spring.damping * first**2
        if len(names) == 1:
            out[name] = TorsionSpring(names[0], *along, rest)
        else:
            out[name] = TorsionBar(*names, *along, -numbers[1] / first, rest)
    return out


def tendons_left_out(drawn: Drawn) -> list[LeftOut]:
    """What tendons do by themselves, but for the springs that mechanisms have."""
    model = drawn.model
    names = names_of(model, "tendon", model.ntendon, drawn.joints)
    supported = np.isin(names, [*springs(drawn), *joint_springs(drawn)])
    stiff = _acts(model.tendon_stiffness) | _acts(model.tendon_stiffnesspoly)
    viscous = _acts(model.tendon_damping) | _acts(model.tendon_dampingpoly)
    parts = {
        "springs of tendons": stiff & ~supported,
        "dampers of tendons": viscous & ~supported,
        "friction losses of tendons": _acts(model.tendon_frictionloss),
        "armatures of tendons": _acts(model.tendon_armature),
        "ranges of tendons": np.asarray(model.tendon_limited, bool),
    }
    return [
        LeftOut(what, tuple(names[i] for i in np.flatnonzero(acts)), "absent")
        for what, acts in parts.items()
    ]


def _acts(numbers: np.ndarray) -> np.ndarray:
    return np.any(numbers != 0.0, axis=tuple(range(1, numbers.ndim)))


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
    curved, nothing = model.actuator_dampingpoly[i].any(), np.zeros(model.nu)
    limitations = {
        ("activations of actuators", "the control is the activation"): lagging,
        ("delays of actuators", "none"): np.any(getattr(model, "actuator_delay", nothing)[i]),
        ("actuators whose damping is not linear", "its linear part alone"): curved,
        ("armature and damping of actuators of tendons", "none"): of_tendon,
        ("tendons' ranges of summed forces", "ignored"): tied
        and model.tendon_actfrclimited[model.actuator_trnid[i, 0]],
    }
    return [row for row, applies in limitations.items() if applies]


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
