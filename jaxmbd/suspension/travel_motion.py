"""Characteristics of the wheel's travel motion: instant axis and centres, anti-dive, wheel rate.

With ``[ω; v]`` the twist of the upright at the wheel centre m as the wheel rises with the steering
held, σ = +1 on the left, −1 on the right, and c the contact point.

*Front view* is the transverse vertical plane through the wheel centre, *side view* the longitudinal
one. The points of the upright in such a plane have velocities within it like those of a plane body
that turns about the *instant centre*: in front view ``(y, z) = m − (v_z, −v_y) / ω_x``, in side
view ``(x, z) = m + (v_z, −v_x) / ω_y``. It is at infinity where that component of ω is zero.

The *roll centre* of a symmetric axle in parallel travel lies in the middle plane. By contact-point
velocity: on the normal to the velocity u of the upright's point at c in front view, so that its
height over the ground is ``y_c u_y / u_z``. By arm planes: the planes of both arms (of a strut the
plane normal to it through its upper point) meet the front view plane in two lines, which meet in
the instant centre; it lies on the line from there through the contact point. The second neglects
the track rod and the arms' pitch, and is what drawings show.

Anti-dive, anti-lift, anti-squat: how far geometry carries the load transfer of x-forces.

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

*Wheel rate*: with L(z) the spring's length over the wheel's travel z and F(L) its tension, the
wheel carries the vertical force ``dV/dz = F L'``, and its rate is ``d²V/dz² = F' L' + F L''``: with
a linear spring ``k L'² + F L''``, of which the second part, due to the spring's load, is neglected
in ``k (motion ratio)²``.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from jaxmbd.spatial import cross
from jaxmbd.suspension.motions import Spring
from jaxmbd.suspension.steering_axis import screw_axis
from jaxmbd.suspension.wheel_characteristics import Instant, characteristic


def contact_velocity(at: Instant) -> Array:
    """Velocity u (3,) [1] of the upright's point at the contact, per unit of wheel travel."""
    w, v = at.state.travel[:3], at.state.travel[3:]
    return v + cross(w, at.contact - at.state.centre)


@characteristic("", "direction of the instant axis (unit vector, upwards)", vector=True)
def instant_axis_direction(at: Instant) -> Array:
    """Of the screw axis of the travel motion, ``ω / |ω|``."""
    return screw_axis(at.state.travel, at.state.centre).direction


@characteristic("m", "point of the instant axis nearest the wheel centre [m]", vector=True)
def instant_axis_point(at: Instant) -> Array:
    """``m + ω × v / |ω|²``."""
    return screw_axis(at.state.travel, at.state.centre).point


@characteristic("m/rad", "pitch of the instant axis [m/rad], positive: right-handed")
def instant_axis_pitch(at: Instant) -> Array:
    """``ω · v / |ω|²``: zero where the upright just turns about its instant axis."""
    w, v = at.state.travel[:3], at.state.travel[3:]
    return (w @ v) / (w @ w)


@characteristic("m", "front view instant centre [m], distance from the middle plane, outwards")
def front_centre_y(at: Instant) -> Array:
    """``σ (m_y − v_z / ω_x)``."""
    t = at.state.travel
    return at.corner.sign * (at.state.centre[1] - t[5] / t[0])


@characteristic("m", "front view instant centre [m], height over the ground")
def front_centre_z(at: Instant) -> Array:
    """``m_z + v_y / ω_x`` over the contact point."""
    t = at.state.travel
    return at.state.centre[2] + t[4] / t[0] - at.contact[2]


@characteristic("m", "front view swing arm [m], contact to instant centre, positive: inwards")
def front_swing_arm(at: Instant) -> Array:
    """``σ (c_y − y)`` of the front view instant centre."""
    return at.corner.sign * at.contact[1] - front_centre_y(at)


