"""Straight tendons of a compiled MuJoCo model: springs, dampers and rods.

A spatial tendon through two sites, around nothing, is a spring-damper; where an equality holds its
length it is a rod.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxmbd.io.mujoco_bodies import Drawn, names_of
from jaxmbd.io.mujoco_forces import disabled
from jaxmbd.model.forces import SpringDamper
from jaxmbd.model.joints import Rod
from jaxmbd.numerics.extras import optional


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
