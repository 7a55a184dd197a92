"""Four-bars that are looked for: what is found, followed in complex numbers, and its slope.

Wanted are points of a known four-bar's path, moved a little, so that no four-bar passes through all
of them. The squared distances of a linkage's own path from them are the error that is reported; at
a minimum their differences along each hardpoint that is not at its limit vanish.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fails_cases.four_bars import Bar, drawn, mechanism
from fails_cases.judged import CRASHED, REFUSED, Judged, compare
from jaxmbd import synthesis
from jaxmbd.design import Within

_PATH = "distances of the path's points, of two circles that meet, in complex numbers"
NUMBERS = {
    "synthesis.Synthesis.error": _PATH,
    "synthesis.Synthesis.errors": _PATH,
    "synthesis.Synthesis.root_mean_square": _PATH,
    "synthesis.Synthesis.values": "limits of the hardpoints; the error of the linkage they draw",
    "synthesis.Synthesis.candidates": "limits of the hardpoints; the errors of what they draw",
    "synthesis.Synthesis.inputs": "the inputs that were asked for",
    "synthesis.Synthesis.working": "a loop over the starts",
    "synthesis.Synthesis.defects": "sines of the transmission angle, triangle inequality",
    "synthesis.Synthesis.kkt": "differences of the path's error along the hardpoints",
    "synthesis.Synthesis.optimum": _PATH,
    "synthesis.finish": f"{_PATH}, and differences of it",
}
PER_PROBLEM = 100
MOST = 3
"""Problems: each compiles programs of its own."""
POSITIONS, STARTS, WIDTH = 8, 6, 0.3
LEAST = 0.05
"""Transmission that a problem keeps by default."""


class Wanted(NamedTuple):
    """A problem, and all that the oracle needs of it.

    Attributes:
        problem: it.
        inputs: angles of the crank.
        targets: the points, as complex numbers.
        nominal: hardpoints in the order of the unknowns (10,).
        size: of the targets; also the unit of the limits.
    """

    problem: Any
    inputs: np.ndarray
    targets: np.ndarray
    nominal: np.ndarray
    size: float

    def error(self, x: np.ndarray) -> float:
        """Squared distances of the path of a linkage drawn so, summed."""
        return float(np.sum(np.abs(bar_of(x).at(self.inputs)[3] - self.targets) ** 2))

    def slope(self, x: np.ndarray) -> np.ndarray:
        """Differences of the error, per width of the limits."""
        h = 1e-5 * self.width
        each = [self.error(x + h * e) - self.error(x - h * e) for e in np.eye(len(x))]
        return np.array(each) / (2e-5)

    @property
    def width(self) -> float:
        """To either side of the drawing."""
        return WIDTH * self.size

    def sound(self, x: np.ndarray) -> bool:
        """Whether it can be followed without a dead centre, with the transmission kept."""
        between = np.linspace(self.inputs[0], self.inputs[-1], 400)
        bar = bar_of(x)
        return bool(np.all(bar.at(between)[0] > 0.0) and np.min(bar.sine(between)) > LEAST - 2e-4)


def bar_of(x: np.ndarray) -> Bar:
    """The linkage of the hardpoints A, B, C, D, P."""
    pairs = np.asarray(x).reshape(5, 2)
    return Bar(*(complex(*p) for p in pairs))


def wanted(rng: np.random.Generator) -> Wanted:
    """A problem near a known four-bar that keeps its transmission."""
    inputs = np.linspace(0.0, float(rng.uniform(0.6, 1.2)), POSITIONS)
    while True:
        bar = drawn(rng)[1]
        room = bar.at(np.linspace(0.0, inputs[-1], 200))[0]
        if np.min(room) > 0.0 and np.min(bar.sine(np.linspace(0.0, inputs[-1], 200))) > 0.3:
            break
    path = bar.at(inputs)[3]
    size = math.sqrt(float(np.mean(np.abs(path - path.mean()) ** 2)))
    noise = 0.02 * size * (rng.normal(size=POSITIONS) + 1j * rng.normal(size=POSITIONS))
    targets = path + noise
    size = math.sqrt(float(np.mean(np.abs(targets - targets.mean()) ** 2)))
    shift = 0.1 * WIDTH * size * rng.normal(size=(5, 2))
    nominal = np.array([[z.real, z.imag] for z in bar]) + shift
    mech = mechanism(bar_of(nominal.ravel()))
    rows = np.stack([targets.real, targets.imag], axis=1)
    task = synthesis.PathGeneration("A", inputs, body="coupler", point="P", targets=rows)
    problem = synthesis.Problem(mech, task, {"points/*": Within(WIDTH * size)})
    return Wanted(problem, inputs, targets, nominal.ravel(), size)


def judged(seed: int, size: int) -> Iterator[Judged]:
    """A few problems; the first is finished from its drawing too."""
    for k in range(min(MOST, max(1, size // PER_PROBLEM))):
        rng, text = np.random.default_rng([seed, k]), f"default_rng([{seed}, {k}])"
        w = wanted(rng)
        try:
            found = synthesis.synthesize(w.problem, starts=STARTS, seed=k, finishes=3)
        except ValueError as error:  # that none was found
            yield Judged("synthesis.Synthesis.error", REFUSED, math.nan, f"{error} | {text}")
            continue
        except Exception as error:
            said = f"{type(error).__name__}: {error}"[:250]
            yield Judged("synthesis.Synthesis.error", CRASHED, math.nan, f"{said} | {text}")
            continue
        yield from _found(w, found, text)
        yield from _starts(w, found, text)
        if k == 0:
            yield from _finished(w, text)


def _points(values: dict[str, float]) -> np.ndarray:
    return np.array([values[f"points/{p}/{c}"] for p in "ABCDP" for c in "xy"])


def _found(w: Wanted, found: Any, text: str) -> Iterator[Judged]:
    key, x, unit = "synthesis.Synthesis.", _points(found.values), w.size**2 * POSITIONS
    error = w.error(x)
    yield compare(f"{key}error", found.error, error, limit=1e-9, scale=1e-6 * unit, detail=text)
    rms = math.sqrt(error / POSITIONS)
    yield compare(
        f"{key}root_mean_square", found.root_mean_square, rms,
        limit=1e-9, scale=1e-3 * w.size, detail=text,
    )  # fmt: skip
    over = np.max(np.abs(x - w.nominal)) / w.width - 1.0
    yield compare(f"{key}values", over > 1e-9, False, limit=0.0, detail=f"limits, {text}")
    points = found.mechanism.points
    same = np.concatenate([np.asarray(points[p]) for p in "ABCDP"])
    yield compare(f"{key}values", same, x, limit=1e-15, detail=f"drawn, {text}")
    yield compare(f"{key}inputs", found.inputs, w.inputs, limit=1e-15, detail=text)
    yield compare(f"{key}defects", found.defects.sound, w.sound(x), limit=0.0, detail=text)
    objective = found.optimum.objective * w.size**2
    yield compare(f"{key}optimum", objective, error, limit=1e-9, scale=1e-6 * unit, detail=text)
    ok = found.optimum.status == "optimal"
    promised = not ok or found.kkt <= 1e-6
    yield compare(f"{key}kkt", promised, True, limit=0.0, detail=text)
    yield from _stationary(w, f"{key}kkt", x, ok, text)


def _stationary(w: Wanted, number: str, x: np.ndarray, ok: bool, text: str) -> Iterator[Judged]:
    """Slopes over those of the drawing; at a limit the error may fall outwards only."""
    if np.min(bar_of(x).sine(np.linspace(0.0, w.inputs[-1], 400))) < LEAST + 1e-3:
        return  # the limit of the transmission binds
    slope = w.slope(x) / (float(np.max(np.abs(w.slope(w.nominal)))) + w.size**2)
    off = (x - w.nominal) / w.width
    inside = np.abs(off) < 1.0 - 1e-6
    left = np.where(inside, slope, np.maximum(np.sign(off) * slope, 0.0))
    yield compare(number, left, np.zeros(len(x)), limit=1e-5, scale=1.0, detail=text, ok=ok)


def _starts(w: Wanted, found: Any, text: str) -> Iterator[Judged]:
    """What each start ended with: of those that work, the error and that they are sound."""
    key, errors = "synthesis.Synthesis.", np.asarray(found.errors)
    share = sum(math.isfinite(x) for x in errors) / STARTS
    yield compare(f"{key}working", found.working, share, limit=1e-15, detail=text)
    names = list(found.values)
    places = [names.index(f"points/{p}/{c}") for p in "ABCDP" for c in "xy"]
    for i, z in enumerate(np.asarray(found.candidates)):
        said = f"start {i}, {text}"
        over = float(np.max(np.abs(z))) - 1.0
        yield compare(f"{key}candidates", over > 1e-9, False, limit=0.0, detail=said)
        if not math.isfinite(errors[i]):
            continue
        x = w.nominal + w.width * z[places]
        yield compare(
            f"{key}errors", errors[i], w.error(x), limit=1e-8, scale=w.size**2, detail=said
        )
        yield compare(f"{key}candidates", w.sound(x), True, limit=0.0, detail=f"sound, {said}")


def _finished(w: Wanted, text: str) -> Iterator[Judged]:
    """From the drawing itself."""
    number, text = "synthesis.finish", f"from the drawing, {text}"
    found = synthesis.finish(w.problem, None)
    z = np.array([found.values[f"design/{i}"] for i in range(10)])
    names = list(w.problem.unknowns.names)
    places = [names.index(f"points/{p}/{c}") for p in "ABCDP" for c in "xy"]
    x = w.nominal + w.width * z[places]
    ok = found.status == "optimal"
    yield compare(
        number, found.objective * w.size**2, w.error(x),
        limit=1e-9, scale=1e-6 * w.size**2, detail=text, ok=ok,
    )  # fmt: skip
    yield compare(number, w.sound(x), True, limit=0.0, detail=text, ok=ok)
    yield from _stationary(w, number, x, ok, text)
