"""A corner with stiff bushings: error, cost beside diffrax's Kvaerno5 in batches, gradients.

The multi-link corner with soft joints of 1e7 or 1e8 N/m, dropped from equilibrium for 0.2 s and
saved every millisecond:

- the largest error of a coordinate [rad, m] and of the wheel centre [m] by each method, against the
  same motion by `Rodas` at tolerances of 1e-11;
- CPU seconds a sample in a batch in which each has a gravity of its own, by `Rodas` and, at equal
  tolerances, by diffrax's Kvaerno5 under `jax.vmap`, and the errors of both at the end;
- the derivative of the wheel centre's height after 20 ms by a hardpoint and by a bushing's rate,
  forward and in reverse, against central differences extrapolated from two steps (Richardson).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from derivatives_compile import corner

import jaxmbd as mbd
from integration_cases.methods import Case, batched, gravities, run
from integration_cases.timing import by_turns, once
from jaxmbd import lanes

STEPS = {1e7: (5e-5, 2e-5), 1e8: (1e-5,)}
"""Steps of RK4 [s] by the stiffness [N/m]."""
TOLERANCES = (1e-4, 1e-6, 1e-8)
SAVED = 1e-3
BATCH, PEERS = 10_000, 4
BEST: Any = {"rtol": 1e-11, "atol": 1e-13}
VARIABLES = {"points/lateral_ball/z": 1e-6, "forces/rev_ua/stiffness/1": 1e-4}
"""Path of a number, and the step of differences: in metres of a hardpoint, a share of a rate."""


def soft_corner(stiffness: float) -> Case:
    """The corner with all three soft joints as stiff along their rows."""
    mech, _ = corner()
    soft = [n for n, x in mech.forces.items() if isinstance(x, mbd.SoftJoint)]
    numbers = {f"forces/{n}/stiffness/1": stiffness for n in soft}
    mech = mbd.set_variables(mech, numbers)
    q = mbd.equilibrium(mech).q
    mech = mech.replace(gravity=(0.0, 0.0, -15.0))
    return Case(mech, q, 0.2, 0.01, STEPS[stiffness], mbd.Rodas(**BEST))


def rodas(rtol: float) -> mbd.Rodas:
    return mbd.Rodas(rtol=rtol, atol=1e-2 * rtol)


def least(function: Callable[[], Any], calls: int = 2) -> float:
    """CPU seconds of the cheapest of some calls, after one that compiled it."""
    return by_turns({"it": function}, rounds=calls)["it"].cpu


def centre(mech: Any, q: Any) -> Any:
    return mbd.point_position(mech, q, "upright", "wheel_centre")


def methods(case: Case) -> list[tuple[str, Any, float]]:
    """Name, method, and its step or the interval of saved times [s]."""
    found: list[tuple[str, Any, float]] = [
        (f"Rodas, {rtol:g}", rodas(rtol), SAVED) for rtol in TOLERANCES
    ]
    found.append(("DormandPrince, 1e-06", mbd.DormandPrince(rtol=1e-6, atol=1e-8), SAVED))
    found += [(f"GeneralizedAlpha, {h:g} s", mbd.GeneralizedAlpha(), h) for h in (1e-3, 1e-4)]
    return found + [(f"RK4, {h:g} s", mbd.RK4(), h) for h in case.steps]


def errors(case: Case, quick: bool) -> list[dict[str, Any]]:
    """Of single runs, at all saved times."""
    runs = []
    for name, method, h in methods(case)[: 1 if quick else None]:
        options = {"dt": h, "save_every": round(SAVED / h)}
        runs.append((name, method, options, *once(lambda m=method, o=options: run(case, m, o))))
    best = run(case, case.reference, {"dt": SAVED})
    assert int(best.status) == mbd.Status.OK
    place = jax.jit(jax.vmap(lambda q: centre(case.mech, q)))
    return [
        {
            "method": name,
            "status": mbd.Status(int(found.status)).name,
            "error": float(jnp.abs(found.q - best.q).max()),
            "wheel_centre_error_m": float(jnp.abs(place(found.q) - place(best.q)).max()),
            "estimate": float(found.error),
            "steps": int(found.steps),
            "rejected": int(found.rejected),
            "first_call_cpu_s": round(first.cpu, 2),
            "run_cpu_ms": round(1e3 * least(lambda m=method, o=options: run(case, m, o)), 2),
        }
        for name, method, options, first, found in runs
    ]


def batches(case: Case, rtol: float) -> dict[str, Any]:
    """Cost of a sample, and the largest error at the end of the samples that both have."""

    import diffrax

    def measured(method: Any, size: int, **options: Any) -> tuple[Any, float, float]:
        function = batched(case, method, {"dt": 0.01, **options})
        given = gravities(case, size)
        first, found = once(lambda: function(given))
        return np.asarray(found), first.cpu, least(lambda: function(given), 1) / size

    best = np.asarray(batched(case, mbd.Rodas(**BEST), {"dt": 0.01})(gravities(case, PEERS)))
    ends, first, each = measured(rodas(rtol), BATCH)
    row = {
        "rtol": rtol,
        "samples": BATCH,
        "cpu_us_a_sample": round(1e6 * each, 1),
        "first_cpu_s": round(first, 2),
        "error": float(np.abs(ends[:PEERS] - best).max()),
    }
    within = {"rtol": rtol, "atol": 1e-2 * rtol}
    ends, first, theirs = measured(diffrax.Kvaerno5(), PEERS, **within)
    row["kvaerno5"] = {
        "samples": PEERS,
        "cpu_us_a_sample": round(1e6 * theirs, 1),
        "first_cpu_s": round(first, 2),
        "error": float(np.abs(ends - best).max()),
        "ratio": round(theirs / each, 1),
    }
    return row


def gradients(case: Case) -> dict[str, Any]:
    """Of each variable: the difference, and the relative distances of derivatives from it."""

    def height(x: Any) -> Any:
        mech = mbd.set_variables(case.mech, dict(zip(VARIABLES, x, strict=True)))
        fall = run(case._replace(t1=0.02), mbd.Rodas(rtol=1e-10, atol=1e-12), {"dt": 0.01}, mech)
        return centre(mech, fall.q[-1])[2]

    given = mbd.get_variables(case.mech, list(VARIABLES))
    x = np.array([float(given[path]) for path in VARIABLES])
    first, reverse = once(lambda: jax.jit(jax.grad(height))(x))
    along = jax.jit(lanes.vmap(lambda x, unit: jax.jvp(height, (x,), (unit,))[1]))
    forward = np.asarray(along(np.tile(x, (len(x), 1)), np.eye(len(x))))
    many, found = jax.jit(lanes.vmap(height)), {"first_reverse_cpu_s": round(first.cpu, 2)}
    for k, (path, step) in enumerate(VARIABLES.items()):
        h = step if path.startswith("points") else step * x[k]
        at = x + h * np.outer([2.0, 1.0, -1.0, -2.0], np.eye(len(x))[k])
        far, near, less, least = np.asarray(many(at))
        difference = (8.0 * (near - less) - (far - least)) / (12.0 * h)
        found[path] = {
            "difference": float(difference),
            "forward_off_by": abs(float(forward[k] / difference - 1.0)),
            "reverse_off_by": abs(float(reverse[k] / difference - 1.0)),
        }
    return found


def measured(quick: bool = False) -> dict[str, Any]:
    """All of it, by stiffness."""
    found: dict[str, Any] = {}
    for stiffness in list(STEPS)[: 1 if quick else None]:
        case = soft_corner(stiffness)
        row = found[f"{stiffness:.0e} N/m"] = {"errors": errors(case, quick)}
        if not quick:
            row |= {"batch": batches(case, 1e-6), "gradients": gradients(case)}
    return found
