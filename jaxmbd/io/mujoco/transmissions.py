"""What the actuators of a compiled MuJoCo model act on: joints, and fixed tendons.

A fixed tendon is a linear combination of joint coordinates. Spatial ones, which run through sites
and around shapes, are none that mechanisms have.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxmbd.io.mujoco.bodies import joint_kind
from jaxmbd.plumbing import optional


class FixedTendon(NamedTuple):
    """The length ``Σ coefficientᵢ qposᵢ`` of different joints, by their numbers in the model."""

    joints: tuple[int, ...]
    coefficients: np.ndarray


def fixed_tendon(model: Any, tendon: int) -> FixedTendon | None:
    """One of the model's tendons; None if it is a spatial one."""
    wrap = optional("mujoco", "io", "reading MJCF or URDF").mjtWrap
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
    mujoco = optional("mujoco", "io", "reading MJCF or URDF")
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
    kinds = optional("mujoco", "io", "reading MJCF or URDF").mjtTrn
    if int(model.actuator_trntype[actuator]) == kinds.mjTRN_TENDON:
        return fixed_tendon(model, int(model.actuator_trnid[actuator, 0]))
    return None
