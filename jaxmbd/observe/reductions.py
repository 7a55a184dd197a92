"""Reductions of a curve to a number: extremes, crossings, means, values at a place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.lanes import traced_once
from jaxmbd.model import Mechanism
from jaxmbd.observe.outputs import Output


def _trapezoid(x: Array, y: Array) -> Array:
    """Mean of y along x."""
    steps = jnp.reshape(jnp.diff(x), (-1, *[1] * (y.ndim - 1)))
    return jnp.sum(0.5 * steps * (y[1:] + y[:-1]), axis=0) / (x[-1] - x[0])


@traced_once
def _interval(x: Array, place: Any) -> tuple[Any, Any]:
    """The interval of x (increasing or not) that contains a place, and the share of it."""
    forward = jnp.where(x[-1] >= x[0], 1.0, -1.0)
    k = jnp.clip(jnp.searchsorted(forward * x, forward * place), 1, x.shape[0] - 1)
    return k, (place - x[k - 1]) / (x[k] - x[k - 1])


def _at(x: Array, y: Array, place: float) -> Array:
    k, share = _interval(x, place)
    return y[k - 1] + share * (y[k] - y[k - 1])


def _slope(x: Array, y: Array, place: float) -> Array:
    """Derivative at a place of the parabola through the three points nearest to it."""
    if x.shape[0] < 3:
        return (y[1] - y[0]) / (x[1] - x[0])
    k = jnp.clip(jnp.argmin(jnp.abs(x - place)), 1, x.shape[0] - 2)
    (x0, x1, x2), (y0, y1, y2) = (tuple(z[k + i] for i in (-1, 0, 1)) for z in (x, y))
    first, second = (y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1)
    bend = (second - first) / (x2 - x0)
    return first + bend * (2.0 * place - x0 - x1)


def _crossing(x: Array, y: Array, level: Any) -> Array:
    """Where y first reaches a level, from below or from above."""
    side: Any = jnp.where(y[0] <= level, 1.0, -1.0)
    reached = side * (y - level) >= 0.0
    k = jnp.maximum(jnp.argmax(reached), 1)
    step = y[k] - y[k - 1]
    share = (level - y[k - 1]) / jnp.where(step == 0.0, 1.0, step)
    there: Any = jnp.where(reached[0], x[0], x[k - 1] + share * (x[k] - x[k - 1]))
    return jnp.asarray(jnp.where(jnp.any(reached), there, jnp.nan))


class Reduction(NamedTuple):
    """A reduction: its function of (x, y, *arguments), and what becomes of unit and text.

    Attributes:
        function: of the axis's values (n,), the curve (n, …) and the arguments.
        text: with "{}" for the observable's text, and the arguments as {0}, ….
        arguments: their number.
        unit: "value", "axis", or "slope" (value per axis).
    """

    function: Callable[..., Array]
    text: str
    arguments: int = 0
    unit: str = "value"


REDUCTIONS: dict[str, Reduction] = {
    "max": Reduction(lambda x, y: jnp.max(y, axis=0), "largest {what}"),
    "min": Reduction(lambda x, y: jnp.min(y, axis=0), "smallest {what}"),
    "first": Reduction(lambda x, y: y[0], "{what}, at the beginning"),
    "last": Reduction(lambda x, y: y[-1], "{what}, at the end"),
    "span": Reduction(lambda x, y: jnp.max(y, axis=0) - jnp.min(y, axis=0), "range of {what}"),
    "peak": Reduction(lambda x, y: jnp.max(jnp.abs(y), axis=0), "largest magnitude of {what}"),
    "mean": Reduction(_trapezoid, "mean of {what}"),
    "rms": Reduction(lambda x, y: jnp.sqrt(_trapezoid(x, y * y)), "root mean square of {what}"),
    "at": Reduction(_at, "{what}, at {axis} = {0:g}", 1),
    "slope": Reduction(_slope, "{what} per {axis}, at {0:g}", 1, "slope"),
    "crossing": Reduction(_crossing, "{axis} where {what} first reaches {0:g}", 1, "axis"),
    "rise": Reduction(
        lambda x, y, share: _crossing(x, y, share * y[-1]),
        "{axis} where {what} first reaches {0:.0%} of its end",
        1,
        "axis",
    ),
}
"""By name. "largest", "smallest" and the like are over the computed points of the curve."""

OVER_ALL = ("max", "min", "span", "peak", "mean", "rms")
"""Those that every point of the curve counts in."""


@dataclass(frozen=True)
class Reduced:
    """An observable reduced along the axis of an experiment.

    Attributes:
        observable: what is observed.
        how: a name in `REDUCTIONS`.
        arguments: numbers that the reduction takes.

    Example:
        >>> from jaxmbd.observe import Toe
        >>> Toe("upright").span().how
        'span'
    """

    observable: Any
    how: str
    arguments: tuple[float, ...] = ()

    def value(self, x: Array, y: Array) -> Array:
        """The number, for the axis's values x (n,) and the curve y (n, …)."""
        return REDUCTIONS[self.how].function(x, y, *self.arguments)

    def about(self, mech: Mechanism, axis: str, axis_unit: str) -> Output:
        """Unit and meaning, for an experiment over an axis."""
        whole, kind = self.observable.about(mech), REDUCTIONS[self.how]
        units = {"value": whole.unit, "axis": axis_unit, "slope": per(whole.unit, axis_unit)}
        text = kind.text.format(*self.arguments, what=whole.text, axis=axis)
        return whole._replace(unit=units[kind.unit], text=text)

    def problems(self, mech: Mechanism) -> list[str]:
        """Mistakes of the observable, and a reduction that does not exist or does not fit."""
        found = list(self.observable.problems(mech))
        kind = REDUCTIONS.get(self.how)
        if kind is None:
            return [*found, f"there is no reduction {self.how!r}; there are {list(REDUCTIONS)}"]
        if len(self.arguments) != kind.arguments:
            given = f"{self.how} takes {kind.arguments} number(s); given {list(self.arguments)}"
            return [*found, given]
        if not found and kind.unit == "axis" and self.observable.about(mech).dims:
            found.append(f"{self.how} needs a number; choose a component of the vector")
        return found

    def place_problems(self, axis: str, values: Any) -> list[str]:
        """Why it means nothing along this axis: outside of it, or not in one direction."""
        if self.how not in ("at", "slope", "mean", "rms"):
            return []
        x = np.asarray(values, float)
        if len(x) < 2:
            return [f"{self.how} needs two or more values of {axis}"]
        steps = np.diff(x)
        if not (np.all(steps >= 0.0) or np.all(steps <= 0.0)):
            return [f"{self.how} needs values of {axis} in rising or falling order"]
        low, high = x.min(), x.max()
        slack = 1e-9 * (high - low)
        return [
            f"{self.how} {axis} = {place:g}, but it runs from {low:g} to {high:g} only"
            for place in self.arguments
            if not low - slack <= place <= high + slack
        ]


def per(unit: str, other: str) -> str:
    """The unit of a quotient."""
    if unit == other:
        return ""
    return f"{unit or '1'}/{other}" if other else unit
