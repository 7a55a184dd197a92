"""Published problems of linkages with printed results, and followers that judge what is found.

- Nine points of an oval, and nine of two circles: the data of HomotopyContinuation.jl's examples
  after C. W. Wampler, A. P. Morgan and A. J. Sommese, Complete solution of the nine-point path
  synthesis problem for four-bar linkages, Journal of Mechanical Design 114 (1992) 153; met exactly
  there, whatever the order in which a linkage passes them, and on whatever branch.
- Straight lines over 120°, 140°, 160° and 180° of the crank: R. L. Norton, Design of Machinery,
  the table of Hoeken linkages optimised for straightness: link ratios, travel over the crank's
  length, and the largest deviation across in percent of the travel; `hoeken` computes these from
  the ratios, to the digits that are printed, and more of them to compare with.
- Chebyshev's straight line: ground 4, crank and rocker 5, coupler 2, its midpoint over 48° of the
  crank to the upright coupler; crank's length, range and travel are kept.
- Jansen's leg (eight links), by the lengths of T. Jansen, The Great Pretender (2007): its foot over
  the 120° of the crank where it is straightest; crank's length, range and travel are kept, and
  the other points stay within 3 of his.

- Klann's leg (Stephenson III), by the coordinates of US patent 6,260,862: its foot over the
  half turn of the crank that is its stride; kept as Jansen's, other points within 0.1 of his.
- A closed path of a spherical four-bar: see `spherical`.

What is printed of the last four are lengths; deviations are computed from them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.design import MovedTogether, Within
from jaxmbd.synthesis import (
    PathGeneration,
    Problem,
    StraightLine,
    Synthesis,
    massless_four_bar,
    massless_linkage,
)
from synthesis_cases import spherical

NINE = [
    (0.8961867, -0.09802917), (1.2156535, -1.18749100), (1.5151435, -0.85449808),
    (1.6754775, -0.48768058), (1.7138690, -0.30099232), (1.7215236, 0.03269953),
    (1.6642029, 0.33241088), (1.4984171, 0.74435576), (1.3011834, 0.92153806),
]  # fmt: skip
TWO_CIRCLES = [
    (0.25, 0.00), (0.52, 0.10), (0.80, 0.70), (1.20, 1.00), (1.40, 1.30), (1.10, 1.48),
    (0.70, 1.40), (0.20, 1.00), (0.02, 0.40),
]  # fmt: skip
HOEKEN = {
    120: (2.625, 3.438, 3.238, 0.010),
    140: (2.500, 3.250, 3.623, 0.023),
    160: (2.350, 3.025, 3.933, 0.047),
    180: (2.200, 2.800, 4.181, 0.096),
}
"""Crank's range [deg] to ground, coupler and travel over the crank, and deviation [%], printed."""


