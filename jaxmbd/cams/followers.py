"""Plane disc cams with their followers: profile, pressure angle, curvature, undercutting.

The cam's shaft is the origin, z its axis. A translating follower moves along y, on the line
x = `offset`; an oscillating one turns about a pivot at (`centre_distance`, 0) and rises clockwise.
The cam turns counterclockwise, or `clockwise`, by θ. All is written in axes at rest first, where
the follower's place depends on the displacement s alone, and then in axes that turn with the cam
(inversion): ``c(θ) = R(∓θ) r(s(θ))``, so that ``c' = R (r' ∓ z × r)``.

Sources: R. L. Norton, Cam Design and Manufacturing Handbook (2nd ed., 2009), chapter 7; J. J.
Uicker, G. R. Pennock, J. E. Shigley, Theory of Machines and Mechanisms (4th ed., 2011), chapter 5.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.cams.base import CamGeometry, Follower
from jaxmbd.cams.programme import TURN, ProgrammeRates
from jaxmbd.model import (
    Cam,
    FlatFollower,
    Joint,
    Prismatic,
    Revolute,
    number,
    register_law,
    value_and_rates,
)

F = TypeVar("F", bound="Follower")


class Roller(Follower):
    """Base of followers with a roller, or a knife edge, whose centre is r(s).

    Example:
        >>> from jaxmbd.cams import Roller, TranslatingFlat, TranslatingRoller
        >>> issubclass(TranslatingRoller, Roller), issubclass(TranslatingFlat, Roller)
        (True, False)
    """

    roller_radius: Any = eqx.field(converter=number, default=0.0)

    @property
    def prime_radius(self) -> Any:
        """The least distance of the roller's centre from the shaft [m], where s = 0."""
        return self.base_radius + self.roller_radius

    @abstractmethod
    def _centre(self, s: Array, _: Any = None) -> Array:
        """The roller's centre r (2, …) [m] at displacements s."""

    def _geometry_at(self, angle: Array, rates: ProgrammeRates) -> CamGeometry:
        """The cam at angles where the programme has given rates.

        The centre's velocity against the cam is along the pitch curve; its normal n is the
        direction of the push. Radius of curvature ``|c'|³ / (c' × c'')``.
        """
        s, s1, s2, _ = rates
        sense = self.sense
        r, r_s, r_ss = value_and_rates(self._centre, s, None)
        c1 = r_s * s1 - sense * _across(r)
        c2 = r_ss * s1**2 + r_s * s2 - 2.0 * sense * s1 * _across(r_s) - r
        speed = jnp.sqrt(_dot(c1, c1))
        n = sense * _across(c1) / speed
        pitch_radius = speed**3 / (-sense * _cross(c1, c2))
        profile, pitch = (_turned(x, -sense * angle) for x in (r - self.roller_radius * n, r))
        return CamGeometry(
            s,
            jnp.moveaxis(profile, 0, -1),
            jnp.moveaxis(pitch, 0, -1),
            jnp.arctan2(_cross(r_s, n), _dot(r_s, n)),
            pitch_radius - self.roller_radius,
            pitch_radius,
        )

    def _clearance(self, angle: Array, rates: ProgrammeRates, points: Array) -> Array:
        """How far points (m, 2) of the cam are from the follower at angles (n,): (n, m) [m]."""
        centre = _turned(self._centre(rates.displacement), -self.sense * angle)
        away = centre[:, :, None] - points.T[:, None, :]
        return jnp.sqrt(_dot(away, away)) - self.roller_radius

    def _cut_off(self, shape: CamGeometry) -> Array:
        """Where the envelope of the follower has turned back, so that the cam is cut off there."""
        return (shape.pitch_radius > 0.0) & (shape.profile_radius <= 0.0)

    def _sharpness(self, shape: CamGeometry) -> Array:
        """Curvature of the pitch curve [1/m]."""
        return 1.0 / shape.pitch_radius

    def contact_joint(self) -> Joint:
        """The joint from the body "cam" to the body "follower"."""
        start = jnp.append(self._centre(jnp.zeros(())), 0.0)
        radius = self.roller_radius
        return Cam(
            "cam", "follower", (0, 0, 0), start, pitch_curve, self, radius=radius, pitch=True
        )


