"""Characteristics of the wheel's attitude and place: camber, toe, steer angle, track, wheelbase.

With s the unit vector along the wheel's axis, outwards, and σ = +1 on the left, −1 on the right.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from jaxmbd.suspension.registry import Instant, characteristic


@characteristic("m", "rise of the wheel centre [m] from where it is drawn, positive: bump")
def wheel_travel(at: Instant) -> Array:
    """``z − z_drawn`` of the wheel centre, relative to the chassis as it is held."""
    return at.state.centre[2] - at.state.drawn_centre[2]


@characteristic("rad", "camber [rad], positive: top leans outward")
def camber(at: Instant) -> Array:
    """``atan2(−s_z, σ s_y)``: the wheel plane's lean in the car's transverse plane (ISO 8855)."""
    s = at.state.spin
    return jnp.arctan2(-s[2], at.corner.sign * s[1])


@characteristic("rad", "toe [rad], positive: toe-in")
def toe(at: Instant) -> Array:
    """``atan2(s_x, σ s_y)``: positive where the wheel's front points to the car's middle plane."""
    s = at.state.spin
    return jnp.arctan2(s[0], at.corner.sign * s[1])


@characteristic("rad", "steer angle [rad] about the vertical, positive: to the left")
def steer_angle(at: Instant) -> Array:
    """``atan2(−σ s_x, σ s_y)``: from x to the wheel's heading, about z (ISO 8855).

    The same for both wheels: minus the toe of a left wheel, plus the toe of a right one.
    """
    s, sign = at.state.spin, at.corner.sign
    return jnp.arctan2(-sign * s[0], sign * s[1])


@characteristic("m", "half track [m]: of the contact point from the middle plane, outwards")
def half_track(at: Instant) -> Array:
    """``σ y`` of the contact point; half the track of a symmetric axle."""
    return at.corner.sign * at.contact[1]


@characteristic("m", "track change at one wheel [m]: of the contact point, positive: outwards")
def half_track_change(at: Instant) -> Array:
    """``σ (y − y_drawn)`` of the contact point; half the change of a symmetric axle's track."""
    return at.corner.sign * (at.contact[1] - at.drawn_contact[1])


@characteristic("m", "wheelbase change at one wheel [m]: of the contact point, positive: longer")
def wheelbase_change(at: Instant) -> Array:
    """``x − x_drawn`` of the contact point on a front axle, its negative on a rear one."""
    moved = at.contact[0] - at.drawn_contact[0]
    return moved if at.corner.axle == "front" else -moved


@characteristic("m", "recession of the wheel centre [m] from its drawn place, positive: rearwards")
def recession(at: Instant) -> Array:
    """``x_drawn − x`` of the wheel centre."""
    return at.state.drawn_centre[0] - at.state.centre[0]


@characteristic("m", "ground contact point [m], world axes", vector=True)
def contact(at: Instant) -> Array:
    """The lowest point of the wheel's middle plane, `contact_point`."""
    return at.contact
