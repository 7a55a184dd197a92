"""What can be observed at an instant, and arithmetic with it.

Names in observables and experiments are checked, with the nearest name that exists in the message.
Observables and experiments have descriptions: plain data that determines them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model import GROUND, Mechanism
from jaxmbd.observe.outputs import Output
from jaxmbd.observe.reductions import Reduced
from jaxmbd.observe.snapshot import Snapshot
from jaxmbd.plumbing import meant


def unknown(kind: str, name: Any, known: Iterable[str]) -> list[str]:
    """A problem if there is no part of that name."""
    known = list(known)
    if name in known:
        return []
    return [f"there is no {kind} {name!r}{meant(name, known) or f'; there are {known}'}"]


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


@dataclass(frozen=True)
class Observable:
    """Base of all observables: a small value that can be compared, hashed and pickled.

    Observables add, subtract, are multiplied by numbers and have absolute values; along the axis of
    an experiment they are reduced by `max`, `min`, `last` and so on (`jaxmbd.observe.reductions`).

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
        """The largest value."""
        return self.reduced("max")

    def min(self) -> Reduced:
        """The smallest value."""
        return self.reduced("min")

    def first(self) -> Reduced:
        """The value at the beginning of the axis."""
        return self.reduced("first")

    def last(self) -> Reduced:
        """The value at the end of the axis."""
        return self.reduced("last")

    def span(self) -> Reduced:
        """The largest minus the smallest value."""
        return self.reduced("span")

    def peak(self) -> Reduced:
        """The largest magnitude."""
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
        """The first place where it reaches a level, linearly interpolated; NaN if it never does."""
        return self.reduced("crossing", level)

    def rise(self, share: float = 0.9) -> Reduced:
        """The first place where it reaches a share of its last value."""
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
