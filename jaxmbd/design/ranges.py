"""Ranges: how far a number may move in a design, and which numbers move together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmbd.variables import in_si


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
        if self.scale is not None and not np.all(_finite_positive(_si(self.scale, unit, what))):
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


def _finite_positive(x: np.ndarray) -> np.ndarray:
    return np.isfinite(x) & (x > 0.0)


def _si(x: Any, unit: str, what: str) -> np.ndarray:
    """Numbers in SI units, of numbers or a text with a unit."""
    if isinstance(x, str) and unit and _is_bare(x):
        raise ValueError(f"{what}: {x!r} has no unit; give one, as '{x} mm', or a number in {unit}")
    x = np.asarray(in_si(x, unit, what) if isinstance(x, str) else x, np.float64)
    if np.any(np.isnan(x)):
        raise ValueError(f"{what}: a limit or start is NaN")
    return x
