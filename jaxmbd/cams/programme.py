"""Displacement programmes: a follower's displacement as a periodic function of the cam's angle."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.cams.laws import RISE_LAWS, Law
from jaxmbd.lanes import host_jit
from jaxmbd.model import Part, is_concrete, number, register_law
from jaxmbd.plumbing import meant

TURN = 2.0 * float(np.pi)
_NAMES = ("displacement", "velocity", "acceleration", "jerk")


class ProgrammeRates(NamedTuple):
    """A programme at some cam angles: arrays of the angles' shape.

    With the cam's constant speed ω, the velocity in time is ``ω s'``, the acceleration ``ω² s''``.

    Attributes:
        displacement: s [m], of an oscillating follower [rad].
        velocity: ``s' = ds/dθ`` [m/rad].
        acceleration: ``s''`` [m/rad²].
        jerk: ``s'''`` [m/rad³].

    Example:
        >>> import numpy as np
        >>> from jaxmbd.cams import Dwell, Programme, Return, Rise
        >>> lift = Programme([Rise(0.01, np.pi / 2), Return(0.01, np.pi / 2), Dwell()])
        >>> float(lift.rates(np.pi / 2).displacement)
        0.01
    """

    displacement: Array
    velocity: Array
    acceleration: Array
    jerk: Array


class Jump(NamedTuple):
    """Where a derivative of a programme jumps.

    Attributes:
        angle: of the cam [rad].
        of: "velocity", "acceleration" or "jerk"; of those that jump there the lowest.
        before, after: its values on both sides [m or rad per rad, rad², rad³].

    Example:
        >>> import numpy as np
        >>> from jaxmbd.cams import Dwell, Programme, Return, Rise
        >>> lift = Programme([Rise(1.0, np.pi, "harmonic"), Return(1.0, np.pi, "harmonic")])
        >>> lift.jumps()
        []
        >>> lift = Programme([Rise(1.0, 3.0, "harmonic"), Return(1.0, 3.0), Dwell()])
        >>> [jump.of for jump in lift.jumps()]
        ['acceleration', 'acceleration', 'jerk']
    """

    angle: float
    of: str
    before: float
    after: float


class PeriodicProgramme(Part):
    """Base of programmes: a function of the cam's angle [rad] with the period 2π.

    Example:
        >>> from jaxmbd.cams import PeriodicProgramme, Programme, SplineProgramme
        >>> issubclass(Programme, PeriodicProgramme), issubclass(SplineProgramme, PeriodicProgramme)
        (True, True)
    """

    @abstractmethod
    def _at(self, angle: Array) -> Array:
        """The displacement [m or rad] at cam angles [rad], an array of floating numbers."""

    def _breaks(self) -> Array:
        """Angles between which it is smooth (k + 1,) [rad], the last a turn after the first."""
        return jnp.asarray([0.0, TURN])

    def __call__(self, angle: Any) -> Array:
        """The displacement [m or rad] at cam angles [rad] of any shape."""
        return _displacement(self, floating(angle))

    def rates(self, angle: Any) -> ProgrammeRates:
        """Displacement, velocity, acceleration and jerk over the cam's angle.

        Where one jumps it is that after the jump.

        Args:
            angle: of the cam [rad], of any shape.
        """
        return _rates(self, floating(angle))

    def at_speed(self, speed: Any, start: Any = 0.0) -> tuple[Any, Any]:
        """The displacement as a course in time, (function, params), while the cam turns steadily.

        A `Drive` takes both, ``Drive(joint, *programme.at_speed(speed))``, and `Driven` the pair.

        Args:
            speed: of the cam [rad/s].
            start: angle of the cam at t = 0 [rad].
        """
        return _displacement_in_time, {"programme": self, "speed": speed, "start": start}


@host_jit
def _displacement(programme: PeriodicProgramme, angle: Array) -> Array:
    return programme._at(angle)


@host_jit
def _rates(programme: PeriodicProgramme, angle: Array) -> ProgrammeRates:
    def with_derivative(f: Any) -> Any:
        def both(x: Array) -> Any:
            value, rate = jax.jvp(f, (x,), (jnp.ones_like(x),))
            return (*value, rate[-1]) if isinstance(value, tuple) else (value, rate)

        return both

    s = programme._at
    return ProgrammeRates(*with_derivative(with_derivative(with_derivative(s)))(angle))


@register_law("cam_displacement_in_time")
def _displacement_in_time(t: Array, p: Any) -> Array:
    return p["programme"](p["start"] + p["speed"] * t)


@register_law("cam_dwell")
class Dwell(Part):
    """A segment of a programme in which the follower rests.

    Attributes:
        angle: of the cam [rad]; None for what the other segments leave of the turn.

    Example:
        >>> from jaxmbd.cams import Dwell
        >>> Dwell().angle is None
        True
    """

    angle: Any = eqx.field(converter=lambda x: None if x is None else number(x), default=None)

    def _change(self) -> Any:
        """How far the follower goes [m or rad]."""
        return 0.0

    def _shares(self) -> Law:
        """The law by which it goes."""
        return jnp.zeros_like


@register_law("cam_rise")
class Rise(Part):
    """A segment of a programme in which the follower rises.

    Attributes:
        height: how far [m], of an oscillating follower [rad].
        angle: of the cam meanwhile [rad]; None for what the other segments leave of the turn.
        by: one of `RISE_LAWS`, or a function y(x) with y(0) = 0 and y(1) = 1, three times
            differentiable, elementwise in JAX.

    Example:
        >>> from jaxmbd.cams import Rise
        >>> Rise(0.01, 1.5, "modified sine").by
        'modified sine'
    """

    height: Any = eqx.field(converter=number)
    angle: Any = eqx.field(converter=lambda x: None if x is None else number(x), default=None)
    by: Any = eqx.field(static=True, default="cycloidal")

    def _change(self) -> Any:
        """How far the follower goes [m or rad]."""
        return self.height

    def _shares(self) -> Law:
        """The law by which it goes."""
        return RISE_LAWS[self.by] if isinstance(self.by, str) else self.by


@register_law("cam_return")
class Return(Rise):
    """A segment of a programme in which the follower returns; see `Rise`.

    Example:
        >>> from jaxmbd.cams import Return
        >>> float(Return(0.01, 1.5).height)
        0.01
    """

    def _change(self) -> Any:
        """How far the follower goes [m or rad], downwards."""
        return -self.height


@register_law("cam_programme")
class Programme(PeriodicProgramme):
    """A programme of segments, the first of which starts at the cam's angle 0 and displacement 0.

    Attributes:
        segments: of `Dwell`, `Rise` and `Return`. They fill a turn; the angle of one may be left
            out. What rises returns.

    Raises:
        ValueError: segments do not fill a turn or do not return to the start, a law is unknown, or
            an angle is not positive. All is said in one message.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.cams import Dwell, Programme, Return, Rise
        >>> lift = Programme(
        ...     [Rise(0.02, np.pi / 2, "3-4-5"), Dwell(np.pi / 3), Return(0.02, np.pi / 2), Dwell()]
        ... )
        >>> float(lift(np.pi / 4)), float(lift(2.0)), float(lift(-0.1))
        (0.01, 0.02, 0.0)
    """

    segments: Any = eqx.field(converter=tuple)

    def __check_init__(self) -> None:
        if problems := self._problems():
            raise ValueError("Programme: " + "; ".join(problems))

    def _problems(self) -> list[str]:
        named = [(f"segment {i} ({type(s).__name__})", s) for i, s in enumerate(self.segments)]
        if found := [p for name, s in named if (p := _law_problem(name, s))]:
            return found
        open_ones = [name for name, s in named if s.angle is None]
        if len(open_ones) > 1:
            found.append(f"{' and '.join(open_ones)} have no angle; leave out one angle only")
        if found or not all(is_concrete(x) for x in jax.tree_util.tree_leaves(self.segments)):
            return found
        given = sum(float(s.angle) for _, s in named if s.angle is not None)
        if open_ones and given >= TURN:
            found.append(
                f"the others fill {np.degrees(given):.6g}° of the turn, which leaves nothing for "
                f"{open_ones[0]}; shorten them, or leave it out"
            )
        if not open_ones and abs(given - TURN) > 1e-6:
            lacking = TURN - given
            cure = "add Dwell()" if lacking > 0.0 else "shorten them"
            found.append(f"the segments fill {np.degrees(given):.6g}°, not a turn of 360°; {cure}")
        found += [
            f"the angle of {name} is {float(s.angle):.6g} rad; give a positive one"
            for name, s in named
            if s.angle is not None and not float(s.angle) > 0.0
        ]
        sizes = [float(s._change()) for _, s in named]
        if not abs(sum(sizes)) <= 1e-6 * max(map(abs, sizes), default=0.0):
            found.append(
                f"it ends {sum(sizes):.6g} above its start; the heights of all Rise and of all "
                "Return must be the same in sum"
            )
        return found

    def angles(self) -> list[Any]:
        """The cam angles at which segments start, and 2π [rad]."""
        given = [0.0 if s.angle is None else s.angle for s in self.segments]
        rest = TURN - sum(given)
        widths = [rest if s.angle is None else s.angle for s in self.segments]
        return [*(sum(widths[:i]) for i in range(len(widths))), TURN]

    def _breaks(self) -> Array:
        """Angles between which it is smooth (k + 1,) [rad], the last a turn after the first."""
        return jnp.stack([jnp.asarray(x, jnp.result_type(float)) for x in self.angles()])

    def _at(self, angle: Array) -> Array:
        """The displacement [m or rad] at cam angles [rad], an array of floating numbers."""
        x, y, level = jnp.mod(angle, TURN), jnp.zeros_like(angle), 0.0
        angles = self.angles()
        for segment, start, end in zip(self.segments, angles[:-1], angles[1:], strict=True):
            start, end = jnp.asarray(start, x.dtype), jnp.asarray(end, x.dtype)
            change = jnp.asarray(segment._change(), x.dtype)
            share = segment._shares()((x - start) / (end - start))
            y = jnp.where(x >= start, level + change * share, y)
            level = level + change
        return y

    def jumps(self, tolerance: float = 1e-6) -> list[Jump]:
        """Where velocity, acceleration or jerk jump: at each angle the lowest that does.

        A jump of the velocity is an impact; one of the acceleration excites vibrations. The ends of
        segments are looked at, and their middles.

        Args:
            tolerance: what counts as a jump, as a share of the derivative's largest value.
        """
        angles = [float(x) for x in self.angles()]
        courses = [self._course(i, angles) for i in range(len(self.segments))]
        sizes = np.max(np.abs(courses), axis=(0, 2))
        middle = courses[0].shape[1] // 2
        places = []
        for i, (start, course) in enumerate(zip(angles[:-1], courses, strict=True)):
            places.append((start, courses[i - 1][:, -1], course[:, 0]))
            places.append((0.5 * (start + angles[i + 1]), course[:, middle - 1], course[:, middle]))
        found = []
        for angle, before, after in places:
            wide = np.abs(after - before) > tolerance * sizes
            if k := next((k for k in (1, 2, 3) if wide[k]), 0):
                found.append(Jump(angle, _NAMES[k], float(before[k]), float(after[k])))
        return found

    def _course(self, i: int, angles: list[float]) -> np.ndarray:
        """Derivatives 0 to 3 of a segment (4, 10): along it, just before its middle and there."""
        segment, width = self.segments[i], angles[i + 1] - angles[i]
        one = _OfLaw(segment._shares(), segment._change(), width)
        shares = np.insert(np.linspace(0.0, 1.0, 9), 4, 0.5 - 1e-9)
        return np.stack([np.asarray(x) for x in one.rates(jnp.asarray(width * shares))])


class _OfLaw(PeriodicProgramme):
    """One segment from its own start, on and beyond it."""

    law: Law = eqx.field(static=True)
    change: Any
    width: Any

    def _at(self, angle: Array) -> Array:
        return self.change * self.law(angle / self.width)


def _law_problem(name: str, segment: Any) -> str:
    if not isinstance(segment, (Dwell, Rise)):
        return f"{name} is no segment; give Dwell, Rise or Return"
    law = getattr(segment, "by", None)
    if isinstance(law, str) and law not in RISE_LAWS:
        return f"the law of {name} is {law!r}{meant(law, RISE_LAWS)}; give one of {list(RISE_LAWS)}"
    if callable(law):
        ends = [float(jnp.asarray(law(jnp.asarray(x)))) for x in (0.0, 1.0)]
        if not np.allclose(ends, [0.0, 1.0], rtol=0.0, atol=1e-5):
            return f"the law of {name} goes from {ends[0]:.6g} to {ends[1]:.6g}, not from 0 to 1"
    return ""


@register_law("cam_spline_programme")
class SplineProgramme(PeriodicProgramme):
    """A programme given by points, with polynomials of degree 5 between them.

    `spline_programme` finds slopes and curvatures that make it as smooth as can be.

    Attributes:
        angles: increasing cam angles (n,) [rad], all within one turn.
        values: displacements there (n,) [m or rad].
        slopes: ``s'`` there (n,).
        curvatures: ``s''`` there (n,).

    Example:
        >>> import numpy as np
        >>> from jaxmbd.cams import SplineProgramme
        >>> x = np.linspace(0.0, 2 * np.pi, 8, endpoint=False)
        >>> wave = SplineProgramme(x, 1 - np.cos(x), np.sin(x), np.cos(x))
        >>> print(f"{abs(wave(1.0) - (1 - np.cos(1.0))):.0e}")
        1e-06
    """

    angles: Any = eqx.field(converter=number)
    values: Any = eqx.field(converter=number)
    slopes: Any = eqx.field(converter=number)
    curvatures: Any = eqx.field(converter=number)

    def __check_init__(self) -> None:
        _check_points(self.angles, self.values, self.slopes, self.curvatures)

    def _breaks(self) -> Array:
        """Angles between which it is smooth (n + 1,) [rad], the last a turn after the first."""
        given = jnp.asarray(self.angles, jnp.result_type(float))
        return jnp.append(given, given[0] + TURN)

    def _at(self, angle: Array) -> Array:
        """The displacement [m or rad] at cam angles [rad], an array of floating numbers."""
        x, y, v, a = (
            jnp.asarray(z, angle.dtype)
            for z in (self.angles, self.values, self.slopes, self.curvatures)
        )
        n = x.shape[0]
        at = x[0] + jnp.mod(angle - x[0], TURN)
        k = jnp.sum(jax.lax.stop_gradient(at)[..., None] >= x[1:], axis=-1)
        after = jnp.where(k == n - 1, 0, k + 1)
        h = jnp.where(k == n - 1, x[0] + TURN, x[after]) - x[k]
        return _hermite(
            (at - x[k]) / h,
            *(y[k], h * v[k], h**2 * a[k]),
            *(y[after], h * v[after], h**2 * a[after]),
        )


def spline_programme(angles: Any, values: Any) -> SplineProgramme:
    """The periodic spline of degree 5 through given points, continuous to its fourth derivative.

    It is made once: derivatives with respect to the points go through this function.

    Args:
        angles: increasing cam angles (n,) [rad], n ≥ 3, all within one turn.
        values: displacements there (n,) [m or rad]; that after a turn is left out.

    Raises:
        ValueError: shapes differ, angles do not increase, or span a turn or more.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.cams import spline_programme
        >>> x = np.linspace(0.0, 2 * np.pi, 24, endpoint=False)
        >>> wave = spline_programme(x, 0.01 * np.sin(x))
        >>> print(f"{wave(0.1):.6f} {0.01 * np.sin(0.1):.6f}")
        0.000998 0.000998
    """
    angles, values = number(angles), number(values)
    _check_points(angles, values)
    return SplineProgramme(angles, values, *_slopes_and_curvatures(angles, values))


@host_jit
def _slopes_and_curvatures(x: Array, y: Array) -> tuple[Array, Array]:
    """Those (n,) each with which the polynomials meet up to the fourth derivative."""
    n = x.shape[0]
    h = jnp.diff(jnp.append(x, x[0] + TURN))
    # At each point the third and fourth derivatives of both neighbours agree. They are linear in
    # values, slopes and curvatures; the unknowns are (slopes, curvatures).
    basis = [_end_derivatives(*e) for e in np.eye(6)]
    rows, right = jnp.zeros((2 * n, 2 * n), x.dtype), jnp.zeros(2 * n, x.dtype)
    here, following = jnp.arange(n), jnp.roll(jnp.arange(n), -1)
    sides = ((0, following, h, 1.0), (1, here, h, -1.0))  # ends of k meet at k + 1, starts at k
    for side, point, step, sign in sides:
        for order in (3, 4):
            row = point + n * (order - 3)
            for j, e in enumerate(basis):
                weight = sign * e[order - 3][1 - side] * step ** (j % 3 - order)
                owner = here if j < 3 else following
                if j % 3 == 0:
                    right = right.at[row].add(-weight * y[owner])
                else:
                    rows = rows.at[row, owner + n * (j % 3 - 1)].add(weight)
    found = jnp.linalg.solve(rows, right)
    return found[:n], found[n:]


def _hermite(u: Any, y0: Any, v0: Any, a0: Any, y1: Any, v1: Any, a1: Any) -> Any:
    """The polynomial of degree 5 on [0, 1] with given values, slopes and curvatures at its ends."""
    rise = y1 - y0 - v0 - 0.5 * a0
    slope, bend = v1 - v0 - a0, a1 - a0
    c3 = 10.0 * rise - 4.0 * slope + 0.5 * bend
    c4 = -15.0 * rise + 7.0 * slope - bend
    c5 = 6.0 * rise - 3.0 * slope + 0.5 * bend
    return y0 + u * (v0 + u * (0.5 * a0 + u * (c3 + u * (c4 + u * c5))))


def _end_derivatives(*given: float) -> list[tuple[float, float]]:
    """Third and fourth derivatives of `_hermite`, each at start and end."""
    found = np.polynomial.Polynomial.fit(
        x := np.linspace(0.0, 1.0, 6), _hermite(x, *given), 5, domain=[0, 1], window=[0, 1]
    )
    return [(float(found.deriv(k)(0.0)), float(found.deriv(k)(1.0))) for k in (3, 4)]


def _check_points(angles: Any, *columns: Any) -> None:
    shape = np.shape(angles)
    if len(shape) != 1 or shape[0] < 3 or any(np.shape(c) != shape for c in columns):
        raise ValueError(
            f"programme through points: angles and values have shapes "
            f"{[shape, *map(np.shape, columns)]}; give three or more of each, as (n,)"
        )
    if not is_concrete(angles):
        return
    if not np.all(np.diff(angles) > 0.0):
        raise ValueError("programme through points: angles must increase; sort the points")
    if angles[-1] - angles[0] >= TURN * (1.0 - 1e-9):
        raise ValueError(
            "programme through points: angles span a turn or more; leave out the last point, "
            "which is the first one again"
        )


def floating(angle: Any) -> Array:
    """Angles as an array of floating numbers, in their precision if they have one."""
    angle = jnp.asarray(angle)
    kind = angle.dtype if jnp.issubdtype(angle.dtype, jnp.floating) else jnp.result_type(float)
    return angle.astype(kind)
