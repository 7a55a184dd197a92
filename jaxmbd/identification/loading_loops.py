"""Loops of loading and unloading: what they dissipate, and where a fit without friction ends.

A spring k with Coulomb's friction f beside it, moved to and fro between ``±X``, takes the force
``F = k x + f sign(ẋ)``: its loop is ``2 f`` wide and takes ``∮ F dx = 4 f X`` in each cycle. A loop
of any shape has as much friction as one of Coulomb's that dissipates the same over the same range,
``f = ∮ F dx / (2 (max x − min x))``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_TURN = 0.1
"""A share of the range by which a series must come back for it to have turned."""
_CERTAIN, _SHARE, _LEAST = 5.0, 0.25, 8
"""A difference of branches counts from so many standard errors, from such a share of the squares of
the residuals, and from so many samples on."""


class Hysteresis(NamedTuple):
    """A loop of force over displacement.

    Attributes:
        energy: dissipated in each cycle [J]; negative where force and displacement have opposite
            signs, or the two were exchanged.
        friction: force of Coulomb's friction that dissipates as much over this range [N].
        stiffness: slope of the middle line [N/m].
        cycles: how many loops the record has.

    Example:
        >>> from jaxmbd.identification import Hysteresis
        >>> Hysteresis(4.0, 100.0, 1e5, 1).friction
        100.0
    """

    energy: float
    friction: float
    stiffness: float
    cycles: int


def hysteresis(force: object, displacement: object) -> Hysteresis:
    """What a record of whole cycles dissipates, as of a corner on a rig.

    The record is closed by a straight line from its last sample to its first: give whole cycles.
    Moments [N·m] and angles [rad] do as well.

    Args:
        force: (n,) [N], against which the displacement was driven.
        displacement: (n,) [m], of the same point along the force.

    Raises:
        ValueError: the records differ in length, are not finite, or never turn.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.identification import hysteresis
        >>> x = 0.01 * np.sin(np.linspace(0.0, 2.0 * np.pi, 201))
        >>> force = 1e5 * x + 50.0 * np.sign(np.gradient(x))
        >>> found = hysteresis(force, x)
        >>> round(found.friction, 1), round(found.energy, 2), found.cycles
        (50.0, 2.0, 1)
    """
    f, x = np.asarray(force, np.float64), np.asarray(displacement, np.float64)
    if f.shape != x.shape or f.ndim != 1:
        raise ValueError(f"force {f.shape} and displacement {x.shape} must be of one length (n,)")
    if not (np.isfinite(f).all() and np.isfinite(x).all()):
        raise ValueError("force and displacement must be finite; leave missing samples out")
    turned = len(turnings(x))
    if not turned:
        raise ValueError("the displacement never turns: a loop needs loading and unloading")
    cycles = (turned + 1) // 2
    energy = _area(f, x) / cycles
    sign = branches(x)
    rows = np.stack([x, sign, np.ones_like(x)], axis=1)
    moves = sign != 0.0
    slope = np.linalg.lstsq(rows[moves], f[moves], rcond=None)[0][0]
    return Hysteresis(energy, energy / (2.0 * float(np.ptp(x))), float(slope), cycles)


def _area(f: np.ndarray, x: np.ndarray) -> float:
    """``∮ f dx`` by trapezoids, closed from the last sample to the first."""
    g, y = np.append(f, f[0]), np.append(x, x[0])
    return float(np.sum(0.5 * (g[1:] + g[:-1]) * np.diff(y)))


def turnings(x: np.ndarray) -> list[int]:
    """Indices at which a series (n,) turns, coming back by a tenth of its range at least."""
    room, found = _TURN * np.ptp(x), []
    low = high = 0
    way = 0
    for i in range(1, len(x)):
        low = i if x[i] < x[low] else low
        high = i if x[i] > x[high] else high
        if way >= 0 and x[i] < x[high] - room:
            found += [high] if way > 0 else []
            way, low = -1, i
        elif way <= 0 and x[i] > x[low] + room:
            found += [low] if way < 0 else []
            way, high = 1, i
    return found


def branches(x: np.ndarray) -> np.ndarray:
    """Which way a series (n,) goes between its turnings, 1 or −1; 0 where it turns."""
    ends = [0, *turnings(x), len(x) - 1]
    sign = np.zeros(len(x))
    for a, b in zip(ends[:-1], ends[1:], strict=True):
        sign[a : b + 1] = np.sign(x[b] - x[a])
    sign[ends[1:-1]] = 0.0
    return sign


class LoadingLoop(NamedTuple):
    """A measured series that goes another way back than forth.

    Attributes:
        name: of the series.
        width: the mean difference of both ways [unit].
        share: of the sum of squares of the residuals that it makes.
        unit: of the series.
        work: what it dissipates, where force and displacement are known; else None.

    Example:
        >>> from jaxmbd.identification import LoadingLoop
        >>> print(LoadingLoop("toe", 2e-4, 0.9, "rad", None))
        toe: 0.0002 rad between loading and unloading, 90 % of the residuals' squares
    """

    name: str
    width: float
    share: float
    unit: str
    work: Hysteresis | None

    def __str__(self) -> str:
        width, share = f"{self.width:.3g} {self.unit}".rstrip(), 100.0 * self.share
        text = (
            f"{self.name}: {width} between loading and unloading, {share:.0f} % of the residuals' "
            "squares"
        )
        if self.work is None:
            return text
        angular = self.unit in ("rad", "N m")
        return text + (
            f"; {abs(self.work.energy):.3g} J in each cycle, as of a friction of "
            f"{abs(self.work.friction):.3g} {'N m' if angular else 'N'}"
        )


_WORK = {("N", "m"), ("N m", "rad")}


def loop_of(
    name: str,
    places: np.ndarray,
    measured: np.ndarray,
    residuals: np.ndarray,
    units: tuple[str, str],
) -> LoadingLoop | None:
    """The loop in which a measured series (n,) goes along its axis, if its residuals have one.

    The residuals are fitted by a mean and a difference of both ways; the latter must be larger
    than chance makes it.

    Args:
        name: of the series.
        places: along the axis (n,).
        measured: the series (n,), NaN where missing.
        residuals: measured minus predicted (n,), in the series' unit.
        units: of the axis and of the series.
    """
    here = np.isfinite(measured) & np.isfinite(residuals)
    x, y, r = places[here], measured[here], residuals[here]
    if len(x) < _LEAST or not turnings(x):
        return None
    sign = branches(x)
    moves = sign != 0.0
    rows = np.stack([np.ones(moves.sum()), sign[moves]], axis=1)
    (_, half), left, rank, _ = np.linalg.lstsq(rows, r[moves], rcond=None)
    if rank < 2:
        return None
    free = moves.sum() - 2
    spread = np.sqrt(float(left[0]) / free / np.sum((sign[moves] - sign[moves].mean()) ** 2))
    total = float(np.sum((r[moves] - r[moves].mean()) ** 2))
    share = 1.0 - float(left[0]) / total if total > 0.0 else 0.0
    if abs(half) <= _CERTAIN * spread or share < _SHARE:
        return None
    work = None
    if units in _WORK and turnings(y):
        work = hysteresis(x, y)
    elif units[::-1] in _WORK:
        work = hysteresis(y, x)
    return LoadingLoop(name, 2.0 * abs(float(half)), share, units[1], work)
