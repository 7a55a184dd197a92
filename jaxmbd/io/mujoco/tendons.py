"""Tendons of a compiled MuJoCo model: their equalities, and what they do by themselves.

A spatial tendon through two sites, around nothing, is a spring-damper; where an equality holds its
length it is a rod.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.io.imported import LeftOut
from jaxmbd.io.mujoco.bodies import Drawn, names_of
from jaxmbd.io.mujoco.forces import disabled
from jaxmbd.io.mujoco.transmissions import NO_TENDON, fixed_tendon
from jaxmbd.model import Coupling, Rod, SpringDamper, TorsionBar, TorsionSpring, register_law
from jaxmbd.plumbing import optional


def _ends(drawn: Drawn, tendon: int) -> tuple[str, str, str, str] | None:
    """Bodies and points at the ends of a straight tendon between two bodies, else None."""
    kind, model = optional("mujoco", "io", "reading MJCF or URDF").mjtWrap.mjWRAP_SITE, drawn.model
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
def polynomial(q: Array, params: Any) -> Array:
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
    return Coupling(tuple(drawn.joints[j] for j in joints), polynomial, params)


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
    said = np.isin(names, [*springs(drawn), *joint_springs(drawn)])
    stiff = _acts(model.tendon_stiffness) | _acts(model.tendon_stiffnesspoly)
    viscous = _acts(model.tendon_damping) | _acts(model.tendon_dampingpoly)
    parts = {
        "springs of tendons": stiff & ~said,
        "dampers of tendons": viscous & ~said,
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
