"""Constant loads of a compiled MuJoCo model.

An actuator without gain, whose bias is constant and which acts on a site along the axes of a site
of the ground, is a force and a torque in global axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.io.mujoco_bodies import Drawn, names_of
from jaxmbd.io.unique_names import UniqueNames
from jaxmbd.model.forces import ForceElement, PointForce, Torque
from jaxmbd.model.numbers import GROUND
from jaxmbd.numerics.extras import optional


def constant_loads(
    drawn: Drawn, actuator: int, name: str, names: UniqueNames
) -> dict[str, ForceElement]:
    """Force and torque of an actuator that gives a constant load; empty for another one.

    The force has the name that is given, and so has a torque alone.
    """
    mujoco = optional("mujoco", "io", "reading MJCF or URDF")
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
    mujoco = optional("mujoco", "io", "reading MJCF or URDF")
    return bool(
        int(model.actuator_gaintype[i]) == mujoco.mjtGain.mjGAIN_FIXED
        and int(model.actuator_biastype[i]) == mujoco.mjtBias.mjBIAS_AFFINE
        and int(model.actuator_dyntype[i]) == mujoco.mjtDyn.mjDYN_NONE
        and not model.actuator_gainprm[i, 0]
        and not np.any(model.actuator_biasprm[i, 1:3])
        and not model.actuator_forcelimited[i]
    )
