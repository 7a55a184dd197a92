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
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.cams.critical_angles import angles_over_turn, with_peaks
from jaxmbd.cams.programme import TURN, PeriodicProgramme, ProgrammeRates, floating
from jaxmbd.lanes import host_jit
from jaxmbd.model import (
    Cam,
    FlatFollower,
    Joint,
    Part,
    Prismatic,
    Revolute,
    is_concrete,
    number,
    register_law,
    value_and_rates,
)

F = TypeVar("F", bound="Follower")


class CamGeometry(NamedTuple):
    """A cam at some angles; arrays of the angles' shape, of points with two more components last.

    Attributes:
        displacement: of the follower [m or rad].
        profile: point of contact (…, 2) [m], in axes that turn with the cam.
        pitch: the roller's centre (…, 2) [m] in these axes; for a flat face that of the profile.
        pressure_angle: from the follower's motion to the cam's push on it, counterclockwise [rad].
        profile_radius: radius of curvature of the profile [m], positive where it is convex.
        pitch_radius: that of the pitch curve [m].

    Example:
        >>> import numpy as np
        >>> from jaxmbd.cams import Dwell, Programme, Return, Rise, TranslatingFlat
        >>> lift = Programme([Rise(0.01, 1.5), Return(0.01, 1.5), Dwell()])
        >>> TranslatingFlat(lift, 0.03).geometry(np.zeros(5)).profile.shape
        (5, 2)
    """

    displacement: Array
    profile: Array
    pitch: Array
    pressure_angle: Array
    profile_radius: Array
    pitch_radius: Array


class _Seen(NamedTuple):
    """A cam at some of its angles (n,) [rad]."""

    angle: Array
    rates: ProgrammeRates
    shape: CamGeometry


class CamStatus(IntEnum):
    """Whether a cam moves its follower by the programme.

    Example:
        >>> from jaxmbd.cams import CamStatus
        >>> CamStatus(1).name
        'UNDERCUT'
    """

    OK = 0
    UNDERCUT = 1
    """What cuts the profile for one angle cuts off what it needs at another."""
    OUT_OF_REACH = 2
    """The follower cannot be where the programme wants it."""


class Follower(Part):
    """Base of a follower with its cam: the four types differ in where the contact is.

    Example:
        >>> from jaxmbd.cams import Follower, OscillatingFlat
        >>> issubclass(OscillatingFlat, Follower)
        True
    """

    programme: PeriodicProgramme
    base_radius: Any = eqx.field(converter=number)
    clockwise: bool = eqx.field(static=True, default=False, kw_only=True)

    def __check_init__(self) -> None:
        if not isinstance(self.programme, PeriodicProgramme):
            raise ValueError(
                f"{type(self).__name__}: programme is {self.programme!r}; give a Programme or a "
                "SplineProgramme"
            )
        numbers = {n: getattr(self, n) for n in type(self)._children if n != "programme"}
        if not all(is_concrete(x) for x in numbers.values()):
            return
        if found := self._problems(**{n: float(x) for n, x in numbers.items()}):
            raise ValueError(f"{type(self).__name__}: " + "; ".join(found))

    @abstractmethod
    def _problems(self, **numbers: float) -> list[str]:
        """What is wrong with its numbers, each with its remedy."""

    @property
    def sense(self) -> float:
        """1.0 for a cam that turns counterclockwise, else −1.0."""
        return -1.0 if self.clockwise else 1.0

    @abstractmethod
    def _geometry_at(self, angle: Array, rates: ProgrammeRates) -> CamGeometry:
        """The cam at angles where the programme has given rates."""

    def geometry(self, angle: Any) -> CamGeometry:
        """Profile, pitch curve, pressure angle and curvature at cam angles [rad] of any shape."""
        return _geometry(self, floating(angle))

    def profile(self, n: int = 360) -> Array:
        """Points (n, 2) [m] of the closed profile, counterclockwise, the first not repeated.

        They are at equal steps of the cam's angle, in axes that turn with the cam.

        Args:
            n: how many.
        """
        return self.geometry(-self.sense * jnp.arange(n) * (TURN / n)).profile

    @abstractmethod
    def _clearance(self, angle: Array, rates: ProgrammeRates, points: Array) -> Array:
        """How far points (m, 2) of the cam are from the follower at angles (n,): (n, m) [m].

        Negative inside the follower.
        """

    def status(self, n: int = 360) -> Array:
        """A `CamStatus`: whether contact is possible and no part of the profile is cut off.

        The radius of curvature of the profile must not change its sign against that of the pitch
        curve, a flat face's profile must be convex, and in no position does the follower overlap
        the profile of another.

        Looked at are equal steps of the turn, angles within each segment of the programme, and
        angles that close in on the sharpest place of the profile.

        Args:
            n: how many equal steps.
        """
        return _status(self, n)

    def _seen(self, n: int, *measures: Callable[[CamGeometry], Array]) -> _Seen:
        """The cam over a turn, at its sharpest place, and where further measures are greatest."""

        def look(angle: Array) -> _Seen:
            rates = self.programme.rates(angle)
            return _Seen(angle, rates, self._geometry_at(angle, rates))

        every = [lambda x, m=m: m(x.shape) for m in (self._sharpness, *measures)]
        return with_peaks(look, every, angles_over_turn(self.programme._breaks(), n))

    @abstractmethod
    def _sharpness(self, shape: CamGeometry) -> Array:
        """What is greatest where the radius of curvature of a convex profile is least."""

    def _judged(self, seen: _Seen) -> Array:
        """`status`, by what is seen of it."""
        angle, rates, shape = seen
        size = jnp.max(jnp.abs(shape.profile))
        apart = self._clearance(angle, rates, shape.profile)
        sound = jnp.all(apart >= -100.0 * jnp.finfo(apart.dtype).eps * size)
        sound &= ~jnp.any(self._cut_off(shape))
        reached = jnp.all(jnp.isfinite(shape.profile)) & jnp.all(self._in_reach(rates))
        status = jnp.where(sound, CamStatus.OK, CamStatus.UNDERCUT)
        return jnp.where(reached, status, CamStatus.OUT_OF_REACH)

    def _in_reach(self, rates: ProgrammeRates) -> Array:
        """Whether the follower can be where the programme wants it, at each angle."""
        return jnp.isfinite(rates.displacement)

    @abstractmethod
    def _cut_off(self, shape: CamGeometry) -> Array:
        """Where the envelope of the follower has turned back, so that the cam is cut off there."""

    @abstractmethod
    def guide_joint(self) -> Joint:
        """The joint from the ground to the body "follower", whose coordinate is the displacement.

        It is drawn at displacement zero, also where the programme never goes there.
        """

    @abstractmethod
    def contact_joint(self) -> Joint:
        """The joint from the body "cam" to the body "follower"."""


@host_jit
def _geometry(follower: Follower, angle: Array) -> CamGeometry:
    return follower._geometry_at(angle, follower.programme.rates(angle))


@host_jit
def _status(follower: Follower, n: int) -> Array:
    return follower._judged(follower._seen(n))


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
