"""Impacts: a mass that falls on a floor again and again, in closed form, with its states between
saved times; a point of every kind of mechanism that hits a plane at once, by Newton's law in NumPy.

From rest at height h it falls for ``√(2h/g)``; bounce k leaves with ``eᵏ √(2gh)``, and the
flight after it takes ``2 eᵏ √(2h/g)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases import instants, mechanisms
from fails_cases.judged import Judged, compare
from fails_cases.rigid_dynamics import solve
from fails_cases.runs import drawn_start
from fails_cases.statics import _numpy

FALL = "a mass that falls and bounces, in closed form"
LAW = "Newton's law of impact, by the mass matrix and rows of rigid bodies in NumPy"
NUMBERS = {"Solution.events": FALL, "states_at": FALL, "Solution.end, after an impact": LAW}
BOUNCES = 4
ADAPTIVE = (mbd.DormandPrince, mbd.Rodas, mbd.DormandPrince8)
SHORT = 1e-8
"""Time until an impact, in which forces change no speeds, as a share of that of the motion."""
BLOCKED = 1e-8
"""Share of a direction, within what the constraints leave of it, that is rounding."""


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Falls, and single impacts in mechanisms."""
    yield from judge_falls(seed, size)
    samples = max(3, round(size / 8 / len(mechanisms.KINDS)))
    for name in mechanisms.KINDS:
        yield from judge_impact(mechanisms.batch(name, samples, seed))
        jax.clear_caches()


def judge_falls(seed: int, size: int) -> Iterator[Judged]:
    """Falls from heights, with gravity and restitution, of all sizes."""
    rng, n = np.random.default_rng(seed), max(4, size // 40)
    height, gravity = 10.0 ** rng.uniform(-3.0, 2.0, n), 10.0 ** rng.uniform(-1.0, 2.0, n)
    restitution = rng.uniform(0.2, 1.0, n)
    adaptive = [kind(rtol=1e-9, atol=1e-11) for kind in ADAPTIVE]
    for method in [*adaptive, mbd.RK4(), mbd.GeneralizedAlpha()]:
        found = _numpy(jax.jit(mbd.lanes.vmap(_fall(method)))(height, gravity, restitution))
        for i in range(n):
            text = f"h={height[i]:.6g}, g={gravity[i]:.6g}, e={restitution[i]:.6g}"
            text = f"{text}, {type(method).__name__}, seed {seed}"
            ok = bool(found["status"][i] == 0)
            first = np.sqrt(2.0 * height[i] / gravity[i])
            flights = 2.0 * first * restitution[i] ** np.arange(1, BOUNCES + 1)
            times = first + np.concatenate([[0.0], np.cumsum(flights)])
            count = int(np.sum(times < found["end"][i]))
            told = found["count"][i]
            yield compare("Solution.events", told, count, limit=0.0, detail=text, ok=ok)
            at = found["times"][i][:count] / first
            want = times[:count] / first
            yield compare("Solution.events", at, want, limit=1e-9, detail=text, ok=ok)
            t = found["t"][i]
            q = height[i] - 0.5 * gravity[i] * t**2
            yield compare("states_at", found["q"][i], q, limit=1e-9, detail=text, ok=ok)
            v = -gravity[i] * t
            yield compare("states_at", found["v"][i], v, limit=1e-9, detail=text, ok=ok)


def _fall(method: Any) -> Any:
    """The function of height, gravity and restitution; it runs until between two bounces."""

    def fall(height: Any, gravity: Any, restitution: Any) -> dict[str, Any]:
        mech = mbd.Mechanism(
            {"mass": mbd.Body(1.0, (0.0, 0.0, 0.0), np.eye(3))},
            {"slide": mbd.Prismatic("ground", "mass", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))},
            gravity=jnp.stack([0.0 * gravity, 0.0 * gravity, -gravity]),
        )
        first = jnp.sqrt(2.0 * height / gravity)
        end = first * (1.0 + 2.0 * jnp.sum(restitution ** jnp.arange(1.0, BOUNCES)))
        end = end + first * restitution**BOUNCES
        floor = mbd.Event(lambda t, q, v: q[0], direction=-1, restitution=restitution)
        run = mbd.simulate(
            mech, height[None], t=jnp.stack([0.0 * end, 0.4 * first, 0.8 * first, end]),
            method=method, save_every=8, events={"floor": floor}, throw=False,
        )  # fmt: skip
        times = first * jnp.array([0.1, 0.5, 0.7])
        q, v = mbd.states_at(mech, run, times)
        seen = run.events["floor"]
        return {
            "status": run.status, "end": end, "count": seen.count, "times": seen.t,
            "t": times, "q": q[:, 0], "v": v[:, 0],
        }  # fmt: skip

    return fall


