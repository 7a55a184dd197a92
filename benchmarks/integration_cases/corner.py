"""A corner with stiff bushings: error, cost beside diffrax's Kvaerno5 in batches, gradients.

    PYTHONPATH=benchmarks python -m integration_cases.corner --json FILE [--no-peers]

The multi-link corner of `integration.py` with soft joints of 1e7 or 1e8 N/m, dropped from
equilibrium for 0.2 s and saved every millisecond:

- the largest error of a coordinate [rad, m] and of the wheel centre [m] by `Rodas`, against the
  same motion at tolerances of 1e-11;
- CPU seconds a sample in a batch in which each has a gravity of its own, by `lanes.vmap` and, at
  the same tolerances, by diffrax's Kvaerno5 under `jax.vmap`, and the errors of both at the end;
- the derivative of the wheel centre's height after 20 ms by a hardpoint and by a bushing's rate,
  forward and in reverse, against central differences extrapolated from two steps (Richardson).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import _script
import jax
import jax.numpy as jnp
import numpy as np
from integration import Case, batched, gravities, run, soft_corner

import jaxmbd as mbd
from integration_cases.timing import by_turns, once
from jaxmbd import lanes

STIFFNESSES = (1e7, 1e8)
TOLERANCES = (1e-4, 1e-6, 1e-8)
SAVED = 1e-3
BATCH, PEERS = 1000, 16
BEST: Any = {"rtol": 1e-11, "atol": 1e-13}
VARIABLES = {"points/lateral_ball/z": 1e-6, "forces/rev_ua/stiffness/1": 1e-4}
"""Path of a number, and the step of differences: in metres of a hardpoint, a share of a rate."""


def rodas(rtol: float) -> mbd.Rodas:
    return mbd.Rodas(rtol=rtol, atol=1e-2 * rtol)


def least(function: Callable[[], Any]) -> float:
    """CPU seconds of the cheaper of two calls, after one that compiled it."""
    return by_turns({"it": function}, rounds=2)["it"].cpu


def centre(mech: Any, q: Any) -> Any:
    return mbd.point_position(mech, q, "upright", "wheel_centre")


def errors(case: Case) -> list[dict[str, Any]]:
    """Of single runs, at all saved times."""
    saved = {"dt": SAVED}
    best = run(case, mbd.Rodas(**BEST), saved)
    assert int(best.status) == mbd.Status.OK
    place = jax.jit(jax.vmap(lambda q: centre(case.mech, q)))
    rows = []
    for rtol in TOLERANCES:
        method = rodas(rtol)
        found = run(case, method, saved)
        rows.append(
            {
                "rtol": rtol,
                "status": mbd.Status(int(found.status)).name,
                "error": float(jnp.abs(found.q - best.q).max()),
                "wheel_centre_error_m": float(jnp.abs(place(found.q) - place(best.q)).max()),
                "estimate": float(found.error),
                "steps": int(found.steps),
                "rejected": int(found.rejected),
                "run_cpu_ms": round(1e3 * least(lambda m=method: run(case, m, saved)), 2),
            }
        )
    return rows


def batches(case: Case, rtol: float, *, peers: bool) -> dict[str, Any]:
    """Cost of a sample, and the largest error at the end of the samples that both have."""

    def measured(method: Any, size: int, **options: Any) -> tuple[Any, float, float]:
        function = batched(case, method, {"dt": 0.01, **options})
        given = gravities(case, size)
        first, found = once(lambda: function(given))
        return np.asarray(found), first.cpu, least(lambda: function(given)) / size

    best = np.asarray(batched(case, mbd.Rodas(**BEST), {"dt": 0.01})(gravities(case, PEERS)))
    ends, first, each = measured(rodas(rtol), BATCH)
    row = {
        "rtol": rtol,
        "samples": BATCH,
        "cpu_us_a_sample": round(1e6 * each, 1),
        "first_cpu_s": round(first, 2),
        "error": float(np.abs(ends[:PEERS] - best).max()),
    }
    if peers:
        import diffrax

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


def main() -> None:
    parser = _script.parser(__doc__)
    parser.add_argument("--no-peers", action="store_true", help="leave diffrax out")
    arguments = parser.parse_args()
    _script.start(cache=False)
    results: dict[str, Any] = {}
    for stiffness in STIFFNESSES:
        case, name = soft_corner(stiffness), f"{stiffness:.0e} N/m"
        results[name] = row = {}
        for part, make in {
            "errors": lambda case=case: errors(case),
            "batch": lambda case=case: batches(case, 1e-6, peers=not arguments.no_peers),
            "gradients": lambda case=case: gradients(case),
        }.items():
            row[part] = make()
            print(name, part, _script.as_json(row[part]), flush=True)
            _script.write(arguments.json, results)


if __name__ == "__main__":
    main()
