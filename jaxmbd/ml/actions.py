"""What an environment's actions act on, and their limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from jaxmbd.model import Controlled, Mechanism, is_concrete
from jaxmbd.plumbing import unknown


def action_limits(
    mech: Mechanism, actions: Iterable[str] | Mapping[str, Any] | None
) -> tuple[tuple[str, ...], list[float], list[float], list[str]]:
    """Names, lower and upper limits of actions, and what is wrong with them.

    Args:
        mech: the mechanism.
        actions: names of actuators or joints, with limits (low, high) or None, or without; None for
            all actuators.
    """
    motors = {n: mech.forces[n] for n in mech.structure.forces}
    motors = {n: x for n, x in motors.items() if isinstance(x, Controlled)}
    if isinstance(actions, str):
        actions = (actions,)
    given: Mapping[str, Any] = (
        actions if isinstance(actions, Mapping) else dict.fromkeys(actions or motors)
    )
    low, high, problems = [], [], []
    if not given:
        problems.append(
            "there is nothing to act on: give the mechanism an Actuator, or a joint and its limits,"
            " actions={'a joint': (low, high)}"
        )
    for name, limits in given.items():
        joint, found = name in mech.joints, _target_problems(mech, name, motors)
        own = limits is None and not joint and not found
        ends: Any = own_limits(motors[name]) if own else limits
        if limits is not None or not found:
            found += _limit_problems(name, ends, joint)
        problems += [f"actions: {text}" for text in found]
        if not found:
            low, high = [*low, ends[0]], [*high, ends[1]]
    return tuple(given), low, high, problems


def _target_problems(mech: Mechanism, name: str, motors: Mapping[str, Any]) -> list[str]:
    """Why a name is nothing that one action acts on."""
    found = unknown("actuator or joint", name, [*motors, *mech.joints])
    if not found and name in mech.joints and mech.joint(name).nv != 1:
        found.append(f"joint {name!r} has {mech.joint(name).nv} speeds: act by an Actuator")
    return found


def _limit_problems(name: str, limits: Any, joint: bool) -> list[str]:
    """What is wrong with an action's limits."""
    if limits is None:
        own = "" if joint else "control_range= of the actuator, or "
        return [f"{name!r} has no limits; give {own}actions={{{name!r}: (low, high)}}"]
    if any(isinstance(x, Tracer) for x in jax.tree_util.tree_leaves(limits)):
        return [f"the limits of {name!r} are traced; give numbers: actions={{{name!r}: …}}"]
    if not (np.shape(limits) == (2,) and limits[0] < limits[1]):
        return [f"the limits of {name!r} are {limits}; give (low, high), low below high"]
    return []


def own_limits(motor: Any) -> Any:
    """Limits of a control: its range, or of a motor without bias that of its force."""
    if motor.control_range is not None:
        return motor.control_range
    numbers = motor.bias, motor.gain
    if motor.force_range is None or not all(map(is_concrete, numbers)):
        return None
    if np.any(np.asarray(motor.bias)) or not motor.gain > 0.0:
        return None
    return motor.force_range / motor.gain
