"""Design of a corner with less bump steer: exact gradients, differences, an evolution strategy.

    python benchmarks/design.py [--json FILE]

Every method runs in a process of its own with empty caches: seconds are from the process's start,
importing and compiling included. All results are then judged alike, with exact derivatives.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import _script

_script.start()

import numpy as np  # noqa: E402
from design_cases.bump_steer import BumpSteer  # noqa: E402
from throughput_cases.machine import machine, versions  # noqa: E402

from jaxmbd.design import Evaluation, Unknowns  # noqa: E402
from jaxmbd.design.optimality import optimality  # noqa: E402
from jaxmbd.design.problem import OBJECTIVE, Point, Problem, Scaled  # noqa: E402

NAMES = (
    "SLSQP, exact gradients",
    "trust-constr, exact Hessian products",
    "SLSQP, exact gradients, 64 starts",
    "SLSQP, finite differences",
    "CMA-ES",
)


def solved(name: str) -> dict[str, Any]:
    """What a method finds in a process of its own, from a cold start."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(_script.HERE), str(_script.HERE.parent), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "JAX_COMPILATION_CACHE_DIR": str(Path(folder) / "jax"),
            "JAXMBD_LANES_CACHE": str(Path(folder) / "lanes"),
        }
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "design_cases.solvers", name],
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
    return json.loads(done.stdout.splitlines()[-1])


class Judge:
    """Judges designs alike: bump steer, clearance, KKT residual."""

    def __init__(self):
        self.case = BumpSteer()
        self.unknowns = Unknowns.of(self.case.model, self.case.vary)
        goals = {OBJECTIVE: self.case.objective, "clearance": "clearance"}
        self.evaluation = Evaluation(self.unknowns, goals, self.case.observe)
        self.problem = Problem(self.evaluation, self.case.constraints)
        self.scaled = Scaled.about(self.problem, self.point(np.zeros(len(self.unknowns))))

    def point(self, x: np.ndarray) -> Point:
        row, slope = self.evaluation.jacobians(x[None])
        return Point(x, row[0], slope[0])

    def __call__(self, found: dict[str, Any]) -> dict[str, Any]:
        x = np.array(found.pop("x"))
        point = self.point(x)
        state = optimality(self.scaled, point)
        return found | {
            "objective": self.problem.objective(point)[0],
            "bump steer, rms [deg]": self.case.root_mean_square(self.unknowns.model(x)),
            "clearance kept [m]": float(point.row[1] - self.case.apart),
            "KKT residual": state.residual,
        }


def main() -> None:
    args = _script.parser(__doc__).parse_args()
    judge = Judge()
    before = judge.case.root_mean_square(judge.case.model)
    print(f"published: {before:.4f} deg rms; clearance {judge.case.apart:.4f} m")
    rows = {}
    for name in NAMES:
        rows[name] = judge(solved(name))
        print(name, json.dumps(rows[name]))
    wide = solved("wide")
    print("wide", json.dumps(wide))
    found = {
        "machine": machine(),
        "versions": versions(),
        "published, rms [deg]": before,
        "clearance [m]": judge.case.apart,
        "methods": rows,
        "starts that cannot close": wide,
    }
    _script.write(args.json, found)
    best = rows[NAMES[0]]
    least = min(row["objective"] for row in rows.values())
    failed = [
        text
        for text, bad in (
            ("bump steer is not cut tenfold", best["bump steer, rms [deg]"] > 0.1 * before),
            ("no KKT point to 1e-8", best["KKT residual"] > 1e-8),
            ("the clearance is not kept", best["clearance kept [m]"] < -1e-9),
            ("it takes 30 s", best["seconds"] > 30.0),
            ("no start that could not close came back", not wide["of them end feasible"]),
            ("another method found better", best["objective"] > least * (1 + 1e-6)),
        )
        if bad
    ]
    sys.exit("; ".join(failed) if failed else 0)


if __name__ == "__main__":
    main()
