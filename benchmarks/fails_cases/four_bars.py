"""Planar four-bars in closed form: followed, their dead centres, transmission angles, reports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases.judged import CRASHED, REFUSED, Judged, compare
from jaxmbd import lanes, synthesis
from jaxmbd.kinematics import motion_state

PER_CASE = 13
_MEETS = "two circles that meet, in complex numbers"
_ANGLE = "sine of the angle between coupler and rocker, of two circles that meet"
NUMBERS = {
    "synthesis.transmission": _ANGLE,
    "synthesis.Transmission": _ANGLE,
    "Assemblies.q": _MEETS,
    "Assemblies.sign": "one of each sign, of two circles that meet",
    "synthesis.Followed.closed": "triangle inequality of the two links and what they span",
    "synthesis.Followed.q": _MEETS,
    "synthesis.Followed.closest": _MEETS,
    "synthesis.Followed.index": _ANGLE,
    "synthesis.Defects.order": "signs of the steps",
    "synthesis.Defects.circuit": "triangle inequality between the positions",
    "synthesis.Defects.branch": "signs of sines of the transmission angle",
    "synthesis.Defects.rotation": "Grashof's condition of the crank",
    "synthesis.Defects.transmission": f"least {_ANGLE}",
    "synthesis.Defects.turn_transmission": f"least {_ANGLE}; its extremes of a whole turn",
    "synthesis.Defects.error": f"{_MEETS}: distances of the path's points",
    "synthesis.Defects.sound": "the three defects of the oracle",
    "synthesis.Defects.weak": f"least {_ANGLE}, and Grashof's condition, against what was asked",
}
KINDS = ("any", "crank", "parallelogram", "kite", "just", "just not", "drawn aligned")
STEPS = np.linspace(0.0, 1.2, 5)
NEAR_FOLLOWED, NEAR_REPORTED = 0.05, 0.02
"""Sines below which a stride, of 5° here and of 2° in reports, may come to the other branch."""
TURN = 2.0 * np.pi * np.arange(73) / 72


class Bar(NamedTuple):
    """Points of a drawing, as complex numbers."""

    A: complex
    B: complex
    C: complex
    D: complex
    P: complex

    @property
    def lengths(self) -> tuple[float, float, float, float]:
        """Of crank, coupler, rocker, frame."""
        pairs = ((self.A, self.B), (self.B, self.C), (self.C, self.D), (self.A, self.D))
        return tuple(abs(x - y) for x, y in pairs)  # type: ignore[return-value]

    def at(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Room to both triangle inequalities, B, C and P at crank angles from the drawing."""
        _, b, c, _ = self.lengths
        at_b = self.A + (self.B - self.A) * np.exp(1j * u)
        span = self.D - at_b
        d = np.abs(span)
        room = np.minimum(d - abs(b - c), b + c - d)
        side = np.sign(((self.C - self.B) / (self.D - self.B)).imag) or 1.0
        along = (b * b - c * c + d * d) / (2.0 * d)
        across = np.sqrt(np.maximum(b * b - along * along, 0.0))
        at_c = at_b + span / d * (along + 1j * side * across)
        at_p = at_b + (self.P - self.B) * (at_c - at_b) / (self.C - self.B)
        return room, at_b, at_c, at_p

    def sine(self, u: np.ndarray) -> np.ndarray:
        """Of the angle between coupler and rocker, without sign: the same on both branches."""
        _, b, c, _ = self.lengths
        at_b = self.A + (self.B - self.A) * np.exp(1j * u)
        d = np.abs(self.D - at_b)
        s = 0.5 * (b + c + d)
        area = np.sqrt(np.maximum(s * (s - b) * (s - c) * (s - d), 0.0))
        return 2.0 * area / (b * c)

    def turns(self) -> float:
        """Room of Grashof's condition over the size: the crank turns fully if it is positive."""
        a, b, c, g = self.lengths
        return min(b + c - (a + g), abs(a - g) - abs(b - c)) / (a + b + c + g)


