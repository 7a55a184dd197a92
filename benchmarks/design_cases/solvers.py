"""Who minimises: exact gradients, differences, and an evolution strategy, from a cold start.

    python -m design_cases.solvers NAME

A process of its own for each; it prints what it found as JSON. All use the same compiled
evaluation, so that they differ in what they ask of it only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

BEGAN = time.perf_counter()

import _script  # noqa: E402

_script.start(cache=False)

import jax  # noqa: E402
import numpy as np  # noqa: E402
from scipy.optimize import minimize as scipy_minimize  # noqa: E402

import jaxmbd as mbd  # noqa: E402
from design_cases.bump_steer import BumpSteer  # noqa: E402
from jaxmbd import lanes  # noqa: E402
from jaxmbd.design import Closing, Unknowns  # noqa: E402
from jaxmbd.design.problem import starting_points  # noqa: E402

EVALUATIONS = 60_000  # of the evolution strategy, at most
WIDE = 0.35  # [m], limits so wide that many starts cannot close
STARTS = 64


def minimized(problem: BumpSteer, **options: Any) -> Any:
    return mbd.minimize(
        problem.objective,
        problem.model,
        problem.vary,
        observe=problem.observe,
        constraints=problem.constraints,
        **options,
    )


def exact(**options: Any) -> dict[str, Any]:
    problem = BumpSteer()
    found = minimized(problem, **options)
    return {
        "x": problem_vector(problem, found.values),
        "evaluations": found.evaluations,
        "reached": found.reached,
        "starts": len(found.objectives),
    }


def problem_vector(problem: BumpSteer, values: dict[str, float]) -> list[float]:
    unknowns = Unknowns.of(problem.model, problem.vary)
    return unknowns.vector([values[name] for name in unknowns.names]).tolist()


def evaluation(problem: BumpSteer) -> tuple[Unknowns, Callable[[np.ndarray], np.ndarray]]:
    """Objective and clearance (b, 2) of designs (b, n), without derivatives."""
    unknowns = Unknowns.of(problem.model, problem.vary)

    def one(x: Any) -> Any:
        seen = problem.observe(unknowns.model(x))
        return jax.numpy.stack([problem.objective(seen), seen["clearance"]])

    batch = jax.jit(lanes.vmap(one))
    return unknowns, lambda x: np.asarray(batch(x))


def differences() -> dict[str, Any]:
    """SciPy's SLSQP with its own forward differences."""
    problem = BumpSteer()
    unknowns, rows = evaluation(problem)
    count = 0

    def row(x: np.ndarray) -> np.ndarray:
        nonlocal count
        count += 1
        return rows(x[None])[0]

    low, high = unknowns.limits
    found = scipy_minimize(
        lambda x: row(x)[0],
        np.zeros(len(unknowns)),
        method="SLSQP",
        bounds=list(zip(low, high, strict=True)),
        constraints=[{"type": "ineq", "fun": lambda x: row(x)[1] - problem.apart}],
        options={"maxiter": 300, "ftol": 1e-15},
    )
    return {"x": np.clip(found.x, low, high).tolist(), "evaluations": count}


def evolution() -> dict[str, Any]:
    """CMA-ES (pycma) with its limits and an augmented Lagrangian for the clearance."""
    import cma

    problem = BumpSteer()
    unknowns, rows = evaluation(problem)
    low, high = unknowns.limits
    options = {
        "bounds": [low.tolist(), high.tolist()],
        "maxfevals": EVALUATIONS,
        "seed": 1,
        "verbose": -9,
        "tolfun": 1e-14,
        "tolx": 1e-12,
    }
    search = cma.CMAEvolutionStrategy(np.zeros(len(unknowns)), 0.3, options)
    weight, count, best = 10.0, 0, (np.inf, np.zeros(len(unknowns)))
    while not search.stop() and count < EVALUATIONS:
        asked = search.ask()
        found = rows(np.array(asked))
        count += len(asked)
        short = np.maximum(problem.apart - found[:, 1], 0.0) * 1e3  # [mm]
        merit = np.where(np.isfinite(found[:, 0]), found[:, 0] + weight * short, 1e6)
        search.tell(asked, merit.tolist())
        allowed = np.where(short <= 0.0, merit, np.inf)
        k = int(np.argmin(allowed))
        if allowed[k] < best[0]:
            best = (float(allowed[k]), np.array(asked[k]))
    return {"x": best[1].tolist(), "evaluations": count}


def wide() -> dict[str, Any]:
    """Many starts within limits so wide that the loop cannot close at all of them."""
    far = Closing(closing, hold=False)
    found = minimized(BumpSteer(WIDE), closing=far, starts=STARTS, seed=3)
    evaluation = found.problem.evaluation
    starts = starting_points(found.problem, STARTS, 3, 0)
    open_ = ~np.all(np.isfinite(evaluation.values(starts)), axis=1)
    ends = np.isfinite(found.objectives)
    return {
        "starts": STARTS,
        "cannot close": int(open_.sum()),
        "of them end feasible": int((ends & open_).sum()),
        "end feasible": int(ends.sum()),
        "at the best": round(found.reached * STARTS),
        "objective": found.objective,
        "kkt": found.kkt,
        "evaluations": found.evaluations,
    }


def closing(mech: mbd.Mechanism) -> Any:
    """Closure margins [m] at both ends of the travel."""
    height = mbd.PointCoordinate("upright", "wheel_centre", "z")
    drawn = mech.point("wheel_centre")[2]
    ends = jax.numpy.array([-0.06, 0.06])
    return jax.lax.map(lambda z: mbd.closure_margin(mech, {height: drawn + z}), ends)


SOLVERS: dict[str, Callable[[], dict[str, Any]]] = {
    "SLSQP, exact gradients": exact,
    "trust-constr, exact Hessian products": lambda: exact(method="trust-constr"),
    "SLSQP, exact gradients, 64 starts": lambda: exact(starts=64, seed=1),
    "SLSQP, finite differences": differences,
    "CMA-ES": evolution,
    "wide": wide,
}

if __name__ == "__main__":
    result = SOLVERS[sys.argv[1]]()
    result["seconds"] = time.perf_counter() - BEGAN
    print(json.dumps(result))
