"""Equalities of tendons of a compiled MuJoCo model, and what tendons do by themselves."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.io.imported import LeftOut
from jaxmbd.io.mujoco_bodies import Drawn, names_of
from jaxmbd.io.mujoco_straight_tendons import linear_spring, springs
from jaxmbd.io.mujoco_transmissions import NO_TENDON, fixed_tendon
from jaxmbd.model.coupling import Coupling
from jaxmbd.model.forces import TorsionBar, TorsionSpring, register_law


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