Follower = Callable[[dict[str, Any], np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Of hardpoints, complex or (3,), and inputs (n,): where the point is, and how far from open."""


class Published(NamedTuple):
    """A problem, and what was printed.

    Attributes:
        text: in words.
        problem: without arguments, the `Problem`.
        printed: error that was printed, and its meaning.
        error: ours, of hardpoints and inputs.
        starts: how many searches take.
        follower: function of hardpoints and inputs to `path` or another such.
    """

    text: str
    problem: Callable[[], Problem]
    printed: tuple[float, str]
    error: Callable[[dict[str, Any], np.ndarray], float]
    starts: int = 32
    follower: Follower | None = None


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


def meeting(
    a: np.ndarray, b: np.ndarray, arms: tuple[complex, complex, complex]
) -> tuple[np.ndarray, np.ndarray]:
    """Third corner over moved a and b of a triangle drawn with these corners, and its room."""
    first, second, third = arms
    near, far, span = abs(third - first), abs(third - second), b - a
    long = np.abs(span)
    side = np.sign(np.imag(np.conj(second - first) * (third - first)))
    along = (near**2 - far**2 + long**2) / (2.0 * long)
    across = np.sqrt(np.maximum(near**2 - along**2, 0.0))
    room = np.minimum(long - abs(near - far), near + far - long)
    return a + span / long * (along + 1j * side * across), room


def followed(
    chain: tuple[str, ...], points: dict[str, complex], inputs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Last point of a chain, and the least room of its triangles.

    The chain begins with the crank's pivot and pin; of each triangle the third corner is moved by
    the first two; points that nothing has moved are on the ground.
    """
    (pivot, pin), *triangles = chain
    turned = points[pin] - points[pivot]
    at = {name: x + 0j * inputs for name, x in points.items()}
    at[pin] = points[pivot] + turned * np.exp(1j * inputs)
    rooms = []
    for first, second, third in triangles:
        corners = points[first], points[second], points[third]
        at[third], room = meeting(at[first], at[second], corners)
        rooms.append(room)
    return at[triangles[-1][-1]], np.min(rooms, axis=0)


leg = partial(followed, ("OB", "ABU", "ABL", "AUE", "ELF", "FLG"))
walker = partial(followed, ("AB", "BDC", "BCE", "EGF", "EFP"))


def judged(found: Synthesis, follower: Follower = path) -> tuple[dict[str, Any], bool]:
    """Hardpoints, and whether it works: one order, room between the circles all the way."""
    drawn = {name: np.asarray(x) for name, x in found.mechanism.points.items()}
    points = {name: complex(*x) if len(x) == 2 else x for name, x in drawn.items()}
    steps = np.diff(found.inputs)
    ordered = bool(np.all(steps > 0.0) or np.all(steps < 0.0)) and np.ptp(found.inputs) < 2 * np.pi
    between = np.linspace(found.inputs[0], found.inputs[-1], 2001)
    return points, ordered and bool(np.min(follower(points, between)[1]) > 0.0)


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


def _across(points: dict[str, complex], inputs: np.ndarray, follower: Follower = path) -> float:
    """Deviation across the line that fits best, in percent of the travel."""
    at, _ = follower(points, np.linspace(inputs[0], inputs[-1], 2001))
    plane = np.stack([np.real(at), np.imag(at)])
    line = np.linalg.svd((plane - plane.mean(axis=1, keepdims=True)).T)[2]
    along, across = line @ plane
    return float(100.0 * np.ptp(across) / np.ptp(along))


def _nine(targets: Any, drawn: dict[str, Any], reach: float) -> Problem:
    task = PathGeneration("A", body="coupler", point="P", targets=targets)
    vary = {f"points/{name}": Within(reach) for name in "ABCD"} | {"points/P": Within(0.1)}
    return Problem(massless_four_bar(drawn | {"P": targets[0]}), task, vary)


def _straight(
    links: dict[str, str],
    points: dict[str, complex],
    vary: dict[str, Any],
    degrees: float,
    body: str = "coupler",
    point: str = "P",
    **options: Any,
) -> Problem:
    """The first link's crank is kept, the line from S to T is free; largest deviations count."""
    at = {name: (x.real, x.imag) for name, x in points.items()}
    # Denser to the ends, where the largest deviations are.
    inputs = np.deg2rad(degrees) * 0.5 * (1.0 - np.cos(np.linspace(0.0, np.pi, 25)))
    task = StraightLine(
        next(iter(links["crank"])), inputs, body=body, point=point, start="S", end="T",
        length=abs(points["T"] - points["S"]), steady=False,
    )  # fmt: skip
    linkage = massless_linkage(links, at, cut=options.pop("cut", ["C"]))
    return Problem(linkage, task, vary, power=16.0, **options)


FOUR = {"ground": "ADST", "crank": "AB", "coupler": "BCP", "rocker": "CD"}


def _line(degrees: int) -> Problem:
    _, _, travel, _ = HOEKEN[degrees]
    pin = np.exp(1j * (np.pi - np.deg2rad(degrees) / 2.0))
    points = {"A": 0j, "B": pin, "C": 1.5 + 2.5j, "D": 2.5 + 0j}
    points |= {"P": travel / 2 + 5.0j, "S": travel / 2 + 5.0j, "T": -travel / 2 + 5.0j}
    vary = {f"points/{name}": Within(2.0) for name in "CDPST"}
    return _straight(FOUR, points, vary, degrees, full_turn=True)


TURNED = 42.0, 48.0
"""Chebyshev's crank, off its dead centre: from, and how far to the upright coupler [deg]."""


def chebyshev() -> dict[str, complex]:
    """Chebyshev's linkage at the begin of that range."""
    middle = {"A": 0j, "B": 3 + 4j, "C": 1 + 4j, "D": 4 + 0j, "P": 2 + 4j}
    start, degrees = TURNED
    angles = np.deg2rad([start, start + degrees]) - np.arctan2(4.0, 3.0)
    ends, _ = path(middle, angles)
    pin = 5.0 * np.exp(1j * np.deg2rad(start))
    return middle | {"B": pin, "C": 2.0 * ends[0] - pin, "P": ends[0], "S": ends[0], "T": ends[1]}


def _chebyshev() -> Problem:
    vary = {f"points/{name}": Within(1.0) for name in "CDPST"}
    return _straight(FOUR, chebyshev(), vary, TURNED[1])


def drawn(
    points: dict[str, complex], triangles: list[tuple[str, float, float, float]]
) -> dict[str, complex]:
    """Points and the third corners of triangles, by two lengths and a side."""
    at = dict(points)
    for (first, second, third), near, far, side in triangles:
        span = at[second] - at[first]
        along = (near**2 - far**2 + abs(span) ** 2) / (2.0 * abs(span))
        across = side * np.sqrt(near**2 - along**2)
        at[third] = at[first] + span / abs(span) * (along + 1j * across)
    return at


STANCE = 303.0, 120.0
"""Where Jansen's foot is straightest over 120° of the crank: from, and how far [deg]."""
STRIDE = (0.0, 180.0)
"""The half turn of Klann's crank that moves the foot by 1.000: from, and how far [deg]."""


def jansen() -> dict[str, complex]:
    """Jansen's leg at the begin of the stance, a pin for each pair of links."""
    begin = {"O": 0j, "A": -38.0 - 7.8j, "B": 15.0 * np.exp(1j * np.deg2rad(STANCE[0]))}
    at = drawn(
        begin,
        [
            ("ABU", 41.5, 50.0, 1.0),
            ("ABL", 39.3, 61.9, -1.0),
            ("AUE", 40.1, 55.8, 1.0),
            ("ELF", 39.4, 36.7, -1.0),
            ("FLG", 65.7, 49.0, -1.0),
        ],
    )
    foot, _ = leg(at, np.deg2rad([0.0, STANCE[1]]))
    return at | {"Q": at["A"], "K": at["B"], "M": at["L"], "S": foot[0], "T": foot[1]}


def klann() -> dict[str, complex]:
    """Klann's leg at the begin of the stride, the crank's pivot at the origin."""
    begin = {"A": 0j, "B": 0.268 * np.exp(1j * np.deg2rad(STRIDE[0]))}
    begin |= {"D": -0.590 - 0.176j, "G": -0.233 + 0.616j}
    at = drawn(
        begin,
        [
            ("BDC", 0.590, 0.3206, -1.0),
            ("BCE", 1.1051, 0.5221, -1.0),
            ("EGF", 0.8966, 0.5177, 1.0),
            ("EFP", 0.8966, 1.732, -1.0),
        ],
    )
    foot, _ = walker(at, np.deg2rad([0.0, STRIDE[1]]))
    return at | {"S": foot[0], "T": foot[1]}


def _klann() -> Problem:
    links = {"ground": "ADGST", "crank": "AB", "coupler": "BCE", "rocker": "CD"}
    links |= {"leg": "EFP", "output": "FG"}
    vary = {f"points/{name}": Within(0.1) for name in "CDEFGPST"}
    options = {"body": "leg", "least_transmission": 0.005, "cut": None}
    return _straight(links, klann(), vary, STRIDE[1], **options)


def _jansen() -> Problem:
    links = {"ground": "OAQST", "crank": "OBK", "bar": "BU", "upper": "AUE", "lower": "KL"}
    links |= {"guide": "QM", "link": "EF", "foot": "LMFG"}
    vary: dict[str, Any] = {f"points/{name}": Within(3.0) for name in "UEFGST"}
    for first, second in ("AQ", "LM"):
        for axis in "xy":
            both = [f"points/{first}/{axis}", f"points/{second}/{axis}"]
            vary[f"{first}{axis}"] = MovedTogether(both, Within(3.0))
    options = {"body": "foot", "point": "G", "least_transmission": 0.005, "cut": None}
    return _straight(links, jansen(), vary, STANCE[1], **options)


ACROSS = "deviation across the line [% of the travel]"
EXACT = (0.0, "largest distance from a point; met exactly, whatever order and branch")
OVAL_DRAWN = {"A": (0.5, 0), "B": (0.5, -0.8), "C": (1.5, -0.3), "D": (1.8, 0.2)}
CIRCLES_DRAWN = {"A": (0.5, 0.5), "B": (0.5, 0.0), "C": (1.0, 0.5), "D": (1.0, 1.0)}
CASES = {
    "nine": Published(
        "nine points of an oval",
        partial(_nine, NINE, OVAL_DRAWN, 3.0),
        EXACT,
        _missed(NINE),
        256,
    ),
    "nine_circles": Published(
        "nine points of two circles",
        partial(_nine, TWO_CIRCLES, CIRCLES_DRAWN, 1.5),
        EXACT,
        _missed(TWO_CIRCLES),
        256,
    ),
} | {
    f"line_{degrees}": Published(
        f"straight line over {degrees}° of the crank",
        lambda degrees=degrees: _line(degrees),
        (hoeken(*numbers[:2], degrees)[1], ACROSS),
        _across,
    )
    for degrees, numbers in HOEKEN.items()
}
CASES["chebyshev"] = Published(
    "Chebyshev's straight line, 4 : 5 : 2",
    _chebyshev,
    (_across(chebyshev(), np.deg2rad([0.0, TURNED[1]])), ACROSS),
    _across,
)
CASES["jansen"] = Published(
    "foot of Jansen's leg over 120° of the crank, lengths near his",
    _jansen,
    (_across(jansen(), np.deg2rad([0.0, STANCE[1]]), leg), ACROSS),
    partial(_across, follower=leg),
    8,
    leg,
)
CASES["klann"] = Published(
    "foot of Klann's six-bar over 180° of the crank, lengths near his",
    _klann,
    (_across(klann(), np.deg2rad([0.0, STRIDE[1]]), walker), ACROSS),
    partial(_across, follower=walker),
    8,
    walker,
)
CASES["spherical"] = Published(
    "closed path of a spherical four-bar, 64 points at even angles of the crank",
    spherical.problem,
    (spherical.missed(spherical.printed(), spherical.TURN), "root mean square distance [radii]"),
    spherical.missed,
    256,
    spherical.on_sphere,
)
