"""Each method of integration on Andrews' squeezing mechanism.

For each method and step or tolerance: the largest error at a saved time [rad] against the same
motion at a hundredth of the tightest tolerance, the share that the run itself estimates, steps, CPU
seconds of the first call of a program (later ones have other numbers), milliseconds of one run, and
microseconds a sample of a batch in which each sample has a gravity of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from integration_cases.timing import by_turns, once
from jaxmbd import lanes

SAMPLES = 1000


class Case(NamedTuple):
    """A motion: a mechanism, its start, the end and the saved interval [s], and RK4's steps [s]."""

    mech: mbd.Mechanism
    q: Any
    t1: float
    dt: float
    steps: tuple[float, ...]
    reference: Any


def squeezer() -> Case:
    mech = mbd.zoo.andrews_squeezer()
    best = mbd.DormandPrince(rtol=1e-12, atol=1e-14)
    return Case(mech, mbd.neutral(mech), 0.03, 0.03, (1e-4, 5e-5, 1e-5), best)


def methods(case: Case) -> list[tuple[str, Any, dict[str, float]]]:
    """Name, method and the arguments of `simulate` that belong to it."""
    saved = {"dt": case.dt}
    found: list[tuple[str, Any, dict[str, float]]] = [
        (f"RK4, {h:g} s", mbd.RK4(), {"dt": h}) for h in case.steps
    ]
    implicit = mbd.GeneralizedAlpha()
    found += [(f"GeneralizedAlpha, {h:g} s", implicit, {"dt": h}) for h in (1e-3, 1e-4)]
    for kind in (mbd.DormandPrince, mbd.DormandPrince8, mbd.Rodas):
        for rtol in (1e-4, 1e-6, 1e-8):
            method = kind(rtol=rtol, atol=1e-2 * rtol)
            found.append((f"{kind.__name__}, {rtol:g}", method, saved))
    return found


def run(case: Case, method: Any, options: dict[str, Any], mech: Any = None) -> Any:
    mech = case.mech if mech is None else mech
    return mbd.simulate(mech, case.q, t1=case.t1, method=method, throw=False, **options)


def batched(case: Case, method: Any, options: dict[str, Any]) -> Callable[[Any], Any]:
    """The end of each sample with a gravity of its own."""

    def one(g: Any) -> Any:
        mech = case.mech.replace(gravity=jnp.stack([0.0 * g, 0.0 * g, g]))
        return run(case, method, options, mech).q[-1]

    over = jax.vmap if hasattr(method, "term_structure") else lanes.vmap
    return jax.jit(over(one))


def gravities(case: Case, samples: int) -> Any:
    """Those of a batch [m/s²]."""
    return jnp.asarray(float(case.mech.gravity[2]) + 2e-4 * np.arange(samples))


def row_of(case: Case, name: str, method: Any, options: dict[str, float]) -> tuple[dict, Any]:
    """A row of the table but for its error, and the coordinates at the saved times of the case."""
    first, found = once(lambda: run(case, method, options))
    function, gravity = batched(case, method, options), gravities(case, SAMPLES)
    function(gravity)
    costs = by_turns(
        {"run": lambda: run(case, method, options), "batch": lambda: function(gravity)}, 3
    )
    every = round(case.dt / options["dt"])
    row = {
        "method": name,
        "estimate": float(found.error),
        "drift": float(found.drift),
        "status": mbd.Status(int(found.status)).name,
        "steps": int(found.steps),
        "rejected": int(found.rejected),
        "first_call_cpu_s": round(first.cpu, 2),
        "one_run_ms": round(1e3 * costs["run"].wall, 3),
        "batch_us_per_sample": round(1e6 * costs["batch"].wall / SAMPLES, 2),
    }
    return row, np.asarray(found.q)[::every]


def measured(quick: bool = False) -> dict[str, Any]:
    """The rows of the table."""
    case, found = squeezer(), []
    for row in methods(case)[: 1 if quick else None]:
        found.append(row_of(case, *row))
        print(found[-1][0], flush=True)
    best = run(case, case.reference, {"dt": case.dt})
    assert int(best.status) == mbd.Status.OK, best.status
    for row, q in found:
        row["error"] = float(np.abs(q - np.asarray(best.q)).max())
    return {"samples": SAMPLES, "rows": [row for row, _ in found]}
