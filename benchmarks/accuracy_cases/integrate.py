"""Simulation to a given accuracy: the step is halved until the result has converged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.interpolate import CubicSpline

import jaxmbd as mbd

FIRST_STEP = 5e-4  # [s]
MARGIN = 0.03  # share of the tolerance for the error of time integration
MOST_STEPS = 3_000_000


class Motion(NamedTuple):
    """Observed quantities at the given times, the step [s], and the states there."""

    values: dict[str, np.ndarray]
    dt: float
    estimate: float
    """Integration error over the tolerance, estimated from the last halving."""
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
    """The values of `observe` (t, q, v) at `times` (from t = 0), by RK4 with a step found here.

    `allowed` holds an absolute tolerance for some of the observed quantities. The step is halved
    until the error that Richardson's rule estimates (difference / 15) is `MARGIN` of it.
    """
    times = np.asarray(times, float)
    spacing, index = _grid(times)
    steps = int(np.ceil(times.max() / spacing - 1e-9))
    watch = jax.jit(lambda t, q, v: jax.lax.map(lambda s: observe(*s), (t, q, v)))

    def run(substeps: int) -> tuple[dict[str, np.ndarray], Any]:
        dt = spacing / substeps
        s = mbd.simulate(mech, q0, v0, t1=steps * spacing, dt=dt, save_every=substeps)
        if index is None:
            values = watch(s.t, s.q, s.v)
            return {k: CubicSpline(s.t, np.asarray(x))(times) for k, x in values.items()}, s
        values = watch(s.t[index], s.q[index], s.v[index])
        return {k: np.asarray(x) for k, x in values.items()}, s

    substeps = max(1, int(np.ceil(spacing / FIRST_STEP)))
    coarse: dict[str, np.ndarray] | None = None
    while True:
        last_try = 2 * substeps * steps > MOST_STEPS
        try:
            fine, s = run(substeps)
        except ValueError:  # a step too long for this mechanism: it diverged
            if last_try:
                raise
            coarse, substeps = None, 4 * substeps
            continue
        estimate = np.inf
        if coarse is not None:
            errors = (_error(fine[k], coarse[k]) / 15.0 / a for k, a in allowed.items())
            estimate = max(errors, default=0.0)
        if estimate <= MARGIN or last_try:
            at = index if index is not None else np.rint(times / spacing).astype(int)
            dt = spacing / substeps
            return Motion(fine, dt, estimate, np.asarray(s.q)[at], np.asarray(s.v)[at])
        # Go close to the step that suffices, predicted from the method's fourth order.
        factor = min(16.0, (estimate / MARGIN) ** 0.25) if coarse is not None else 1.0
        leap = 2 ** max(0, int(np.ceil(np.log2(factor))) - 1)
        while leap > 1 and 4 * substeps * leap * steps > MOST_STEPS:
            leap //= 2
        if leap > 1:
            substeps *= leap
            fine, _ = run(substeps)
        coarse, substeps = fine, 2 * substeps


def _error(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.max(np.abs(a - b), initial=0.0)) if np.all(np.isfinite(a)) else np.inf


def _grid(times: np.ndarray) -> tuple[float, np.ndarray | None]:
    """The largest spacing of which all times are multiples, and the multiples.

    If there is none, a fine spacing and None: the result is then interpolated by a cubic spline,
    whose error decreases with the step at the same order as that of the integration.
    """
    steps = np.diff(np.unique(np.concatenate([[0.0], times])))
    smallest = float(steps[steps > 1e-9 * times.max()].min())
    for parts in range(1, 101):
        # Divide the end time, which has the smallest relative rounding, into whole steps.
        count = max(1, round(times.max() / smallest * parts))
        spacing = times.max() / count
        index = np.round(times / spacing)
        if np.max(np.abs(times - index * spacing)) < 1e-9 * times.max():
            return spacing, index.astype(int)
    return times.max() / np.ceil(times.max() / min(smallest, FIRST_STEP)), None


def initial_state(mech: mbd.Mechanism, velocities: dict[str, np.ndarray]) -> tuple[Any, Any, float]:
    """q and v as drawn for body velocities ``[ω; v]``, and the error of v in them."""
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
