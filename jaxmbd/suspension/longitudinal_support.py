"""Anti-dive, anti-lift, anti-squat: how far geometry carries the load transfer of x-forces.

Braking with the whole force B moves the load ``B h / L`` to the front axle (h: height of the centre
of mass, L: wheelbase); driving with D moves ``D h / L`` to the rear. The wheel's force ``F_x`` does
work in the travel motion: with u the velocity of the point at which it acts, per unit of travel,
it supports the wheel like a vertical force ``F_x u_x / u_z``. The share of the load transfer that
is supported, 1 where the spring's length does not change, is, with β and δ the shares of the
braking and driving forces on this axle:

- braking, front (anti-dive): ``F_x = −β B`` against ``+B h / L``: ``β (u_x / u_z) L / h``;
- braking, rear (anti-lift): against ``−B h / L``: ``−β (u_x / u_z) L / h``;
- driving, front (anti-lift): ``F_x = +δ D`` against ``−D h / L``: ``δ (u_x / u_z) L / h``;
- driving, rear (anti-squat): against ``+D h / L``: ``−δ (u_x / u_z) L / h``.

Where the torque acts on the upright (outboard brake, motor on the upright), u is the velocity of
the upright's point at the contact. Where it acts on the chassis (inboard brake, half-shaft), the
wheel does not turn about its axis relative to the chassis: ω is replaced by ``ω − (ω·s) s``, and u
is nearly the velocity of the wheel centre. Bending angles of the half-shaft are neglected. In side
view ``u_x / u_z`` is the tangent of the slope of the line from that point to the instant centre.
"""

from __future__ import annotations

from jax import Array

from jaxmbd.spatial.rotations import cross
from jaxmbd.suspension.registry import Instant, characteristic

_NEEDS = ("wheelbase", "cg_height")


def _support(at: Instant, acts: str, share: float) -> Array:
    """``share (u_x / u_z) L / h``."""
    w, v, s = at.state.travel[:3], at.state.travel[3:], at.state.spin
    if acts == "inboard":
        w = w - (w @ s) * s
    u = v + cross(w, at.contact - at.state.centre)
    assert at.corner.wheelbase is not None and at.corner.cg_height is not None
    return share * (at.corner.wheelbase / at.corner.cg_height) * u[0] / u[2]


def _braking(at: Instant) -> Array:
    assert at.corner.brake_share is not None
    return _support(at, at.corner.brakes, at.corner.brake_share)


def _driving(at: Instant) -> Array:
    return _support(at, at.corner.drive, at.corner.drive_share)


@characteristic(
    "", "anti-dive of a front axle in braking [1], 1: no dive", needs=_NEEDS, axle="front"
)
def anti_dive(at: Instant) -> Array:
    """``β (u_x / u_z) L / h``: positive where the force point moves forward in bump."""
    return _braking(at)


@characteristic(
    "", "anti-lift of a rear axle in braking [1], 1: no lift", needs=_NEEDS, axle="rear"
)
def anti_lift_braking(at: Instant) -> Array:
    """``−β (u_x / u_z) L / h``: positive where the force point moves rearward in bump."""
    return -_braking(at)


@characteristic(
    "", "anti-lift of a front axle in driving [1], 1: no lift", needs=_NEEDS, axle="front"
)
def anti_lift_driving(at: Instant) -> Array:
    """``δ (u_x / u_z) L / h``: positive where the force point moves forward in bump."""
    return _driving(at)


@characteristic(
    "", "anti-squat of a rear axle in driving [1], 1: no squat", needs=_NEEDS, axle="rear"
)
def anti_squat(at: Instant) -> Array:
    """``−δ (u_x / u_z) L / h``: positive where the force point moves rearward in bump."""
    return -_driving(at)
