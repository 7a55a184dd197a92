"""What a better curve is: scalars of a curve that are to be small, with their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Measured = tuple[float, np.ndarray]
"""The scalar and its derivative by each value of the curve (n,)."""


class Goal(NamedTuple):
    """A scalar of a curve that is to be small.

    Attributes:
        name: what the curve becomes if it falls.
        text: what the scalar is.
        measure: of the axis x (n,), the curve y (n,) and that of the kept variant (n,), all finite.
        compares: whether it needs a kept variant.
    """

    name: str
    text: str
    measure: Callable[[np.ndarray, np.ndarray, np.ndarray], Measured]
    compares: bool = False


def _rms(deviation: np.ndarray) -> Measured:
    size = float(np.sqrt(np.mean(deviation**2)))
    slope = deviation / (len(deviation) * size) if size > 0.0 else np.zeros_like(deviation)
    return size, slope


def _flat(x: np.ndarray, y: np.ndarray, other: np.ndarray) -> Measured:
    middle = int(np.argmin(np.abs(x)))
    size, slope = _rms(y - y[middle])
    slope[middle] -= slope.sum()
    return size, slope


def _alike(x: np.ndarray, y: np.ndarray, other: np.ndarray) -> Measured:
    return _rms(y - other)


def _mean(x: np.ndarray, y: np.ndarray, other: np.ndarray) -> Measured:
    return float(y.mean()), np.full_like(y, 1.0 / len(y))


def _inclination(x: np.ndarray, y: np.ndarray, other: np.ndarray) -> Measured:
    """Slope of the straight line of least squares."""
    away = x - x.mean()
    square = float(away @ away)
    weights = away / square if square > 0.0 else np.zeros_like(x)
    return float(weights @ y), weights


def _negative(measure: Callable[..., Measured]) -> Callable[..., Measured]:
    def negative(*args: np.ndarray) -> Measured:
        value, slope = measure(*args)
        return -value, -slope

    return negative


GOALS = {
    goal.name: goal
    for goal in (
        Goal("flatter", "RMS of its change from where the axis is zero", _flat),
        Goal("lower", "its mean", _mean),
        Goal("higher", "minus its mean", _negative(_mean)),
        Goal("rising more", "minus the slope of its straight line", _negative(_inclination)),
        Goal("falling more", "the slope of its straight line", _inclination),
        Goal("like the kept variant", "RMS of its distance from that curve", _alike, True),
    )
}
"""All goals by name."""


def gradient(
    goal: Goal, x: np.ndarray, y: np.ndarray, slopes: np.ndarray, other: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """A goal's value and its gradient by the numbers of a design.

    Args:
        goal: what is to be small.
        x: the axis (n,).
        y: the curve (n,); places with NaN are left out.
        slopes: its derivatives (n, k).
        other: the curve of the kept variant (n,).

    Returns:
        the value, NaN if fewer than two places are left, and the gradient (k,), zero for numbers
        by which the curve has no derivative.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.viz.explorer.goals import GOALS, gradient
        >>> x = np.array([-1.0, 0.0, 1.0])
        >>> gradient(GOALS["lower"], x, 2.0 + x, np.ones((3, 1)))
        (2.0, array([1.]))
    """
    other = np.zeros_like(y) if other is None else other
    good = np.isfinite(y) & (np.isfinite(other) | (not goal.compares))
    if np.sum(good) < 2:
        return float("nan"), np.zeros(slopes.shape[1])
    value, slope = goal.measure(x[good], y[good], other[good])
    found = slope @ slopes[good]
    return value, np.where(np.isfinite(found), found, 0.0)
