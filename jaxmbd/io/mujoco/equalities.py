"""Equalities of a compiled MuJoCo model: exact cut joints and couplings."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.io.conversion import LeftOut, LeftOutNotes, UniqueNames
from jaxmbd.io.mujoco.bodies import Drawn, joint_kind, names_of
from jaxmbd.io.mujoco.compile import mujoco_reader
from jaxmbd.io.mujoco.forces import disabled, rod, tendon_equality
from jaxmbd.model import (
    BaseCoupling,
    Coupling,
    Fixed,
    Gear,
    Joint,
    ParallelAxes,
    PerpendicularAxes,
    Spherical,
    register_law,
)
from jaxmbd.spatial import rotation_vector

# A condition on perpendicular axes also holds half a turn further: it must not be the nearer.
MOST_TURNED = np.radians(80.0)


class Equalities(NamedTuple):
    """Cut joints and couplings by name, and what is left out."""

    joints: dict[str, Joint]
    couplings: dict[str, BaseCoupling]
    left_out: list[LeftOut]


@register_law("polynomial_of_a_coordinate")
def polynomial(q: Array, params: Any) -> Array:
    """``q₁ − Σ_k params_k q₂ᵏ``; ``q₁ − params₀`` of one coordinate."""
    total = params[0]
    if q.shape[0] > 1:
        for power, coefficient in enumerate(params[1:], start=1):
            total = total + coefficient * q[1] ** power
    return q[0] - total


def equalities(drawn: Drawn) -> Equalities:
    """The model's equalities: `connect` as a ball, `weld` as a weld, others as couplings, rods."""
    model, found = drawn.model, Equalities({}, {}, [])
    if disabled(model, "EQUALITY"):
        return found
    kinds = mujoco_reader().mjtEq
    left = LeftOutNotes()
    own = names_of(model, "equality", model.neq, drawn.joints)
    names = UniqueNames([*drawn.joints, *own])
    for i, name in enumerate(own):
        kind, reason = int(model.eq_type[i]), ""
        if not model.eq_active0[i]:
            reason = "equalities that are not active"
        elif kind == kinds.mjEQ_JOINT:
            reason = _couple(drawn, i, name, found)
        elif kind in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD):
            reason = _close(drawn, i, name, found, names, weld=kind == kinds.mjEQ_WELD)
        elif kind == kinds.mjEQ_TENDON:
            ends, numbers = (int(model.eq_obj1id[i]), int(model.eq_obj2id[i])), model.eq_data[i, :5]
            coupling = tendon_equality(drawn, *ends, numbers)
            link = rod(drawn, *ends, numbers[0])
            if link is not None:
                found.joints[name] = link
            elif coupling is None:
                reason = "equalities of spatial tendons"
            else:
                found.couplings[name] = coupling
        else:
            reason = "equalities of flexible bodies or distances"
        if reason:
            left.add(reason, "absent", name)
    return found._replace(left_out=left.rows())


def _couple(drawn: Drawn, i: int, name: str, found: Equalities) -> str:
    """A condition between the coordinates of two joints, or on that of one."""
    model, coefficients = drawn.model, drawn.model.eq_data[i, :5].copy()
    joints = [int(model.eq_obj1id[i]), int(model.eq_obj2id[i])]
    joints = [j for j in joints if j >= 0]
    if any(joint_kind(model, j) not in ("hinge", "slide") for j in joints):
        return "equalities of balls or free joints"
    names = [drawn.joints[j] for j in joints]
    if len(names) == 2 and not coefficients[2:].any():
        found.couplings[name] = Gear(names[1], names[0], coefficients[1], coefficients[0])
    else:
        last = int(np.max(np.flatnonzero(coefficients), initial=0))
        found.couplings[name] = Coupling(tuple(names), polynomial, coefficients[: last + 1])
    return ""


def _close(
    drawn: Drawn, i: int, name: str, found: Equalities, names: UniqueNames, *, weld: bool
) -> str:
    """A ball or a weld; its halves are drawn apart where they do not meet as drawn."""
    model, data = drawn.model, drawn.data
    points_by_name: list[Any] = []
    mujoco = mujoco_reader()
    ends = [int(model.eq_obj1id[i]), int(model.eq_obj2id[i])]
    if int(model.eq_objtype[i]) == mujoco.mjtObj.mjOBJ_SITE:
        points = [data.site_xpos[k].copy() for k in ends]
        turns = [data.site_xmat[k].reshape(3, 3) for k in ends]
        owners = [int(model.site_bodyid[k]) for k in ends]
        sites = names_of(model, "site", model.nsite)
        points_by_name = [sites[k] for k in ends]
    else:
        owners, numbers = ends, model.eq_data[i]
        places = (numbers[3:6], numbers[:3]) if weld else (numbers[:3], numbers[3:6])
        points = [drawn.place(b, x) for b, x in zip(owners, places, strict=True)]
        turns = [drawn.frame(b) for b in owners]
        if weld:
            relative = np.zeros(9)
            mujoco.mju_quat2Mat(relative, numbers[6:10])
            turns[0] = turns[0] @ relative.reshape(3, 3)
    a, b = (drawn.bodies[k] for k in owners)
    if a == b:
        return "equalities within one rigid body"
    held = weld and model.eq_data[i, 10] != 0.0  # else the scale of its torque is zero
    turned = held and np.abs(turns[0] - turns[1]).max() > 1e-9
    turn = turns[0] @ turns[1].T
    if turned and np.trace(turn) < 1.0 + 2.0 * np.cos(MOST_TURNED):
        return "welds that turn a body by more than 80° from its drawn orientation"
    apart = np.abs(points[0] - points[1]).max() > 1e-12 * (1.0 + np.abs(points[0]).max())
    at, at_b = points_by_name or points
    at_b = at_b if apart else None
    rigid = held and not turned
    found.joints[name] = Fixed(a, b, at, at_b=at_b) if rigid else Spherical(a, b, at, at_b=at_b)
    if turned:
        found.joints.update(names.renamed(_held_turned(name, a, b, turn), "equality"))
    return ""


def _held_turned(name: str, a: str, b: str, turn: np.ndarray) -> dict[str, Joint]:
    """The three moment rows of a weld of b, turned by `turn` (3, 3) from its drawn orientation.

    The turn does not move its own axis; two others, perpendicular to it and to each other, measure
    how far b has turned about it.
    """
    axis = np.asarray(rotation_vector(jnp.asarray(turn)))
    axis = axis / np.linalg.norm(axis)
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    second = np.cross(axis, first)
    return {
        f"{name}.axis": ParallelAxes(a, b, axis),
        f"{name}.turn": PerpendicularAxes(a, b, first, turn.T @ second),
    }
