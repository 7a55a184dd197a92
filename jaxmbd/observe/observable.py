"""What can be observed at an instant, arithmetic with it, and its reductions along an axis.

Names in observables and experiments are checked, with the nearest name that exists in the message.
Observables and experiments have descriptions: plain data that determines them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model import GROUND, Mechanism
from jaxmbd.observe.located import first_place, largest, smallest
from jaxmbd.observe.snapshot import Snapshot
from jaxmbd.plumbing import unknown


class Output(NamedTuple):
    """One output of a sample.

    Attributes:
        unit: SI unit, "" for a pure number.
        text: what it is, with its sign.
        dims: a name for each axis of the array, without that of the samples.
        role: "output"; "status" for a `jaxmbd.Status` number; "reason" for what explains a failure,
            which is meaningful for failed samples only.
        flags: the meanings of the whole numbers 0, 1, … where the output is one of them.

    Example:
        >>> from jaxmbd.observe import Output
        >>> Output("rad", "toe, positive: toe-in", ("travel",)).role
        'output'
    """

    unit: str = ""
    text: str = ""
    dims: tuple[str, ...] = ()
    role: str = "output"
    flags: tuple[str, ...] = ()


def unknown_point(mech: Mechanism, body: str, point: Any) -> list[str]:
    """Problems of a point of a body, given by name or coordinates."""
    found = unknown("body", body, (*mech.structure.bodies, GROUND))
    if isinstance(point, str):
        return found + unknown("point", point, mech.structure.points)
    if len(point) != (size := 2 if mech.structure.planar else 3):
        found.append(f"the point {point} has {len(point)} coordinates; give {size}, or a name")
    return found


def unknown_coordinate(mech: Mechanism, joint: str, index: int) -> list[str]:
    """Problems of a joint coordinate."""
    names = [e.name for e in mech.structure.joints if e.kind.can_be_in_tree]
    if found := unknown("joint with coordinates", joint, names):
        return found
    kind = mech.joint(joint)
    if 0 <= index < kind.nq:
        return []
    return [f"joint {joint!r} has {kind.nq} coordinates ({kind.coordinates_text}), not {index}"]


def as_point(x: Any) -> Any:
    """A point as a name or a tuple, which can be compared and hashed."""
    return x if isinstance(x, str) else tuple(float(y) for y in x)


def model_point(x: Any) -> Any:
    """A point of `as_point` as the model takes it: a name or an array."""
    return x if isinstance(x, str) else np.asarray(x)


def described(x: Any) -> Any:
    """JSON values that determine `x`: types by name, functions by import path, numbers exactly.

    Example:
        >>> from jaxmbd.observe import Travel, described
        >>> described(Travel("upright", "wheel_centre", "z"))["type"]
        'Travel'
    """
    if x is None or isinstance(x, (bool, int, str)):
        return x
    if isinstance(x, float):
        return x if np.isfinite(x) else repr(x)
    if isinstance(x, Mapping):
        plain = all(isinstance(k, str) for k in x)
        pairs = [(k if plain else described(k), described(v)) for k, v in x.items()]
        return dict(pairs) if plain else [list(p) for p in pairs]
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        fields = {f.name: described(getattr(x, f.name)) for f in dataclasses.fields(x)}
        return {"type": type(x).__name__, **fields}
    if (fields := getattr(x, "_asdict", None)) is not None:
        return {"type": type(x).__name__, **{n: described(y) for n, y in fields().items()}}
    if isinstance(x, (list, tuple)):
        return [described(y) for y in x]
    if hasattr(x, "tolist"):
        return described(np.asarray(x).tolist())
    if callable(x):
        thing = x if hasattr(x, "__qualname__") else type(x)
        return {"function": f"{thing.__module__}:{thing.__qualname__}"}
    return repr(x)


def _trapezoid(x: Array, y: Array) -> Array:
    """Mean of y along x."""
    steps = jnp.reshape(jnp.diff(x), (-1, *[1] * (y.ndim - 1)))
    return jnp.sum(0.5 * steps * (y[1:] + y[:-1]), axis=0) / (x[-1] - x[0])


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
    "max": Reduction(lambda x, y: largest(y), "largest {what}"),
    "min": Reduction(lambda x, y: smallest(y), "smallest {what}"),
    "first": Reduction(lambda x, y: y[0], "{what}, at the beginning"),
    "last": Reduction(lambda x, y: y[-1], "{what}, at the end"),
    "span": Reduction(lambda x, y: largest(y) - smallest(y), "range of {what}"),
    "peak": Reduction(
        lambda x, y: jnp.maximum(largest(y), -smallest(y)), "largest magnitude of {what}"
    ),
    "mean": Reduction(_trapezoid, "mean of {what}"),
    "rms": Reduction(lambda x, y: jnp.sqrt(_trapezoid(x, y * y)), "root mean square of {what}"),
    "at": Reduction(_at, "{what}, at {axis} = {0:g}", 1),
    "slope": Reduction(_slope, "{what} per {axis}, at {0:g}", 1, "slope"),
    "crossing": Reduction(first_place, "{axis} where {what} first reaches {0:g}", 1, "axis"),
    "rise": Reduction(
        lambda x, y, share: first_place(x, y, share * y[-1]),
        "{axis} where {what} first reaches {0:.0%} of its end",
        1,
        "axis",
    ),
}
"""By name. Extrema and crossings are located between the computed points, where these are those of
a smooth curve (`jaxmbd.observe.located`)."""

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


@dataclass(frozen=True)
class Observable:
    """Base of all observables: a small value that can be compared, hashed and pickled.

    Observables add, subtract, are multiplied by numbers and have absolute values; along the axis of
    an experiment they are reduced by `max`, `min`, `last` and so on (`jaxmbd.observe.REDUCTIONS`).

    Example:
        >>> from jaxmbd.observe import Observable, Toe
        >>> toe = Toe("upright")
        >>> isinstance(toe, Observable), toe.span() == toe.span()
        (True, True)
    """

    def value(self, at: Snapshot) -> Array:
        """Its value at an instant: a number, or (3,) in world axes."""
        raise TypeError(f"{type(self).__name__} defines no value")

    def about(self, mech: Mechanism) -> Output:
        """Its unit, meaning and dimensions."""
        raise TypeError(f"{type(self).__name__} does not say what it is")

    def problems(self, mech: Mechanism) -> list[str]:
        """Names that the mechanism does not have, and other mistakes."""
        return []

    @property
    def partial(self) -> bool:
        """Whether some configurations have no such value: NaN there is no failure."""
        return False

    def __neg__(self) -> Observable:
        return Combined((self,), (-1.0,))

    def __add__(self, other: Any) -> Observable:
        if isinstance(other, Observable):
            return Combined((self, other), (1.0, 1.0))
        return Combined((self,), (1.0,), float(other))

    def __radd__(self, other: Any) -> Observable:
        return self + other

    def __sub__(self, other: Any) -> Observable:
        return self + (-other)

    def __rsub__(self, other: Any) -> Observable:
        return (-self) + other

    def __mul__(self, factor: Any) -> Observable:
        return Combined((self,), (float(factor),))

    def __rmul__(self, factor: Any) -> Observable:
        return self * factor

    def __truediv__(self, factor: Any) -> Observable:
        return self * (1.0 / float(factor))

    def __abs__(self) -> Observable:
        return Absolute(self)

    def reduced(self, how: str, *arguments: float) -> Reduced:
        """A number along the axis of an experiment, by a reduction of `REDUCTIONS`."""
        return Reduced(self, how, tuple(float(x) for x in arguments))

    def max(self) -> Reduced:
        """The largest value, between points too where they are those of a smooth curve.

        Never less than the largest point. Its derivative is that of the curve where the extremum
        is; at an end of the axis, that of the end's value.
        """
        return self.reduced("max")

    def min(self) -> Reduced:
        """The smallest value, as `max`."""
        return self.reduced("min")

    def first(self) -> Reduced:
        """The value at the beginning of the axis."""
        return self.reduced("first")

    def last(self) -> Reduced:
        """The value at the end of the axis."""
        return self.reduced("last")

    def span(self) -> Reduced:
        """The largest minus the smallest value, as `max`."""
        return self.reduced("span")

    def peak(self) -> Reduced:
        """The largest magnitude, as `max`: of an extremum, or of the value at an end."""
        return self.reduced("peak")

    def mean(self) -> Reduced:
        """The mean along the axis (trapezoidal rule)."""
        return self.reduced("mean")

    def rms(self) -> Reduced:
        """The root mean square along the axis (trapezoidal rule)."""
        return self.reduced("rms")

    def at(self, place: float) -> Reduced:
        """The value at a place of the axis, linearly interpolated."""
        return self.reduced("at", place)

    def slope(self, place: float) -> Reduced:
        """The derivative along the axis at a place, of the parabola through the nearest points."""
        return self.reduced("slope", place)

    def crossing(self, level: float) -> Reduced:
        """The first place where it reaches a level; NaN if no point does.

        Between that point and the one before, on the smooth curve through six points, or on a line
        where they are not those of a smooth curve.
        """
        return self.reduced("crossing", level)

    def rise(self, share: float = 0.9) -> Reduced:
        """The first place where it reaches a share of its last value, as `crossing`."""
        return self.reduced("rise", share)


@dataclass(frozen=True)
class Combined(Observable):
    """``Σ factor · observable + shift``, of observables of one unit."""

    parts: tuple[Observable, ...]
    factors: tuple[float, ...]
    shift: float = 0.0

    def value(self, at: Snapshot) -> Array:
        terms = [f * x.value(at) for f, x in zip(self.factors, self.parts, strict=True)]
        total = sum(terms[1:], terms[0])
        return total if self.shift == 0.0 else total + self.shift

    @property
    def partial(self) -> bool:
        return any(x.partial for x in self.parts)

    def about(self, mech: Mechanism) -> Output:
        first = self.parts[0].about(mech)
        return first._replace(text=self._text([x.about(mech).text for x in self.parts]))

    def _text(self, names: list[str]) -> str:
        if len(names) == 1 and self.shift == 0.0 and abs(self.factors[0]) == 1.0:
            return f"minus {names[0]}" if self.factors[0] < 0.0 else names[0]
        terms = [f"{f:+g} · ({n})" for f, n in zip(self.factors, names, strict=True)]
        return " ".join(terms + ([f"{self.shift:+g}"] if self.shift else []))

    def problems(self, mech: Mechanism) -> list[str]:
        found = [text for x in self.parts for text in x.problems(mech)]
        if found:
            return found
        units = {x.about(mech).unit for x in self.parts}
        shapes = {x.about(mech).dims for x in self.parts}
        if len(units) > 1:
            found.append(f"a sum of observables with the units {sorted(units)}")
        if len(shapes) > 1:
            found.append("a sum of a number and a vector; choose a component of the vector")
        return found


@dataclass(frozen=True)
class Absolute(Observable):
    """The magnitude of a number, or of each component."""

    part: Observable

    def value(self, at: Snapshot) -> Array:
        return jnp.abs(self.part.value(at))

    @property
    def partial(self) -> bool:
        return self.part.partial

    def about(self, mech: Mechanism) -> Output:
        whole = self.part.about(mech)
        return whole._replace(text=f"magnitude of {whole.text}")

    def problems(self, mech: Mechanism) -> list[str]:
        return self.part.problems(mech)