@characteristic("m", "side view instant centre [m], behind the contact point, rearwards")
def side_centre_x(at: Instant) -> Array:
    """``c_x − (m_x + v_z / ω_y)``."""
    t = at.state.travel
    return at.contact[0] - (at.state.centre[0] + t[5] / t[1])


@characteristic("m", "side view instant centre [m], height over the ground")
def side_centre_z(at: Instant) -> Array:
    """``m_z − v_x / ω_y`` over the contact point."""
    t = at.state.travel
    return at.state.centre[2] - t[3] / t[1] - at.contact[2]


@characteristic(
    "m", "side view swing arm [m], contact to instant centre, positive: towards the other axle"
)
def side_swing_arm(at: Instant) -> Array:
    """`side_centre_x` of a front wheel, its negative of a rear one."""
    x = side_centre_x(at)
    return x if at.corner.axle == "front" else -x


@characteristic("m", "roll centre height [m] over the ground, by contact-point velocity")
def roll_centre_height(at: Instant) -> Array:
    """``y_c u_y / u_z``, of a symmetric axle in parallel travel with the rack locked."""
    u = contact_velocity(at)
    return at.contact[1] * u[1] / u[2]


@characteristic(
    "m",
    "roll centre height [m] over the ground, by arm planes in front view",
    needs=("lower_arm", "upper_arm|strut"),
)
def roll_centre_height_arms(at: Instant) -> Array:
    """The planes' lines ``p y + q z = b`` meet in (Y, Z, W), homogeneous: also where parallel.

    The line from there through the contact point reaches the middle plane at the height
    ``−y_c (Z − W z_c) / (Y − W y_c)`` over it.
    """
    c, x = at.contact, at.state.centre[0]
    (p, q, b), (r, s, d) = _plane_line(_lower_plane(at), x), _plane_line(_upper_plane(at), x)
    w, y, z = p * s - q * r, b * s - d * q, p * d - r * b
    return -c[1] * (z - w * c[2]) / (y - w * c[1])


def _lower_plane(at: Instant) -> tuple[Array, Array]:
    return _arm_plane(at.state.lower_arm)


def _upper_plane(at: Instant) -> tuple[Array, Array]:
    """A point and the normal: of the upper arm, or of the strut at its upper point."""
    strut = at.state.strut
    if strut is None:
        return _arm_plane(at.state.upper_arm)
    return strut[1], strut[1] - strut[0]


def _arm_plane(arm: Array | None) -> tuple[Array, Array]:
    assert arm is not None
    return arm[2], cross(arm[0] - arm[2], arm[1] - arm[2])


def _plane_line(plane: tuple[Array, Array], x: Array) -> tuple[Array, Array, Array]:
    """The plane at x: ``n_y y + n_z z = b``, scaled."""
    point, normal = plane
    n = normal / jnp.sqrt(normal @ normal)
    return n[1], n[2], n @ point - n[0] * x


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


def _spring(at: Instant) -> Spring:
    spring = at.state.spring
    assert spring is not None
    return spring


@characteristic("m", "length of the spring [m]", needs=("spring",))
def spring_length(at: Instant) -> Array:
    """Distance of the spring's ends."""
    return _spring(at).length


@characteristic(
    "", "motion ratio [1]: spring over wheel travel, positive: shortens in bump", needs=("spring",)
)
def motion_ratio(at: Instant) -> Array:
    """``−dL/dz``, in the wheel's travel with the steering held."""
    return -_spring(at).travel


@characteristic(
    "N", "vertical force on the wheel that balances the spring [N], positive: up", needs=("spring",)
)
def wheel_force(at: Instant) -> Array:
    """``F L'``, with F the tension: the wheel is lifted with it against the spring."""
    return _spring(at).force * _spring(at).travel


@characteristic(
    "N/m", "wheel rate of the spring [N/m], at the wheel centre", needs=("spring",), second=True
)
def wheel_rate(at: Instant) -> Array:
    """``F' L' + F L''``, the derivative of `wheel_force` along the travel motion."""
    return at.gradient("wheel_force")
