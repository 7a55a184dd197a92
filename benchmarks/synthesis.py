"""Linkage synthesis: best designs, how optimal, how many starts reach them, how long it takes.

    python benchmarks/synthesis.py [--starts 256] [--seed 0] [--only NAME …] [--json FILE]

For each problem of `synthesis_cases.tasks`: `jaxmbd.synthesis.synthesize`, whose search solves for
closure simultaneously; beside it, starts of the same kind whose loops are closed at every step
(`jaxmbd.minimize`), and differential evolution with a closed form. Errors are the sum of squared
distances at the positions, as the literature prints them. The first time includes compiling.
"""

from __future__ import annotations

import time
from typing import Any

import _script
import numpy as np

_script.start()

ROUNDS = 2000


def searched(problem: Any, options: Any) -> tuple[Any, dict[str, Any]]:
    """The synthesis, and its figures."""
    from jaxmbd.synthesis import synthesize

    cpu = time.process_time()
    starts, steps, finishes = options.starts, options.steps, options.finishes
    found = synthesize(problem, starts=starts, seed=options.seed, steps=steps, finishes=finishes)
    errors = found.errors[np.isfinite(found.errors)]
    return found, {
        "error": found.error,
        "root mean square": found.root_mean_square,
        "KKT residual": found.kkt,
        "KKT residual, relative to where the finish began": found.optimum.kkt,
        "starts": starts,
        "starts without defect": found.working,
        "starts that reach it": found.reached(),
        "starts within ten times": float(np.sum(errors <= 10.0 * found.error) / starts),
        "median of starts": float(np.median(errors)),
        "search [s]": found.seconds[0],
        "finish [s]": found.seconds[1],
        "CPU [s]": time.process_time() - cpu,
        "design": found.values,
        "inputs [rad]": found.inputs.tolist(),
        "defects": str(found.defects),
        "finished": np.sort(found.optimum.objectives * found.problem.task.size**2).tolist(),
        "evaluations of the finish": found.optimum.evaluations,
        "binding": sorted(n for n, m in found.optimum.multipliers.items() if m != 0.0),
    }


def closed_throughout(problem: Any, starts: int, seed: int, best: float) -> dict[str, Any]:
    """The same with loops closed at every step: `minimize`, from the best of 8 random designs."""
    from jaxmbd.synthesis import finish

    cpu, wall = time.process_time(), time.perf_counter()
    figures: dict[str, Any] = {"starts": starts}
    try:
        found = finish(problem, None, starts=starts, candidates=8 * starts, seed=seed)
    except ValueError as error:
        return figures | {"failed": str(error).splitlines()[0]}
    errors = found.objectives * problem.task.size**2
    none = problem.positions * (1e-5 * problem.task.size) ** 2
    return figures | {
        "error": float(np.nanmin(errors)) if np.isfinite(errors).any() else None,
        "starts that end feasible": float(np.mean(np.isfinite(errors))),
        "starts that reach the best": float(np.mean(errors <= 1.01 * best + none)),
        "seconds": time.perf_counter() - wall,
        "CPU [s]": time.process_time() - cpu,
    }


def measured(name: str, options: Any) -> dict[str, Any]:
    """All figures of one problem."""
    from synthesis_cases.evolution import evolve
    from synthesis_cases.tasks import CASES

    case = CASES[name]
    problem = case.problem()
    found, row = searched(problem, options)
    row = {"problem": case.text, "unknowns": len(problem.limits[0])} | row
    if name == "logarithm":
        row["largest error between positions [deg]"] = structural_error(found)
    if options.closed:
        row["loops closed throughout"] = closed_throughout(
            problem, options.closed, options.seed, found.error
        )
    if case.box is not None and case.links is not None and options.rounds:
        inputs = problem.task.inputs
        step = None if inputs is None else float(np.degrees(inputs[1]))
        row["differential evolution"] = evolve(
            problem.task.rows, case.box, case.links, step, options.seed, options.rounds
        )
    return row


def structural_error(found: Any) -> float:
    """Largest error [deg] of the function generator over its range, between the positions too."""
    from jaxmbd.graph import topology
    from jaxmbd.synthesis import follow

    x = np.linspace(1.0, 2.0, 201)
    q = follow(found.mechanism, "crank", np.deg2rad(90.0) * (x - 1.0)).q
    place = topology(found.mechanism).layout["rocker"].q
    output = np.asarray(q)[:, place][:, 0]
    return float(np.max(np.abs(np.degrees(output) - 60.0 * np.log2(x))))


def main() -> None:
    from synthesis_cases.tasks import CASES
    from throughput_cases.machine import machine, versions

    options = _parser(list(CASES)).parse_args()
    results: dict[str, Any] = {"machine": machine(), "versions": versions(), "seed": options.seed}
    results["cases"] = {}
    for name in options.only or CASES:
        row = results["cases"][name] = measured(name, options)
        print(f"{name}: {row['problem']}")
        for key, value in row.items():
            if key not in ("problem", "design", "inputs [rad]"):
                print(f"  {key}: {value:.6g}" if isinstance(value, float) else f"  {key}: {value}")
        print(flush=True)
        _script.write(options.json, results)


def _parser(names: list[str]) -> Any:
    parser = _script.parser(__doc__)
    parser.add_argument("--starts", type=int, default=256, help="of the simultaneous search")
    parser.add_argument("--steps", type=int, default=60, help="of it, for each of its 23 weights")
    parser.add_argument("--finishes", type=int, default=16, help="best results that are finished")
    parser.add_argument("--closed", type=int, default=32, help="starts with loops closed; 0: none")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of differential evolution")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=names, help="some problems")
    return parser


if __name__ == "__main__":
    main()
