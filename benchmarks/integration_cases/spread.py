"""What a batch costs whose runs take very different numbers of steps, in no order.

An RSSR linkage turns for a time of its own in each sample, so that numbers of adaptive steps are
spread over a factor of 1000. Compared with the sum of single runs, and with the same samples in
the order of their lengths: the samples of a vector wait for the longest of them.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from integration_cases.timing import by_turns
from jaxmbd import lanes

SAMPLES, ALONE, LONGEST = 1024, 64, 30.0


def measured(quick: bool = False) -> dict[str, Any]:
    """CPU seconds of the batch in both orders, and of all runs one by one, from `ALONE` of them."""
    mech = mbd.zoo.rssr()
    q = mbd.assemble(mech).q
    v = mbd.assemble_velocity(mech, q, {"crank": 10.0})
    method = mbd.DormandPrince(rtol=1e-6, atol=1e-8, most=2**18)

    def one(end: Any) -> Any:
        t = jnp.stack([0.0 * end, end])
        run = mbd.simulate(mech, q, v, t=t, method=method, throw=False)
        return run.q[-1], run.steps + run.rejected, run.status

    samples, alone = (16, 4) if quick else (SAMPLES, ALONE)
    ends = LONGEST * 10.0 ** np.random.default_rng(0).uniform(-3.0, 0.0, samples)
    single, many = jax.jit(one), jax.jit(lanes.vmap(one))
    _, steps, status = map(np.asarray, many(ends))
    in_order, some = np.sort(ends), ends[:alone]
    single(some[0])
    cost = by_turns(
        {
            "batch": lambda: many(ends),
            "batch in order of length": lambda: many(in_order),
            "one by one": lambda: [single(x) for x in some],
        }
    )
    share = steps.sum() / steps[:alone].sum()
    return {
        "samples": samples,
        "ok": int(np.sum(status == mbd.Status.OK)),
        "steps": [int(steps.min()), float(steps.mean()), int(steps.max())],
        "batch_cpu_s": cost["batch"].cpu,
        "ordered_cpu_s": cost["batch in order of length"].cpu,
        "one_by_one_cpu_s": float(share * cost["one by one"].cpu),
    }
