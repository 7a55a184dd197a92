"""Extrema and crossings between the points of a curve, on the polynomial through six of them.

With y0 and y1 the values at both ends of an interval, δ² and δ⁴ their central differences of second
and fourth order, u the place in units of the interval and ``v = 1 − u``, the quintic through the
six points around is (Everett's formula; Abramowitz, Stegun, 25.2.12)

    p(u) = v y0 + v (v² − 1)/6 δ²0 + v (v² − 1)(v² − 4)/120 δ⁴0 + the same of u, y1, δ²1, δ⁴1,

wrong by O(h⁶). It is used where the points are those of a smooth curve: ``|δ⁴| ≤ |δ²|/2`` with the
larger of both ends' differences each. A vibration is with nine points in a period or more: there
``δ⁴ = −(2 sin π/n)² δ²``. A corner between two points, or at one, is not: there δ⁴ is at least δ²,
as it is between noise and nothing. What is not smooth keeps to its points, and to straight lines
between them.

Derivatives are those of the located value, not of the search. Of an extremum they are those of p at
the place where it is, which need not be differentiated itself (envelope theorem); the place u of a
crossing is differentiated as the solution of ``p(u) = level`` (implicit function theorem).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

POINTS = 6
"""Those of a quintic; a curve of fewer keeps to them."""


class Quintic(NamedTuple):
    """The polynomial through six points at u = −2, −1, 0, 1, 2, 3, and what tells if it is smooth.

    Attributes:
        y: values at u = 0 and 1.
        second: central differences of second order there.
        fourth: those of fourth order.
    """

    y: tuple[Array, Array]
    second: tuple[Array, Array]
    fourth: tuple[Array, Array]

    @classmethod
    def through(cls, points: Array) -> Quintic:
        """That of six points (6,)."""
        a, b, y0, y1, c, d = (points[k] for k in range(POINTS))
        before, s0, s1, after = a - 2 * b + y0, b - 2 * y0 + y1, y0 - 2 * y1 + c, y1 - 2 * c + d
        return cls((y0, y1), (s0, s1), (before - 2 * s0 + s1, s0 - 2 * s1 + after))

    @property
    def smooth(self) -> Array:
        """Whether the points are those of a smooth curve."""
        fourth = jnp.maximum(*map(jnp.abs, self.fourth))
        return fourth <= 0.5 * jnp.maximum(*map(jnp.abs, self.second))

    def at(self, u: Any) -> Array:
        """The value at u."""

        def half(w: Any, k: int) -> Array:
            third = w * (w * w - 1.0) / 6.0
            return w * self.y[k] + third * (self.second[k] + (w * w - 4.0) / 20.0 * self.fourth[k])

        return half(1.0 - u, 0) + half(u, 1)

    def slope(self, u: Any) -> Array:
        """Its derivative by u."""

        def half(w: Any, k: int) -> Array:
            s = w * w
            second = (3.0 * s - 1.0) / 6.0 * self.second[k]
            return self.y[k] + second + ((s - 3.0) * s / 24.0 + 1.0 / 30.0) * self.fourth[k]

        return half(u, 1) - half(1.0 - u, 0)

    def bend(self, u: Any) -> Array:
        """Its second derivative by u."""

        def half(w: Any, k: int) -> Array:
            return w * (self.second[k] + (w * w / 6.0 - 0.25) * self.fourth[k])

        return half(1.0 - u, 0) + half(u, 1)


def largest(y: Array) -> Array:
    """The largest value of a smooth curve through the points y (n, …), for each of its components.

    Of what has fewer than six points, or has its largest value where it is not smooth, it is that
    of the points; it is never less. It exceeds them by a fifth of a second difference at most.
    """
    sampled = jnp.max(y, axis=0)
    if y.shape[0] < POINTS or not jnp.issubdtype(y.dtype, jnp.floating):
        return sampled
    if y.ndim == 1:
        return jnp.maximum(sampled, _highest_top(y))
    each = jax.vmap(_highest_top, 1)(y.reshape(y.shape[0], -1))
    return jnp.maximum(sampled, each.reshape(sampled.shape))


def smallest(y: Array) -> Array:
    """The smallest value, as `largest`."""
    return -largest(-y)


class _Top(NamedTuple):
    """A top on the curve through six points.

    Attributes:
        height: about how high it is; −∞ if there is none.
        low: where the interval begins that it was looked for in.
        u: about where it is.
        points: the six (6,).
    """

    height: Array
    low: Array
    u: Array
    points: Array

    @classmethod
    def between(cls, points: Array, low: Any, high: float) -> _Top:
        """That with u from `low` to `high`, where the slope changes from rise to fall."""
        curve = Quintic.through(lax.stop_gradient(points))
        rise, fall = curve.slope(low), curve.slope(high)
        top = curve.smooth & (rise > 0.0) & (fall < 0.0)
        u = low + (high - low) * rise / jnp.where(top, rise - fall, 1.0)
        return cls(jnp.where(top, curve.at(u), -jnp.inf), jnp.asarray(low, u.dtype), u, points)

    def or_higher(self, other: _Top) -> _Top:
        """The higher of two."""
        pairs = zip(other, self, strict=True)
        return _Top(*(jnp.where(other.height > self.height, *z) for z in pairs))


def _highest_top(y: Array) -> Array:
    """The highest of all tops of y (n,) between points; −∞ without one."""

    def after(state: tuple[Array, _Top], point: tuple[Array, Array]) -> tuple[Any, None]:
        points, best = state
        k, value = point
        points = jnp.append(points[1:], value)
        low = jnp.where(k == POINTS - 1, -2.0, 0.0).astype(y.dtype)
        return (points, best.or_higher(_Top.between(points, low, 1.0))), None

    # The first two intervals, and the last two, have no six points around them.
    none = jnp.full(POINTS, jnp.nan, y.dtype)
    start = none, _Top.between(jnp.zeros_like(none), 0.0, 1.0)
    (points, best), _ = lax.scan(after, start, (jnp.arange(y.shape[0]), y))
    best = best.or_higher(_Top.between(points, 1.0, 3.0))
    curve = Quintic.through(lax.stop_gradient(best.points))
    high = jnp.where(best.low > 0.0, 3.0, 1.0).astype(y.dtype)
    u = _root(lambda u: (curve.slope(u), curve.bend(u)), best.low, high, best.u)
    return jnp.where(jnp.isfinite(best.height), Quintic.through(best.points).at(u), -jnp.inf)


def first_place(x: Array, y: Array, level: Any) -> Array:
    """The x where the curve through the points (x, y), both (n,), first reaches a level.

    From below or from above; NaN if no point reaches it. It lies between the first point that does
    and the one before, on a smooth curve, or else on the line between them.
    """
    count = y.shape[0]
    size = min(POINTS, count)
    x, y = jnp.asarray(x), jnp.asarray(y, jnp.result_type(y, x))
    side: Any = jnp.where(y[0] <= level, 1.0, -1.0)

    def after(state: Any, point: tuple[Array, ...]) -> tuple[Any, None]:
        """With each point: the points until it, those around the crossing, and the first beyond."""
        points, around, first = state
        k, *values = point
        points = [jnp.append(z[1:], value) for z, value in zip(points, values, strict=True)]
        beyond = side * (lax.stop_gradient(values[1]) - lax.stop_gradient(level)) >= 0.0
        first = jnp.asarray(jnp.where((first == count) & beyond, k, first))
        here = k == jnp.clip(first + 2, size - 1, count - 1)
        around = [jnp.where(here, *z) for z in zip(points, around, strict=True)]
        return (points, around, first), None

    none = [jnp.zeros(size, z.dtype) for z in (x, y)]
    start = none, none, jnp.full((), count)
    (_, (places, values), first), _ = lax.scan(after, start, (jnp.arange(count), x, y))
    before = jnp.maximum(first, 1) - 1
    low = before - (jnp.clip(first + 2, size - 1, count - 1) - (size - 1))
    step, reach = (z[low + 1] - z[low] for z in (values, places))
    share = (level - values[low]) / jnp.where(step == 0.0, 1.0, step)
    there: Any = places[low] + share * reach
    if size == POINTS:
        smooth, place = _crossed(places, values, level, low, share)
        there = jnp.where(smooth, place, there)
    there = jnp.where(first == 0, x[0], there)
    return jnp.asarray(jnp.where(first < count, there, jnp.nan))


def _crossed(x: Array, y: Array, level: Any, k: Array, share: Array) -> tuple[Array, Array]:
    """Whether six points are those of a smooth curve, and where it has the level after point k."""
    places, values = Quintic.through(x), Quintic.through(y)
    # Even points have second differences of rounding only.
    even = jnp.maximum(*map(jnp.abs, places.fourth)) <= 0.01 * jnp.abs(places.slope(0.5))
    fixed, aim, share = lax.stop_gradient((values, level, share))
    ok = fixed.smooth & (even | places.smooth)
    low = jnp.asarray(k - 2, y.dtype)
    start = low + jnp.where(ok, share, 0.5)
    u = _root(lambda u: (fixed.at(u) - aim, fixed.slope(u)), low, low + 1.0, start)
    slope = fixed.slope(u)
    ok = ok & (slope != 0.0)
    # Newton's next step is zero, and its derivative that of the solution.
    u = jnp.where(ok, u, 0.5) - (values.at(u) - level) / jnp.where(ok, slope, 1.0)
    return ok, places.at(u)


def _root(
    fn: Callable[[Array], tuple[Array, Array]], low: Array, high: Array, start: Array
) -> Array:
    """The zero of a function between two places where its signs differ; `fn` has its slope too.

    Newton's steps, or bisection where one would leave the bracket: six leave only rounding of a
    smooth curve.
    """
    rising = fn(high)[0] > 0.0

    def closer(_: Any, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        low, high, u = state
        value, slope = fn(u)
        beyond = (value > 0.0) == rising
        low, high = jnp.where(beyond, low, u), jnp.where(beyond, u, high)
        step = u - value / jnp.where(slope == 0.0, 1.0, slope)
        return low, high, jnp.where((step >= low) & (step <= high), step, 0.5 * (low + high))

    return lax.fori_loop(0, 6, closer, (low, high, start))[2]
