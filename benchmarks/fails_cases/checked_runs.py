"""What is told about runs: their balance of energy, the digits that agree, the method that suits.

The masses on a guide of `run_errors`, with a third one that is driven across it: works are
integrated by SciPy along with the motion. A mass that bounces, in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import jaxmbd as mbd
from fails_cases.judged import Judged, compare
from fails_cases.run_errors import GRAVITY, Numbers, drawn, fastest, rates
from fails_cases.statics import _numpy

WORKS = "masses on a guide in closed form, with their works, integrated by SciPy"
COUNTED = "steps that both methods take, counted"
NUMBERS = {
    "EnergyBalance.t": "times of the run",
    "EnergyBalance.kinetic": WORKS,
    "EnergyBalance.potential": WORKS,
    "EnergyBalance.forces": WORKS,
    "EnergyBalance.inputs": WORKS,
    "EnergyBalance.drives": WORKS,
    "EnergyBalance.impacts": "a mass that falls and bounces, in closed form",
    "EnergyBalance.missing": "energies of rows in NumPy, of runs of any step; else none",
    "EnergyBalance.share": "the same, of the largest energy",
    "EnergyBalance.work_error": f"{WORKS}: a work is off by ten times that at most",
    "MethodChoice.fastest": "eigenvalues of two masses, by NumPy",
    "MethodChoice.steps_of_stability": "the same",
    "MethodChoice.steps_of_motion": f"{COUNTED}: within a factor of three",
    "MethodChoice.method": f"{COUNTED}: it does not take twice the evaluations of the other",
    "Verification.digits_q": "two masses in closed form, integrated by SciPy: within one",
    "Verification.digits_v": "the same",
    "Verification.finer": "a run of half the step, or a tenth of the tolerance, compared by NumPy",
    "Verification.other": "a run by another method, compared by NumPy",
    "Verification.solution": "the run itself",
}
STEPS, MOST = 100, 8.0
PARTS = ("spring1", "spring2", "stop", "rubbing")
METHODS = ("rk4", "dormand_prince", "rodas")


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Balances of runs that are right, and of any; impacts; digits; choices."""
    yield from judge_works(seed, max(4, size // 4))
    yield from judge_losses(seed + 1, max(4, size // 4))
    yield from judge_impacts(seed + 2, max(4, size // 8))
    yield from judge_digits(seed + 3, max(3, size // 20))
    yield from judge_choices(seed + 4, max(3, size // 20))


def masses(p: Numbers) -> mbd.Mechanism:
    """The two masses of `run_errors`, and one that is driven across."""
    along, inertia, gap = (1.0, 0.0, 0.0), np.eye(3), p["gap"]
    across = mbd.Drive("c", lambda t, p: 0.1 * jnp.sin(p * t), p["rate"])
    return mbd.Mechanism(
        {
            "first": mbd.Body(p["m1"], (0.0, 0.0, 0.0), inertia),
            "second": mbd.Body(p["m2"], (0.2, 0.0, 0.0), inertia),
            "third": mbd.Body(p["m2"], (0.0, 0.2, 0.0), inertia),
        },
        {
            "a": mbd.Prismatic("ground", "first", (0.0, 0.0, 0.0), along),
            "b": mbd.Prismatic("first", "second", (0.2, 0.0, 0.0), along),
            "c": mbd.Prismatic("ground", "third", (0.0, 0.2, 0.0), (0.0, 1.0, 0.0)),
        },
        {
            "spring1": mbd.TorsionSpring("a", p["k1"], damping=p["c1"]),
            "spring2": mbd.TorsionSpring("b", p["k2"], damping=p["c2"]),
            "stop": mbd.JointLimit("a", -gap, gap, stiffness=p["stop"], dissipation=p["loss"]),
            "rubbing": mbd.JointFriction("a", p["mu"], velocity_scale=p["creep"]),
        },
        drives={"motor": across},
        gravity=(0.0, 0.0, -GRAVITY),
    )


def run_of(method: Any, p: Numbers, state: Any, dt: Any) -> tuple[Any, Any]:
    """A run of `STEPS` saved intervals, with its balance."""
    mech, rate = masses(p), p["rate"]

    def inputs(t: Any) -> dict[str, Any]:
        return {"a": p["force"] * jnp.sin(rate * t)}

    q, v = jnp.append(state[:2], 0.0), jnp.append(state[2:], 0.1 * rate)
    options = {"dt": dt, "steps": STEPS, "method": method, "accuracy": 1e9, "throw": False}
    run = mbd.simulate(mech, q, v, inputs=inputs, **options)
    return run, mbd.energy_balance(mech, run, inputs=inputs)


def energies(p: Numbers, t: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kinetic and potential energy at states (x, apart, v, opening) (n, 4)."""
    x, apart, v, opening = y.T
    third = 0.1 * p["rate"] * np.cos(p["rate"] * t)
    kinetic = 0.5 * (p["m1"] * v**2 + p["m2"] * ((v + opening) ** 2 + third**2))
    deep = np.maximum(np.abs(x) - p["gap"], 0.0)
    return kinetic, 0.5 * (p["k1"] * x**2 + p["k2"] * apart**2 + p["stop"] * deep**2)


def true_works(p: Numbers, state: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States (n, 4), and works (n, 5) of `PARTS` beyond their potentials and of the input."""

    def rate(t: float, y: np.ndarray) -> list[float]:
        x, _, v, opening = y[:4]
        stop = 0.0
        for side in (-1.0, 1.0):
            depth, speed = max(side * x - p["gap"], 0.0), side * v
            stop -= p["stop"] * depth * (max(1.0 + p["loss"] * speed, 0.0) - 1.0) * speed
        weight = p["mu"] * (p["m1"] + p["m2"]) * GRAVITY
        return [
            *rates(p, t, y[:4]),
            -p["c1"] * v**2,
            -p["c2"] * opening**2,
            stop,
            -weight * math.tanh(v / p["creep"]) * v,
            p["force"] * math.sin(p["rate"] * t) * v,
        ]

    start = np.concatenate([state, np.zeros(5)])
    step = 0.2 / float(fastest({k: np.asarray(x) for k, x in p.items()}))
    found = solve_ivp(rate, t[[0, -1]], start, "LSODA", t, rtol=1e-11, atol=1e-14, max_step=step)
    return found.y[:4].T, found.y[4:].T


def _drawn(seed: int, n: int, slow: float, fast: float) -> tuple[Numbers, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = drawn(rng, n)
    state = rng.normal(size=(n, 4)) * [0.1, 0.1, 1.0, 1.0]
    return p, state, 10.0 ** rng.uniform(np.log10(slow), np.log10(fast), n) / fastest(p)


def _one(p: Numbers, i: int) -> Numbers:
    return {k: float(x[i]) for k, x in p.items()}


def _text(p: Numbers, state: Any, dt: float, seed: int) -> str:
    text = ", ".join(f"{k}={x:.6g}" for k, x in p.items() if x)
    return f"{text}, from {np.asarray(state).tolist()}, dt={dt:.6g}, seed {seed}"


def judge_works(seed: int, n: int) -> Iterator[Judged]:
    """All works of runs of small tolerances."""
    p, state, dt = _drawn(seed, n, 0.05, 0.2)
    method = mbd.DormandPrince(rtol=1e-10, atol=1e-13)
    run, found = _numpy(jax.jit(mbd.lanes.vmap(lambda *x: run_of(method, *x)))(p, state, dt))
    for i in range(n):
        numbers, t = _one(p, i), run.t[i]
        text, ok = _text(numbers, state[i], dt[i], seed), bool(run.status[i] == 0)
        y, works = true_works(numbers, state[i], t)
        kinetic, potential = energies(numbers, t, y)
        third = 0.5 * numbers["m2"] * (0.1 * numbers["rate"]) ** 2
        parts = dict(zip(PARTS, works.T, strict=False))
        every = [
            kinetic,
            potential - potential[0],
            *works.T,
            third * np.sin(numbers["rate"] * t) ** 2,
        ]
        scale = float(np.max(np.abs(every)))
        doubt = float(found.work_error[i, -1])
        ok = ok and float(run.error[i]) < 1e-5
        as_told = {"detail": text, "scale": scale, "ok": ok}
        yield compare("EnergyBalance.t", found.t[i], t, limit=0.0, detail=text, ok=ok)
        yield compare("EnergyBalance.kinetic", found.kinetic[i], kinetic, limit=1e-4, **as_told)
        yield compare(
            "EnergyBalance.potential", found.potential[i], potential, limit=1e-4, **as_told
        )
        limit = 1e-4 + 10.0 * doubt / scale
        for name, work in parts.items():
            told = found.forces[name][i]
            yield compare("EnergyBalance.forces", told, work, limit=limit, **as_told)
        yield compare(
            "EnergyBalance.inputs", found.inputs["a"][i], works[:, 4], limit=limit, **as_told
        )
        driven = -third * np.sin(numbers["rate"] * t) ** 2
        told = found.drives["motor"][i]
        yield compare("EnergyBalance.drives", told, driven, limit=1e-6 + limit - 1e-4, **as_told)
        limit = 1e-6 + 10.0 * doubt / scale
        yield compare("EnergyBalance.work_error", found.missing[i], 0.0 * t, limit=limit, **as_told)


def judge_losses(seed: int, n: int) -> Iterator[Judged]:
    """What runs of any step gain or lose where nothing takes energy and nothing gives it."""
    p, state, dt = _drawn(seed, n, 0.01, 2.0)
    p |= dict.fromkeys(("c1", "c2", "loss", "mu", "force"), np.zeros(n))
    run, found = _numpy(jax.jit(mbd.lanes.vmap(lambda *x: run_of("rk4", *x)))(p, state, dt))
    for i in range(n):
        numbers, t = _one(p, i), run.t[i]
        text = _text(numbers, state[i], dt[i], seed)
        rows = np.concatenate([run.q[i, :, :2], run.v[i, :, :2]], axis=1)
        kinetic, potential = energies(numbers, t, rows)
        third = 0.5 * numbers["m2"] * (0.1 * numbers["rate"]) ** 2
        driven = -third * np.sin(numbers["rate"] * t) ** 2
        gained = kinetic + potential - kinetic[0] - potential[0] - driven
        scale = float(np.nanmax(np.abs([kinetic, potential - potential[0], driven])))
        fine = np.isfinite(gained)
        for name, told, expected in (
            ("missing", found.missing[i], gained), ("share", scale * found.share[i], gained)
        ):  # fmt: skip
            limit = 1e-6 + 10.0 * np.nanmax(found.work_error[i]) / scale  # of the drive
            as_told = {"limit": limit, "detail": text, "scale": scale}
            yield compare(f"EnergyBalance.{name}", told[fine], expected[fine], **as_told)


def judge_impacts(seed: int, n: int) -> Iterator[Judged]:
    """A mass that falls on a floor, and what its impacts take."""
    rng = np.random.default_rng(seed)
    height, rest = 10.0 ** rng.uniform(-2.0, 1.0, n), rng.uniform(0.3, 1.0, n)

    def fall(height: Any, rest: Any) -> tuple[Any, Any]:
        mech = mbd.Mechanism(
            {"mass": mbd.Body(2.0, (0.0, 0.0, 0.0), np.eye(3))},
            {"slide": mbd.Prismatic("ground", "mass", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))},
            gravity=(0.0, 0.0, -GRAVITY),
        )
        floor = mbd.Event(lambda t, q, v: q[0], direction=-1, restitution=rest)
        end = jnp.sqrt(2.0 * height / GRAVITY) * (1.0 + 2.0 * rest + rest**2)  # two impacts
        run = mbd.simulate(
            mech, height[None], steps=20, dt=end / 20, method=mbd.DormandPrince(rtol=1e-9),
            events={"floor": floor}, throw=False,
        )  # fmt: skip
        return run, mbd.energy_balance(mech, run)

    run, found = _numpy(jax.jit(mbd.lanes.vmap(fall))(height, rest))
    for i in range(n):
        text, size = f"h={height[i]:.6g}, e={rest[i]:.6g}, seed {seed}", 2.0 * GRAVITY * height[i]
        taken = np.array([1.0 - rest[i] ** 2, 1.0 - rest[i] ** 4]) * size
        first = math.sqrt(2.0 * height[i] / GRAVITY)
        times = np.array([first, first * (1.0 + 2.0 * rest[i])])
        expected = -np.append(0.0, taken)[np.searchsorted(times, run.t[i], side="right")]
        apart = np.min(np.abs(run.t[i][:, None] - times), axis=1) > 1e-9 * first
        as_told = {"limit": 1e-7, "detail": text, "scale": size, "ok": bool(run.status[i] == 0)}
        told = found.impacts[i]
        yield compare("EnergyBalance.impacts", told[apart], expected[apart], **as_told)


def judge_digits(seed: int, n: int) -> Iterator[Judged]:
    """Digits of runs by each method, at any step and tolerance."""
    p, state, dt = _drawn(seed, n, 0.02, 1.0)
    p |= dict.fromkeys(("force", "loss"), np.zeros(n))
    tolerance = 10.0 ** np.random.default_rng(seed).uniform(-7.0, -3.0, n)
    for i in range(n):
        numbers, method = _one(p, i), METHODS[i % len(METHODS)]
        mech, every = masses(numbers), 10
        q, v = np.append(state[i, :2], 0.0), np.append(state[i, 2:], 0.1 * numbers["rate"])
        end, more = STEPS * dt[i], {"dt": dt[i], "save_every": every}
        closer = {"dt": 0.5 * dt[i], "save_every": 2 * every}
        if method != "rk4":
            more = {"dt": every * dt[i], "rtol": tolerance[i], "atol": 1e-2 * tolerance[i]}
            closer = more | {"rtol": 0.1 * tolerance[i], "atol": 1e-3 * tolerance[i]}
        other = METHODS[1] if method != METHODS[1] else METHODS[2]
        found = mbd.verify(mech, q, v, t1=end, method=method, **more)
        runs = [
            _numpy(mbd.simulate(mech, q, v, t1=end, method=m, throw=False, **o))
            for m, o in ((method, more), (method, closer), (other, {"dt": every * dt[i]}))
        ]
        told = _numpy(found.solution)
        ok = int(told.status) == 0
        text = f"{method}, {_text(numbers, state[i], dt[i], seed)}, {more}"
        y, _ = true_works(numbers, state[i], told.t)
        for name, digits, rows, start in (
            ("q", found.digits_q, told.q, q), ("v", found.digits_v, told.v, np.zeros(3))
        ):  # fmt: skip
            exact = np.array(rows)
            exact[:, :2] = y[:, :2] if name == "q" else y[:, 2:]
            wrong = _digits(rows - exact, exact - start)
            off = max(abs(min(digits, MOST) - min(wrong, MOST)) - 1.0, 0.0)
            yield compare(f"Verification.digits_{name}", off, 0.0, limit=0.05, detail=text, ok=ok)
        yield compare("Verification.solution", told.v, runs[0].v, limit=1e-12, detail=text, ok=ok)
        for agreement, run in ((found.finer, runs[1]), (found.other, runs[2])):
            which = "finer" if run is runs[1] else "other"
            wrong = _digits(told.v - run.v, told.v)
            off = abs(min(agreement.v.digits, MOST) - min(wrong, MOST))
            limit = 0.05 if which == "finer" else 0.5  # it need not have the same tolerances
            yield compare(f"Verification.{which}", off, 0.0, limit=limit, detail=text, ok=ok)


def _digits(difference: np.ndarray, motion: np.ndarray) -> float:
    size = float(np.max(np.abs(motion)))
    return -math.log10(min(max(float(np.max(np.abs(difference))) / size, 1e-16), 1.0))


def judge_choices(seed: int, n: int) -> Iterator[Judged]:
    """The method for two masses with springs and dampers, some of them stiff."""
    p, state, _ = _drawn(seed, n, 1.0, 1.0)
    p |= dict.fromkeys(("stop", "mu", "force", "loss"), np.zeros(n))
    rng = np.random.default_rng(seed)
    p["c1"] = p["c1"] + 10.0 ** rng.uniform(0.0, 5.0, n) * (rng.random(n) < 0.5)
    for i in range(n):
        numbers = _one(p, i)
        mech, end = masses(numbers), 3.0
        q, v = np.append(state[i, :2], 0.0), np.append(state[i, 2:], 0.1 * numbers["rate"])
        text = _text(numbers, state[i], 0.0, seed)
        found = mbd.choose_method(mech, q, v, t1=end, rtol=1e-6)
        a = np.array([rates(numbers, 0.0, e) for e in np.eye(4)]).T
        rate = float(np.abs(np.linalg.eigvals(a)).max())
        yield compare("MethodChoice.fastest", found.fastest, rate, limit=1e-6, detail=text)
        stable = rate * end / 3.3
        told = found.steps_of_stability
        yield compare("MethodChoice.steps_of_stability", told, stable, limit=1e-6, detail=text)
        taken = {}
        for kind in (mbd.DormandPrince, mbd.Rodas):
            method = kind(rtol=1e-6, most=1_000_000)
            run = mbd.simulate(mech, q, v, t1=end, method=method, throw=False)
            taken[kind] = float(run.steps + run.rejected) if run.status == 0 else math.inf
        off = max(abs(math.log(found.steps_of_motion / taken[mbd.Rodas])) - math.log(3.0), 0.0)
        yield compare("MethodChoice.steps_of_motion", off, 0.0, limit=0.0, detail=text)
        work = {
            mbd.DormandPrince: 7.0 * taken[mbd.DormandPrince],
            mbd.Rodas: 26.0 * taken[mbd.Rodas],
        }
        over = max(work[type(found.method)] / min(work.values()) - 2.0, 0.0)
        yield compare("MethodChoice.method", over, 0.0, limit=0.0, detail=text)
