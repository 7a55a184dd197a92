"""Whether verdicts and estimates of runs are right: shares among random runs.

The runs are those that `fails_cases/run_errors.py` judges: two masses on a guide with springs,
dampers, stops, friction and a vibrating force at random, by RK4 at steps of a hundredth to ten
times the right one, and by adaptive steps at tolerances from 1e-9 to 1e-3, against SciPy. Here the
flagged ones are compared too. Some are run by `verify`, whose digits are another estimate.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from fails_cases import run_errors
from fails_cases.run_errors import ACCURACY, ADAPTIVE, METHODS

import jaxmbd as mbd

RUNS, VERIFIED = 340, 100
FACTOR = 10.0  # within which an estimate is meant to be of the true error
LARGE = 1e-4  # a true error that matters
FLOOR = 1e-8  # of true errors and estimates: the oracle's own are hardly smaller


def drawn(name: str, seed: int, n: int, verified: int) -> dict[str, np.ndarray]:
    """Status, estimate and true error of n runs; the true error is NaN where there is no end.

    The first ones are verified as well: `told` is what that tells of the speeds, NaN of the others.
    """
    kind, rng = METHODS[name], np.random.default_rng(seed)
    p = run_errors.drawn(rng, n)
    state = rng.normal(size=(n, 4)) * [0.1, 0.1, 1.0, 1.0] * (rng.random((n, 1)) < 0.8)
    dt = 10.0 ** rng.uniform(-2.0, -0.5 if kind in ADAPTIVE else 1.0, n) / run_errors.fastest(p)
    rtol = 10.0 ** rng.uniform(-9.0, -3.0, n)
    batch = jax.jit(mbd.lanes.vmap(partial(run_errors.one, kind)))
    run, _ = batch(p, state[:, :2], state[:, 2:], dt, rtol)
    t, v = np.asarray(run.t), np.asarray(run.v)
    true, told, grown = np.full(n, math.nan), np.full(n, math.nan), np.ones(n)
    for i in range(n):
        numbers = {k: float(x[i]) for k, x in p.items()}
        if np.all(np.isfinite(v[i])):
            true[i] = run_errors.share_of_error(numbers, state[i], t[i], v[i])
        if run.status[i] == mbd.Status.OK and true[i] > ACCURACY:
            grown[i] = run_errors.growth(numbers, state[i], t[i])
        if i < verified:
            told[i] = _told(
                kind, {k: jnp.asarray(x[i]) for k, x in p.items()}, state[i], dt[i], rtol[i]
            )
    found = {"status": np.asarray(run.status), "estimate": np.asarray(run.error)}
    return found | {"true": true, "growth": grown, "told": told}


def _told(kind: Any, p: dict[str, Any], state: np.ndarray, dt: float, rtol: float) -> float:
    """What `verify` tells of the error of the speeds, as a share of the largest.

    The largest is that of one speed, and that of the true error of both in two norms: a run has
    these within a factor of two.
    """
    options, _ = run_errors.options(kind, p, dt, rtol)
    found = mbd.verify(run_errors.masses(p), state[:2], state[2:], **options)
    return 10.0**-found.digits_v


def _mean(x: np.ndarray) -> float:
    return float(np.mean(x)) if len(x) else math.nan


def shares(x: dict[str, np.ndarray]) -> dict[str, Any]:
    """What the page says of runs."""
    told, true = np.maximum(x["estimate"], FLOOR), np.maximum(x["true"], FLOOR)
    again = np.isfinite(x["true"]) & np.isfinite(x["told"])
    by_others = np.maximum(x["told"], FLOOR)[again] / true[again]
    ended, ok = np.isfinite(x["true"]), x["status"] == mbd.Status.OK
    flagged = ended & (x["status"] == mbd.Status.INACCURATE)
    ratio = told[ended] / true[ended]
    beyond = ok & (true > ACCURACY)
    explained = beyond & (true <= 4.0 * told * x["growth"])
    large = true[ended] > LARGE
    within = (ratio <= FACTOR) & (ratio >= 1.0 / FACTOR)
    return {
        "runs": len(told),
        "ok": int(np.sum(ok)),
        "inaccurate": int(np.sum(flagged)),
        "without an end": int(np.sum(~ended)),
        "ok and beyond accuracy": int(np.sum(beyond)),
        "of them by errors that grow": int(np.sum(explained)),
        "ok and beyond twice accuracy": int(np.sum(ok & (true > 2.0 * ACCURACY))),
        "ok, largest true error": float(np.max(true[ok], initial=0.0)),
        "inaccurate, but right": int(np.sum(flagged & (true <= ACCURACY))),
        "estimate within factor": _mean(within),
        "runs of large errors": int(np.sum(large)),
        "estimate within factor, large errors": _mean(within[large]),
        "verified": len(by_others),
        "verify within factor": _mean((by_others <= FACTOR) & (by_others >= 1.0 / FACTOR)),
        "verify too small": _mean(by_others < 1.0 / FACTOR),
        "estimate too small": _mean(ratio < 1.0 / FACTOR),
        "estimate too large": _mean(ratio > FACTOR),
        "median ratio": float(np.median(ratio)),
        "median true error, ok": float(np.median(true[ok & ended])) if ok.any() else math.nan,
        "median true error, inaccurate": float(np.median(true[flagged]))
        if flagged.any()
        else math.nan,
    }


def measured(quick: bool = False, seed: int = 20) -> dict[str, Any]:
    """Shares by method."""
    sizes = (4, 1) if quick else (RUNS, VERIFIED)
    found = {name: shares(drawn(name, seed + k, *sizes)) for k, name in enumerate(METHODS)}
    return {"accuracy": ACCURACY, "seed": seed, "methods": found}
