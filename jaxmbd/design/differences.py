"""Derivatives by differences: two orders, a sweep of steps, the plateau, and its error.

With ``h_k = h_0 2^{-k}`` the central difference of second order is
``D2_k = (f(x + h_k) − f(x − h_k)) / 2 h_k`` and of fourth order ``D4_k = (4 D2_{k+1} − D2_k) / 3``.
A large step errs by truncation, a small one by ``ε/h`` with ε the noise of f. The plateau between
is where neighbours agree best, and how well they agree is the error that is reported.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np

STEPS = 32
LARGEST = 0.05
"""The first step, relative to the scale of the variable; it is halved `STEPS` − 1 times."""

_NOISE_POINTS = 9
_NOISE_STEP = 2.0**-38


class Differences(NamedTuple):
    """What differences say of one derivative, or of many (…).

    Attributes:
        second, fourth: the central differences on their plateaus.
        value: the better of the two; beside an edge a one-sided difference.
        error: estimate of its error.
        left, right: the one-sided derivatives, as steps go to zero.
        kink: whether they differ beyond their errors.
        jump: whether the function itself jumps here.
        edge: whether it is finite on one side only.
    """

    second: np.ndarray
    fourth: np.ndarray
    value: np.ndarray
    error: np.ndarray
    left: np.ndarray
    right: np.ndarray
    kink: np.ndarray
    jump: np.ndarray
    edge: np.ndarray


def steps(scale: np.ndarray | float, dtype: np.dtype | type = np.float64) -> np.ndarray:
    """Steps (…, `STEPS`) for the scales (…) of variables; in single precision 16 of them."""
    count = STEPS if np.finfo(dtype).eps < 1e-10 else 16
    factors = LARGEST * 0.5 ** np.arange(count)
    return np.asarray(scale)[..., None] * factors


def noise_offsets() -> np.ndarray:
    """Where `noise` needs the function: offsets (9,) along any direction of the size of the scale.

    They are so close that a smooth function is a line between them.
    """
    return _NOISE_STEP * (np.arange(_NOISE_POINTS) - _NOISE_POINTS // 2)


def noise(values: np.ndarray, eps: float) -> np.ndarray:
    """The noise ε of a function (…), from its `values` (…, 9) at the offsets.

    The differences of order k of pure noise have the variance ``ε² (2k choose k)`` (Hamming,
    "Introduction to applied numerical analysis", 1971). At least rounding.
    """
    sizes = []
    for order in (3, 4, 5):
        table = np.diff(values, n=order, axis=-1)
        sizes.append(np.sqrt(np.mean(table**2, axis=-1) / comb(2 * order, order)))
    middle = np.median(np.stack(sizes), axis=0)
    size = np.max(np.abs(np.where(np.isfinite(values), values, 0.0)), axis=-1)
    return np.maximum(np.where(np.isfinite(middle), middle, 0.0), 0.5 * eps * size)


def differences(
    here: np.ndarray, above: np.ndarray, below: np.ndarray, h: np.ndarray, noise: np.ndarray
) -> Differences:
    """Judge a function along lines.

    Args:
        here: f(x) (…).
        above: f(x + h_k) (…, k).
        below: f(x − h_k) (…, k).
        h: steps (…, k), each half of the one before.
        noise: ε of f (…).
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        size = np.maximum(np.abs(above), np.abs(below))
        level = np.asarray(noise)[..., None] + np.finfo(np.asarray(here).dtype).eps * size
        second = (above - below) / (2.0 * h)
        fourth = (4.0 * second[..., 1:] - second[..., :-1]) / 3.0
        d2, e2 = _plateau(second, level / h)
        d4, e4 = _plateau(fourth, 2.0 * level[..., :-1] / h[..., 1:])
        right, right_error = _one_sided(here, above, h, level)
        left, left_error = _one_sided(here, below, -h, level)
        last = slice(-6, None)
        up = np.all(np.isfinite(above[..., last]), axis=-1)
        down = np.all(np.isfinite(below[..., last]), axis=-1)
        edge = np.isfinite(here) & (up != down)
        use4 = ~(e2 < e4)
        value, error = np.where(use4, d4, d2), np.where(use4, e4, e2)
        value = np.where(edge, np.where(up, right, left), value)
        error = np.where(edge, np.where(up, right_error, left_error), error)
        gap = np.abs(right - left)
        slope = np.maximum(np.abs(right), np.abs(left))
        kink = ~edge & (gap > 10.0 * (right_error + left_error)) & (gap > 1e-5 * slope)
        apart = np.abs(above - below)
        still = [np.abs(y[..., -1] - y[..., -6]) < 0.1 * apart[..., -1] for y in (above, below)]
        wide = apart[..., -1] > 1e6 * np.finfo(np.asarray(here).dtype).eps * np.abs(here)
        jump = ~edge & wide & still[0] & still[1] & (apart[..., -1] > 0.5 * apart[..., -6])
        value, error = np.where(jump, np.nan, value), np.where(jump, np.inf, error)
    return Differences(d2, d4, value, error, left, right, kink & ~jump, jump, edge)


def _plateau(table: np.ndarray, floor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The entry (…) of a table (…, k) that agrees best with both neighbours, and its error."""
    middle = table[..., 1:-1]
    spread = np.maximum(np.abs(middle - table[..., :-2]), np.abs(middle - table[..., 2:]))
    error = spread + floor[..., 1:-1]
    error = np.where(np.isfinite(error), error, np.inf)
    best = np.argmin(error, axis=-1)[..., None]
    for _ in range(2):
        best = _finer(middle, error, best)
    chosen = np.take_along_axis(middle, best, axis=-1)[..., 0]
    least = np.take_along_axis(error, best, axis=-1)[..., 0]
    return np.where(np.isfinite(least), chosen, np.nan), least


def _finer(values: np.ndarray, error: np.ndarray, best: np.ndarray) -> np.ndarray:
    """A plateau at smaller steps, if it contradicts the best: the function has a finer scale."""
    here = np.take_along_axis(values, best, axis=-1)
    known = np.take_along_axis(error, best, axis=-1)
    other = np.abs(values - here) > 10.0 * (error + known)
    later = np.arange(values.shape[-1]) > best
    left = np.where(later & other, error, np.inf)
    new = np.argmin(left, axis=-1)[..., None]
    there = np.isfinite(np.take_along_axis(left, new, axis=-1))
    return np.where(there, new, best)


def _one_sided(
    here: np.ndarray, beside: np.ndarray, h: np.ndarray, level: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The derivative to one side, of second order: ``2 d(h/2) − d(h)``."""
    first = (beside - np.asarray(here)[..., None]) / h
    return _plateau(
        2.0 * first[..., 1:] - first[..., :-1], 6.0 * level[..., :-1] / np.abs(h[..., 1:])
    )
