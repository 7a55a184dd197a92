"""Counterweights of crank-rockers and of linkages of dyads.

Crank-rockers: momenta by complex numbers and Fourier series, least squares.

Over a turn at constant speed ω all that moves is periodic in the crank's angle θ, and known in
closed form: the momentum ``p = ω Σ m c'(θ)``, the moment of momentum and the kinetic energy. Their
derivatives by θ are those of their Fourier series. A weight at the crank, of product u = m r, adds
``u e^{iθ}`` to the first moment of mass, one at the rocker ``w e^{iψ}``: the least mean square of
the force is a linear problem in u and w.

Of other linkages, over a part of a turn, all numbers are those of free bodies, with a point mass
more on two of them; nothing near the weights that were found may be better.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import jaxmbd as mbd
from fails_cases.driven_linkages import SPEED, SWING, law, planned, swung
from fails_cases.driven_linkages import drawn as drawn_linkage
from fails_cases.driven_linkages import machine as linkage_machine
from fails_cases.four_bars import Bar
from fails_cases.judged import Judged, compare, or_crash
from fails_cases.planar_bodies import Link, Linkage, Pin
from jaxmbd import design
from jaxmbd.observe import Driven, constant_speed

PER_CASE = 5
_SERIES = "derivatives of Fourier series of momenta in complex numbers"
_FREE = "free bodies in the plane, in NumPy"
NUMBERS = {
    "design.Balance.before, linkages": _FREE,
    "design.Balance.after, linkages": _FREE,
    "design.Balance.optimum, linkages": f"shares of {_FREE}; none beside it is better",
    "design.Balance.after, least": "the least mean square of the force, a linear problem",
    "design.Balance.before": _SERIES,
    "design.Balance.after": _SERIES,
    "design.Balance.weights": "products of mass and distance of the linear problem",
    "design.Balance.optimum": "its objective, the square of the least share",
}
POINTS = 256
TURN = 2.0 * np.pi * np.arange(POINTS) / POINTS


class Case(NamedTuple):
    """A crank-rocker, with masses, centres (as drawn) and inertias of its three links."""

    bar: Bar
    mass: np.ndarray
    com: np.ndarray
    inertia: np.ndarray
    speed: float


def drawn(rng: np.random.Generator) -> Case:
    """A random one whose crank turns fully, well away from its dead centres."""
    size = 10.0 ** rng.uniform(-2, 1)
    b, c = rng.uniform(0.8, 1.4, 2)
    a, g = 0.3 * min(b, c), rng.uniform(0.9, 1.1) * 0.5 * (b + c)
    phi, tilt = rng.uniform(0.0, 2.0 * np.pi, 2)
    at_b = a * np.exp(1j * phi)
    d = abs(g - at_b)
    along = (b * b - c * c + d * d) / (2.0 * d)
    at_c = at_b + (g - at_b) / d * (along + 1j * rng.choice([-1, 1]) * np.sqrt(b * b - along**2))
    origin = rng.normal() + 1j * rng.normal()
    turned = [origin + size * np.exp(1j * tilt) * x for x in (0.0, at_b, at_c, g, at_b)]
    bar = Bar(*map(complex, turned))
    middles = np.array([bar.A + bar.B, bar.B + bar.C, bar.C + bar.D]) / 2.0
    com = middles + 0.2 * size * (rng.normal(size=3) + 1j * rng.normal(size=3))
    mass = rng.uniform(0.2, 3.0, 3)
    inertia = mass * size**2 * rng.uniform(0.01, 0.2, 3)
    return Case(bar, mass, com, inertia, float(10.0 ** rng.uniform(-1, 2)))


def places(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Turning e^{iφ} of the three links (3, n), and their centres (3, n), over the turn."""
    bar = case.bar
    _, at_b, at_c, _ = bar.at(TURN)
    turns = np.stack([
        np.exp(1j * TURN),
        (at_c - at_b) / (bar.C - bar.B),
        (at_c - bar.D) / (bar.C - bar.D),
    ])  # fmt: skip
    carried = np.stack([np.full(POINTS, bar.A), at_b, np.full(POINTS, bar.D)])
    drawn_at = np.array([bar.A, bar.B, bar.D])
    return turns, carried + turns * (case.com - drawn_at)[:, None]


def slope(x: np.ndarray) -> np.ndarray:
    """Derivative by θ of what is periodic, over its last axis."""
    waves = np.fft.fftfreq(POINTS, 1.0 / POINTS)
    found = np.fft.ifft(1j * waves * np.fft.fft(x))
    return found if np.iscomplexobj(x) else found.real


def rms(x: np.ndarray) -> float:
    """Root mean square over the turn."""
    return float(np.sqrt(np.mean(np.abs(x) ** 2)))


