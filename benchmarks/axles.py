"""Derivatives of an axle's columns by all its hardpoints, and designs of an elastic table.

    python benchmarks/axles.py [--part NAME] [--designs 100000] [--json FILE]

A part that is named is run alone and replaces its results in the file; there may be several.

A double-wishbone axle whose two sides vary apart, 60 coordinates, through 41 places of parallel
travel, of roll and of steering: all columns and their whole Jacobian in one call. `first` is the
first call with all its compiling, nothing cached, `again` the median of later ones with other
numbers; all events are numbers of one program, so that only the first of them compiles. The
Jacobian is checked against differences of the values, of those columns that rounding leaves seven
digits of a difference. Then the table of a MacPherson
corner with a soft hinge, which settles at each place, for many designs at once. Last, curves that
are wanted of a suspension, met by moving its hardpoints (`axle_cases/target_curves.py`).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import _script

os.environ["JAXMBD_LANES_CACHE"] = ""
_script.start(cache=False)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from axle_cases.target_curves import target_curves  # noqa: E402
from throughput_cases.machine import commit  # noqa: E402

import jaxmbd as mbd  # noqa: E402
from jaxmbd import lanes, suspension  # noqa: E402

PLACES, CALLS, STEP = 41, 15, 2e-5
EVENTS = {
    "parallel travel": {"heave": np.linspace(-0.06, 0.06, PLACES)},
    "roll": {"roll": np.linspace(-0.05, 0.05, PLACES)},
    "steering": {"steer": np.linspace(-0.03, 0.03, PLACES)},
}


@cache
def axle() -> tuple[mbd.Mechanism, Any, list[str]]:
    """The axle, its roles, and the paths of its hardpoints."""
    name = "double_wishbone_kinematic"
    car = suspension.axle(getattr(mbd.zoo, name)(), shared=["rack"])
    roles = suspension.axle_corners(car, suspension.zoo_corner(name))
    return car, roles, [f"points/{point}" for point in car.structure.points]


@cache
def columns_and_jacobian(events: suspension.AxleSweep) -> Any:
    """The compiled function of an event's numbers and of all coordinates, for one structure."""
    car, _, paths = axle()

    def table(numbers: Any, x: Any) -> Any:
        points = x.reshape(-1, 3)
        moved = mbd.set_variables(car, {p: points[i] for i, p in enumerate(paths)})
        found = events.with_numbers(numbers)(moved)
        return jnp.stack([found[n] for n in events.observe], axis=1)

    def whole(numbers: Any, x: Any) -> tuple[Any, Any]:
        def along(numbers: Any, d: Any) -> tuple[Any, Any]:
            return jax.jvp(lambda x: table(numbers, x), (x,), (d,))

        directions = jnp.eye(x.shape[0])
        values, columns = lanes.vmap(along, in_axes=(None, 0))(numbers, directions)
        return values[0], columns

    return jax.jit(whole)


def derivatives(event: dict[str, Any]) -> dict[str, float]:
    """Times [s] of all columns with their Jacobian by all coordinates, and its error."""
    car, roles, paths = axle()
    structure, numbers = suspension.axle_sweep(roles, **event).split()
    x0 = jnp.asarray(np.concatenate([car.points[p.removeprefix("points/")] for p in paths]))
    count = len(x0)

    def run(x: Any) -> Any:
        return columns_and_jacobian(structure)(numbers, x)

    start = time.perf_counter()
    values, jacobian = map(np.asarray, jax.block_until_ready(run(x0)))
    first = time.perf_counter() - start
    rng, later = np.random.default_rng(0), []
    for _ in range(CALLS):
        x = x0 + 1e-3 * rng.normal(size=count)
        start = time.perf_counter()
        jax.block_until_ready(run(x))
        later.append(time.perf_counter() - start)
    along = rng.normal(size=count)
    far = [np.asarray(run(x0 + k * STEP * along)[0]) for k in (1, -1, 2, -2)]
    wanted = (8.0 * (far[0] - far[1]) - (far[2] - far[3])) / (12.0 * STEP)
    found = np.tensordot(along, jacobian, 1)
    size = np.abs(wanted).max(axis=0)
    rounding = 1e-16 * np.maximum(np.abs(values).max(axis=0), 1.0) / STEP
    told = size > 1e7 * rounding  # columns of which differences have seven digits
    # Straight ahead the inner wheel becomes the outer one: a corner, beside which differences end.
    told &= np.array([name != "ackermann_error" for name in structure.observe])
    error = np.abs(found - wanted).max(axis=0)[told] / size[told]
    return {
        "coordinates": count,
        "columns": values.shape[1],
        "first": first,
        "again": float(np.median(later)),
        "error": float(np.max(error)),
        "compared": int(told.sum()),
    }


def elastic(designs: int) -> dict[str, float]:
    """Designs per second of a corner's table of 13 places with a hinge that gives way."""
    soft = mbd.soften(mbd.zoo.macpherson(wheel_load=4000.0), "rev_lca", (1e4, 5e6))
    sweep = suspension.kinematics_sweep(
        suspension.zoo_corner("macpherson"), observe=["toe", "camber"], gradients=(), settle=True
    )
    path = "points/tierod_inboard"
    place = np.asarray(soft.points["tierod_inboard"])
    many = place + 1e-3 * np.random.default_rng(1).normal(size=(designs, 3))
    run = jax.jit(lanes.vmap(lambda x: sweep(mbd.set_variables(soft, {path: x}))))
    start = time.perf_counter()
    jax.block_until_ready(run(many))
    first = time.perf_counter() - start
    start = time.perf_counter()
    found = jax.block_until_ready(run(many[::-1]))
    again = time.perf_counter() - start
    alone = sweep(mbd.set_variables(soft, {path: many[-1]}))
    error = max(float(np.max(np.abs(found[n][0] - alone[n]))) for n in ("toe", "camber"))
    reached = float(np.mean(np.asarray(found["status"]) == 0))
    return {
        "designs": designs, "first": first, "again": again, "designs per second": designs / again,
        "error": error, "reached": reached,
    }  # fmt: skip


PARTS: dict[str, Callable[[Any], Any]] = {
    "events": lambda options: {name: derivatives(event) for name, event in EVENTS.items()},
    "elastic": lambda options: elastic(options.designs),
    "target curves": lambda options: target_curves(),
}


def main() -> int:
    parser = _script.parser(__doc__)
    parser.add_argument("--designs", type=int, default=100_000)
    parser.add_argument("--part", choices=PARTS, action="append", help="by default all")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    if options.part and options.json is not None and options.json.exists():
        found = json.loads(options.json.read_text("utf-8"))
    for name in options.part or PARTS:
        found[name] = PARTS[name](options)
        found.setdefault("commits", {})[name] = commit()
        print(name, found[name], flush=True)
        _script.write(options.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