@register_law("cam_translating_roller")
class TranslatingRoller(Roller):
    """A roller, or with radius zero a knife edge, on a follower that moves along y.

    ``r = (e, d + s)`` with ``d = √((r_b + r_r)² − e²)``, pressure angle ``tan φ = (± s' − e)/(d +
    s)``, plus for a cam that turns counterclockwise.

    Attributes:
        programme: displacement [m] over the cam's angle.
        base_radius: r_b, the least radius of the profile where the offset is zero [m].
        roller_radius: r_r [m].
        offset: e, the x of the follower's line [m]. On the right of a cam that turns
            counterclockwise it lessens the pressure angle of the rise.
        clockwise: whether the cam turns clockwise.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.cams import Dwell, Programme, Return, Rise, TranslatingRoller
        >>> lift = Programme([Rise(0.02, 1.5), Return(0.02, 1.5), Dwell()])
        >>> cam = TranslatingRoller(lift, base_radius=0.04, roller_radius=0.01, offset=0.005)
        >>> steepest = abs(cam.geometry(np.linspace(0, 3, 301)).pressure_angle).max()
        >>> print(f"{np.degrees(steepest):.1f}")
        28.2
    """

    offset: Any = eqx.field(converter=number, default=0.0)

    def _problems(self, base_radius: float, roller_radius: float, offset: float) -> list[str]:
        found = _sizes(base_radius=base_radius) + _sizes(least=0.0, roller_radius=roller_radius)
        if abs(offset) >= base_radius + roller_radius:
            found.append(
                f"offset is {offset:.6g} m, no less than base_radius + roller_radius = "
                f"{base_radius + roller_radius:.6g} m; lessen it"
            )
        return found

    def _centre(self, s: Array, _: Any = None) -> Array:
        """The roller's centre (2, …) [m] at displacements s [m]."""
        y = jnp.sqrt(self.prime_radius**2 - self.offset**2) + s
        return jnp.stack([jnp.broadcast_to(self.offset, y.shape).astype(y.dtype), y])

    def _in_reach(self, rates: ProgrammeRates) -> Array:
        """Whether the follower can be where the programme wants it, at each angle."""
        return self._centre(rates.displacement)[1] > 0.0

    def guide_joint(self) -> Joint:
        """The joint from the ground to the body "follower": its coordinate is the displacement."""
        return _along_y(self._centre(jnp.zeros(())))


