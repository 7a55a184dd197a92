"""What is told about runs of redundant loops: energies, digits, the method; generalised-α.

Parallel arms in space in closed form (`swinging_arms`), with massless links and the digits of a
file; and generalised-α and the energies of runs of every kind of mechanism, off closure, floating
and with idle spins among them, by rigid bodies in NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases import instants, mechanisms, runs
from fails_cases.judged import Judged, compare
from fails_cases.statics import _numpy
from fails_cases.swinging_arms import KINDS, drawn, motion, one, place, state, with_rates

ARMS = "parallel arms in space, in closed form"
RIGID = "energies of rigid bodies in NumPy at the states of the run"
NUMBERS = {
    "Solution.q": f"{ARMS}; {runs.STEPPED}, by generalised-α",
    "Solution.v": f"{ARMS}; {runs.STEPPED}, by generalised-α",
    "Solution.error": f"{ARMS}: no run that is OK is off by twice its accuracy",
    "EnergyBalance.kinetic": f"{ARMS}; {RIGID}",
    "EnergyBalance.potential": f"{ARMS}; {RIGID}",
    "EnergyBalance.forces": ARMS,
    "EnergyBalance.missing": f"{RIGID}; none in runs of small tolerances",
    "Verification.digits_q": f"{ARMS}: within one",
    "Verification.digits_v": f"{ARMS}: within one",
    "MethodChoice.fastest": ARMS,
    "MethodChoice.steps_of_stability": ARMS,
    "MethodChoice.method": "steps that both methods take, counted: not twice the evaluations",
}
FIXED = ("rk4", "generalized_alpha", "variational")
METHODS = (*FIXED, "dormand_prince", "rodas")
SAVES, ACCURACY, MOST = 12, 1e-2, 8.0
FINER = 8
"""Steps of generalised-α, which is of order 2, in one of the oracle's."""


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Arms of all kinds by all methods; all kinds of mechanisms by generalised-α."""
    for k, kind in enumerate(KINDS):
        yield from judge_arms(seed + k, kind, max(3, size // 40))
    yield from judge_told(seed, max(2, size // 100))
    samples = max(3, round(size / 8 / len(mechanisms.KINDS)))
    for name in mechanisms.KINDS:
        yield from judge_kind(mechanisms.batch(name, samples, seed))
        jax.clear_caches()


# Parallel arms.


def judge_arms(seed: int, kind: str, n: int) -> Iterator[Judged]:
    """Runs of arms with a spring and a damper, at steps from fine to coarse."""
    rng = np.random.default_rng(seed)
    arms, inertia = drawn(rng, kind, n)
    w = 10.0 ** rng.uniform(-1.0, 3.0, n)
    k, c = inertia * w**2, inertia * w * 10.0 ** rng.uniform(-2.0, 1.0, n)
    start = np.stack([rng.uniform(-0.3, 0.3, n), 0.3 * w * rng.uniform(-1.0, 1.0, n)], 1)
    dt = 10.0 ** rng.uniform(-2.0, 0.0, n) / w
    for method in METHODS:
        run = jax.jit(mbd.lanes.vmap(partial(swing, method)))
        found, balance, i = _numpy(run(arms, k, c, start, dt))
        for s in range(n):
            text = f"{method}: {kind}, sample {s} of {n}, w={w[s]:.6g}, dt={dt[s]:.6g}, seed {seed}"
            row = jax.tree_util.tree_map(lambda x, s=s: x[s], (found, balance))
            yield from _swung(*row, int(i[s]), (k[s], c[s], inertia[s], start[s]), text)


def swing(method: str, mech: Any, k: Any, c: Any, start: Any, dt: Any) -> Any:
    """A run, its balance, and where the angle stands."""
    mech = with_rates(mech, k, c)
    q, v = state(mech, *start)
    more = {"rtol": 1e-8, "atol": 1e-12} if method not in FIXED else {}
    run = mbd.simulate(mech, q, v, dt=dt, steps=4 * SAVES, save_every=4, method=method,
                       accuracy=ACCURACY, throw=False, **more)  # fmt: skip
    return run, mbd.energy_balance(mech, run), jnp.asarray(place(mech))


def _swung(run: Any, balance: Any, i: int, numbers: Any, text: str) -> Iterator[Judged]:
    k, c, inertia, start = numbers
    ok, t = bool(run.status == 0), run.t
    exact = motion(k, c, inertia, start, t)
    angle, speed = exact.T
    size = np.max(np.abs(exact), axis=0) + 1e-12
    adaptive = not text.startswith(FIXED)
    limit = 1e-5 if adaptive else 2.0 * ACCURACY
    told = {"detail": text, "ok": ok}
    # Speeds are judged by the account; angles are behind by no more than they in all.
    reach = float(size[0] + size[1] * (t[-1] - t[0]))
    yield compare("Solution.q", run.q[:, i], angle, limit=limit, scale=reach, **told)
    near = np.maximum.accumulate(np.abs(speed[::-1]))[::-1]
    off = float(np.max(np.abs(run.v[:, i] - speed) / (near + 0.1 * size[1])))
    yield compare("Solution.v", off, 0.0, limit=2.0 * limit, **told)
    yield compare("Solution.error", off, 0.0, limit=4.0 * max(float(run.error), limit), **told)
    # Energies of the rows that the run has, right or not: what it has lost is missing.
    fine = np.isfinite(run.q[:, i])
    angle, speed = run.q[fine, i], run.v[fine, i]
    kinetic, potential = 0.5 * inertia * speed**2, 0.5 * k * angle**2
    most = float(np.max(kinetic + potential))
    for name, want in (("kinetic", kinetic), ("potential", potential)):
        got = getattr(balance, name)[fine]
        yield compare(f"EnergyBalance.{name}", got, want, limit=1e-6, scale=most, **told)
    work, doubt = balance.forces["spring"][fine], float(np.nanmax(balance.work_error)) / most
    total = (kinetic - kinetic[0]) + (potential - potential[0])
    yield compare("EnergyBalance.missing", balance.missing[fine], total - work, limit=1e-6,
                  scale=most, **told)  # fmt: skip
    if adaptive:
        lost = np.sum(0.5 * exact**2 * [k, inertia], axis=1)
        yield compare("EnergyBalance.forces", work, (lost - lost[0])[fine],
                      limit=1e-5 + 10.0 * doubt, scale=most, **told)  # fmt: skip


def judge_told(seed: int, n: int) -> Iterator[Judged]:
    """The method that is chosen for arms, and digits that are told of their runs."""
    rng = np.random.default_rng([seed, 5])
    for k in rng.permutation(len(KINDS))[:2]:
        kind = KINDS[k]
        for s in range(n):
            mech, inertia = one(rng, kind)
            w = 10.0 ** rng.uniform(0.0, 2.0)
            stiffness, damping = inertia * w**2, inertia * w * 10.0 ** rng.uniform(-2.0, 4.0)
            mech, end = with_rates(mech, stiffness, damping), 6.0 / w
            start = np.array([rng.uniform(0.1, 0.3), 0.1 * w * rng.uniform()])
            text = f"{kind}, sample {s} of {n}, w={w:.6g}, c={damping:.6g}, seed {seed}"
            yield from _chosen(mech, (stiffness, damping, inertia), start, end, text)
            method = METHODS[int(rng.integers(len(METHODS)))]
            numbers = stiffness, min(damping, 0.1 * inertia * w), inertia
            slow = with_rates(mech, *numbers[:2])
            yield from _verified(slow, method, numbers, start, end, f"{method}: {text}")


def _chosen(mech: Any, numbers: Any, start: Any, end: float, text: str) -> Iterator[Judged]:
    k, c, inertia = numbers
    q, v = state(mech, *start)
    found = mbd.choose_method(mech, q, v, t1=end, rtol=1e-6)
    rate = float(np.abs(np.linalg.eigvals([[0.0, 1.0], [-k / inertia, -c / inertia]])).max())
    told = {"detail": text, "ok": math.isfinite(found.fastest)}
    # Of a motion in a curve eigenvalues are known but for its speeds.
    limit = 1e-3 + 3.0 * abs(start[1]) / rate
    yield compare("MethodChoice.fastest", found.fastest, rate, limit=limit, **told)
    steps = rate * end / 3.3
    yield compare(
        "MethodChoice.steps_of_stability", found.steps_of_stability, steps, limit=limit, **told
    )
    top, work = mbd.topology(mech), {}
    for kind, each in ((mbd.DormandPrince, 7.0), (mbd.Rodas, top.nq + top.nv + 20.0)):
        run = mbd.simulate(mech, q, v, t1=end, method=kind(rtol=1e-6, most=1_000_000), throw=False)
        work[kind] = each * float(run.steps + run.rejected) if run.status == 0 else math.inf
    over = max(work[type(found.method)] / min(work.values()) - 2.0, 0.0)
    yield compare("MethodChoice.method", over, 0.0, limit=0.0, detail=text)


def _verified(
    mech: Any, method: str, numbers: Any, start: Any, end: float, text: str
) -> Iterator[Judged]:
    q, v = state(mech, *start)
    more = {"dt": end / 10.0, "rtol": 1e-6, "atol": 1e-8}
    if method in FIXED:
        more = {"dt": end / 200.0, "save_every": 20}
    found = mbd.verify(mech, q, v, t1=end, method=method, **more)
    run, i = _numpy(found.solution), place(mech)
    exact = motion(*numbers, start, run.t)
    wrong = np.max(np.abs(run.q[:, i] - exact[:, 0])), np.max(np.abs(run.v[:, i] - exact[:, 1]))
    moved = np.max(np.abs(exact[:, 0] - exact[0, 0])), np.max(np.abs(exact[:, 1]))
    for name, a, b, digits in zip(
        "qv", wrong, moved, (found.digits_q, found.digits_v), strict=True
    ):
        true = -math.log10(min(max(a / b, 1e-16), 1.0))
        off = max(abs(min(digits, MOST) - min(true, MOST)) - 1.0, 0.0)
        yield compare(f"Verification.digits_{name}", off, 0.0, limit=0.05, detail=text,
                      ok=bool(run.status == 0))  # fmt: skip


# All kinds of mechanisms.


def judge_kind(b: mechanisms.Batch) -> Iterator[Judged]:
    """Generalised-α from random states, and the energies on the way, of coarse steps too."""
    r, q, v, ok, s = runs.drawn_start(b, 23)
    pull = np.stack([x.least for x in s.solved]) / r.units / s.length[:, None]
    fast = instants._size(v / r.units / s.length[:, None])
    time = runs.SHARES / np.maximum(fast + np.sqrt(instants._size(pull)), 1e-3)
    coarse, fine = (runs.stepped(r, q, v, time, runs.STEPS * k, k) for k in (1, 2))
    far = np.max(np.abs(fine[0] - coarse[0]), axis=1) + np.max(np.abs(fine[1] - coarse[1]), axis=1)
    converged = far < 1e-5 * (1.0 + np.max(np.abs(fine[0]), axis=1)) * np.maximum(1.0, fast)
    unsure = s.near_rank | s.changing | ~converged | fine[2] | ~ok
    times = time[:, None] * np.arange(runs.STEPS + 1)
    radius = np.random.default_rng([b.seed, 29]).choice([0.0, 0.5, 0.9, 1.0], r.n)
    found, balance = _numpy(mbd.lanes.vmap(engine)(b.stacked, q, v, times, radius))
    good = ok & (found.status == 0)
    cases = instants._Cases(b, good, unsure, ", GeneralizedAlpha")
    yield from runs.judge_end(r, s, cases, found, good, (q, v), time, fine)
    yield from judge_energies(b, r, found, balance, good & ~unsure)


def engine(mech: mbd.Mechanism, q: Any, v: Any, t: Any, radius: Any) -> Any:
    """The run with its balance."""
    method = mbd.GeneralizedAlpha(radius)
    run = mbd.simulate(mech, q, v, t=t, save_every=FINER, method=method, throw=False)
    return run, mbd.energy_balance(mech, run)


def judge_energies(
    b: mechanisms.Batch, r: Any, run: Any, balance: Any, good: np.ndarray
) -> Iterator[Judged]:
    """Energies and what is missing, from the states that the run has."""
    # Of moments about axes in space there is no potential.
    known = not any(kind in ("Torque", "JointTorque") for kind, _ in r.forces.values())
    rows = [r.energies(np.where(good[:, None], run.q[:, k], run.q[:, 0] * 0.0 + 0.0),
                       np.where(good[:, None], run.v[:, k], 0.0))
            for k in range(runs.STEPS + 1)]  # fmt: skip
    for i in np.flatnonzero(good):
        kinetic, potential = (np.array([row[j][i] for row in rows]) for j in (0, 1))
        scale = float(np.max(np.abs(kinetic)) + np.max(np.abs(potential - potential[0])))
        scale += 1e-9 * float(np.max(np.abs(potential)))
        told = {"detail": f"{b.name}, sample {i}, seed {b.seed}", "scale": scale}
        yield compare("EnergyBalance.kinetic", balance.kinetic[i], kinetic, limit=1e-8, **told)
        if not known:
            continue
        got = balance.potential[i] - balance.potential[i, 0]
        yield compare("EnergyBalance.potential", got, potential - potential[0], limit=1e-7, **told)
        works = sum((x[i] for part in (balance.forces, balance.drives) for x in part.values()), 0.0)
        total = kinetic + potential - kinetic[0] - potential[0]
        yield compare("EnergyBalance.missing", balance.missing[i], total - works, limit=1e-6,
                      **told)  # fmt: skip
        limit = 1e-4 + 10.0 * float(balance.work_error[i, -1]) / scale
        yield compare("EnergyBalance.missing", balance.missing[i], 0.0 * total, limit=limit, **told)
