"""Curves of planar motions, in complex numbers: centrodes, cognates, links through poses."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np

from fails_cases.four_bars import NEAR_FOLLOWED, Bar, drawn, mechanism
from fails_cases.judged import Judged, compare, or_crash
from jaxmbd import synthesis

_KEPT = "distance of both pins in every pose"
_MEETS = "the lines of crank and rocker, of two circles that meet, meet there"
NUMBERS = {
    "synthesis.Centrodes.fixed": _MEETS,
    "synthesis.Centrodes.moving": f"{_MEETS}; turned back with the coupler",
    "synthesis.Centrodes.rate": f"{_MEETS}: distance of the crank's pin from it",
    "synthesis.cognates": "lengths of their links while the four-bar moves",
    "synthesis.Dyads.ground": _KEPT,
    "synthesis.Dyads.body": _KEPT,
}
PER_CASE = 9
STEPS = np.linspace(0.0, 0.6, 7)
FAR = 30.0
"""Times the four-bar's size, beyond which the place of a centre is not compared."""


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Random four-bars, and random poses."""
    found = jax.jit(lambda m: synthesis.centrodes(m, "A", STEPS, "coupler"))
    for k in range(max(1, round(size / PER_CASE))):
        rng = np.random.default_rng([seed, k])
        kind, bar = drawn(rng)
        text = f"four-bar {kind}, default_rng([{seed}, {k}])"
        yield from or_crash(
            "synthesis.Centrodes.fixed", _centres(bar, found(mechanism(bar)), text), text
        )
        yield from or_crash("synthesis.cognates", _cognates(bar, text), text)
        yield from or_crash("synthesis.Dyads.ground", _links(rng, text), text)


def _clear(bar: Bar) -> np.ndarray:
    """Where the drawing's branch is followed without doubt: no dead centre near, on the way too."""
    fine = np.linspace(0.0, STEPS[-1], 100 * (len(STEPS) - 1) + 1)
    near = bar.at(fine)[0] < 1e-3 * sum(bar.lengths)
    near |= bar.sine(fine) < NEAR_FOLLOWED
    return ~np.logical_or.accumulate(near)[::100]


def _centres(bar: Bar, found: synthesis.Centrodes, text: str) -> Iterator[Judged]:
    _, at_b, at_c, _ = bar.at(STEPS)
    crank, rocker = at_b - bar.A, at_c - bar.D
    sine = (np.conj(crank) * rocker).imag
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = bar.A + crank * ((np.conj(bar.D - bar.A) * rocker).imag / sine)
        rate = (crank / (at_b - centre)).real
    turned = (at_c - at_b) / (bar.C - bar.B)
    moving = bar.B + (centre - at_b) / turned
    size = sum(bar.lengths)
    good = _clear(bar) & (np.abs(centre - bar.A) < FAR * size)
    good &= np.abs(at_b - centre) > 1e-3 * size
    for name, wanted in (("fixed", centre), ("moving", moving)):
        got = np.asarray(getattr(found, name))
        yield compare(
            f"synthesis.Centrodes.{name}", got[good],
            np.stack([wanted.real, wanted.imag], axis=1)[good], limit=1e-7, scale=size, detail=text,
        )  # fmt: skip
    yield compare(
        "synthesis.Centrodes.rate", np.asarray(found.rate)[good], rate[good], limit=1e-7, scale=1.0,
        detail=text,
    )  # fmt: skip


def _cognates(bar: Bar, text: str) -> Iterator[Judged]:
    """Links parallel to those of the coupler, and triangles that are like its own."""
    _, at_b, at_c, at_p = (x[_clear(bar)] for x in bar.at(STEPS))
    points = {name: (x.real, x.imag) for name, x in bar._asdict().items()}
    both = synthesis.cognates(points)
    for found, pivot, pin in zip(both, (bar.A, bar.D), (at_b, at_c), strict=True):
        a, b, c, d, p = (complex(*np.asarray(found[name])) for name in "ABCDP")
        beside = pivot + at_p - pin
        corner = beside + (c - b) / (p - b) * (at_p - beside)
        lengths = np.stack([np.abs(beside - pivot), np.abs(at_p - beside), np.abs(corner - d)])
        wanted = np.array([abs(b - a), abs(p - b), abs(c - d)])[:, None] + 0.0 * lengths
        yield compare(
            "synthesis.cognates", [*lengths.ravel(), abs(a - pivot), abs(p - bar.P)],
            [*wanted.ravel(), 0.0, 0.0], limit=1e-9, scale=sum(bar.lengths), detail=text,
        )  # fmt: skip


def _links(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """Random poses: the body carries its pin along."""
    at, turned = rng.normal(size=(5, 2)), rng.uniform(-1.5, 1.5, 5)
    place = at[:, 0] + 1j * at[:, 1]
    links = [
        (4, synthesis.burmester_curve(at[:4], turned[:4], rng.uniform(0.0, 6.0, 8))),
        (5, synthesis.burmester_points(at, turned)),
    ]
    for count, found in links:
        ground, body = (x[:, 0] + 1j * x[:, 1] for x in (found.ground, found.body))
        turns = np.exp(1j * (turned[:count] - turned[0]))[:, None]
        pins = place[:count, None] + turns * (body - place[0])
        lengths = np.abs(pins - ground)
        scale = 1.0 + float(np.max(np.abs(ground), initial=0.0) + np.max(np.abs(body), initial=0.0))
        for name in ("ground", "body"):
            yield compare(
                f"synthesis.Dyads.{name}", lengths, np.tile(lengths[:1], (count, 1)), limit=1e-7,
                scale=scale, detail=text,
            )  # fmt: skip
