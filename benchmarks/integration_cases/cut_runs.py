"""One motion cut into calls: 500 steps of a corner in 1, 5, 50 and 100 calls, lane by lane."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
from throughput_cases.catalogue import CASES
from throughput_cases.work import ROLLOUT, arguments

import jaxmbd as mbd
from jaxmbd import lanes

STEPS, LANES, CALLS = 500, 256, (1, 5, 50, 100)
STEP = 2e-4, 4e-3  # of the first and the last lane [s]: too long for some of them


def measured(quick: bool = False) -> dict[str, Any]:
    """Counts of verdicts by number of calls, and of lanes that differ from the single call."""
    steps, number = (20, 8) if quick else (STEPS, LANES)
    case = CASES["multi_link"]
    design, q, v = arguments(case, ROLLOUT, number, "float64")
    dt = np.geomspace(*STEP, number)

    @partial(jax.jit, static_argnums=0)
    def run(steps: int, design: Any, start: Any, v: Any, dt: Any) -> Any:
        def one(design: Any, start: Any, v: Any, dt: Any) -> Any:
            options = {"outputs_only": True, "throw": False}
            return mbd.simulate(case.mechanism(design), start, v, steps=steps, dt=dt, **options)

        return lanes.vmap(one)(design, start, v, dt)

    rows: list[dict[str, Any]] = []
    whole: Any = None
    for calls in (n for n in CALLS if n <= steps):
        found = run(steps // calls, design, q, v, dt)
        for _ in range(calls - 1):
            found = run(steps // calls, design, found.end, None, dt)
        whole = found if whole is None else whole
        status = np.asarray(found.status)
        same = np.asarray(found.end.q == whole.end.q) | np.isnan(np.asarray(whole.end.q))
        names = {s.name: int(np.sum(status == s)) for s in mbd.Status if np.any(status == s)}
        rows.append(
            {
                "calls": calls,
                "verdicts": names,
                "other_verdicts": int(np.sum(status != np.asarray(whole.status))),
                "other_states": int(np.sum(~same.all(axis=1))),
            }
        )
    return {"steps": steps, "lanes": number, "rows": rows}
