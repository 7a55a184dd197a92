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
    given = actions if isinstance(actions, Mapping) else dict.fromkeys(actions or motors)
    low, high, problems = [], [], []
    if not given:
        problems.append(
            "there is nothing to act on: give the mechanism an Actuator, or a joint and its limits,"
            " actions={'a joint': (low, high)}"
        )
    for name, limits in given.items():
        joint = name in mech.joints
        found = unknown("actuator or joint", name, [*motors, *mech.joints])
        if joint and not found and mech.joint(name).nv != 1:
            found.append(f"joint {name!r} has {mech.joint(name).nv} speeds: act by an Actuator")
        if limits is None and not found:
            limits = None if joint else own_limits(motors[name])
            if limits is None:
                cure = f"actions={{{name!r}: (low, high)}}"
                own = "" if joint else "control_range= of the actuator, or "
                found.append(f"{name!r} has no limits; give {own}{cure}")
        ends = (0.0, 0.0) if limits is None else limits
        if any(isinstance(x, Tracer) for x in jax.tree_util.tree_leaves(ends)):
            found.append(
                f"the limits of {name!r} are traced; give numbers: actions={{{name!r}: …}}"
            )
        elif limits is not None and not (np.shape(ends) == (2,) and ends[0] < ends[1]):
            found.append(f"the limits of {name!r} are {limits}; give (low, high), low below high")
        problems += [f"actions: {text}" for text in found]
        if not found:
            low, high = [*low, ends[0]], [*high, ends[1]]
    return tuple(given), low, high, problems


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