def drawn(rng: np.random.Generator) -> tuple[str, Bar]:
    """A random four-bar and its kind."""
    kind = str(rng.choice(KINDS))
    size = 10.0 ** rng.uniform(-4, 2)
    a, b, c, g = rng.uniform(0.3, 2.0, 4)
    if kind == "crank":
        a, g = 0.2 * min(b, c), 0.5 * (b + c)
    elif kind == "parallelogram":
        c, g = a, b
    elif kind == "kite":
        g, c = a, b
    elif kind in ("just", "just not"):
        a, gap = 0.3, 10.0 ** rng.uniform(-6, -2) * (1.0 if kind == "just" else -1.0)
        b, c = 1.0, 1.2
        g = b + c - a - gap
    room = -1.0
    while room < 1e-3:
        phi = rng.uniform(0.0, 2.0 * np.pi)
        d = abs(g - a * np.exp(1j * phi))
        room = min(d - abs(b - c), b + c - d)
        if room < 1e-3 and kind in ("any", "drawn aligned"):
            a, b, c, g = rng.uniform(0.3, 2.0, 4)
        elif room < 1e-3 and kind == "crank":  # which no angle may close
            b, c = rng.uniform(0.3, 2.0, 2)
            a, g = 0.2 * min(b, c), 0.5 * (b + c)
    if kind == "drawn aligned":
        phi = float(rng.choice([0.0, np.pi]))
        d = abs(g - a * np.exp(1j * phi))
        b, c = d * rng.uniform(0.6, 2.0), d * rng.uniform(0.7, 1.3)
        if min(d - abs(b - c), b + c - d) < 0.05 * d:
            b = c = d
    at_b = a * np.exp(1j * phi)
    span, d = g - at_b, abs(g - at_b)
    along = (b * b - c * c + d * d) / (2.0 * d)
    across = float(rng.choice([-1.0, 1.0])) * math.sqrt(max(b * b - along * along, 0.0))
    at_c = at_b + span / d * (along + 1j * across)
    at_p = at_b + complex(*rng.normal(size=2))
    turn = size * np.exp(1j * rng.uniform(0.0, 2.0 * np.pi))
    shift = size * complex(*rng.normal(size=2))
    return kind, Bar(*(complex(turn * x + shift) for x in (0.0, at_b, at_c, complex(g), at_p)))


