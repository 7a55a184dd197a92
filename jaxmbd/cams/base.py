"""Base of cam followers: what a cam looks like at its angles, and whether it is sound."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.cams.critical_angles import angles_over_turn, with_peaks
from jaxmbd.cams.programme import TURN, PeriodicProgramme, ProgrammeRates, floating
from jaxmbd.lanes import host_jit
from jaxmbd.model import Joint, Part, is_concrete, number


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