def judge_impact(b: mechanisms.Batch) -> Iterator[Judged]:
    """Speeds after a point of the last body has hit a plane close before it."""
    r, q, v, ok, s = drawn_start(b, 13)
    rng, n = np.random.default_rng([b.seed, 17]), len(b.dicts)
    restitution = rng.uniform(0.0, 1.0, n)
    body, point = b.mech.structure.bodies[-1], b.mech.structure.points[-1]
    placed = r.place(q, v)
    at = r.point(placed, body, r.points[point])
    fast = np.linalg.norm(at.d, axis=1)
    normal = -at.d / np.maximum(fast, 1e-300)[:, None]
    approach = np.sum(normal * at.d, axis=1)
    still = fast < 1e-3 * np.linalg.norm(v / r.units, axis=1) * s.length
    swift, pull = (np.linalg.norm(x / r.units, axis=1) for x in (v, [x.least for x in s.solved]))
    time = SHORT / np.maximum(swift / s.length, pull / np.maximum(swift, 1e-300))
    time = np.where(still | ~ok, 1.0, time)
    level = np.sum(normal * at.v, axis=1) + approach * time

    def engine(mech: Any, q: Any, v: Any, normal: Any, level: Any, e: Any, t: Any) -> Any:
        def plane(t: Any, q: Any, v: Any) -> Any:
            return normal @ _in_space(mbd.point_position(mech, q, body, point)) - level

        hit = {"hit": mbd.Event(plane, direction=-1, restitution=e)}
        t = t * jnp.array([0.0, 3.0])
        found = mbd.simulate(
            mech,
            q,
            v,
            t=t,
            method=mbd.DormandPrince(),
            events=hit,
            throw=False,
            keep_inaccurate=False,
        )
        return found.status, found.events["hit"].count, found.events["hit"].t[0], found.end.v

    called = mbd.lanes.vmap(engine)(b.stacked, q, v, normal, level, restitution, time)
    status, count, when, after = _numpy(called)
    mass, rows = r.mass_matrix(q), r.jacobian(q)[0]
    wanted, count_wanted = np.full_like(v, np.nan), np.ones(n)
    for i in np.flatnonzero(ok & ~still):
        along = np.zeros(r.nv)
        for k in range(r.nv):
            unit = np.zeros((n, r.nv))
            unit[:, k] = 1.0
            along[k] = normal[i] @ r.point(r.place(q, unit), body, r.points[point]).d[i]
        moved = solve(mass[i], along, rows[i], np.zeros(len(rows[i])), r.units[i]).least
        free = along - rows[i].T @ np.linalg.lstsq((rows[i] * r.units[i]).T, r.units[i] * along)[0]
        if np.linalg.norm(r.units[i] * free) < BLOCKED * np.linalg.norm(r.units[i] * along):
            count_wanted[i] = np.inf  # by a motion that is imposed: to be told, whatever is counted
        else:
            wanted[i] = v[i] - (1.0 + restitution[i]) * approach[i] / (along @ moved) * moved
    # Rounding decides whether such a gap is open, and how often it is hit.
    narrow = -approach * time < 1e-11 * s.length
    good = ok & ((status == 0) | (status == mbd.Status.ZENO))
    cases = instants._Cases(b, good, s.near_rank | s.changing | ~ok | still | narrow, ", an impact")
    yield from cases("Solution.events", count, count_wanted, 0.0, 0.0)
    way = np.where(np.isfinite(count_wanted), -approach / s.length, np.nan)
    yield from cases("Solution.events", way * when, way * time, 1.0, 1e-13)
    size = np.linalg.norm(wanted / r.units, axis=1)
    got = after / r.units
    yield from cases("Solution.end, after an impact", got, wanted / r.units, size, 1e-5)


def _in_space(x: Any) -> Any:
    """A point of a planar mechanism with its third coordinate, zero."""
    return x if x.shape == (3,) else jnp.append(x, 0.0)