@register_law("cam_oscillating_roller")
class OscillatingRoller(Roller):
    """A roller, or with radius zero a knife edge, on an arm that turns about (C, 0).

    ``r = (C − L cos δ, L sin δ)`` with ``δ = δ₀ + s`` and ``cos δ₀ = (C² + L² − (r_b + r_r)²)/(2 C
    L)``, pressure angle ``tan φ = (L (1 ± s') − C cos δ)/(C sin δ)``, plus for a cam that turns
    counterclockwise.

    Attributes:
        programme: angle of the arm [rad] over the cam's angle; it rises clockwise.
        base_radius: r_b, the least radius of the profile [m].
        roller_radius: r_r [m].
        arm_length: L, from the pivot to the roller's centre [m].
        centre_distance: C, from the shaft to the pivot [m].
        clockwise: whether the cam turns clockwise.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.cams import Dwell, OscillatingRoller, Programme, Return, Rise
        >>> swing = Programme([Rise(0.3, 1.5), Return(0.3, 1.5), Dwell()])
        >>> cam = OscillatingRoller(swing, 0.04, 0.01, arm_length=0.08, centre_distance=0.1)
        >>> cam.profile(90).shape
        (90, 2)
    """

    arm_length: Any = eqx.field(converter=number, kw_only=True)
    centre_distance: Any = eqx.field(converter=number, kw_only=True)

    def _problems(
        self, base_radius: float, roller_radius: float, arm_length: float, centre_distance: float
    ) -> list[str]:
        found = _sizes(
            base_radius=base_radius, arm_length=arm_length, centre_distance=centre_distance
        ) + _sizes(least=0.0, roller_radius=roller_radius)
        least, most = abs(centre_distance - arm_length), centre_distance + arm_length
        if not found and not least < base_radius + roller_radius < most:
            found.append(
                f"base_radius + roller_radius = {base_radius + roller_radius:.6g} m, but the arm "
                f"brings the roller's centre to {least:.6g} to {most:.6g} m from the shaft; change "
                "arm_length or centre_distance"
            )
        return found

    def _swing(self, s: Array) -> Array:
        c, arm = self.centre_distance, self.arm_length
        return jnp.arccos((c**2 + arm**2 - self.prime_radius**2) / (2.0 * c * arm)) + s

    def _centre(self, s: Array, _: Any = None) -> Array:
        """The roller's centre (2, …) [m] at swings s [rad]."""
        angle = self._swing(s)
        away = jnp.stack([-jnp.cos(angle), jnp.sin(angle)]) * self.arm_length
        return away + jnp.stack([self.centre_distance, 0.0]).reshape(2, *[1] * s.ndim)

    def _in_reach(self, rates: ProgrammeRates) -> Array:
        """Whether the follower can be where the programme wants it, at each angle."""
        angle = self._swing(rates.displacement)
        return (angle > 0.0) & (angle < 0.5 * TURN)

    def guide_joint(self) -> Joint:
        """The joint from the ground to the body "follower": its coordinate is the displacement."""
        return _about_pivot(self.centre_distance)


class Flat(Follower):
    """A flat face with the normal at the angle ψ(s) from x, at the distance p(s) from the shaft."""

    @abstractmethod
    def _face(self, s: Array, _: Any = None) -> Array:
        """(ψ [rad], p [m]) (2, …) at displacements s."""

    def _geometry_at(self, angle: Array, rates: ProgrammeRates) -> CamGeometry:
        """The cam at angles where the programme has given rates.

        In the cam's axes the face is the line of the support function p(ψ): its envelope is ``p n +
        p' n'`` with the radius of curvature ``p + p''``, derivatives with respect to ψ.
        """
        s, s1, s2, _ = rates
        (psi, p), first, second = value_and_rates(self._face, s, None)
        psi1, p1 = first * s1
        psi2, p2 = second * s1**2 + first * s2
        psi1 = psi1 - self.sense
        along = p1 / psi1
        n = jnp.stack([jnp.cos(psi), jnp.sin(psi)])
        point = p * n + along * _across(n)
        profile = jnp.moveaxis(_turned(point, -self.sense * angle), 0, -1)
        radius = p + (p2 * psi1 - p1 * psi2) / psi1**3
        motion = self._velocity(point)
        push = jnp.arctan2(_cross(motion, n), _dot(motion, n))
        return CamGeometry(s, profile, profile, push, radius, radius)

    @abstractmethod
    def _velocity(self, point: Array) -> Array:
        """Velocity (2, …) of a point (2, …) of the follower for a unit rate of displacement."""

    def _clearance(self, angle: Array, rates: ProgrammeRates, points: Array) -> Array:
        """How far points (m, 2) of the cam are from the follower at angles (n,): (n, m) [m]."""
        psi, p = self._face(rates.displacement)
        psi = psi - self.sense * angle
        n = jnp.stack([jnp.cos(psi), jnp.sin(psi)])
        return p[:, None] - n.T @ points.T

    def _cut_off(self, shape: CamGeometry) -> Array:
        """Where the envelope of the follower has turned back, so that the cam is cut off there."""
        return shape.profile_radius <= 0.0

    def _sharpness(self, shape: CamGeometry) -> Array:
        """The radius itself [m] with its sign turned, for it passes through zero."""
        return -shape.profile_radius

    def contact_joint(self) -> Joint:
        """The joint from the body "cam" to the body "follower"."""
        psi, p = self._face(jnp.zeros(()))
        n = jnp.stack([jnp.cos(psi), jnp.sin(psi), jnp.zeros(())])
        start = (0.0, 0.0, 0.0)
        return FlatFollower("cam", "follower", start, p * n, profile_curve, self, normal=n)


