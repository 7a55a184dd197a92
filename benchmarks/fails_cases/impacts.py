"""A mass that falls on a floor again and again, and its states between saved times, in closed form.

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
from fails_cases.judged import Judged, compare
from fails_cases.statics import _numpy

FALL = "a mass that falls and bounces, in closed form"
NUMBERS = {"Solution.events": FALL, "states_at": FALL}
BOUNCES = 4


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Falls from heights, with gravity and restitution, of all sizes."""
    rng, n = np.random.default_rng(seed), max(4, size // 40)
    height, gravity = 10.0 ** rng.uniform(-3.0, 2.0, n), 10.0 ** rng.uniform(-1.0, 2.0, n)
    restitution = rng.uniform(0.2, 1.0, n)
    for kind in (mbd.DormandPrince, mbd.Rodas, mbd.DormandPrince8):
        found = _numpy(jax.jit(mbd.lanes.vmap(_fall(kind)))(height, gravity, restitution))
        for i in range(n):
            text = f"h={height[i]:.6g}, g={gravity[i]:.6g}, e={restitution[i]:.6g}, {kind.__name__}"
            text, ok = f"{text}, seed {seed}", bool(found["status"][i] == 0)
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


def _fall(kind: Any) -> Any:
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
            method=kind(rtol=1e-9, atol=1e-11), events={"floor": floor}, throw=False,
        )  # fmt: skip
        times = first * jnp.array([0.1, 0.5, 0.7])
        q, v = mbd.states_at(mech, run, times)
        seen = run.events["floor"]
        return {
            "status": run.status, "end": end, "count": seen.count, "times": seen.t,
            "t": times, "q": q[:, 0], "v": v[:, 0],
        }  # fmt: skip

    return fall
