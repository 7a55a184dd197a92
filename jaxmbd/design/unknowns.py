"""The unknowns of a design: which numbers of a model may move, and how far, as one vector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.model import Mechanism
from jaxmbd.plumbing import refuse
from jaxmbd.variables import (
    Parametrization,
    Variable,
    find_variables,
    in_si,
    mechanism_of,
)


@dataclass(frozen=True)
class Within:
    """A number may move by at most `width` to either side of where it starts.

    Attributes:
        width: in the number's SI unit, a text with a unit ("15 mm"), or an array of its shape.
        relative: whether `width` is a fraction of the number's magnitude.
        start: where it starts; by default as it is in the model.

    Example:
        >>> from jaxmbd.design import Within
        >>> Within("15 mm").limits(0.2, "m", "points/a/z")
        (array(0.2), array(0.185), array(0.215))
    """

    width: Any
    relative: bool = False
    start: Any = None

    def limits(self, value: Any, unit: str, what: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Start, lower and upper limit about a value, in SI units."""
        start = _si(value if self.start is None else self.start, unit, what)
        width = _si(self.width, "" if self.relative else unit, what)
        if not np.all(width > 0.0):
            raise ValueError(f"{what}: the width {self.width!r} must be positive")
        width = np.abs(start) * width if self.relative else width
        if not np.all(width > 0.0):
            raise ValueError(f"{what}: it is zero, and a fraction of zero is no width")
        return start, np.asarray(start - width), np.asarray(start + width)