@register_law("cam_translating_flat")
class TranslatingFlat(Flat):
    """A flat face across y on a follower that moves along y.

    Contact at ``(± s', r_b + s)``, radius of curvature ``r_b + s + s''``, pressure angle zero.

    Attributes:
        programme: displacement [m] over the cam's angle.
        base_radius: r_b, the least radius of the profile [m].
        clockwise: whether the cam turns clockwise.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.cams import CamStatus, Dwell, Programme, Return, Rise, TranslatingFlat
        >>> lift = Programme([Rise(0.02, 1.0), Return(0.02, 1.0), Dwell()])
        >>> CamStatus(int(TranslatingFlat(lift, base_radius=0.05).status())).name
        'UNDERCUT'
    """

    def _problems(self, base_radius: float) -> list[str]:
        return _sizes(base_radius=base_radius)

    def _face(self, s: Array, _: Any = None) -> Array:
        """(ψ [rad], p [m]) (2, …) at displacements s [m]."""
        return jnp.stack([jnp.full_like(s, 0.25 * TURN), self.base_radius + s])

    def _velocity(self, point: Array) -> Array:
        """Velocity (2, …) of a point (2, …) of the follower for a unit rate of displacement."""
        return jnp.stack([jnp.zeros_like(point[0]), jnp.ones_like(point[1])])

    def guide_joint(self) -> Joint:
        """The joint from the ground to the body "follower": its coordinate is the displacement."""
        return _along_y(jnp.stack([jnp.zeros(()), jnp.asarray(self.base_radius)]))


@register_law("cam_oscillating_flat")
class OscillatingFlat(Flat):
    """A flat face on an arm that turns about (C, 0).

    ``ψ = π/2 − δ``, ``p = C sin δ − f`` with ``δ = δ₀ + s`` and ``sin δ₀ = (r_b + f)/C``.

    Attributes:
        programme: angle of the arm [rad] over the cam's angle; it rises clockwise.
        base_radius: r_b, the least radius of the profile [m].
        centre_distance: C, from the shaft to the pivot [m].
        face_offset: f, from the pivot to the face, towards the cam [m].
        clockwise: whether the cam turns clockwise.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.cams import Dwell, OscillatingFlat, Programme, Return, Rise
        >>> swing = Programme([Rise(0.2, 1.5), Return(0.2, 1.5), Dwell()])
        >>> cam = OscillatingFlat(swing, 0.04, centre_distance=0.1, face_offset=0.01)
        >>> float(abs(cam.geometry(0.7).pressure_angle)) < 0.3
        True
    """

    centre_distance: Any = eqx.field(converter=number, kw_only=True)
    face_offset: Any = eqx.field(converter=number, default=0.0, kw_only=True)

    def _problems(
        self, base_radius: float, centre_distance: float, face_offset: float
    ) -> list[str]:
        found = _sizes(base_radius=base_radius, centre_distance=centre_distance)
        if not found and not abs(base_radius + face_offset) < centre_distance:
            found.append(
                f"base_radius + face_offset = {base_radius + face_offset:.6g} m, no less than "
                f"centre_distance = {centre_distance:.6g} m; move the pivot away"
            )
        return found

    def _swing(self, s: Array) -> Array:
        return jnp.arcsin((self.base_radius + self.face_offset) / self.centre_distance) + s

    def _face(self, s: Array, _: Any = None) -> Array:
        """(ψ [rad], p [m]) (2, …) at swings s [rad]."""
        angle = self._swing(s)
        distance = self.centre_distance * jnp.sin(angle) - self.face_offset
        return jnp.stack([0.25 * TURN - angle, distance])

    def _in_reach(self, rates: ProgrammeRates) -> Array:
        """Whether the follower can be where the programme wants it, at each angle."""
        angle = self._swing(rates.displacement)
        return (jnp.abs(angle) < 0.25 * TURN) & (self.sense * rates.velocity > -1.0)

    def _velocity(self, point: Array) -> Array:
        """Velocity (2, …) of a point (2, …) of the follower for a unit rate of displacement."""
        return jnp.stack([point[1], self.centre_distance - point[0]])

    def guide_joint(self) -> Joint:
        """The joint from the ground to the body "follower": its coordinate is the displacement."""
        return _about_pivot(self.centre_distance)


