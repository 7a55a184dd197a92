"""Published problems of four-bars with printed results, and a follower that judges what is found.

- Nine points of an oval: the data of HomotopyContinuation.jl's example after C. W. Wampler,
  A. P. Morgan and A. J. Sommese, Complete solution of the nine-point path synthesis problem for
  four-bar linkages, Journal of Mechanical Design 114 (1992) 153; met exactly there.
- Straight lines over 120°, 140°, 160° and 180° of the crank: R. L. Norton, Design of Machinery,
  the table of Hoeken linkages optimised for straightness: link ratios, travel over the crank's
  length, and the largest deviation across in percent of the travel; `hoeken` computes these from
  the ratios, to the digits that are printed, and more of them to compare with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.design import Within
from jaxmbd.synthesis import (
    PathGeneration,
    Problem,
    StraightLine,
    Synthesis,
    massless_four_bar,
    massless_linkage,
)

NINE = [
    (0.8961867, -0.09802917), (1.2156535, -1.18749100), (1.5151435, -0.85449808),
    (1.6754775, -0.48768058), (1.7138690, -0.30099232), (1.7215236, 0.03269953),
    (1.6642029, 0.33241088), (1.4984171, 0.74435576), (1.3011834, 0.92153806),
]  # fmt: skip
HOEKEN = {
    120: (2.625, 3.438, 3.238, 0.010),
    140: (2.500, 3.250, 3.623, 0.023),
    160: (2.350, 3.025, 3.933, 0.047),
    180: (2.200, 2.800, 4.181, 0.096),
}
"""Crank's range [deg] to ground, coupler and travel over the crank, and deviation [%], printed."""


class Published(NamedTuple):
    """A problem, and what was printed.

    Attributes:
        text: in words.
        problem: without arguments, the `Problem`.
        printed: error that was printed, and its meaning.
        error: ours, of hardpoints and inputs, by `path`.
        starts: how many searches take.
    """

    text: str
    problem: Callable[[], Problem]
    printed: tuple[float, str]
    error: Callable[[dict[str, complex], np.ndarray], float]
    starts: int = 32


def path(points: dict[str, complex], inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coupler points, and room of the triangle inequality: two circles that meet, on one side."""
    a, b, c, d, p = (points[name] for name in "ABCDP")
    pin = a + (b - a) * np.exp(1j * inputs)
    span = d - pin
    far, long, short = np.abs(span), abs(c - b), abs(d - c)
    room = np.minimum(far - abs(long - short), long + short - far)
    along = (long**2 - short**2 + far**2) / (2.0 * far)
    side = np.sign(np.imag(np.conj(d - b) * (c - b)))
    across = np.sqrt(np.maximum(long**2 - along**2, 0.0))
    end = pin + span / far * (along + 1j * side * across)
    return pin + (p - b) * (end - pin) / (c - b), room


def judged(found: Synthesis) -> tuple[dict[str, complex], bool]:
    """Hardpoints, and whether it works: one order, room between the circles all the way."""
    points = {n: complex(*np.asarray(x)) for n, x in found.mechanism.points.items()}
    steps = np.diff(found.inputs)
    ordered = bool(np.all(steps > 0.0) or np.all(steps < 0.0)) and np.ptp(found.inputs) < 2 * np.pi
    between = np.linspace(found.inputs[0], found.inputs[-1], 2001)
    return points, ordered and bool(np.min(path(points, between)[1]) > 0.0)


def hoeken(ground: float, coupler: float, degrees: float) -> tuple[float, float]:
    """Travel over the crank, and deviation across in percent of it, of a Hoeken linkage."""
    start = np.pi - np.deg2rad(degrees) / 2.0
    pin = np.exp(1j * start)
    span = ground - pin
    across = np.sqrt(coupler**2 - abs(span) ** 2 / 4.0)
    end = pin + span / abs(span) * (abs(span) / 2.0 + 1j * across)
    points = {"A": 0j, "B": pin, "C": end, "D": complex(ground), "P": 2.0 * end - pin}
    at, _ = path(points, np.linspace(0.0, np.deg2rad(degrees), 2001))
    travel = np.ptp(np.real(at))
    return float(travel), float(100.0 * np.ptp(np.imag(at)) / travel)


def _missed(targets: Any) -> Callable[[dict[str, complex], np.ndarray], float]:
    wanted = np.array(targets) @ np.array([1.0, 1.0j])
    return lambda points, inputs: float(np.max(np.abs(path(points, inputs)[0] - wanted)))


def _across(points: dict[str, complex], inputs: np.ndarray) -> float:
    """Deviation across the line that fits best, in percent of the travel."""
    at, _ = path(points, np.linspace(inputs[0], inputs[-1], 2001))
    plane = np.stack([np.real(at), np.imag(at)])
    line = np.linalg.svd((plane - plane.mean(axis=1, keepdims=True)).T)[2]
    along, across = line @ plane
    return float(100.0 * np.ptp(across) / np.ptp(along))


def _nine() -> Problem:
    task = PathGeneration("A", body="coupler", point="P", targets=NINE)
    drawn = {"A": (0.5, 0), "B": (0.5, -0.8), "C": (1.5, -0.3), "D": (1.8, 0.2), "P": NINE[0]}
    vary = {f"points/{name}": Within(3.0) for name in "ABCD"} | {"points/P": Within(0.1)}
    return Problem(massless_four_bar(drawn), task, vary)


def _line(degrees: int) -> Problem:
    """The crank has length one, the line is free; all else varies."""
    _, _, travel, _ = HOEKEN[degrees]
    angle = np.pi - np.deg2rad(degrees) / 2.0
    points = {"A": (0, 0), "B": (np.cos(angle), np.sin(angle)), "C": (1.5, 2.5), "D": (2.5, 0)}
    points |= {"P": (travel / 2, 5.0), "S": (travel / 2, 5.0), "T": (0, 5.0)}
    links = {"ground": "ADST", "crank": "AB", "coupler": "BCP", "rocker": "CD"}
    # Denser to the ends, where the largest deviations of a least sum of squares are.
    inputs = np.deg2rad(degrees) * 0.5 * (1.0 - np.cos(np.linspace(0.0, np.pi, 25)))
    task = StraightLine(
        "A", inputs, body="coupler", point="P", start="S",
        end="T", length=travel, steady=False,
    )  # fmt: skip
    vary = {f"points/{name}": Within(2.0) for name in "CDPST"}
    return Problem(massless_linkage(links, points, cut=["C"]), task, vary, full_turn=True)


EXACT = (0.0, "largest distance from a point; met exactly")
CASES = {
    "nine": Published("nine points of an oval", _nine, EXACT, _missed(NINE), 256),
} | {
    f"line_{degrees}": Published(
        f"straight line over {degrees}° of the crank",
        lambda degrees=degrees: _line(degrees),
        (hoeken(*numbers[:2], degrees)[1], "deviation across the line [% of the travel]"),
        _across,
    )
    for degrees, numbers in HOEKEN.items()
}