def shaking(case: Case, about: complex) -> dict[str, float]:
    """Root mean squares of force, moment and torque."""
    turns, centres = places(case)
    mass, inertia = case.mass[:, None], case.inertia[:, None]
    v, w = slope(centres), (slope(turns) / turns).imag
    arms = centres - about
    spin = np.sum(inertia * w + mass * (arms.conj() * v).imag, axis=0)
    energy = 0.5 * np.sum(mass * np.abs(v) ** 2 + inertia * w**2, axis=0)
    square = case.speed**2
    force = square * slope(np.sum(mass * v, axis=0))
    return {
        "force": rms(force),
        "moment": rms(square * slope(spin)),
        "torque": rms(square * slope(energy)),
    }


def least(case: Case, rocker: bool) -> tuple[float, np.ndarray]:
    """The least force, and the products m r of the weights as drawn (one or two, complex)."""
    turns, centres = places(case)
    force = slope(slope(np.sum(case.mass[:, None] * centres, axis=0)))
    columns = [slope(slope(turns[k])) for k in ((0, 2) if rocker else (0,))]
    rows = np.stack(columns, axis=1)
    found, *_ = np.linalg.lstsq(rows, -force, rcond=None)
    return case.speed**2 * rms(force + rows @ found), found


def machine(case: Case) -> mbd.Mechanism:
    """The same for the package, in the plane."""

    def point(x: complex) -> tuple[float, float]:
        return x.real, x.imag

    names = ("crank", "coupler", "rocker")
    bodies = {
        name: mbd.Body(m, point(x), i)
        for name, m, x, i in zip(names, case.mass, case.com, case.inertia, strict=True)
    }
    return mbd.Mechanism(
        bodies=bodies,
        joints={
            "A": mbd.Revolute("ground", "crank", at="A"),
            "B": mbd.Revolute("crank", "coupler", at="B"),
            "C": mbd.Revolute("coupler", "rocker", at="C"),
            "D": mbd.Revolute("ground", "rocker", at="D"),
        },
        points={name: point(getattr(case.bar, name)) for name in "ABCD"},
        gravity=(0.0, 0.0),
    )


