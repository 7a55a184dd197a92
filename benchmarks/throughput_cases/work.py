"""What is timed: functions of one sample ``(design, q, v)``, for any batching transformation.

For `jax.vmap` they are plain JAX (`backend="xla"`): otherwise jaxmbd would call its kernels there
too, and both columns would run the same program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import jaxmbd as mbd
from throughput_cases.case import Case, Design

Function = Callable[[Design, Any, Any], Any]
FORWARD, ROLLOUT, GRADIENT = "forward dynamics", "rollout", "rollout and gradient"
PLAIN, KERNELS = "xla", "auto"
WORKS = (FORWARD, ROLLOUT, GRADIENT)


def function(case: Case, work: str, steps: int, backend: str = PLAIN) -> Function:
    """The function of one sample; its result is a pytree of arrays."""
    makers = {ROLLOUT: rollout, GRADIENT: gradient}
    return forward(case, backend) if work == FORWARD else makers[work](case, steps, backend)


def forward(case: Case, backend: str) -> Function:
    """Accelerations and multipliers."""
    return lambda design, q, v: mbd.forward_dynamics(case.mechanism(design), q, v, backend=backend)


def rollout(case: Case, steps: int, backend: str) -> Function:
    """Final state of `steps` RK4 steps, each projected onto the constraints, from rest."""
    every = max(k for k in range(1, int(np.sqrt(steps)) + 1) if steps % k == 0)

    def run(design: Design, q: Any, v: Any) -> Any:
        solution = mbd.simulate(
            case.mechanism(design),
            q,
            v,
            t1=steps * case.dt,
            dt=case.dt,
            save_every=every,
            outputs_only=True,
            throw=False,
            backend=backend,
        )
        return solution.q[-1], solution.v[-1]

    return run


def gradient(case: Case, steps: int, backend: str) -> Function:
    """Kinetic energy after a rollout and its reverse-mode gradient with respect to hardpoints."""
    run = rollout(case, steps, backend)

    def energy(points: Any, design: Design, q: Any, v: Any) -> Any:
        design = design | {"points": points}
        return mbd.kinetic_energy(case.mechanism(design), *run(design, q, v))

    both = jax.value_and_grad(energy)
    return lambda design, q, v: both(design["points"], design, q, v)


def arguments(
    case: Case, work: str, batch: int, dtype: str, rest: bool = False
) -> tuple[Design, Any, Any]:
    """Arguments on the device; rollouts start from rest."""
    sample = case.draw(batch, dtype, rest=rest or work != FORWARD)
    return jax.block_until_ready(jax.device_put(sample))


def difference(found: Any, reference: Any) -> tuple[float, int]:
    """Largest relative difference, and the number of samples that are finite in one of them only.

    For each array, a sample's difference is relative to its own largest entry, or to a thousandth
    of the median of these if that is larger (a multiplier may vanish). The longer of the two is
    truncated to the number of samples of the shorter.
    """
    worst, odd = 0.0, 0
    for a, b in zip(
        jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(reference), strict=True
    ):
        n = min(len(a), len(b))
        a, b = (np.asarray(x[:n], float).reshape(n, -1) for x in (a, b))
        if not a.shape[1]:
            continue
        fine = np.isfinite(a).all(axis=1), np.isfinite(b).all(axis=1)
        odd += int(np.sum(fine[0] != fine[1]))
        both = fine[0] & fine[1]
        if not both.any():
            continue
        size = np.max(np.abs(b[both]), axis=1)
        size = np.maximum(size, 1e-3 * np.median(size)) + np.finfo(float).tiny
        worst = max(worst, float(np.max(np.max(np.abs(a - b)[both], axis=1) / size)))
    return worst, odd
