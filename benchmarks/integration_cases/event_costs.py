"""What events cost: 200 of them against one, in the same program, on a vibrating mass."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from integration_cases.timing import by_turns
from jaxmbd import lanes

PERIODS, SAMPLES = 100, 256
RTOL = 1e-8


def vibration() -> mbd.Mechanism:
    """1 kg on a spring, a vibration of one second, as drawn at the middle."""
    return mbd.Mechanism(
        {"mass": mbd.Body(1.0, (0.0, 0.0, 0.0), np.eye(3))},
        {"slide": mbd.Prismatic("ground", "mass", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))},
        {"spring": mbd.TorsionSpring("slide", stiffness=(2.0 * np.pi) ** 2)},
        gravity=(0.0, 0.0, 0.0),
    )


def measured(quick: bool = False) -> dict[str, Any]:
    """Counts and CPU times of runs: one lane, and each of a batch.

    Recorded: passages of the middle, 200 of them, or a time that comes once. Impacts: a lossless
    wall at the middle, or so far away that it is never hit.
    """
    mech, periods = vibration(), 3 if quick else PERIODS
    method = mbd.DormandPrince(rtol=RTOL, atol=1e-2 * RTOL, most=2**16)

    def run(kind: str, often: Any, q: Any) -> Any:
        def passage(t: Any, q: Any, v: Any) -> Any:
            return jnp.where(often > 0.0, q[0], t - 0.503 * periods)

        def wall(t: Any, q: Any, v: Any) -> Any:
            return q[0] + 5.0 * (1.0 - often)

        event = {
            "recorded": mbd.Event(passage, keep=256),
            "impacts": mbd.Event(wall, restitution=1.0, keep=256),
        }[kind]
        t1 = float(periods)
        options = {"outputs_only": True, "throw": False, "events": {"it": event}}
        found = mbd.simulate(mech, q, t1=t1, dt=t1, method=method, **options)
        return found.events["it"].count, found.q[-1], found.steps, found.status

    results: dict[str, Any] = {"periods": periods, "samples": SAMPLES}
    q = jnp.linspace(0.9, 1.1, 8 if quick else SAMPLES)[:, None]
    for kind in ("recorded", "impacts"):
        one = jax.jit(partial(run, kind))
        many = jax.jit(lanes.vmap(partial(run, kind), in_axes=(None, 0)))
        cases = {
            f"{what}, {n}": lambda f=f, x=x, n=n: f(float(n), x)
            for what, f, x in (("one lane", one, jnp.ones(1)), ("batch", many, q))
            for n in (0, 1)
        }
        for function in cases.values():
            function()  # which compiles
        cost = by_turns(cases, rounds=2 if quick else 7)
        counts = [int(one(float(n), jnp.ones(1))[0]) for n in (0, 1)]
        steps = [int(one(float(n), jnp.ones(1))[2]) for n in (0, 1)]
        row = {"events": counts, "steps": steps}
        for what in ("one lane", "batch"):
            few, lot = (cost[f"{what}, {n}"].cpu for n in (0, 1))
            row[f"{what}, ms"] = [1e3 * few, 1e3 * lot]
            row[f"{what}, ratio"] = lot / few
        results[kind] = row
    return results