MOST = 2
"""Linkages of dyads: each is compiled."""
TIMES = np.linspace(0.0, 1.0, 13)
SHARES = {"force": 1.0, "moment": 0.5, "torque": 0.7}


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Weights on the crank, or on crank and rocker, for the least force; linkages of dyads."""
    for k in range(min(MOST, max(1, size // 200))):
        rng, text = np.random.default_rng([seed, k, 2]), f"default_rng([{seed}, {k}, 2])"
        yield from or_crash("design.Balance.after, linkages", _dyads(rng, text), text)
    for k in range(max(1, round(size / PER_CASE))):
        rng = np.random.default_rng([seed, k])
        text = f"default_rng([{seed}, {k}])"
        yield from or_crash(
            "design.Balance.after, least", _judged(drawn(rng), k % 2 == 1, text), text
        )


def _judged(case: Case, rocker: bool, text: str) -> Iterator[Judged]:
    force, products = least(case, rocker)
    motion = Driven({"A": constant_speed(case.speed)}, _times(case))
    reach = 2.0 * abs(case.bar.B - case.bar.A)
    heavy = [10.0 * max(abs(x), 1e-3) / reach for x in products]
    weights = [
        design.Counterweight(body, centre, reach, mass)
        for body, centre, mass in zip(("crank", "rocker"), "AD", heavy, strict=False)
    ]
    found: Any = design.counterbalance(machine(case), motion, weights, about="A")
    ok = found.optimum.status == "optimal"
    before = shaking(case, case.bar.A)
    for name, x in before.items():
        yield compare("design.Balance.before", found.before[name], x, limit=1e-7, detail=text)
    share = force / before["force"]
    detail = f"{'two' if rocker else 'one'} | {text}"
    yield compare("design.Balance.after, least", found.after["force"] / before["force"], share,
                  limit=1e-5, scale=1.0, detail=detail, ok=ok)  # fmt: skip
    yield compare("design.Balance.optimum", found.optimum.objective, share**2,
                  limit=1e-6, scale=1.0, detail=detail, ok=ok)  # fmt: skip
    balanced = case
    for (mass, place), (name, wanted) in zip(
        found.weights.values(), zip("AD", products, strict=False), strict=True
    ):
        centre = getattr(case.bar, name)
        product = mass * (complex(*place[:2]) - centre)
        yield compare("design.Balance.weights", [product.real, product.imag],
                      [wanted.real, wanted.imag], limit=1e-3, detail=detail, ok=ok)  # fmt: skip
        balanced = _heavier(balanced, 0 if name == "A" else 2, mass, complex(*place[:2]))
    for name, x in shaking(balanced, case.bar.A).items():
        yield compare("design.Balance.after", found.after[name], x, limit=1e-6,
                      scale=before[name], detail=detail)  # fmt: skip


def _times(case: Case) -> np.ndarray:
    return np.linspace(0.0, 2.0 * np.pi / case.speed, 65)


def _heavier(case: Case, link: int, mass: float, place: complex) -> Case:
    """The same with a point mass at a link."""
    m, com, inertia = case.mass.copy(), case.com.copy(), case.inertia.copy()
    whole = m[link] + mass
    inertia[link] += m[link] * mass / whole * abs(com[link] - place) ** 2
    com[link] = (m[link] * com[link] + mass * place) / whole
    m[link] = whole
    return Case(case.bar, m, com, inertia, case.speed)


def _dyads(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """Weights on the crank and on another link of a random linkage."""
    plan, moments = planned(rng), None
    while moments is None:
        lk = drawn_linkage(rng, plan, massless=0.3)
        moments = swung(lk, TIMES)
    other = str(rng.choice([name for name in lk.links if name != "crank"]))
    size = max(float(np.linalg.norm(b.com)) for b in lk.links.values())
    centres = {}
    for body in ("crank", other):
        pins = [j for j in lk.joints.values() if isinstance(j, Pin) and body in (j.a, j.b)]
        centres[body] = next((j.at for j in pins), lk.links[body].com)
    reach, most, about = 0.4 * size, 2.0, 0.3 * size * rng.normal(size=2)
    weights = [design.Counterweight(body, x, reach, most) for body, x in centres.items()]
    turn = Driven({"A": (law, (SWING, SPEED))}, TIMES)
    found = design.counterbalance(
        linkage_machine(lk, None), turn, weights, shares=SHARES, about=about
    )
    text = f"{[(d.kind, d.a, d.b) for d in plan]}, weights of crank and {other}, {text}"
    before, ok = _over_time(lk, about), found.optimum.status == "optimal"
    placed = {
        body: (mass, np.asarray(place)[:2])
        for body, (mass, place) in zip(centres, found.weights.values(), strict=True)
    }
    after = _over_time(_with(lk, placed), about)
    for name in SHARES:
        told: dict[str, Any] = {"limit": 1e-9, "scale": before[name], "detail": f"{name}, {text}"}
        yield compare("design.Balance.before, linkages", found.before[name], before[name], **told)
        yield compare("design.Balance.after, linkages", found.after[name], after[name], **told)

    def objective(numbers: dict[str, float]) -> float:
        return sum(share * (numbers[x] / before[x]) ** 2 for x, share in SHARES.items())

    least = objective(after)
    told = {"scale": 1.0, "detail": text, "ok": ok}
    number = "design.Balance.optimum, linkages"
    yield compare(number, found.optimum.objective, least, limit=1e-8, **told)
    beside = []
    for _ in range(8):
        moved = {}
        for body, (mass, place) in placed.items():
            heavy = np.clip(mass * (1.0 + 0.02 * rng.normal()), 1e-3 * most, most)
            step = 0.02 * reach * rng.normal(size=2)
            moved[body] = heavy, np.clip(place + step, centres[body] - reach, centres[body] + reach)
        beside.append(objective(_over_time(_with(lk, moved), about)))
    yield compare(number, max(0.0, least - min(beside)), 0.0, limit=1e-6, **told)


def _over_time(lk: Linkage, about: np.ndarray) -> dict[str, float]:
    """Root mean squares of force, moment and torque, by the trapezoidal rule."""
    moments = swung(lk, TIMES)
    assert moments is not None
    loads = np.array([[*m.shaking(about), m.effort] for m in moments])
    squares = np.stack([np.sum(loads[:, :2] ** 2, axis=1), loads[:, 2] ** 2, loads[:, 3] ** 2])
    means = np.trapezoid(squares, TIMES, axis=1) / (TIMES[-1] - TIMES[0])
    return dict(zip(SHARES, map(float, np.sqrt(means)), strict=True))


def _with(lk: Linkage, weights: dict[str, tuple[float, np.ndarray]]) -> Linkage:
    """The linkage with a point mass at each of some links."""
    links = dict(lk.links)
    for body, (mass, place) in weights.items():
        b = links[body]
        whole = b.mass + mass
        com = (b.mass * b.com + mass * place) / whole
        inertia = b.inertia + b.mass * mass / whole * float(np.sum((b.com - place) ** 2))
        links[body] = Link(whole, com, inertia)
    return lk._replace(links=links)