@dataclass(frozen=True)
class Between:
    """A number may lie between two values; either may be infinite if `scale` is given.

    Attributes:
        lower, upper: in the number's SI unit, texts with a unit, or arrays of its shape.
        start: where it starts; by default as it is in the model, or the middle if it has no value.
        scale: a change of it that counts as one; by default half the distance of the limits.

    Example:
        >>> from jaxmbd.design import Between
        >>> Between("100 N/mm", "200 N/mm").limits(1.2e5, "N/m", "forces/spring/stiffness")
        (array(120000.), array(100000.), array(200000.))
    """

    lower: Any
    upper: Any
    start: Any = None
    scale: Any = None

    def limits(self, value: Any, unit: str, what: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Start, lower and upper limit about a value, in SI units."""
        lower, upper = _si(self.lower, unit, what), _si(self.upper, unit, what)
        if not np.all(lower < upper):
            raise ValueError(f"{what}: {self.lower!r} is not below {self.upper!r}")
        start = value if self.start is None else self.start
        start = 0.5 * (lower + upper) if start is None else _si(start, unit, what)
        if not np.all((start >= lower) & (start <= upper)):
            raise ValueError(
                f"{what}: it starts at {start.tolist()}, outside {lower.tolist()} to "
                f"{upper.tolist()}; give start="
            )
        if not np.all(np.isfinite(start)):
            raise ValueError(f"{what}: it starts at {start.tolist()}; give a finite start=")
        if self.scale is not None:
            scale = _si(self.scale, unit, what)
            if not np.all(np.isfinite(scale) & (scale > 0.0)):
                raise ValueError(f"{what}: scale={self.scale!r} must be positive")
        if self.scale is None and not np.all(np.isfinite(upper - lower)):
            raise ValueError(f"{what}: without two finite limits, give scale=, a typical change")
        return start, lower, upper


@dataclass(frozen=True)
class MovedTogether:
    """One number that moves several alike: it is added to each, times the factor given for it.

    It starts at zero, and its range is the displacement's.

    Attributes:
        paths: paths of the numbers, or path to factor: −1 moves to the other side.
        range: `Within` or `Between` of the displacement.

    Example:
        >>> from jaxmbd.design import MovedTogether, Within
        >>> MovedTogether(["points/rack_left/z", "points/rack_right/z"], Within(0.01)).factors
        {'points/rack_left/z': 1.0, 'points/rack_right/z': 1.0}
    """

    paths: Iterable[str] | Mapping[str, float]
    range: Within | Between

    @property
    def factors(self) -> dict[str, float]:
        """Path to factor."""
        if isinstance(self.paths, Mapping):
            return {path: float(x) for path, x in self.paths.items()}
        paths = [self.paths] if isinstance(self.paths, str) else self.paths
        return dict.fromkeys(paths, 1.0)


def scale_of(
    chosen: Within | Between, lower: np.ndarray, upper: np.ndarray, what: str, unit: str
) -> np.ndarray:
    """The change that counts as one, in the shape of the limits."""
    given = getattr(chosen, "scale", None)
    scale = 0.5 * (upper - lower) if given is None else _si(given, unit, what)
    return np.broadcast_to(scale, np.shape(lower))


def _is_bare(text: str) -> bool:
    """Whether a text is a number without unit."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _si(x: Any, unit: str, what: str) -> np.ndarray:
    """Numbers in SI units, of numbers or a text with a unit."""
    if isinstance(x, str) and unit and _is_bare(x):
        raise ValueError(f"{what}: {x!r} has no unit; give one, as '{x} mm', or a number in {unit}")
    x = np.asarray(in_si(x, unit, what) if isinstance(x, str) else x, np.float64)
    if np.any(np.isnan(x)):
        raise ValueError(f"{what}: a limit or start is NaN")
    return x


Vary = Mapping[str, Within | Between | MovedTogether]
"""Path, pattern or name to its range."""


class _Share(NamedTuple):
    """What a part of the vector does to one number: added times `factor`."""

    path: str
    part: slice
    factor: float


class Unknowns:
    """The numbers that may move, as a vector x (n,), zero at the start, ±1 at the limits.

    ``value = start + scale · x``, in SI units. What a model becomes is a pure function of x.

    Attributes:
        names: paths of the n numbers, with components.
        start, lower, upper, scale: (n,) in SI units.
        units: SI units.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.design import Unknowns, Within
        >>> ends = Unknowns.of(mbd.zoo.multi_link(), {"points/tierod_*/z": Within("5 mm")})
        >>> ends.names
        ('points/tierod_inboard/z', 'points/tierod_outboard/z')
        >>> ends.model([1.0, 0.0]).points["tierod_inboard"]
        array([-0.257,  0.32 , -0.111])
    """

    def __init__(
        self,
        base: Any,
        entries: list[tuple[str, str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]],
        shares: list[_Share],
        values: Mapping[str, Any],
    ):
        self.base = base
        self.names = tuple(name for name, *_ in entries)
        self.units = tuple(unit for _, unit, *_ in entries)
        columns = [np.array([e[k] for e in entries], np.float64) for k in range(2, 6)]
        self.start, self.lower, self.upper, self.scale = columns
        self._shares, self._values = tuple(shares), dict(values)

    @classmethod
    def of(cls, model: Any, vary: Vary) -> Unknowns:
        """The unknowns of a model.

        Args:
            model: a `Mechanism`, a `Parametrization`, or None: then `vary` names the unknowns.
            vary: path, name or pattern to `Within`, `Between` or `MovedTogether`.

        Raises:
            ValueError: lists unknown paths with near misses, numbers that are varied twice, and
                ranges that do not fit.
        """
        if not vary:
            raise ValueError("vary is empty; name at least one number that may move")
        if not (model is None or isinstance(model, (Mechanism, Parametrization))):
            raise ValueError(f"the model must be a Mechanism, a Parametrization or None: {model!r}")
        parts = _Parts(model, vary)
        problems: list[str] = []
        for key, chosen in vary.items():
            try:
                parts.add(key, chosen)
            except ValueError as error:
                problems.append(str(error))
        problems += parts.twice()
        refuse("vary", problems)
        return cls(model, parts.entries, parts.shares, parts.values)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limit of x (n,)."""
        return (self.lower - self.start) / self.scale, (self.upper - self.start) / self.scale

    def numbers(self, x: Any) -> np.ndarray:
        """The n numbers in SI units of a vector x (…, n)."""
        return self.start + self.scale * np.asarray(x, np.float64)

    def vector(self, numbers: Any) -> np.ndarray:
        """The vector x (…, n) of the n numbers in SI units."""
        return (np.asarray(numbers, np.float64) - self.start) / self.scale

    def values(self, x: Any) -> dict[str, Array]:
        """Path to number or array, in SI units, of x (n,), which may be traced."""
        array: Any = jnp if isinstance(x, Tracer) else np
        moved = array.asarray(x) * array.asarray(self.scale)
        found = {path: array.asarray(value) for path, value in self._values.items()}
        for path, part, factor in self._shares:
            shape = np.shape(found[path])
            shift = factor * moved[part]
            found[path] = found[path] + (shift[0] if shift.size == 1 else shift.reshape(shape))
        return found

    def model(self, x: Any) -> Any:
        """The model of a vector x (n,): a `Mechanism`, or a dictionary if there is none."""
        values = self.values(x)
        if self.base is None:
            return values
        return mechanism_of(self.base, values)

    def bare(self) -> Unknowns:
        """The same numbers without the model: `model` then gives their values by path."""
        found = copy(self)
        found.base = None
        return found

    def describe(self) -> dict[str, Any]:
        """JSON values that determine which numbers move, and how far."""
        names = ("start", "lower", "upper", "scale")
        return {"names": list(self.names)} | {n: getattr(self, n).tolist() for n in names}


class _Parts:
    """The vector's entries, collected."""

    def __init__(self, model: Any, vary: Vary):
        self.model, self.vary = model, vary
        self.entries: list[Any] = []
        self.shares: list[_Share] = []
        self.values: dict[str, Any] = {}

    def find(self, pattern: str) -> Mapping[str, Variable]:
        """The model's numbers that fit."""
        if self.model is None:
            return {pattern: Variable(pattern, getattr(self.vary[pattern], "start", None))}
        return find_variables(self.model, pattern)

    def add(self, key: str, chosen: Any) -> None:
        if isinstance(chosen, MovedTogether):
            self._add_together(key, chosen)
        elif isinstance(chosen, (Within, Between)):
            for path, variable in self.find(key).items():
                self._add_own(path, chosen, variable)
        else:
            raise ValueError(
                f"{key!r}: {chosen!r} is no range; give Within(width), Between(lower, upper) or "
                "MovedTogether(paths, range)"
            )

    def _add_own(self, path: str, chosen: Within | Between, variable: Variable) -> None:
        """A number, or all components of one; an array without components as a whole."""
        parts = [self.find(f"{path}/{c}")[f"{path}/{c}"] for c in variable.components]
        value = np.array([x.value for x in parts]) if parts else variable.value
        start, lower, upper = chosen.limits(value, variable.unit, path)
        scale = scale_of(chosen, lower, upper, path, variable.unit)
        want = np.shape(start) if value is None else np.shape(value)
        if any(np.shape(x) not in ((), want) for x in (start, lower, upper, scale)):
            raise ValueError(f"{path!r} has shape {want}, its range {np.shape(lower)}")
        rows = [np.broadcast_to(x, want).ravel() for x in (start, lower, upper, scale)]
        first = len(self.entries)
        for i, numbers in enumerate(zip(*rows, strict=True)):
            one = parts[i] if parts else variable
            name = f"{path}/{i}" if want and not parts else one.path
            self.entries.append((name, one.unit, *map(float, numbers)))
            if parts:
                self.shares.append(_Share(one.path, slice(first + i, first + i + 1), 1.0))
                self.values[one.path] = rows[0][i]
        if not parts:
            self.shares.append(_Share(path, slice(first, len(self.entries)), 1.0))
            self.values[path] = rows[0].reshape(want)

    def _add_together(self, key: str, chosen: MovedTogether) -> None:
        if self.model is None:
            raise ValueError(f"{key!r}: MovedTogether needs a model whose numbers it moves")
        every = [(v, x, f) for p, f in chosen.factors.items() for v, x in self.find(p).items()]
        units = {x.unit for _, x, _ in every}
        if len(units) != 1:
            raise ValueError(f"{key!r}: numbers with the units {sorted(units)} cannot move alike")
        unit = units.pop()
        if vectors := [p for p, x, _ in every if np.ndim(x.value)]:
            raise ValueError(f"{key!r}: {vectors} are no single numbers; name components, as …/z")
        start, lower, upper = chosen.range.limits(0.0, unit, key)
        if np.ndim(start) or np.ndim(lower):
            raise ValueError(f"{key!r}: the range of a displacement is one number")
        scale = scale_of(chosen.range, lower, upper, key, unit)
        part = slice(len(self.entries), len(self.entries) + 1)
        self.entries.append((key, unit, *map(float, (start, lower, upper, scale))))
        for path, variable, factor in every:
            self.shares.append(_Share(path, part, factor))
            self.values[path] = np.asarray(variable.value, np.float64) + factor * float(start)

    def twice(self) -> list[str]:
        """Numbers that are varied more than once."""
        paths = [share.path for share in self.shares]
        every = dict.fromkeys(paths)
        found = [p for p in every if paths.count(p) > 1]
        found += [p for p in every for q in every if p.startswith(f"{q}/")]
        return [f"{p!r} is varied twice" for p in found]
