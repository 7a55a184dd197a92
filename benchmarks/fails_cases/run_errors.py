"""Runs at steps of a hundredth to ten times the right one, or of adaptive steps at tolerances from
1e-9 to 1e-3: none that is OK is wrong.

Two masses in a row on a guide, with springs, dampers, stops on both sides, friction and a force
that vibrates, each of them or not, at random: the equations of motion are written down here and
integrated by SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import jaxmbd as mbd
from fails_cases.judged import FLAGGED, RIGHT, WRONG, Judged, compare
from fails_cases.statics import _numpy

MASSES = "two masses on a guide in closed form, integrated by SciPy"
NUMBERS = {
    "Solution.error": f"{MASSES}: no run that is OK is off by twice its accuracy, "
    "or four times what its errors grow to",
    "Solution.worst_step": "no more than the error",
    "Solution.worst_at": "the end of a step",
    "Solution.end": "the whole run, in place of two halves",
    "Solution.fine": "times before that of the failure",
    "Solution.rejected": "none of fixed steps; of adaptive ones fewer than ten times those taken",
}
STEPS, SAVES, ACCURACY = 200, 10, 1e-2
GRAVITY = 9.81
ADAPTIVE = (mbd.DormandPrince, mbd.Rodas, mbd.DormandPrince8)
FIXED = (mbd.RK4, mbd.GeneralizedAlpha, mbd.Variational)
METHODS: dict[str, Any] = {kind.__name__: kind for kind in (*FIXED, *ADAPTIVE)}
METHODS["Variational of order 4"] = partial(mbd.Variational, 4)

Numbers = dict[str, Any]


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Runs of random masses, whole and in two halves, by each method."""
    for k, (name, kind) in enumerate(METHODS.items()):
        yield from _judged(name, kind, seed + k, max(4, size // 8))


def _judged(method: str, kind: Any, seed: int, n: int) -> Iterator[Judged]:
    rng = np.random.default_rng(seed)
    p = drawn(rng, n)
    state = rng.normal(size=(n, 4)) * [0.1, 0.1, 1.0, 1.0] * (rng.random((n, 1)) < 0.8)
    # A long motion between stops is chaotic: its errors grow, which no estimate says.
    dt = 10.0 ** rng.uniform(-2.0, -0.5 if kind in ADAPTIVE else 1.0, n) / fastest(p)
    rtol = 10.0 ** rng.uniform(-9.0, -3.0, n)

    @jax.jit
    def runs(p: Any, q: Any, v: Any, dt: Any, rtol: Any) -> Any:
        return mbd.lanes.vmap(partial(one, kind))(p, q, v, dt, rtol)

    run, half = _numpy(runs(p, state[:, :2], state[:, 2:], dt, rtol))
    for i in range(n):
        numbers = {k: float(x[i]) for k, x in p.items()}
        text = ", ".join(f"{k}={x:.6g}" for k, x in numbers.items() if x)
        text = f"{method}: two masses, {text}, from {state[i].tolist()}, dt={dt[i]:.6g}"
        text += f", rtol={rtol[i]:.3g}, seed {seed}"
        ok = bool(run.status[i] == 0)
        true = share_of_error(numbers, state[i], run.t[i], run.v[i]) if ok else math.nan
        limit = 2.0 * ACCURACY  # an estimate, no bound
        if true > limit:  # and it does not say how errors grow along the motion
            limit = 4.0 * run.error[i] * growth(numbers, state[i], run.t[i])
        right = RIGHT if true <= limit else WRONG
        told = f"estimated {run.error[i]:.2g}, true {true:.2g}, {text}"
        yield Judged("Solution.error", right if ok else FLAGGED, true, told)
        over = max(float(run.worst_step[i] - run.error[i]), 0.0)
        yield compare("Solution.worst_step", over, 0.0, limit=1e-12, detail=text, ok=ok)
        fine = np.asarray(run.t[i] < run.failed_at[i])
        yield compare("Solution.fine", run.fine[i], fine, limit=0.0, detail=text, ok=ok)
        most = 10 * run.steps[i] if kind in ADAPTIVE else 0
        over = max(float(run.rejected[i] - most), 0.0)
        yield compare("Solution.rejected", over, 0.0, limit=0.0, detail=text, ok=ok)
        step = run.worst_at[i] / dt[i]
        yield compare("Solution.worst_at", step, round(step), limit=1e-9, detail=text, ok=ok)
        for name in ("q", "v"):
            whole, parts = getattr(run.end, name)[i], getattr(half.end, name)[i]
            yield compare("Solution.end", parts, whole, limit=1e-9, detail=text, ok=ok)


def drawn(rng: np.random.Generator, n: int) -> Numbers:
    """Masses, stiffnesses, damping, gap and stiffness of the stops, friction and force (n,)."""

    def number(least: float, most: float, often: float = 1.0) -> np.ndarray:
        return 10.0 ** rng.uniform(np.log10(least), np.log10(most), n) * (rng.random(n) < often)

    p = {"m1": number(0.1, 10.0), "m2": number(0.1, 10.0)}
    p |= {"k1": number(1.0, 1e4, 0.7), "k2": number(1.0, 1e4)}
    p |= {f"c{i}": number(0.01, 2.0, 0.5) * np.sqrt(p[f"k{i}"] * p[f"m{i}"]) for i in (1, 2)}
    p |= {"gap": number(0.01, 1.0), "stop": number(10.0, 1e6, 0.4), "loss": number(0.01, 1.0, 0.5)}
    p |= {"mu": number(0.01, 0.5, 0.3), "creep": number(1e-3, 0.1)}
    return p | {"force": number(0.1, 100.0, 0.5), "rate": number(0.1, 100.0)}


def fastest(p: Numbers) -> np.ndarray:
    """The largest rate [1/s] at which the motion or its forces change."""
    light = np.minimum(p["m1"], p["m2"])
    weight = GRAVITY * (p["m1"] + p["m2"])
    rates = [np.sqrt(p["k1"] / p["m1"]), np.sqrt(p["k2"] / light), np.sqrt(p["stop"] / p["m1"])]
    rates += [p["c1"] / p["m1"], p["c2"] / light, p["mu"] * weight / p["creep"] / p["m1"]]
    return np.max([*rates, p["rate"] * (p["force"] > 0.0)], axis=0)


def push(force: Any, rate: Any, t: Any) -> dict[str, Any]:
    """What the first mass is pushed by [N]."""
    return {"a": force * jnp.sin(rate * t)}


def masses(p: Numbers) -> mbd.Mechanism:
    """Two masses in a row on a guide."""
    along, inertia = (1.0, 0.0, 0.0), np.eye(3)
    gap, rubbing = p["gap"], mbd.JointFriction("a", p["mu"], velocity_scale=p["creep"])
    stop = mbd.JointLimit("a", -gap, gap, stiffness=p["stop"], dissipation=p["loss"])
    return mbd.Mechanism(
        {
            "first": mbd.Body(p["m1"], (0.0, 0.0, 0.0), inertia),
            "second": mbd.Body(p["m2"], (0.2, 0.0, 0.0), inertia),
        },
        {
            "a": mbd.Prismatic("ground", "first", (0.0, 0.0, 0.0), along),
            "b": mbd.Prismatic("first", "second", (0.2, 0.0, 0.0), along),
        },
        {
            "spring1": mbd.TorsionSpring("a", p["k1"], damping=p["c1"]),
            "spring2": mbd.TorsionSpring("b", p["k2"], damping=p["c2"]),
            "stop": stop,
            "rubbing": rubbing,
        },
        gravity=(0.0, 0.0, -GRAVITY),
    )


def options(kind: Any, p: Numbers, dt: Any, rtol: Any) -> tuple[Numbers, list[Numbers]]:
    """Arguments of `simulate` for a run, and the times of its halves.

    Adaptive methods are given times, as their steps depend on the last bit of these.
    """
    given: Numbers = {"throw": False, "accuracy": ACCURACY}
    given["inputs"] = jax.tree_util.Partial(push, p["force"], p["rate"])
    if kind in ADAPTIVE:
        given["method"] = kind(rtol=rtol, atol=1e-3 * rtol)
        times = dt * jnp.arange(0.0, STEPS + 1, STEPS // SAVES)
        halves = [{"t": times[: SAVES // 2 + 1]}, {"t": times[SAVES // 2 :]}]
        return given | {"t": times}, [given | x for x in halves]
    given |= {"dt": dt, "save_every": STEPS // SAVES, "method": kind()}
    return given | {"steps": STEPS}, 2 * [given | {"steps": STEPS // 2}]


def one(kind: Any, p: Numbers, q: Any, v: Any, dt: Any, rtol: Any) -> tuple[Any, Any]:
    """The whole run, and the second half of it from the end of the first."""
    mech, (all_of_it, (first, second)) = masses(p), options(kind, p, dt, rtol)
    whole = mbd.simulate(mech, q, v, **all_of_it)
    return whole, mbd.simulate(mech, mbd.simulate(mech, q, v, **first).end, **second)


def share_of_error(p: Numbers, state: np.ndarray, t: np.ndarray, v: np.ndarray) -> float:
    """Largest error of the speeds (saves, 2) as a share of the largest speeds, in both norms.

    The largest of all times: saved ones may be those of the turning points of a vibration.
    """
    fine = np.unique(np.concatenate([t, np.linspace(t[0], t[-1], 40 * STEPS + 1)]))
    found = solve_ivp(
        lambda t, y: rates(p, t, y), t[[0, -1]], state, "LSODA", fine, rtol=1e-10, atol=1e-13
    )
    every = found.y[2:].T
    wanted = every[np.searchsorted(fine, t)]
    heavy = np.array([p["m1"] + p["m2"], p["m2"]])
    tiny = 1e-12 / (t[1] - t[0]) * STEPS / SAVES
    return max(
        np.sqrt(np.max((v - wanted) ** 2 @ w)) / max(np.sqrt(np.max(every**2 @ w)), tiny)
        for w in (heavy, np.ones(2))
    )


def growth(p: Numbers, state: np.ndarray, t: np.ndarray) -> float:
    """How often over a small error of the speeds at a saved time grows until a later one."""

    def motion(t: np.ndarray, y: np.ndarray) -> np.ndarray:
        return solve_ivp(
            lambda t, y: rates(p, t, y), t[[0, -1]], y, "LSODA", t, rtol=1e-11, atol=1e-14
        ).y.T

    y = motion(t, state)
    weights = np.array([p["m1"] + p["m2"], p["m2"]])
    largest = math.sqrt(np.max(y[:, 2:] ** 2 @ weights))
    found = 1.0
    for j in range(len(t) - 1):
        for k in range(2):
            moved = y[j].copy()
            moved[2 + k] += 1e-5 * largest / math.sqrt(weights[k])
            off = motion(t[j:], moved)[:, 2:] - y[j:, 2:]
            found = max(found, math.sqrt(np.max(off**2 @ weights)) / (1e-5 * largest))
    return found


def rates(p: Numbers, t: float, y: np.ndarray) -> list[float]:
    """Rates of both coordinates, the second relative to the first, and of their speeds."""
    x, apart, v, opening = y
    push = p["force"] * math.sin(p["rate"] * t) - p["k1"] * x - p["c1"] * v
    for side in (-1.0, 1.0):
        depth = max(side * x - p["gap"], 0.0)
        push -= side * p["stop"] * depth * max(1.0 + p["loss"] * side * v, 0.0)
    push -= p["mu"] * (p["m1"] + p["m2"]) * GRAVITY * math.tanh(v / p["creep"])
    between = -p["k2"] * apart - p["c2"] * opening
    first, second = (push - between) / p["m1"], between / p["m2"]
    return [v, opening, first, second - first]
