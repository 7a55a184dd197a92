"""Simulation to a given accuracy: the step is halved until the result stands still."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd

FIRST_STEP = 5e-4  # [s]
MARGIN = 0.03  # of what is allowed: the share left to the time integration
MOST_STEPS = 3_000_000


class Motion(NamedTuple):
    """Observed quantities at the asked times, the step [s], and the states there."""

    values: dict[str, np.ndarray]
    dt: float
    estimate: float
    """Integration error over what is allowed, by the last halving."""
    q: np.ndarray
    v: np.ndarray


def integrate(
    mech: mbd.Mechanism,
    q0: Any,
    v0: Any,
    times: np.ndarray,
    observe: Callable[[Any, Any, Any], dict[str, Any]],
    allowed: dict[str, float],
) -> Motion:
    """What `observe` (t, q, v) gives at `times` (from t = 0), by RK4 at a step found here.

    `allowed` holds an absolute tolerance for some of the observed quantities. The step is halved
    until the error that Richardson's rule estimates (difference / 15) is `MARGIN` of it.
    """
    spacing, index = _grid(np.asarray(times, float))
    last = int(index.max())
    watch = jax.jit(lambda t, q, v: jax.lax.map(lambda s: observe(*s), (t, q, v)))

    def run(substeps: int) -> tuple[dict[str, np.ndarray], Any]:
        s = mbd.simulate(
            mech, q0, v0, t1=last * spacing, dt=spacing / substeps, save_every=substeps
        )
        values = watch(s.t[index], s.q[index], s.v[index])
        return {k: np.asarray(x) for k, x in values.items()}, s

    substeps = max(1, int(np.ceil(spacing / FIRST_STEP)))
    coarse, _ = run(substeps)
    while True:
        substeps *= 2
        fine, s = run(substeps)
        estimate = max(_error(fine[k], coarse[k]) / 15.0 / a for k, a in allowed.items())
        if estimate <= MARGIN or 2 * substeps * last > MOST_STEPS:
            q, v = np.asarray(s.q)[index], np.asarray(s.v)[index]
            return Motion(fine, spacing / substeps, estimate, q, v)
        more = int(np.ceil(np.log2((estimate / MARGIN) ** 0.25))) - 1
        if more > 0:  # leap to just before the step that should do
            jump = 2 ** min(more, 4)
            while substeps * jump * 2 * last > MOST_STEPS and jump > 1:
                jump //= 2
            if jump > 1:
                substeps *= jump
                fine, _ = run(substeps)
        coarse = fine


def _error(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.max(np.abs(a - b), initial=0.0)) if np.all(np.isfinite(a)) else np.inf


def _grid(times: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest spacing of which all times are multiples, and the multiples."""
    steps = np.diff(np.unique(np.concatenate([[0.0], times])))
    smallest = float(steps[steps > 1e-9 * times.max()].min())
    for parts in range(1, 201):
        # Divide the end time, which the file rounds least, into whole steps.
        count = max(1, round(times.max() / smallest * parts))
        spacing = times.max() / count
        index = np.round(times / spacing)
        if np.max(np.abs(times - index * spacing)) < 1e-9 * times.max():
            return spacing, index.astype(int)
    raise ValueError("the times of the series are not multiples of one step")


def initial_state(mech: mbd.Mechanism, velocities: dict[str, np.ndarray]) -> tuple[Any, Any, float]:
    """q and v as drawn for body velocities ``[ω; v]``, and how far v is from giving them."""
    closed = mbd.topology(mech).nc > 0
    q = mbd.assemble(mech).q if closed else jnp.asarray(mbd.neutral(mech))
    names = list(velocities)
    target = np.concatenate([velocities[n] for n in names])

    def twists(v: Any) -> Any:
        found = mbd.body_velocities(mech, q, v)
        return jnp.concatenate([found[n] for n in names])

    zero = jnp.zeros(mbd.topology(mech).nv)
    jacobian = np.asarray(jax.jit(jax.jacfwd(twists))(zero))
    guess = np.linalg.lstsq(jacobian, target, rcond=None)[0]
    v = mbd.assemble_velocity(mech, q, guess=guess)
    return q, v, float(np.max(np.abs(jacobian @ np.asarray(v) - target), initial=0.0))
