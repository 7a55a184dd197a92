"""Circuits of random four-bars and RSSR in closed form, and of six-bars by a grid of the input."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxmbd as mbd
from fails_cases.four_bars import Bar, drawn, mechanism
from fails_cases.judged import REFUSED, Judged, compare, or_crash
from jaxmbd import synthesis

PER_CASE = 22
_MEETS = "two circles that meet, in complex numbers"
_ARCS = "arcs of the crank that the triangle inequality leaves, joined at their ends"
_COSINES = "law of cosines with two links in line"
_SINES = "ratio of sines of the links' angles"
NUMBERS = {
    "Circuits.circuits": f"{_ARCS}; of six-bars on a grid",
    "Circuits.meetings": "parallelograms and kites: both circuits meet",
    "Circuit.q": _MEETS,
    "Circuit.input": "angle of the crank, of vectors in complex numbers",
    "Circuit.outputs": "angle of the rocker, of vectors in complex numbers",
    "Circuit.ratios": _SINES,
    "Circuit.turns": _ARCS,
    "Circuit.closed": "always",
    "Circuit.dead_centres": f"{_COSINES}; of an RSSR, its quartic; of six-bars, on a grid",
    "Circuit.toggles": f"{_COSINES}: crank and coupler",
    "Circuit.changes": "Grashof's equality",
    "Circuit.branch": "sign of the area of coupler and rocker",
    "Circuit.sign": "sign of the area of coupler and rocker",
    "Circuit.full_turn": _ARCS,
    "Circuit.reach": _ARCS,
    "SpeedRatio": _SINES,
    "MechanicalAdvantage": f"inverse of the {_SINES}",
}


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Four-bars, and a six-bar and an RSSR for every third of them."""
    for k in range(max(1, round(size / PER_CASE))):
        rng = np.random.default_rng([seed, k])
        kind, bar = drawn(rng)
        text = f"four-bar {kind}, default_rng([{seed}, {k}])"
        yield from or_crash("Circuits.circuits", _four_bar(kind, bar, text), text)
        if k % 3 == 0:
            text = f"six-bar, default_rng([{seed}, {k}, 6])"
            rng = np.random.default_rng([seed, k, 6])
            yield from or_crash("Circuits.circuits", _six_bar(rng, text), text)
            text = f"RSSR, default_rng([{seed}, {k}, 4])"
            rng = np.random.default_rng([seed, k, 4])
            yield from or_crash("Circuits.circuits", _rssr(rng, text), text)


def _four_bar(kind: str, bar: Bar, text: str) -> Iterator[Judged]:
    a, b, c, g = bar.lengths
    size = a + b + c + g
    rooms = b + c - (a + g), abs(a - g) - abs(b - c)
    equal = min(map(abs, rooms)) < 1e-9 * size
    if equal and kind not in ("parallelogram", "kite"):
        return
    try:
        found = mbd.circuits(mechanism(bar), "A", outputs=["D"])
    except ValueError as error:
        yield Judged("Circuits.circuits", REFUSED, math.nan, f"{error} | {text}")
        return
    cosines = [(a * a + g * g - x * x) / (2.0 * a * g) for x in (b + c, b - c)]
    ends = [math.acos(x) for x, r in zip(cosines, rooms, strict=True) if r < -1e-9 * size]
    count = 1 if len(ends) == 1 and not equal else 2
    told = len(found.circuits) >= count or found.unseen == 0.0
    yield compare("Circuits.circuits", len(found.circuits), count, limit=0.0, detail=text, ok=told)
    if len(found.circuits) != count:
        return
    meets = [[0, 1]] if equal else np.zeros((0, 2))
    yield compare("Circuits.meetings", found.meetings, meets, limit=0.0, detail=text)
    frame = bar.D - bar.A
    toggles = [] if equal else _toggles(a, b, c, g)
    seen: list[tuple[Any, Any]] = []
    for circuit in found.circuits:
        yield from _points(bar, circuit, text)
        still = kind == "kite" and np.ptp(circuit.input) < 1e-6
        mine = [] if still else ends
        near = np.exp(1j * circuit.input[circuit.dead_centres]) * (bar.B - bar.A) / frame / a * g
        wanted = [*(-x for x in mine), *mine] if len(ends) == 1 else ends
        if len(ends) == 2:
            wanted = [x * (np.sign(np.angle(near).sum()) or 1.0) for x in ends]
        yield _matched("Circuit.dead_centres", list(near), [np.exp(1j * x) for x in wanted], text)
        full = not ends
        yield compare(
            "Circuit.full_turn", circuit.full_turn, full and not still, limit=0.0, detail=text
        )
        turns = 0 if still or ends else 2 if kind == "kite" else 1
        yield compare("Circuit.turns", circuit.turns, turns, limit=0.0, detail=text)
        yield compare("Circuit.closed", circuit.closed, True, limit=0.0, detail=text)
        low, high = circuit.reach
        swept = 2.0 * math.pi * turns
        if still:
            pass
        elif len(ends) == 1:  # about the frame's line, to the side where the rocker reaches
            swept = 2.0 * (ends[0] if rooms[0] < 0.0 else math.pi - ends[0])
        elif ends:
            swept = abs(ends[0] - ends[1])
        yield compare("Circuit.reach", high - low, swept, limit=1e-7, scale=1.0, detail=text)
        changes = 2 if equal else 0
        yield compare("Circuit.changes", len(circuit.changes), changes, limit=0.0, detail=text)
        crank = (bar.B - bar.A) / frame
        rocker = (bar.C - bar.D) / frame
        for i in circuit.toggles[0]:
            turned = crank * np.exp(1j * circuit.input[i])
            swung = rocker * np.exp(1j * circuit.outputs[i, 0])
            seen.append((turned / abs(turned), swung / abs(swung)))
        yield from _observed(bar, circuit, text)
    if toggles is not None and not equal:
        flat = [x + 3.0 * y for x, y in seen], [x + 3.0 * y for x, y in toggles]
        yield _matched("Circuit.toggles", *flat, text)


