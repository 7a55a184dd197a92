"""Published problems of linkage synthesis with printed results: ours, times, successes over seeds.

    python benchmarks/published_synthesis.py [--seeds 20] [--only NAME …] [--json FILE]

Errors and defects are those of the followers of `synthesis_cases.published`, which share no code
with the package. A seed succeeds if its linkage works and its error is at most the printed one;
where the points were met exactly, at most a millionth.
"""

from __future__ import annotations

import os
import time
from typing import Any

import _script
import numpy as np

_script.start()

EXACT = 1e-6


def one(problem: Any, case: Any, seed: int, options: Any) -> dict[str, Any]:
    """One seed: the error, whether the linkage works, and seconds."""
    from synthesis_cases.published import judged, path

    from jaxmbd.synthesis import synthesize

    began = time.perf_counter()
    try:
        found = synthesize(
            problem, starts=case.starts, seed=seed, steps=options.steps, finishes=options.finishes
        )
    except ValueError as error:
        return {"failed": str(error).splitlines()[0], "seconds": time.perf_counter() - began}
    seconds = time.perf_counter() - began
    points, works = judged(found, case.follower or path)
    at = {name: np.asarray(x).tolist() for name, x in found.mechanism.points.items()}
    error = case.error(points, found.inputs)
    return {"error": error, "works": works, "seconds": seconds, "points": at}


def measured(name: str, options: Any) -> dict[str, Any]:
    """All seeds of one problem."""
    from synthesis_cases.published import CASES

    case = CASES[name]
    problem = case.problem()
    load = os.getloadavg()[0]
    rows = [one(problem, case, seed, options) for seed in range(options.seeds)]
    good = [row for row in rows if row.get("works")]
    best = min(good, key=lambda row: row["error"], default={})
    limit = max(case.printed[0], EXACT)
    return {
        "problem": case.text,
        "published": case.printed[0],
        "meaning": case.printed[1],
        "error": best.get("error"),
        "median of seeds": float(np.median([row.get("error", np.inf) for row in rows])),
        "points": best.get("points"),
        "starts": case.starts,
        "seeds": options.seeds,
        "succeed": sum(row["error"] <= limit for row in good) / options.seeds,
        "with defects": len([row for row in rows if row.get("works") is False]),
        "load at start": round(load, 2),
        "first seconds": rows[0]["seconds"],
        "median seconds": float(np.median([row["seconds"] for row in rows])),
    }


def main() -> None:
    from synthesis_cases.published import CASES
    from throughput_cases.machine import machine, versions

    parser = _script.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=20, help="of the search, per weight")
    parser.add_argument("--finishes", type=int, default=2, help="best results that are finished")
    parser.add_argument("--only", nargs="*", choices=list(CASES), help="some problems")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": machine(), "versions": versions(), "cases": {}}
    for name in options.only or CASES:
        row = results["cases"][name] = measured(name, options)
        print(name, {key: value for key, value in row.items() if key != "points"}, flush=True)
        _script.write(options.json, results)


if __name__ == "__main__":
    main()
