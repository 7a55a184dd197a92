"""Switches: a relay with hysteresis that pushes parallel arms in space to and fro, in closed form.

Without a spring the arms turn by ``θ̈ = ±τ/I`` (`swinging_arms`): the effort is τ until θ passes
`high`, and −τ until it passes `low`. Each stretch is a parabola. A counter is raised at each
switching, and with `latch` an event that `when` allows only then switches the effort off for good.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases.judged import Judged, compare
from fails_cases.statics import _numpy
from fails_cases.swinging_arms import KINDS, drawn, place, state, with_rates

RELAY = "parallel arms with a relay, in closed form"
NUMBERS = {
    "Solution.switches": RELAY,
    "Solution.forced": "whether the run has inputs",
    "Solution.events": RELAY,
    "Solution.q": RELAY,
    "Solution.v": RELAY,
    "Solution.end": "the whole run, in place of two halves with a file between them",
    "EnergyBalance.inputs": RELAY,
    "EnergyBalance.impacts": f"{RELAY}: of the intervals in which the relay switches",
    "Verification.digits_q": f"{RELAY}: within one",
}
ROWS, SWITCHINGS, MOST = 24, 4, 9.0
METHODS = {"dormand_prince": mbd.DormandPrince, "rodas": mbd.Rodas, "rk4": mbd.RK4}


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Relays by each method, in a batch of which one sample is no number; in halves; verified."""
    rng = np.random.default_rng(seed)
    for kind in rng.permutation(KINDS)[:2]:
        for method in METHODS:
            yield from judge_relays(seed, str(kind), method, max(4, size // 25))
    yield from judge_digits(seed, max(1, size // 100))


def relay(i: int, high: Any, low: Any, latch: Any) -> tuple[dict[str, mbd.Event], Any]:
    """The events, and the effort by a function of the switches."""

    def counted(t: Any, q: Any, v: Any, switches: Any) -> dict[str, Any]:
        count = switches["count"] + 1.0
        return {"on": -switches["on"], "count": count, "last": (count >= SWITCHINGS) * latch}

    events = {
        "high": mbd.Event(lambda t, q, v: q[i] - high, 1, sets=counted, when={"on": 1.0}),
        "low": mbd.Event(lambda t, q, v: q[i] - low, -1, sets=counted, when={"on": -1.0}),
        "off": mbd.Event(lambda t, q, v: q[i] - 0.5 * (high + low), sets={"on": 0.0},
                         when={"last": 1.0}),
    }  # fmt: skip
    return events, lambda t, q, v, switches: {"first_foot": switches["effort"] * switches["on"]}


def relayed(
    method: str, middle: Any, mech: Any, torque: Any, high: Any, low: Any, latch: Any, t: Any
) -> Any:
    """The run over all times, or from the end of a run before; and its balance."""
    mech = with_rates(mech, 0.0, 0.0)
    events, inputs = relay(place(mech), high, low, latch)
    kind = METHODS[method]() if method == "rk4" else METHODS[method](rtol=1e-9, atol=1e-12)
    options: dict[str, Any] = {"method": kind, "events": events, "inputs": inputs, "throw": False}
    if method == "rk4":
        options["save_every"] = 4
    start: Any = (middle,)
    if middle is None:
        start = state(mech, 0.0, 0.0)
        options["switches"] = {"on": 1.0, "count": 0.0, "last": 0.0, "effort": torque}
    run = mbd.simulate(mech, *start, t=t, **options)
    return run, mbd.energy_balance(mech, run, inputs=inputs)


def exact(
    torque: float, inertia: float, high: float, low: float, latch: float, t: np.ndarray
) -> Any:
    """Times of the switchings, and at the times t: θ, θ̇ (n,), and the stretch of each (n, 4).

    A stretch is its begin, θ and θ̇ there, and the switch.
    """
    a, now, x, v, on, times, last = torque / inertia, 0.0, 0.0, 0.0, 1.0, [], False
    stretches = []
    while now <= t[-1]:
        stretches.append((now, x, v, on))
        if on == 0.0:
            break
        level = 0.5 * (high + low) if last else (high if on > 0.0 else low)
        c, b, half = x - level, v, 0.5 * a * on
        roots = np.roots([half, b, c])
        roots = np.sort(roots[np.abs(roots.imag) < 1e-9].real)
        tau = roots[roots > 1e-9 / np.sqrt(a)]
        # High is passed while rising, low while falling: the later zero of each parabola.
        tau = float(tau[0] if last else tau[-1])
        now, x, v = now + tau, level, v + a * on * tau
        if last:
            on = 0.0
        else:
            times.append(now)
            on, last = -on, latch > 0.0 and len(times) >= SWITCHINGS
    k = np.searchsorted([s[0] for s in stretches], t, side="right") - 1
    s = np.array(stretches)[k]
    tau = t - s[:, 0]
    force = a * s[:, 3]
    return np.array(times), s[:, 1] + s[:, 2] * tau + 0.5 * force * tau**2, s[:, 2] + force * tau, s


def numbers(rng: np.random.Generator, inertia: np.ndarray) -> tuple[np.ndarray, ...]:
    """Torque, levels, whether latched, and times (n, rows) of a relay for arms."""
    n = len(inertia)
    rate = 10.0 ** rng.uniform(-1.0, 2.0, n)
    high, low = rng.uniform(0.05, 0.12, n), -rng.uniform(0.0, 0.03, n)
    torque = inertia * rate**2
    end = 2.6 * np.sqrt(high) / rate * SWITCHINGS
    t = end[:, None] * np.linspace(0.0, 1.0, ROWS)
    return torque, high, low, 1.0 * (rng.random(n) < 0.5), t


def judge_relays(seed: int, kind: str, method: str, n: int) -> Iterator[Judged]:
    """A batch of relays; the last sample has no number as its effort."""
    rng = np.random.default_rng([seed, list(METHODS).index(method)])
    arms, inertia = drawn(rng, kind, n)
    torque, high, low, latch, t = numbers(rng, inertia)
    torque[-1] = np.nan
    whole = jax.jit(mbd.lanes.vmap(partial(relayed, method, None)))
    run, balance = _numpy(whole(arms, torque, high, low, latch, t))
    half = whole(arms, torque, high, low, latch, t[:, : ROWS // 2])[0]
    with tempfile.TemporaryDirectory() as folder:
        mbd.io.save_run_end(half.end, Path(folder) / "half.npz")
        middle = mbd.io.load_run_end(Path(folder) / "half.npz")
    later = jax.jit(mbd.lanes.vmap(partial(relayed, method)))
    rest, _ = _numpy(later(middle, arms, torque, high, low, latch, t[:, ROWS // 2 - 1 :]))
    mech = jax.tree_util.tree_map(lambda x: x[0], arms)
    for s in range(n):
        text = f"{method}: {kind}, sample {s} of {n}, seed {seed}"
        one = jax.tree_util.tree_map(lambda x, s=s: x[s], (run, balance, rest))
        given = (float(x[s]) for x in (torque, inertia, high, low, latch))
        yield from _switched(one, place(mech), tuple(given), t[s], text)


def _switched(one: Any, i: int, given: Any, t: np.ndarray, text: str) -> Iterator[Judged]:
    run, balance, rest = one
    ok = bool(run.status == 0)
    yield compare("Solution.forced", run.forced, 1.0, limit=0.0, detail=text)
    if not np.isfinite(given[0]):  # it must be flagged, and no row may look right
        worst = float(ok or np.isfinite(run.q[1:]).any())
        yield compare("Solution.q", worst, 0.0, limit=0.0, detail=text)
        return
    times, angle, speed, stretches = exact(*given, t)
    near = np.concatenate([times, stretches[:, 0]])
    apart = np.min(np.abs(t[:, None] - near), axis=1) > 1e-7 * t[-1]
    apart |= t == 0.0
    limit = 1e-6 if "rk4" in text else 1e-8
    told = {"detail": text, "ok": ok}
    yield compare("Solution.switches", run.switches["on"][apart], stretches[apart, 3],
                  limit=0.0, **told)  # fmt: skip
    count = np.searchsorted(times, t, side="right")
    yield compare(
        "Solution.switches", run.switches["count"][apart], count[apart], limit=0.0, **told
    )
    yield compare("Solution.switches", run.switches["effort"], 0.0 * t + given[0], limit=1e-15,
                  **told)  # fmt: skip
    happened = np.sort(np.concatenate([run.events[n].t for n in ("high", "low")]))
    happened = happened[np.isfinite(happened)]
    yield compare("Solution.events", happened / t[-1], times[times <= t[-1]] / t[-1], limit=limit,
                  **told)  # fmt: skip
    yield compare("Solution.q", run.q[:, i], angle, limit=limit, **told)
    yield compare("Solution.v", run.v[:, i], speed, limit=limit, **told)
    both = np.concatenate([rest.q[1:], rest.v[1:], rest.switches["count"][1:, None]], 1)
    first = len(t) - len(both)
    want = np.concatenate([run.q, run.v, run.switches["count"][:, None]], 1)[first:]
    whole = ok and bool(rest.status == 0)
    yield compare("Solution.end", both, want, limit=0.0, detail=text, ok=whole)
    # Work of the relay: its effort times the way in intervals without a switching.
    kinetic = 0.5 * given[1] * speed**2
    change, within = np.diff(kinetic), np.diff(stretches[:, 0]) > 0.0
    scale = float(np.max(kinetic))
    told |= {"limit": 100.0 * limit, "scale": scale}
    if apart.all():
        work = np.append(0.0, np.cumsum(np.where(within, 0.0, change)))
        yield compare("EnergyBalance.inputs", balance.inputs["first_foot"], work, **told)
        work = np.append(0.0, np.cumsum(np.where(within, change, 0.0)))
        yield compare("EnergyBalance.impacts", balance.impacts, work, **told)


def judge_digits(seed: int, n: int) -> Iterator[Judged]:
    """Digits that are told of runs with switches, of all steps."""
    rng = np.random.default_rng([seed, 7])
    kind = "two arms"
    arms, inertia = drawn(rng, kind, n)
    torque, high, low, latch, t = numbers(rng, inertia)
    for s in range(n):
        mech = with_rates(jax.tree_util.tree_map(lambda x, s=s: jnp.asarray(x[s]), arms), 0.0, 0.0)
        i = place(mech)
        events, inputs = relay(i, high[s], low[s], latch[s])
        switches = {"on": 1.0, "count": 0.0, "last": 0.0, "effort": torque[s]}
        given = {"events": events, "inputs": inputs, "switches": switches}
        for method in ("rk4", "auto"):
            more = {"save_every": 2} if method == "rk4" else {"rtol": 1e-7, "atol": 1e-10}
            found = mbd.verify(mech, *state(mech, 0.0, 0.0), t=t[s], method=method, **more, **given)
            text = f"{method}: {kind}, sample {s} of {n}, seed {seed}"
            run = _numpy(found.solution)
            angle = exact(torque[s], inertia[s], high[s], low[s], latch[s], t[s])[1]
            wrong = float(np.max(np.abs(run.q[:, i] - angle)) / np.max(np.abs(angle)))
            true = -np.log10(min(max(wrong, 1e-16), 1.0))
            over = max(min(found.digits_q, MOST) - min(true, MOST) - 1.0, 0.0)
            yield compare("Verification.digits_q", over, 0.0, limit=0.05, detail=text,
                          ok=bool(run.status == 0))  # fmt: skip
