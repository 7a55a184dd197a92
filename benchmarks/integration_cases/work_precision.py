"""Work and precision beside Exudyn: points (error, CPU time), measured by turns in one process.

Two mechanisms: Andrews' squeezer over 0.03 s, of whose bodies the turns are compared with the
reference in extended precision, and the pendulum A01 over 10 s, whose last angle is compared with
elliptic functions. Exudyn's explicit methods take no loops, so the squeezer is by its implicit
ones. Its batch is one simulation after another, on one core.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ellipj, ellipk

import jaxmbd as mbd
from integration_cases import peer_exudyn
from integration_cases.andrews_reference import ANGLES, AT_30_MS, DATA
from integration_cases.timing import once
from jaxmbd import lanes

LANES = 1000
OURS, THEIRS = "jaxmbd", "Exudyn"


class Point(NamedTuple):
    """One method with its tolerance or step: `measure` gives CPU seconds and the error [rad]."""

    engine: str
    method: str
    measure: Callable[[], tuple[float, float]]
    batch: Callable[[], float] | None = None


def _ours(mech: Any, t1: float, error: Callable[[np.ndarray], float], number: int) -> list[Point]:
    """Our points: adaptive steps at tolerances, RK4 at steps."""
    q = jnp.asarray(mbd.neutral(mech))
    gravity = jnp.asarray(mech.gravity)
    more = jnp.asarray(np.linspace(0.0, 1e-3, number)[:, None] * np.ones(3))

    def end(method: Any, steps: int | None, shift: Any) -> Any:
        own = mech.replace(gravity=gravity + shift)
        length = {"t1": t1, "dt": t1 / (steps or 1)}
        return mbd.simulate(own, q, method=method, throw=False, outputs_only=True, **length).q[-1]

    @partial(jax.jit, static_argnums=1)
    def one(method: Any, steps: int | None) -> Any:
        return end(method, steps, jnp.zeros(3))

    @partial(jax.jit, static_argnums=1)
    def many(method: Any, steps: int | None) -> Any:
        return lanes.vmap(lambda shift: end(method, steps, shift))(more)

    def point(name: str, method: Any, steps: int | None) -> Point:
        def measure() -> tuple[float, float]:
            cost, found = once(lambda: one(method, steps))
            return cost.cpu, error(np.asarray(found))

        return Point(OURS, name, measure, lambda: once(lambda: many(method, steps))[0].cpu / number)

    found = []
    for rtol in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12):
        method = mbd.DormandPrince(rtol=rtol, atol=1e-2 * rtol)
        found.append(point(f"DormandPrince, {rtol:g}", method, None))
    for steps in (600, 3000):
        found.append(point(f"RK4, {steps} steps", mbd.RK4(), steps))
    return found


def squeezer(number: int) -> list[Point]:
    mech = mbd.zoo.andrews_squeezer()
    start = json.loads(DATA.read_text(encoding="utf-8"))["initial_angles"]
    moved = {n: x - start[n] for n, x in zip(ANGLES, AT_30_MS["angle"], strict=True)}
    exact = np.array([sum(moved[n] for n in names) for names in peer_exudyn.TURNS.values()])
    layout = mbd.topology(mech).layout
    joint = {"beta": "O", "Theta": "F", "gamma": "B", "Phi": "G"}
    joint |= {"delta": "A5", "Omega": "H", "epsilon": "A7"}
    sums = np.zeros((len(exact), mbd.topology(mech).nq))
    for row, names in zip(sums, peer_exudyn.TURNS.values(), strict=True):
        row[[layout[joint[n]].q.start for n in names]] = 1.0
    points = _ours(mech, 0.03, lambda q: float(np.max(np.abs(sums @ q - exact))), number)

    def theirs(steps: int, index: int) -> tuple[float, float]:
        cost, turns = peer_exudyn.squeezer(0.03, steps, index)
        return cost.cpu, float(np.max(np.abs(turns - exact)))

    for index, kind in ((3, "generalised-α, index 3"), (2, "Newmark, index 2")):
        for steps in (300, 1000, 3000, 10_000, 30_000):
            measure = partial(theirs, steps, index)
            points.append(Point(THEIRS, f"{kind}, {steps} steps", measure))
    return points


def exact_pendulum(t: float) -> float:
    """Angle [rad] from the level at which a pendulum of 1 m is let go, 9.81 m/s²."""
    k, rate = np.sin(np.pi / 4.0), np.sqrt(9.81)
    sn = ellipj(ellipk(k * k) - rate * t, k * k)[0]
    return float(np.pi / 2.0 - 2.0 * np.arcsin(k * sn))


def pendulum(number: int) -> list[Point]:
    exact = exact_pendulum(10.0)
    points = _ours(mbd.zoo.simple_pendulum(), 10.0, lambda q: float(abs(q[0] - exact)), number)

    def theirs(steps: int, solver: str, tolerance: float | None) -> tuple[float, float]:
        cost, angle = peer_exudyn.pendulum(10.0, steps, solver, tolerance)
        return cost.cpu, abs(angle - exact)

    for solver, several in (
        ("RK44", (100, 300, 1000, 3000, 10_000)),
        ("RK67", (50, 100, 200, 500)),
    ):
        for steps in several:
            measure = partial(theirs, steps, solver, None)
            points.append(Point(THEIRS, f"{solver}, {steps} steps", measure))
    for tolerance in (1e-4, 1e-6, 1e-8, 1e-10, 1e-12):
        measure = partial(theirs, 1, "DOPRI5", tolerance)
        points.append(Point(THEIRS, f"DOPRI5, {tolerance:g}", measure))
    return points


MECHANISMS = {"Andrews' squeezer": squeezer, "simple pendulum": pendulum}


def compared(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each point of Exudyn, how many times as long it takes as our best that is as accurate."""
    found = []
    for row in rows:
        if row["engine"] != THEIRS:
            continue
        ours = [r for r in rows if r["engine"] == OURS and r["error"] <= row["error"]]
        if ours:
            times = {"method": row["method"], "error": row["error"]}
            times["one"] = row["cpu_ms"] / min(r["cpu_ms"] for r in ours)
            times["batch"] = row["cpu_ms"] / min(r["per_lane_cpu_ms"] for r in ours)
            found.append(times)
    return found


def measured(quick: bool = False) -> dict[str, Any]:
    """Points of both engines for both mechanisms, and the ratios."""
    results: dict[str, Any] = {"exudyn": peer_exudyn.version()}
    for name, make in MECHANISMS.items():
        points = make(8 if quick else LANES)
        if peer_exudyn.version() is None:
            points = [p for p in points if p.engine == OURS]
        if quick:
            points = [p for p in points if "300" in p.method or "0.0001" in p.method]
        for p in points:  # compile
            p.measure()
            _ = p.batch and p.batch()
        least = [(np.inf, np.inf, np.inf)] * len(points)
        for _ in range(1 if quick else 3):
            for k, p in enumerate(points):
                cpu, error = p.measure()
                batch = p.batch() if p.batch else np.inf
                least[k] = min(cpu, least[k][0]), error, min(batch, least[k][2])
        rows = []
        for p, (cpu, error, batch) in zip(points, least, strict=True):
            row = {"engine": p.engine, "method": p.method, "error": error, "cpu_ms": 1e3 * cpu}
            rows.append(row | ({"per_lane_cpu_ms": 1e3 * batch} if p.batch else {}))
        results[name] = {"points": rows, "Exudyn over jaxmbd": compared(rows)}
    return results