@register_law("cam_pitch_curve")
def pitch_curve(u: Array, follower: Roller) -> Array:
    """The pitch curve (3,) [m] of a follower's cam as `Cam` takes it, at the cam's angle ∓u [rad].

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> from jaxmbd.cams import Dwell, Programme, Return, Rise, TranslatingRoller, pitch_curve
        >>> lift = Programme([Rise(0.02, 1.5), Return(0.02, 1.5), Dwell()])
        >>> pitch_curve(jnp.asarray(0.0), TranslatingRoller(lift, 0.04, 0.01)).tolist()
        [0.0, 0.05, 0.0]
    """
    follower = _cast(follower, u)
    angle = -follower.sense * u
    centre = _turned(follower._centre(follower.programme(angle)), u)
    return jnp.append(centre, jnp.zeros((), u.dtype))


@register_law("cam_profile_curve")
def profile_curve(u: Array, follower: Follower) -> Array:
    """The profile (3,) [m] of a follower's cam, at the cam's angle ∓u [rad].

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> from jaxmbd.cams import Dwell, Programme, Return, Rise, TranslatingFlat, profile_curve
        >>> lift = Programme([Rise(0.02, 1.5), Return(0.02, 1.5), Dwell()])
        >>> profile_curve(jnp.asarray(0.0), TranslatingFlat(lift, 0.05)).round(9).tolist()
        [0.0, 0.05, 0.0]
    """
    follower = _cast(follower, u)
    point = follower.geometry(-follower.sense * u).profile
    return jnp.append(point, jnp.zeros((), u.dtype))


def _cast(follower: F, u: Array) -> F:
    """A follower whose numbers have the type of `u`."""
    return jax.tree_util.tree_map(lambda x: jnp.asarray(x, u.dtype), follower)


def _sizes(least: float | None = None, **numbers: float) -> list[str]:
    """Problems of numbers that must be positive, or no less than `least`."""
    return [
        f"{name} is {x:.6g} m; give {'a positive one' if least is None else 'zero or more'}"
        for name, x in numbers.items()
        if not (x > 0.0 if least is None else x >= least)
    ]


def _along_y(at: Array) -> Joint:
    return Prismatic("ground", "follower", jnp.append(at, 0.0), (0.0, 1.0, 0.0))


def _about_pivot(centre_distance: Any) -> Joint:
    pivot = jnp.stack([centre_distance, 0.0, 0.0])
    return Revolute("ground", "follower", pivot, (0.0, 0.0, -1.0))


def _across(x: Array) -> Array:
    """``z × x`` of vectors (2, …)."""
    return jnp.stack([-x[1], x[0]])


def _cross(x: Array, y: Array) -> Array:
    return x[0] * y[1] - x[1] * y[0]


def _dot(x: Array, y: Array) -> Array:
    return x[0] * y[0] + x[1] * y[1]


def _turned(x: Array, angle: Array) -> Array:
    """Vectors (2, …) turned counterclockwise."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([c * x[0] - s * x[1], s * x[0] + c * x[1]])
