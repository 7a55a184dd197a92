"""What the account of errors costs: RK4 by `simulate` against the bare steps, written out.

Both take the same steps with the same accelerations and the same projection, in kernels; the bare
ones estimate nothing, watch nothing and save the last state.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from throughput_cases.catalogue import CASES
from throughput_cases.work import KERNELS, ROLLOUT, arguments, function

import jaxmbd as mbd
from integration_cases.timing import by_turns
from jaxmbd import lanes
from jaxmbd.kinematics import step_coordinates

NAMES = ("multi_link", "rssr", "chain8", "arm7")
STEPS, LANES = 1000, 1000


def bare(case: Any, steps: int) -> Any:
    """The last state of `steps` steps of RK4, each projected, without `simulate`."""
    h = case.dt

    def run(design: Any, q: Any, v: Any) -> Any:
        mech = case.mechanism(design)
        nodes, weights = jnp.array([0.0, 0.5, 0.5, 1.0]), jnp.array([1.0, 2.0, 2.0, 1.0]) / 6.0

        def step(state: Any, _: Any) -> Any:
            q, v = state

            def stage(carry: Any, row: Any) -> Any:
                (kq, kv), (sum_q, sum_v) = carry
                node, weight = row
                at, speed = q + h * node * kq, v + h * node * kv
                kq = mbd.coordinate_rates(mech, at, speed)
                kv = mbd.forward_dynamics(mech, at, speed)[0]
                return ((kq, kv), (sum_q + weight * kq, sum_v + weight * kv)), None

            zero = jnp.zeros_like(q), jnp.zeros_like(v)
            (_, (sum_q, sum_v)), _ = lax.scan(stage, (zero, zero), (nodes, weights))
            q, v = step_coordinates(mech, q + h * sum_q, 0.0 * v), v + h * sum_v
            return (mbd.project(mech, q, v) if mbd.topology(mech).nc else (q, v)), None

        return lax.scan(step, (q, v), None, length=steps)[0]

    return run


def measured(quick: bool = False) -> dict[str, Any]:
    """CPU seconds of both, their ratio, and how far their last states are apart."""
    steps, number = (16, 8) if quick else (STEPS, LANES)
    results: dict[str, Any] = {"steps": steps, "lanes": number}
    for name in NAMES[:1] if quick else NAMES:
        case = CASES[name]
        given = arguments(case, ROLLOUT, number, "float64")
        whole = jax.jit(lanes.vmap(function(case, ROLLOUT, steps, KERNELS)))
        plain = jax.jit(lanes.vmap(bare(case, steps)))
        off = [np.max(np.abs(a - b)) for a, b in zip(whole(*given), plain(*given), strict=True)]
        cost = by_turns(
            {"simulate": lambda f=whole, x=given: f(*x), "bare": lambda f=plain, x=given: f(*x)},
            rounds=2 if quick else 7,
            seconds=3.0,
        )
        results[name] = {
            "simulate_s": cost["simulate"].cpu,
            "bare_s": cost["bare"].cpu,
            "ratio": cost["simulate"].cpu / cost["bare"].cpu,
            "apart": float(np.max(off)),
        }
    return results
