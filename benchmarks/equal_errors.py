"""What each method of integration costs at equal errors, in CPU seconds.

    python benchmarks/equal_errors.py --json benchmarks/results/equal_errors.json

Andrews' squeezing mechanism until 0.03 s, batches by lanes. Each method runs with several steps or
tolerances; between these, the logarithm of its cost is interpolated in that of its error, which is
the largest of an angle at the end [rad].
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import _script
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import lanes

SAMPLES, END = 64, 0.03
ERRORS = (1e-4, 1e-6, 1e-8, 1e-10)
STEPS = (150, 300, 600, 1200, 2400, 4800)
TOLERANCES = tuple(10.0**-k for k in range(3, 13))
Curve = list[tuple[float, float]]


def measured(run: Callable[[Any], Any], best: Any) -> tuple[float, float]:
    """Error, and CPU microseconds of a sample, of runs from rest; all samples are the same."""
    rest = jnp.zeros((SAMPLES, best.shape[0]))
    end = jax.block_until_ready(run(rest))[0]
    seconds = []
    for _ in range(4):
        start = time.process_time()
        jax.block_until_ready(run(rest))
        seconds.append(time.process_time() - start)
    return float(jnp.abs(end - best).max()), 1e6 * min(seconds) / SAMPLES


def curves() -> dict[str, Curve]:
    """Errors and costs of each method."""
    mech = mbd.zoo.andrews_squeezer()
    q, t = mbd.neutral(mech), np.array([0.0, END])
    reference = mbd.DormandPrince8(rtol=1e-13, atol=1e-14)
    best = mbd.simulate(mech, q, t=t, method=reference).q[-1]

    def equal_steps(n: int) -> Callable[[Any], Any]:
        def end(v: Any) -> Any:
            return mbd.simulate(mech, q, v, t1=END, dt=END / n, save_every=n, throw=False).q[-1]

        return jax.jit(lanes.vmap(end))

    def own_steps(kind: Any) -> list[Callable[[Any], Any]]:
        def end(v: Any, rtol: Any) -> Any:
            method = kind(rtol=rtol, atol=rtol)
            return mbd.simulate(mech, q, v, t=t, method=method, throw=False).q[-1]

        run = jax.jit(lanes.vmap(end, in_axes=(0, None)))
        return [lambda v, rtol=rtol: run(v, rtol) for rtol in TOLERANCES]

    found = {"RK4": [measured(equal_steps(n), best) for n in STEPS]}
    for kind in (mbd.DormandPrince, mbd.DormandPrince8, mbd.Rodas):
        found[kind.__name__] = [measured(run, best) for run in own_steps(kind)]
    return found


def cost(curve: Curve, error: float) -> float:
    """CPU microseconds of a sample at an error."""
    errors, costs = np.log(np.array(sorted(curve))).T
    assert errors[0] <= np.log(error) <= errors[-1], "the error is outside of what was measured"
    return float(np.exp(np.interp(np.log(error), errors, costs)))


def main() -> None:
    """Measure and print."""
    arguments = _script.parser(__doc__).parse_args()
    _script.start()
    found = curves()
    rows = {name: [cost(curve, x) for x in ERRORS] for name, curve in found.items()}
    for name, costs in rows.items():
        print(name, *(f"{x:.1f}" for x in costs))
    _script.write(arguments.json, {"errors": ERRORS, "cost": rows, "measured": found})


if __name__ == "__main__":
    main()