def _toggles(a: float, b: float, c: float, g: float) -> list[tuple[complex, complex]] | None:
    """Directions of crank and rocker with crank and coupler in line; None where it is close."""
    found = []
    for sign in (1.0, -1.0):
        reach = a + sign * b
        cosine = (g * g + c * c - reach * reach) / (2.0 * g * c)
        if abs(abs(cosine) - 1.0) < 1e-4 or abs(reach) < 1e-3 * (a + b):
            return None
        if abs(cosine) < 1.0:
            for side in (1.0, -1.0):
                at_c = g - c * complex(cosine, side * math.sqrt(1.0 - cosine * cosine))
                found.append((at_c / reach, (at_c - g) / c))
    return found


def _matched(number: str, found: list[Any], wanted: list[Any], text: str) -> Judged:
    """Two lists of complex numbers that shall be one set."""
    if len(found) != len(wanted):
        return compare(number, len(found), len(wanted), limit=0.0, detail=f"how many, {text}")
    miss = [min(abs(x - y) for y in wanted) for x in found]
    miss += [min(abs(x - y) for y in found) for x in wanted]
    return compare(number, max(miss, default=0.0), 0.0, limit=1e-6, scale=1.0, detail=text)


def _points(bar: Bar, circuit: Any, text: str) -> Iterator[Judged]:
    """All points of a circuit, its velocity ratios and the signs of its branches."""
    a, b, c, g = bar.lengths
    turn, bend, swing = np.exp(1j * circuit.q).T
    at_b = bar.A + (bar.B - bar.A) * turn
    coupler = (bar.C - bar.B) * turn * bend
    rocker = (bar.C - bar.D) * swing
    open_by = np.abs(at_b + coupler - bar.D - rocker)
    still = np.zeros_like(open_by)
    yield compare("Circuit.q", open_by, still, limit=1e-10, scale=a + b + c + g, detail=text)
    area = (np.conj(coupler) * rocker).imag / (b * c)
    side = (np.conj(coupler) * (at_b - bar.A)).imag / (a * b)
    clear = np.abs(area) > 1e-3
    wanted = a * side / (c * area + ~clear)
    ratios = circuit.ratios[clear, 0]
    yield compare("Circuit.ratios", ratios, wanted[clear], limit=1e-7, scale=1e3, detail=text)
    off = np.abs(np.exp(1j * circuit.input) - turn)
    yield compare("Circuit.input", off, still, limit=1e-12, scale=1.0, detail=text)
    off = np.abs(np.exp(1j * circuit.outputs[:, 0]) - swing)
    yield compare("Circuit.outputs", off, still, limit=1e-12, scale=1.0, detail=text)
    signs = []
    for k in range(len(circuit.sign)):
        some = np.sign(area[(circuit.branch == k) & clear])
        change = np.ptp(some) if len(some) else 0.0
        yield compare("Circuit.branch", change, 0.0, limit=0.0, detail=text)
        signs.append(some[0] if len(some) else math.nan)
    if np.ptp(circuit.input) < 1e-6:
        return  # crank and frame coincide, and so do coupler and rocker
    same = [x * y for x, y in zip(signs, circuit.sign, strict=True)]
    yield compare("Circuit.sign", np.ptp(same), 0.0, limit=0.0, detail=text)


