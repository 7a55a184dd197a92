"""Work and precision of the methods of integration.

    python benchmarks/integration.py --json benchmarks/results/integration.json
    python benchmarks/integration.py --only methods corner
    python benchmarks/integration.py --quick

Each part is a module of `integration_cases`: the methods on one mechanism, a corner with stiff
bushings, published motions under one call, work and precision beside Exudyn, a run of 1000 s, what
events, derivatives and the account of errors cost, shares of random runs whose estimates and
verdicts are right, and batches of runs of very different lengths.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import _script
import numpy as np
from integration_cases import (
    account_cost,
    corner,
    cut_runs,
    event_costs,
    gradient_costs,
    long_run,
    methods,
    references,
    run_estimates,
    spread,
    work_precision,
)
from throughput_cases.columns import keep_nothing
from throughput_cases.machine import commit, machine, versions

PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "methods": methods.measured,
    "corner": corner.measured,
    "references": references.measured,
    "beside Exudyn": work_precision.measured,
    "long run": long_run.measured,
    "events": event_costs.measured,
    "gradients": gradient_costs.measured,
    "account": account_cost.measured,
    "cut runs": cut_runs.measured,
    "estimates": run_estimates.measured,
    "spread": spread.measured,
}


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
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    arguments = parser.parse_args(given)
    _script.start(cache=False)
    keep_nothing()
    results: dict[str, Any] = {}
    if arguments.json and arguments.json.exists():
        results = json.loads(arguments.json.read_text(encoding="utf-8"))
    results |= {"machine": machine(), "versions": versions()}
    for name in arguments.only:
        results[name] = plain(part(name, arguments.quick))
        print(name, json.dumps(results[name], indent=1, ensure_ascii=False), flush=True)
        results = {k: results[k] for k in ("machine", "versions", *PARTS) if k in results}
        _script.write(arguments.json, results)
    return results


if __name__ == "__main__":
    main()
