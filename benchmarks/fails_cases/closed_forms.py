"""Closed forms: the slider-crank at and beyond its dead centres, pendulums, springs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases.judged import FLAGGED, RIGHT, WRONG, Judged, compare
from fails_cases.statics import _numpy

LIMIT = "closed form of the slider-crank: rod minus crank times sine"
NUMBERS = {
    "closure_margin": LIMIT,
    "closure_margin, forward derivative": LIMIT,
    "Assembly.status": LIMIT,
    "experiment: status": LIMIT,
    "experiment: failed_at": LIMIT,
    "Sweep, slider-crank": "closed form of the slider-crank",
    "flexibility": "closed form: springs in a row",
    "Modes.frequencies, pendulum": "closed form",
    "Equilibrium.q, pendulum": "closed form",
}
X = np.linspace(0.0, 1.5, 16)


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Slider-cranks of random lengths, pendulums, and masses on springs."""
    rng = np.random.default_rng(seed)
    n = max(4, size // 8)
    yield from _slider_cranks(rng, n, seed)
    yield from _pendulums(rng, max(4, n // 10), seed)
    yield from _springs(rng, max(4, n // 10), seed)


def _slider_cranks(rng: np.random.Generator, n: int, seed: int) -> Iterator[Judged]:
    crank, turn = rng.uniform(0.1, 1.0, n), rng.uniform(0.1, 1.5, n)
    rod = crank * np.where(rng.random(n) < 0.5, rng.uniform(0.3, 0.95, n), rng.uniform(1.1, 3.0, n))

    def engine(crank: Any, rod: Any, turn: Any) -> Any:
        def margin(crank: Any) -> Any:
            return mbd.closure_margin(mbd.zoo.slider_crank(crank, rod), {"O": turn})

        mech = mbd.zoo.slider_crank(crank, rod)
        value, slope = jax.jvp(margin, (crank,), (jnp.ones_like(crank),))
        slide = mbd.observe.Coordinate("T")
        sweep = mbd.observe.Sweep({"O": X}, {"x": slide}).computed(mech)
        found = mbd.assemble(mech, {"O": turn}, throw=False)
        return value, slope, sweep, found.status, found.q

    value, slope, sweep, status, _ = _numpy(mbd.lanes.vmap(engine)(crank, rod, turn))
    for i in range(n):
        text = f"crank {crank[i]:.6g}, rod {rod[i]:.6g}, turned {turn[i]:.6g}, seed {seed}"
        margin = rod[i] - crank[i] * np.sin(turn[i])
        height = crank[i] * np.sin(X)
        closes = np.all(height < rod[i])
        if abs(margin) < 1e-3 * rod[i] or np.min(np.abs(height - rod[i])) < 1e-3 * rod[i]:
            continue
        opened = margin < 0.0
        if opened:  # where it closes, the height of the lower pass may be another
            yield compare(
                "closure_margin", value[i], margin, limit=1e-6, scale=crank[i], detail=text
            )
            want = -np.sin(turn[i])
            yield compare(
                "closure_margin, forward derivative", slope[i], want, limit=1e-5, detail=text
            )
        else:
            sign = RIGHT if value[i] > 0.0 else WRONG
            yield Judged("closure_margin", sign, float("nan"), text)
        said = status[i] != 0
        outcome = WRONG if opened and not said else FLAGGED if said else RIGHT
        if said and not opened:
            outcome = WRONG
        yield Judged("Assembly.status", outcome, float("nan"), text)
        yield compare(
            "experiment: status",
            float(sweep["status"][i] != 0),
            float(not closes),
            limit=0.0,
            detail=text,
        )
        if closes:
            x = crank[i] * np.cos(X) + np.sqrt(rod[i] ** 2 - height**2) - crank[i] - rod[i]
            yield compare("Sweep, slider-crank", sweep["x"][i], x, limit=1e-8, detail=text)
        else:
            first = X[np.argmax(height > rod[i])]
            yield compare(
                "experiment: failed_at", sweep["failed_at"][i], first, limit=1e-12, detail=text
            )
            none = np.all(np.isnan(sweep["x"][i]))
            yield Judged("Sweep, slider-crank", FLAGGED if none else WRONG, float("nan"), text)


def _pendulums(rng: np.random.Generator, n: int, seed: int) -> Iterator[Judged]:
    length, gravity = 10.0 ** rng.uniform(-6, 2.5, n), 10.0 ** rng.uniform(-1, 2, n)

    def engine(length: Any, gravity: Any) -> Any:
        mech = mbd.zoo.simple_pendulum(length, 2.0, gravity)
        rest = mbd.equilibrium(mech, throw=False)
        return rest.q, rest.status, mbd.linearize(mech, rest.q, independent=["hinge"])

    q, status, linear = mbd.lanes.vmap(engine)(length, gravity)
    for i in range(n):
        text = f"pendulum of {length[i]:.6g} m, {gravity[i]:.6g} m/s², seed {seed}"
        ok = bool(status[i] == 0)
        yield compare(
            "Equilibrium.q, pendulum", q[i], [0.5 * np.pi], limit=1e-8, detail=text, ok=ok
        )
        modes = jax.tree_util.tree_map(lambda x, i=i: jnp.asarray(x[i]), linear).modes()
        want = np.sqrt(gravity[i] / length[i]) / (2.0 * np.pi)
        yield compare(
            "Modes.frequencies, pendulum",
            modes.frequencies[0],
            want,
            limit=1e-7,
            detail=text,
            ok=ok,
        )


def _springs(rng: np.random.Generator, n: int, seed: int) -> Iterator[Judged]:
    """Masses in a row on slides, each on a spring to the one before it."""
    rate = 10.0 ** rng.uniform(2, 9, (n, 3))

    def engine(rate: Any) -> Any:
        names = ("ground", "one", "two", "three")
        bodies = {m: mbd.Body(1.0, (0, 0, 0.1 * k), np.eye(3)) for k, m in enumerate(names[1:])}
        joints, forces = {}, {}
        for k in range(3):
            slide = f"slide {k}"
            joints[slide] = mbd.Prismatic(names[k], names[k + 1], (0, 0, 0.1 * k), (0, 0, 1))
            forces[f"spring {k}"] = mbd.TorsionSpring(slide, rate[k])
        mech = mbd.Mechanism(bodies, joints, forces, gravity=(0, 0, 0))
        return mbd.flexibility(mech, mbd.neutral(mech), [(names[3], (0, 0, 0.2))])

    found = _numpy(mbd.lanes.vmap(engine)(rate))
    for i in range(n):
        want = np.zeros((6, 6))
        want[5, 5] = np.sum(1.0 / rate[i])
        text = f"three springs of {rate[i]}, seed {seed}"
        yield compare("flexibility", found[i].reshape(6, 6), want, limit=1e-6, detail=text)