def _observed(bar: Bar, circuit: Any, text: str) -> Iterator[Judged]:
    """The ratios at a point where all links turn against each other."""
    a, b, c, _ = bar.lengths
    turn, bend, swing = np.exp(1j * circuit.q).T
    coupler = np.conj((bar.C - bar.B) * turn * bend) / b
    ends = (coupler * (bar.B - bar.A) * turn).imag / a, (coupler * (bar.C - bar.D) * swing).imag / c
    k = int(np.argmax(np.min(np.abs(ends), axis=0)))
    if min(abs(ends[0][k]), abs(ends[1][k])) < 1e-2:
        return
    wanted = a * ends[0][k] / (c * ends[1][k])
    found = _both(mechanism(bar), circuit.q[k])
    yield compare("SpeedRatio", found[0], wanted, limit=1e-7, detail=text)
    yield compare("MechanicalAdvantage", found[1], 1.0 / wanted, limit=1e-7, detail=text)


@jax.jit
def _both(mech: mbd.Mechanism, q: Any) -> list[Any]:
    at = mbd.observe.Snapshot(mech, q)
    both = mbd.observe.SpeedRatio("D", "A"), mbd.observe.MechanicalAdvantage("A", "D")
    return [x.value(at) for x in both]


def _rssr(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """Dead centres are zeros of a² + b² − c², of a cos θ + b sin θ = c: a quartic in exp(iφ)."""
    points = {"crank_pivot": np.zeros(3), "A": rng.normal(size=3) * rng.choice([0.5, 1.0])}
    points["rocker_pivot"] = 2.0 * rng.normal(size=3)
    points["B"] = points["rocker_pivot"] + rng.normal(size=3)
    axes = rng.normal(size=(2, 3))
    crank, rocker = (x / np.linalg.norm(x) for x in axes)
    arm, radius = points["B"] - points["rocker_pivot"], points["A"]
    centre = points["B"] - (u := arm - (arm @ rocker) * rocker)
    w, across = np.cross(rocker, u), np.cross(crank, radius)
    square = np.sum((points["B"] - points["A"]) ** 2)

    def discriminant(phi: float) -> float:
        along = (crank @ radius) * crank
        d = centre - along - np.cos(phi) * (radius - along) - np.sin(phi) * across
        c = square - d @ d - u @ u
        return (2.0 * d @ u) ** 2 + (2.0 * d @ w) ** 2 - c**2

    samples = np.fft.fft([discriminant(2.0 * np.pi * k / 9) for k in range(9)]) / 9
    roots = np.roots(np.fft.fftshift(samples)[::-1][2:7])
    off = np.abs(np.abs(roots) - 1.0)
    apart = np.abs(np.subtract.outer(roots, roots)) + np.eye(4)
    if np.any((off > 1e-8) & (off < 1e-2)) or apart.min() < 1e-2:
        return  # two nearly meet
    ends = roots[off <= 1e-8]
    found = mbd.circuits(synthesis.massless_rssr(points, *axes), "crank")
    count = len(ends) // 2 if len(ends) else 2
    told = len(found.circuits) >= count or found.unseen == 0.0
    got = len(found.circuits)
    yield compare("Circuits.circuits", got, count, limit=0.0, detail=text, ok=told)
    turned = [np.exp(1j * x) for c in found.circuits for x in c.input[c.dead_centres]]
    yield _matched("Circuit.dead_centres", turned, list(ends), text)


class SixBar(NamedTuple):
    """Points of a drawing as complex numbers; C belongs to the rocker or to the coupler."""

    points: dict[str, complex]
    on_coupler: bool

    def at_b(self, u: Any, side: int) -> tuple[Any, Any]:
        """Room and place of B at crank angles from the drawing."""
        p = self.points
        at_a = p["A0"] + (p["A"] - p["A0"]) * np.exp(1j * u)
        return _met(at_a, p["B0"], abs(p["B"] - p["A"]), abs(p["B"] - p["B0"]), side)

    def at_c(self, u: Any, side: int) -> Any:
        """The place of C."""
        p, (_, at_b) = self.points, self.at_b(u, side)
        if not self.on_coupler:
            return p["B0"] + (p["C"] - p["B0"]) * (at_b - p["B0"]) / (p["B"] - p["B0"])
        at_a = p["A0"] + (p["A"] - p["A0"]) * np.exp(1j * u)
        return at_a + (p["C"] - p["A"]) * (at_b - at_a) / (p["B"] - p["A"])

    def room(self, u: Any, side: int) -> Any:
        """Room of the second pair of links."""
        p = self.points
        lengths = abs(p["D"] - p["C"]), abs(p["D"] - p["D0"])
        return _met(self.at_c(u, side), p["D0"], *lengths, 1)[0]


def _met(a: Any, b: Any, from_a: float, from_b: float, side: int) -> tuple[Any, Any]:
    """Room of the triangle inequalities, and where two circles meet."""
    span = b - a
    d = np.abs(span)
    room = np.minimum(d - abs(from_a - from_b), from_a + from_b - d)
    along = (from_a**2 - from_b**2 + d * d) / (2.0 * d)
    across = np.sqrt(np.maximum(from_a**2 - along**2, 0.0))
    return room, a + span / d * (along + 1j * side * across)


def _six_bar(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    base = {"A0": 0, "A": 0.1 + 0.15j, "B": 0.65 + 0.45j, "B0": 0.8, "D": 1.2 + 0.5j}
    on_coupler = bool(rng.random() < 0.5)
    base |= {"C": 0.5 + 0.6j if on_coupler else 0.85 + 0.4j, "D0": 1.3 - 0.05j}
    spread = float(rng.choice([0.05, 0.2]))
    points = {n: complex(x) + spread * complex(*rng.normal(size=2)) for n, x in base.items()}
    bar = SixBar(points, on_coupler)
    sheets = _sheets(bar)
    if sheets is None:
        return
    found = mbd.circuits(_six_bar_mechanism(bar), "A0", seed=int(rng.integers(1 << 30)))
    components = sorted(set(sheets.component.values()))
    told = len(found.circuits) >= len(components) or found.unseen == 0.0
    yield compare(
        "Circuits.circuits", len(found.circuits), len(components), limit=0.0, detail=text, ok=told
    )
    for circuit in found.circuits:
        k = sheets.of(circuit)
        wanted = [np.exp(1j * x) for x in sheets.limits.get(k, [])]
        turned = list(np.exp(1j * circuit.input[circuit.dead_centres]))
        yield _matched("Circuit.dead_centres", turned, wanted, text)


class _Sheets(NamedTuple):
    """Components by (side, side, number of the arc), arcs of each side, and limits by component."""

    bar: SixBar
    component: dict[tuple[int, int, int], int]
    arcs: dict[int, np.ndarray]
    limits: dict[int, list[float]]

    def of(self, circuit: Any) -> int:
        """The component of a circuit: that of one of its points."""
        i = len(circuit.input) // 3
        u = circuit.input[i]
        mech = _six_bar_mechanism(self.bar)
        on, link = ("coupler" if self.bar.on_coupler else "rocker"), "output"
        at_b = complex(*np.asarray(mbd.point_position(mech, circuit.q[i], "rocker", "B"))[:2])
        at_d = complex(*np.asarray(mbd.point_position(mech, circuit.q[i], link, "D"))[:2])
        at_c = complex(*np.asarray(mbd.point_position(mech, circuit.q[i], on, "C"))[:2])
        first = min((1, -1), key=lambda s: abs(self.bar.at_b(u, s)[1] - at_b))
        p = self.bar.points
        lengths = abs(p["D"] - p["C"]), abs(p["D"] - p["D0"])
        second = min((1, -1), key=lambda s: abs(_met(at_c, p["D0"], *lengths, s)[1] - at_d))
        arc = self.arcs[first][int(np.floor((u % (2 * np.pi)) / (2 * np.pi) * GRID))]
        return self.component[first, second, int(arc)]


GRID = 7200
"""Crank angles at which six-bars are tried."""


def _sheets(bar: SixBar) -> _Sheets | None:
    """Arcs of the crank on all sheets, joined where pairs of links are in line; None if close."""
    u = 2.0 * np.pi * (np.arange(GRID) + 0.5) / GRID
    first = bar.at_b(u, 1)[0]
    rooms = {s: bar.room(u, s) for s in (1, -1)}
    if _close(first) or any(_close(np.where(first > 0, rooms[s], np.nan)) for s in (1, -1)):
        return None
    arcs = {s: _runs((first > 0.0) & (rooms[s] > 0.0)) for s in (1, -1)}
    nodes = [(s, r, k) for s in arcs for r in (1, -1) for k in range(arcs[s].max() + 1)]
    parent = {node: node for node in nodes}

    def root(x: Any) -> Any:
        while parent[x] != x:
            x = parent[x]
        return x

    joints: list[tuple[Any, float]] = []
    for s in (1, -1):
        inside = arcs[s] >= 0
        for i in np.flatnonzero(inside != np.roll(inside, -1)):
            j = (i + 1) % GRID
            here, out = (i, j) if inside[i] else (j, i)
            by_first = first[out] <= 0.0
            if by_first and (arcs[-s][here] < 0 or abs(rooms[s][here]) < 1e-3):
                return None
            at = _zero(lambda x, s=s: bar.room(x, s), u[i])
            if by_first:
                at = _zero(lambda x: bar.at_b(x, 1)[0], u[i])
            for r in (1, -1):
                mine, other = (s, r, int(arcs[s][here])), (s, -r, int(arcs[s][here]))
                if by_first:
                    other = (-s, r, int(arcs[-s][here]))
                parent[root(mine)] = root(other)
                if mine < other:
                    joints.append((mine, at))
    number = {x: k for k, x in enumerate(sorted({root(n) for n in nodes}))}
    component = {n: number[root(n)] for n in nodes}
    limits: dict[int, list[float]] = {}
    for node, at in joints:
        limits.setdefault(component[node], []).append(at)
    return _Sheets(bar, component, arcs, limits)


def _close(room: np.ndarray) -> bool:
    """Whether a room nearly vanishes without changing its sign, or vanishes next to another end."""
    size, before, after = np.abs(room), np.roll(room, 1), np.roll(room, -1)
    same = (np.sign(before) == np.sign(room)) & (np.sign(after) == np.sign(room))
    lowest = (size <= np.abs(before)) & (size <= np.abs(after))
    return bool(np.any(same & lowest & (size < 2e-3)))


def _runs(inside: np.ndarray) -> np.ndarray:
    """The number of the arc of each angle, −1 outside; the last and the first may be one."""
    starts = inside & ~np.roll(inside, 1)
    number = np.cumsum(starts) - 1
    count = int(starts.sum())
    number = np.where(number < 0, max(count - 1, 0), number)
    return np.where(inside, number, -1)


def _zero(room: Any, u: float) -> float:
    """Where a room vanishes within one step of the grid from u."""
    low, high = u, u + 2.0 * np.pi / GRID
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if (room(middle) > 0) == (room(low) > 0) else (low, middle)
    return 0.5 * (low + high)


def _six_bar_mechanism(bar: SixBar) -> mbd.Mechanism:
    """The six-bar drawn so."""
    names = {"crank": "A", "coupler": "B", "rocker": "B", "link": "D", "output": "D"}
    on = "coupler" if bar.on_coupler else "rocker"
    pins = {
        "A0": ("ground", "crank"), "A": ("crank", "coupler"), "B": ("coupler", "rocker"),
        "B0": ("ground", "rocker"), "C": (on, "link"), "D": ("link", "output"),
        "D0": ("ground", "output"),
    }  # fmt: skip
    return mbd.Mechanism(
        bodies={n: mbd.Body(0.0, com=at, inertia=0.0) for n, at in names.items()},
        joints={n: mbd.Revolute(a, b, at=n) for n, (a, b) in pins.items()},
        points={n: (x.real, x.imag) for n, x in bar.points.items()},
        gravity=(0.0, 0.0),
    )
