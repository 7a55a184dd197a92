"""Steering of an axle: inner and outer angles, Ackermann error, turning circle.

Wheels roll without slip on circles about one centre where the normals of all of them meet in it
(Ackermann geometry); with an unsteered other axle the centre lies on that axle's line. With L the
wheelbase, t the track between the contact points as drawn, and inner and outer steer angles δ_i,
δ_o, positive into the turn, ``cot δ_o − cot δ_i = t / L``, so that the outer one to an inner one is

    tan δ_o* = sin δ_i / (cos δ_i + (t / L) sin δ_i), of the sign of δ_i.

- *Ackermann error* ``δ_o − δ_o*`` [rad]: positive where the outer wheel steers more than that;
- *Ackermann share* ``(δ_i − δ_o) / (δ_i − δ_o*)``: 1 for Ackermann geometry, 0 for parallel
  wheels, negative where the outer wheel steers more than the inner one; NaN straight ahead and
  while toe has the wheels point to different sides;
- *turning circle* [m]: the diameter of the path of the outer wheel's contact point (kerb to kerb,
  without the tyre's width) about the point where that wheel's normal meets the other axle's line,
  ``2 (distance from that line) / sin δ_o``; and the same about the point where the inner wheel's
  normal meets it. They are equal where the Ackermann error is zero, and infinite where the share
  is NaN.

The track changes, and the contact points move, as the wheels are steered; the turning circle takes
them where they are, the Ackermann error with t and L as drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.analysis import Status
from jaxmbd.lanes import host_jit
from jaxmbd.model import Mechanism
from jaxmbd.observe import Output, Sweep, called, status_text
from jaxmbd.suspension.corner import Corner, find_corner
from jaxmbd.suspension.corner_sweep import kinematics_sweep, of_mechanism
from jaxmbd.suspension.kinematics_table import Kinematics
from jaxmbd.suspension.motions import contact_point, drawn_wheel, wheel_key
from jaxmbd.suspension.reachable_travel import reach_text
from jaxmbd.suspension.wheel_characteristics import characteristics

RACK = tuple(np.linspace(-0.05, 0.05, 41).round(6).tolist())
"""Travels of the rack unless others are given [m]."""
PITMAN = tuple(np.linspace(-0.5, 0.5, 41).round(6).tolist())
"""Angles of the pitman arm unless others are given [rad]."""

_STRAIGHT = 1e-9
"""Mean steer angle up to which the car runs straight ahead [rad]."""

ABOUT = {
    "left": Output("rad", "steer angle of the left wheel [rad], positive: to the left"),
    "right": Output("rad", "steer angle of the right wheel [rad], positive: to the left"),
    "inner": Output("rad", "steer angle of the inner wheel [rad], positive: into the turn"),
    "outer": Output("rad", "steer angle of the outer wheel [rad], positive: into the turn"),
    "ackermann_outer": Output("rad", "outer angle by Ackermann of the inner one [rad]"),
    "ackermann_error": Output("rad", "outer angle minus that by Ackermann [rad]"),
    "ackermann_share": Output("", "share of Ackermann geometry, 1: it is that, 0: parallel wheels"),
    "turning_circle": Output("m", "diameter of the outer contact's path, kerb to kerb [m]"),
    "turning_circle_inner": Output("m", "the same about the inner wheel's centre of turn [m]"),
    "track": Output("m", "distance of the contact points along y [m]"),
}


@dataclass(frozen=True)
class Steering(Kinematics):
    """Steering of an axle over the travel of its rack; printed as a table, written as CSV.

    Attributes: those of `Kinematics`; the columns are those of `ABOUT`.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import Steering, steering
        >>> isinstance(steering(mbd.zoo.double_wishbone_kinematic(), steer=[0.0, 0.03]), Steering)
        True
    """


def steering_curves(
    mech: Mechanism,
    corner: Corner,
    other: Corner | None = None,
    *,
    steer: Sequence[float] | None = None,
    travel: float = 0.0,
) -> dict[str, Array]:
    """The columns of `steering` with their status, as a pure function of the mechanism.

    It can be batched by `lanes.vmap` and differentiated; a failed sample is NaN. The arguments are
    those of `steering`.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import steering_curves, zoo_corner
        >>> corner = zoo_corner("double_wishbone_kinematic")
        >>> found = steering_curves(mbd.zoo.double_wishbone_kinematic(), corner, steer=[0.0, 0.03])
        >>> found["turning_circle"].shape
        (2,)
    """
    steer = _values(mech, corner, steer)
    count = len(steer)
    if other is None:
        if corner.turns(mech):
            raise ValueError(
                f"steering={corner.steering!r} is the arm of a relay linkage, whose two sides "
                "differ: give the roles of both wheels, other="
            )
        both = [*steer, *(-x for x in steer)]
        found = called(_sweep(mech, corner, both, travel), mech)
        angle, contact = found["steer_angle"], found["contact"]
        mirror = np.array([1.0, -1.0, 1.0])
        here = angle[:count], contact[:count]
        there = -angle[count:], contact[count:] * mirror.astype(mech.dtype)
    else:
        found = called(_axle_sweep(mech, corner, other, steer, travel), mech)
        here = found["steer_angle"], found["contact"]
        there = found["other_steer_angle"], found["other_contact"]
    left, right = (here, there) if corner.side == "left" else (there, here)
    return _columns(corner, other, mech, left, right) | {"status": found["status"]}


def steering(
    mech: Mechanism,
    corner: Corner | None = None,
    other: Corner | None = None,
    *,
    steer: Sequence[float] | None = None,
    travel: float = 0.0,
) -> Steering:
    """Inner and outer angles, Ackermann error and turning circle of an axle.

    Args:
        mech: a corner, or a whole axle.
        corner: the roles of one wheel, whose `wheelbase` is needed; by default those of a corner of
            the zoo with its names.
        other: the roles of the other wheel of an axle; without it the axle is symmetric: the other
            wheel is the mirror image, with the rack moved the other way. A relay linkage is none of
            its own image: both wheels are needed.
        steer: travels of the rack along its axis [m], by default `RACK`, or angles of the pitman
            arm [rad], by default `PITMAN`.
        travel: of both wheel centres, upwards from where they are drawn [m].

    Raises:
        ValueError: roles do not fit, there is no rack or no wheelbase, or a position is not
            reached.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import steering
        >>> table = steering(mbd.zoo.double_wishbone_kinematic(), steer=[0.0, 0.03])
        >>> round(float(table["turning_circle"][1]), 2)
        27.16
    """
    corner = find_corner(mech) if corner is None else corner
    steer = _values(mech, corner, steer)
    found = {
        n: np.asarray(x)
        for n, x in steering_curves(mech, corner, other, steer=steer, travel=travel).items()
    }
    unit = "rad" if corner.turns(mech) else "m"
    if (status := Status(int(found.pop("status")))) != Status.OK:
        if other is None:
            whole = _sweep(mech, corner, steer, travel)
        else:
            whole = _axle_sweep(mech, corner, other, steer, travel)
        raise ValueError(
            f"the axle does not reach every steer={list(steer)} [{unit}] "
            f"({status_text(status)}){reach_text(whole, mech)}; give a smaller range, "
            "`kinematics` says what stays open"
        )
    columns = {n: found[n] for n in ABOUT}
    return Steering("steer", np.asarray(steer, float), columns, ABOUT, unit=unit)


def _values(
    mech: Mechanism, corner: Corner, steer: Sequence[float] | None
) -> tuple[float, ...] | Sequence[float]:
    if steer is not None:
        return steer
    turns = corner.name_problems(mech) == [] and corner.turns(mech)
    return PITMAN if turns else RACK


def _sweep(mech: Mechanism, corner: Corner, steer: Sequence[float], travel: float) -> Sweep:
    if corner.wheelbase is None:
        raise ValueError("Ackermann error and turning circle need Corner(wheelbase=)")
    names = ["steer_angle", "contact"]
    sweep = kinematics_sweep(corner, travel=travel, steer=steer, observe=names, gradients=())
    return of_mechanism(sweep, mech)


def _axle_sweep(
    mech: Mechanism, corner: Corner, other: Corner, steer: Sequence[float], travel: float
) -> Sweep:
    """Both wheels at one height, on one rack."""
    if {corner.side, other.side} != {"left", "right"} or other.steering != corner.steering:
        raise ValueError(
            "an axle has a left and a right corner with one steering= joint; found "
            f"{corner.side}, {other.side} with {corner.steering!r}, {other.steering!r}"
        )
    other.check(mech)
    sweep = _sweep(mech, corner, steer, travel)
    theirs = characteristics(other, ["steer_angle", "contact"])
    wanted = {**sweep.observe, **{f"other_{n}": x for n, x in theirs.items()}}
    known = dict(sweep.known) | {wheel_key(other): travel}
    whole = Sweep(sweep.over, wanted, dim=sweep.dim, known=known)
    whole.check(mech)
    return whole


def _drawn_track(mech: Mechanism, corner: Corner, other: Corner | None) -> tuple[Array, Array]:
    """Track of the contact points and x of the first one, as drawn."""
    here = contact_point(*drawn_wheel(mech, corner), corner.tyre_radius)
    if other is None:
        return 2.0 * jnp.abs(here[1]), here[0]
    there = contact_point(*drawn_wheel(mech, other), other.tyre_radius)
    return jnp.abs(here[1] - there[1]), here[0]


@host_jit
def _columns(
    corner: Corner, other: Corner | None, mech: Mechanism, left: Any, right: Any
) -> dict[str, Array]:
    return turn(corner, left, right, *_drawn_track(mech, corner, other))


def turn(
    corner: Corner, left: tuple[Array, Array], right: tuple[Array, Array], track: Array, x: Array
) -> dict[str, Array]:
    """The columns of `ABOUT` from where both wheels are.

    Args:
        corner: roles of one wheel, with the wheelbase.
        left: steer angle (…) [rad] and contact point (…, 3) [m] of the left wheel.
        right: those of the right one.
        track: of the contact points as drawn [m].
        x: of the contact points as drawn [m].
    """
    (a, at_a), (b, at_b) = left, right
    assert corner.wheelbase is not None
    ahead = 1.0 if corner.axle == "front" else -1.0
    line = x - ahead * corner.wheelbase  # the other axle's
    # A rear axle that steers to the left turns the car to the right.
    mean = 0.5 * ahead * (a + b)
    turn_left, way = mean > 0.0, jnp.where(mean > 0.0, ahead, -ahead)
    inner = way * jnp.asarray(jnp.where(turn_left, a, b))
    outer = way * jnp.asarray(jnp.where(turn_left, b, a))
    pick = turn_left[..., None]
    in_at, out_at = jnp.where(pick, at_a, at_b), jnp.where(pick, at_b, at_a)
    sin, cos = jnp.sin(inner), jnp.cos(inner)
    ideal = jnp.arctan2(sin, cos + track / corner.wheelbase * sin)
    reach_in, reach_out = jnp.abs(in_at[..., 0] - line), jnp.abs(out_at[..., 0] - line)
    turned = (jnp.abs(mean) > _STRAIGHT) & (jnp.minimum(inner, outer) > _STRAIGHT)
    some = [jnp.asarray(jnp.where(turned, angle, 1.0)) for angle in (inner, outer)]
    across = reach_in / jnp.tan(some[0]) + jnp.abs(in_at[..., 1] - out_at[..., 1])
    gap = jnp.where(turned, inner - ideal, 1.0)
    circles = 2.0 * reach_out / jnp.sin(some[1]), 2.0 * jnp.sqrt(reach_out**2 + across**2)
    return {
        "left": a,
        "right": b,
        "inner": inner,
        "outer": outer,
        "ackermann_outer": ideal,
        "ackermann_error": outer - ideal,
        "ackermann_share": jnp.asarray(jnp.where(turned, (inner - outer) / gap, jnp.nan)),
        "turning_circle": jnp.asarray(jnp.where(turned, circles[0], jnp.inf)),
        "turning_circle_inner": jnp.asarray(jnp.where(turned, circles[1], jnp.inf)),
        "track": jnp.abs(at_a[..., 1] - at_b[..., 1]),
    }