def mechanism(bar: Bar) -> mbd.Mechanism:
    """The four-bar drawn so."""
    return synthesis.massless_four_bar({n: (x.real, x.imag) for n, x in bar._asdict().items()})


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Random four-bars, one compiled program for all."""
    task = synthesis.PathGeneration(
        "A", STEPS, body="coupler", point="P", targets=np.zeros((len(STEPS), 2))
    )
    follow = jax.jit(lanes.jit(lambda m: synthesis.follow(m, "A", TURN)))
    index = jax.jit(
        lambda m: synthesis.transmission(motion_state(m, jnp.asarray(mbd.neutral(m))), "A")
    )
    watched = jax.jit(
        lambda m: synthesis.Transmission("A").value(mbd.observe.Snapshot(m, mbd.neutral(m)))
    )
    for k in range(max(1, round(size / PER_CASE))):
        rng = np.random.default_rng([seed, k])
        kind, bar = drawn(rng)
        text = f"four-bar {kind}, default_rng([{seed}, {k}])"
        try:
            mech = mechanism(bar)
            yield from _followed(bar, follow(mech), float(index(mech)), text)
            yield from _reported(rng, bar, mech, task, text)
            yield from _assembled(rng, bar, mech, text)
            yield compare(
                "synthesis.Transmission", abs(float(watched(mech))), bar.sine(TURN)[0],
                limit=1e-9, scale=1.0, detail=text,
            )  # fmt: skip
        except ValueError as error:
            yield Judged("synthesis.Followed.closed", REFUSED, math.nan, f"{error} | {text}")
        except Exception as error:
            said = f"{type(error).__name__}: {error}"[:250]
            yield Judged("synthesis.Followed.closed", CRASHED, math.nan, f"{said} | {text}")


def _assembled(
    rng: np.random.Generator, bar: Bar, mech: mbd.Mechanism, text: str
) -> Iterator[Judged]:
    """Both assemblies at a random angle of the crank, where there is room for them."""
    turn = rng.uniform(-np.pi, np.pi)
    room, at_b, at_c, _ = bar.at(np.array([turn]))
    if room[0] < 1e-3 * sum(bar.lengths):
        return
    found = mbd.assemblies(mech, {"A": turn}, starts=48, seed=int(rng.integers(1 << 30)))
    line = (bar.D - at_b[0]) / abs(bar.D - at_b[0])
    other = at_b[0] + line * np.conj((at_c[0] - at_b[0]) / line)
    wanted = [np.angle((x - bar.D) / (bar.C - bar.D)) for x in (at_c[0], other)]
    place = mbd.topology(mech).layout["D"].q
    turned = [complex(np.exp(1j * x)) for x in found.q[:, place][:, 0]]
    count = len(turned) == 2
    here = f"{text}, crank turned by {turn}"
    for angle in wanted:
        miss = min((abs(x - np.exp(1j * angle)) for x in turned), default=math.nan)
        yield compare("Assemblies.q", miss, 0.0, limit=1e-6, scale=1.0, detail=here, ok=count)
    yield compare("Assemblies.sign", sorted(found.sign), [-1, 1], limit=0.0, detail=here, ok=count)


def _followed(bar: Bar, found: Any, drawn_index: float, text: str) -> Iterator[Judged]:
    room, at_b, at_c, _ = bar.at(TURN)
    size = sum(bar.lengths)
    clear = np.abs(room) > 1e-7 * size
    sine = bar.sine(TURN)
    yield compare(
        "synthesis.transmission", abs(drawn_index), sine[0], limit=1e-9, scale=1.0, detail=text
    )
    closed = np.asarray(found.closed)
    closes = room[clear] > 0.0
    missed = bool(np.any(closes & ~closed[clear]))  # as beyond a dead centre, whence none is found
    false = closed[clear] & ~closes
    yield compare(
        "synthesis.Followed.closed", false, np.zeros_like(false), limit=0.0, detail=text,
        ok=bool(false.any()) or not missed,
    )  # fmt: skip
    # Up to the first dead centre the branch is that of the drawing. A stride of 5° may pass one
    # whose sine is less than a twentieth.
    fine = bar.sine(np.linspace(0.0, TURN[-1], 40 * (len(TURN) - 1) + 1))
    nearest = np.append(sine[0], np.min(fine[1:].reshape(-1, 40), axis=1))
    there = np.logical_and.accumulate((room > 1e-7 * size) & (nearest > NEAR_FOLLOWED)) & closed
    yield compare(
        "synthesis.Followed.closed", there, np.logical_and.accumulate(
            (room > 1e-7 * size) & (nearest > NEAR_FOLLOWED)), limit=0.0,
        detail=f"before a dead centre, {text}",
    )  # fmt: skip
    steep = 1e-9 / np.maximum(sine[there], 1e-6)
    links = (
        (at_b - bar.A, bar.B - bar.A),
        (at_c - at_b, bar.C - bar.B),
        (at_c - bar.D, bar.C - bar.D),
    )
    crank, coupler, rocker = (x / y for x, y in links)
    wanted = np.stack([crank, coupler / crank, rocker], axis=1)[there]
    for name in ("q", "closest"):
        q = np.exp(1j * np.asarray(getattr(found, name)))[there]
        off = np.max(np.abs(q - wanted), axis=1) / (1.0 + steep / 1e-9)
        yield compare(
            f"synthesis.Followed.{name}",
            off,
            np.zeros_like(off),
            limit=1e-9,
            scale=1.0,
            detail=text,
        )
    got = np.asarray(found.index)[there]
    signed = sine[there] * (np.sign(drawn_index) or 1.0)
    off = (got - signed) / (1.0 + steep / 1e-9)
    yield compare(
        "synthesis.Followed.index", off, np.zeros_like(off), limit=1e-9, scale=1.0, detail=text
    )


def _reported(
    rng: np.random.Generator, bar: Bar, mech: mbd.Mechanism, task: Any, text: str
) -> Iterator[Judged]:
    name, size = "synthesis.Defects.", sum(bar.lengths)
    inputs = STEPS * float(rng.choice([-1.0, 1.0]))
    disordered = bool(rng.random() < 0.2)
    if disordered:
        inputs = inputs[[0, 2, 1, 3, 4]]
    found = synthesis.defects(mech, task, inputs)
    text = f"inputs {inputs}, {text}"
    longest = np.max(np.abs(np.diff(inputs)))
    parts = math.ceil(longest / math.radians(2.0))
    between = np.interp(np.arange(4 * parts + 1) / parts, np.arange(5), inputs)
    room = bar.at(between)[0]
    yield compare(f"{name}order", found.order, disordered, limit=0.0, detail=text)
    if np.min(np.abs(room)) < 1e-7 * size:
        return
    circuit = bool(np.any(room < 0.0))
    yield compare(f"{name}circuit", found.circuit, circuit, limit=0.0, detail=text)
    steps = np.linspace(0.0, 4.0, 4 * 40 * parts + 1)
    fine = np.interp(steps, np.arange(5), inputs)
    sines = np.where(bar.at(fine)[0] > 0.0, bar.sine(fine), np.inf)
    near, k = float(np.min(bar.sine(fine))) < NEAR_REPORTED, int(np.argmin(sines))
    around = steps[max(k - 1, 0)], steps[min(k + 1, len(steps) - 1)]
    finer = np.interp(np.linspace(*around, 2001), np.arange(5), inputs)
    least = float(np.min(np.where(bar.at(finer)[0] > 0.0, bar.sine(finer), np.inf)))

    def warned(kind: str, found: bool, expected: bool, near: bool) -> Judged:
        """Near a dead centre a defect that is none is a warning; none that is one is wrong."""
        ok = not (near and found and not expected)
        return compare(f"{name}{kind}", found, expected, limit=0.0, detail=text, ok=ok)

    if not circuit:
        # Of inputs that turn back there are steps of 2° only, which pass the least by; where the
        # links pass a line, the sine is zero between two of the finer inputs.
        passed = least < 1e-6
        if not (passed and disordered):
            yield warned("branch", found.branch, passed, near)
        yield warned("sound", not found.sound, disordered or passed, near)
        ok = not (near and found.branch)
        limit = 5e-4 if disordered else 2.0 * float(abs(finer[1] - finer[0])) if passed else 1e-7
        yield compare(
            f"{name}transmission", found.transmission, least,
            limit=max(limit, 1e-7), scale=1.0, detail=text, ok=ok or (passed and not disordered),
        )  # fmt: skip
        far = float(np.max(np.abs(bar.at(inputs)[3])))
        yield compare(f"{name}error", found.error, far, limit=1e-7, scale=size, detail=text, ok=ok)
    turns = bar.turns()
    if abs(turns) < 1e-9:
        return
    yield from _weak(rng, bar, mech, task, (inputs, least, circuit or disordered), text)
    wanted = math.nan
    if turns > 0.0:
        a, b, c, g = bar.lengths
        angles = [math.acos((b * b + c * c - d * d) / (2.0 * b * c)) for d in (abs(a - g), a + g)]
        wanted = min(map(math.sin, angles))
    near = turns > 0.0 and wanted < NEAR_REPORTED
    yield warned("rotation", bool(found.rotation), turns < 0.0, near)
    # At steps of 1.5° of the turn, so that the least is passed by; near a dead centre one may come
    # to the other branch, and back, which is told as none.
    ok = not (near and (bool(found.rotation) or found.turn_transmission == 0.0))
    yield compare(
        f"{name}turn_transmission", found.turn_transmission, wanted,
        limit=5e-3, scale=1.0, detail=text, ok=ok,
    )  # fmt: skip


def _weak(
    rng: np.random.Generator, bar: Bar, mech: mbd.Mechanism, task: Any, followed: Any, text: str
) -> Iterator[Judged]:
    """Whether the least transmission that is asked for is kept, between the inputs or all round."""
    inputs, least, lost = followed
    asked, full = float(rng.uniform(0.1, 0.9)), bool(rng.random() < 0.5)
    text = f"asked for {asked:.4f}, full turn {full}, {text}"
    found = synthesis.defects(mech, task, inputs, least_transmission=asked, full_turn=full)
    if full:
        # A whole turn has the least of all angles; at steps of 1.5° it may be passed by.
        there = float(np.min(bar.sine(np.linspace(0.0, 2.0 * np.pi, 4001))))
        wanted, clear = bar.turns() < 0.0 or there < asked, abs(there - asked) > 5e-3
        clear = clear or bar.turns() < 0.0
    elif lost:
        return
    else:
        wanted, clear = least < asked, abs(least - asked) > 1e-5
    if clear:
        ok = not (found.weak and not wanted)  # near a dead centre, a warning
        yield compare("synthesis.Defects.weak", found.weak, wanted, limit=0.0, detail=text, ok=ok)
