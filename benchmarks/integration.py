"""Work and precision of the methods of integration.

    python benchmarks/integration.py --json benchmarks/results/integration.json
    python benchmarks/integration.py --only squeezer --no-peers
    python benchmarks/integration.py --quick

Andrews' squeezing mechanism, and a multi-link corner whose bushings have 1e7 and 1e8 N/m, dropped
from equilibrium. For each method and tolerance: the largest error at a saved time [rad, m] against
the same motion at a hundredth of the tightest tolerance, the share that the run itself estimates,
steps, CPU seconds of the first call of a program (later ones have other numbers), milliseconds of
one run, and microseconds a sample of a batch in which each sample has a gravity of its own.

The other parts (`integration_cases`) are published motions under one call, work and precision
beside Exudyn, a run of 1000 s, and what events, derivatives and the account of errors cost; and
shares of random runs whose estimates and verdicts are right.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import _script
import jax
import jax.numpy as jnp
import numpy as np
from derivatives_compile import corner
from integration_cases import (
    account_cost,
    cut_runs,
    event_costs,
    gradient_costs,
    long_run,
    references,
    run_estimates,
    work_precision,
)
from integration_cases.timing import by_turns, once
from throughput_cases.columns import keep_nothing
from throughput_cases.machine import commit, machine, versions

import jaxmbd as mbd
from jaxmbd import lanes

SAMPLES, PEER_SAMPLES = 1000, 8


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


def soft_corner(stiffness: float) -> Case:
    """The corner with all three soft joints as stiff along their rows."""
    mech, _ = corner()
    soft = [n for n, x in mech.forces.items() if isinstance(x, mbd.SoftJoint)]
    numbers = {f"forces/{n}/stiffness/1": stiffness for n in soft}
    mech = mbd.set_variables(mech, numbers)
    q = mbd.equilibrium(mech).q
    steps = (5e-5, 2e-5) if stiffness < 3e7 else (1e-5,)
    mech = mech.replace(gravity=(0.0, 0.0, -15.0))
    return Case(mech, q, 0.2, 0.01, steps, mbd.Rodas(rtol=1e-11, atol=1e-13))


CASES: dict[str, Callable[[], Case]] = {
    "squeezer": squeezer,
    "corner_1e7": lambda: soft_corner(1e7),
    "corner_1e8": lambda: soft_corner(1e8),
}


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


def peers(case: Case) -> list[tuple[str, Any, dict[str, float]]]:
    import diffrax

    tolerances = {"dt": case.dt, "rtol": 1e-6, "atol": 1e-8}
    return [("diffrax Kvaerno5, 1e-06", diffrax.Kvaerno5(), tolerances)]


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
    return jnp.asarray(float(case.mech.gravity[2]) + 0.002 * np.arange(samples))


def measured(case: Case, name: str, method: Any, options: dict[str, float]) -> tuple[dict, Any]:
    """A row of the table but for its error, and the coordinates at the saved times of the case."""
    first, found = once(lambda: run(case, method, options))
    samples = PEER_SAMPLES if hasattr(method, "term_structure") else SAMPLES
    function, gravity = batched(case, method, options), gravities(case, samples)
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
        "batch_us_per_sample": round(1e6 * costs["batch"].wall / samples, 2),
    }
    return row, np.asarray(found.q)[::every]


PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "references": references.measured,
    "beside Exudyn": work_precision.measured,
    "long run": long_run.measured,
    "events": event_costs.measured,
    "gradients": gradient_costs.measured,
    "account": account_cost.measured,
    "cut runs": cut_runs.measured,
    "estimates": run_estimates.measured,
}


def case_rows(name: str, with_peers: bool) -> list[dict[str, Any]]:
    """The rows of a case's table."""
    case, found = CASES[name](), []
    rows = methods(case)
    if with_peers and name == "corner_1e7":
        rows += peers(case)
    for row in rows:
        found.append(measured(case, *row))
        print(name, found[-1][0], flush=True)
    best = run(case, case.reference, {"dt": case.dt})
    assert int(best.status) == mbd.Status.OK, best.status
    for row, q in found:
        row["error"] = float(np.abs(q - np.asarray(best.q)).max())
        print(name, row["method"], f"error {row['error']:.3g}", flush=True)
    return [row for row, _ in found]


def part(name: str, quick: bool) -> dict[str, Any]:
    """A part's results, with what they were measured on."""
    load, start = machine()["load_at_start"], time.process_time()
    found = PARTS[name](quick)
    told = {"commit": commit(), "load_at_start": load, "quick": quick}
    return told | {"cpu_s": round(time.process_time() - start, 1)} | found


def plain(x: Any) -> Any:
    """For JSON, which has no NaN."""
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, list):
        return [plain(v) for v in x]
    return None if isinstance(x, float) and not np.isfinite(x) else x


def main(given: list[str] | None = None) -> dict[str, Any]:
    """Measure and print; what is not measured now is kept in the results file."""
    parser = _script.parser(__doc__)
    names = [*PARTS, *CASES]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--no-peers", action="store_true", help="leave diffrax out")
    parser.add_argument("--quick", action="store_true", help="small sizes, and no cases")
    arguments = parser.parse_args(given)
    _script.start(cache=False)
    keep_nothing()
    results: dict[str, Any] = {}
    if arguments.json and arguments.json.exists():
        results = json.loads(arguments.json.read_text(encoding="utf-8"))
    results |= {"samples": SAMPLES, "samples_of_peers": PEER_SAMPLES}
    results |= {"machine": machine(), "versions": versions()}
    for name in arguments.only:
        if name in PARTS:
            results[name] = plain(part(name, arguments.quick))
            print(name, json.dumps(results[name], indent=1, ensure_ascii=False), flush=True)
        elif not arguments.quick:
            results[name] = plain(case_rows(name, not arguments.no_peers))
        order = ("samples", "samples_of_peers", "machine", "versions", *names)
        results = {k: results[k] for k in order if k in results}
        _script.write(arguments.json, results)
    return results


if __name__ == "__main__":
    main()
