"""Loops of springs with Coulomb's friction, driven by displacement or force, in closed form."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

import jaxmbd as mbd
from fails_cases.judged import Judged, compare, or_crash
from jaxmbd.design import Within
from jaxmbd.identification import hysteresis
from jaxmbd.observe import HoldingEffort, Sweep

PER_CASE = 6
_COULOMB = "4 f X of Coulomb's friction f over ±X; a force F moves the spring k by (F − f)/k"
NUMBERS = {
    "identification.Hysteresis.energy": _COULOMB,
    "identification.Hysteresis.friction": _COULOMB,
    "identification.Hysteresis.stiffness": "the spring's",
    "identification.Hysteresis.cycles": "what was driven",
    "identification.Identified.loops": "whether there was a friction",
    "identification.LoadingLoop.width": "twice the friction",
    "identification.LoadingLoop.share": "squares of friction and of noise",
    "identification.LoadingLoop.unit": "newtons were measured",
    "identification.LoadingLoop.work": _COULOMB,
}


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Loops of any size, and fits of a spring to loops with and without friction."""
    for k in range(max(2, round(size / PER_CASE))):
        rng, text = np.random.default_rng([seed, k]), f"default_rng([{seed}, {k}])"
        yield from or_crash("identification.Hysteresis.energy", _loop(rng, text), text)
        if k % 10 == 0:
            yield from or_crash("identification.Identified.loops", _fit(rng, text), text)


def _loop(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    cycles, rate, reach = (
        int(rng.integers(1, 5)),
        10.0 ** rng.uniform(2, 7),
        10.0 ** rng.uniform(-4, -1),
    )
    friction = float(rng.uniform(0.05, 0.6)) * rate * reach
    turn, name = np.linspace(0.0, 2.0 * np.pi * cycles, 400 * cycles + 1), "identification."
    if rng.random() < 0.5:
        x = reach * np.sin(turn)
        force, moved, near = rate * x + friction * np.sign(np.cos(turn)), reach, 2e-3
    else:
        force, x, now = rate * reach * np.cos(turn), [], reach - friction / rate
        for f in force:  # it starts where a cycle before has left it
            now = min(max(now, (f - friction) / rate), (f + friction) / rate)
            x.append(now)
        x, moved, near = np.array(x), reach - friction / rate, 1e-3
    found = hysteresis(force, x)
    energy = 4.0 * friction * moved
    for key, got, wanted in (
        ("Hysteresis.energy", found.energy, energy),
        ("Hysteresis.friction", found.friction, friction),
    ):
        yield compare(f"{name}{key}", got, wanted, limit=near, detail=text)
    yield compare(f"{name}Hysteresis.cycles", found.cycles, cycles, limit=0.0, detail=text)
    if moved == reach:
        key = f"{name}Hysteresis.stiffness"
        yield compare(key, found.stiffness, rate, limit=1e-3, detail=text)


def _fit(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    rate, noise = float(rng.uniform(1e4, 4e4)), 5.0
    x = 0.01 * np.sin(np.linspace(0.0, 2.0 * np.pi, 81))
    mech = mbd.Mechanism(
        {"block": mbd.Body(1.0, com=(0, 0, 0))},
        {"slide": mbd.Prismatic("ground", "block", (0, 0, 0), (1, 0, 0))},
        forces={"spring": mbd.TorsionSpring("slide", stiffness=2e4)}, gravity=(0, 0, 0),
    )  # fmt: skip
    drive = Sweep({"slide": tuple(x)}, {"force": HoldingEffort("slide")})
    friction = float(rng.choice([0.0, rng.uniform(20.0, 90.0)]))
    sign = np.sign(np.gradient(x))
    force = rate * x + friction * sign + noise * rng.normal(size=81)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        vary = {"forces/spring/stiffness": Within(0.9, relative=True)}
        found = mbd.identify(mech, vary, {"force": force}, drive)
    text, name = f"friction {friction:.3f} N, {text}", "identification."
    told = len(found.loops) == 1
    yield compare(f"{name}Identified.loops", told, friction > 0.0, limit=0.0, detail=text)
    if told:
        loop, squares = found.loops[0], friction**2 / (friction**2 + noise**2)
        key, chance = f"{name}LoadingLoop.", noise / 9.0  # of a mean of 81 samples
        yield compare(
            f"{key}width", loop.width, 2.0 * friction, limit=6.0 * chance / friction, detail=text
        )
        yield compare(f"{key}unit", loop.unit == "N", True, limit=0.0, detail=text)
        dissipated = 0.0 if loop.work is None else loop.work.energy
        wanted = 4.0 * friction * 0.01
        near = 0.02 + 6.0 * chance / friction  # of sampling where it turns, and of noise
        yield compare(f"{key}work", dissipated, wanted, limit=near, detail=text)
        yield compare(f"{key}share", loop.share, squares, limit=0.15, detail=text)
