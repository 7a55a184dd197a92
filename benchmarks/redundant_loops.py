"""Redundant loops off the constraints: Bricard's mechanism, and a biped with six loops.

    python benchmarks/redundant_loops.py [--worlds 100] [--targets 100] [--json PATH]

Accelerations at growing distances from the constraints change by multiples of the distance, and
their slopes stay. The biped (31 bodies, 30 constraint rows, 12 of them redundant) follows random
servo targets, five steps of 1 ms each, its motors saturated at 10 N·m: no world may end in NaN. Its
gradient by the targets is compared with differences. Exits with 1 otherwise.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import _script

_script.start()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from accuracy_cases import usd_robot  # noqa: E402

import jaxmbd as mbd  # noqa: E402
from jaxmbd import lanes  # noqa: E402
from jaxmbd.kinematics import step_coordinates  # noqa: E402

DATA = Path(__file__).resolve().parent.parent / "tests/data/groundtruth/six_loop_biped.json"
AWAY = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
STEPS, DT = 5, 1e-3
STIFFNESS, DAMPING, MOST = 15.0, 0.6, 10.0  # of the servos [N·m/rad, N·m·s/rad, N·m]
REACH = 0.6  # of the targets [rad], within the joints' limits


def smoothness() -> dict[str, list[float]]:
    """Change of v̇ over the distance, and slope of v̇, relative to v̇, at the distances `AWAY`."""
    mech, rng = mbd.zoo.bricard(), np.random.default_rng(0)
    q = mbd.assemble(mech, guess=mbd.neutral(mech) + 0.05).q
    v, along = jnp.asarray(rng.normal(size=(2, mbd.topology(mech).nv)))

    def at(x: Any) -> Any:
        return mbd.forward_dynamics(mech, step_coordinates(mech, q, x * along), v)[0]

    x = jnp.asarray([0.0, *AWAY])
    near, far = (np.asarray(lanes.vmap(at)(y)) for y in (x, x + 1e-10))
    size = np.max(np.abs(near[0]))
    change = np.max(np.abs(near[1:] - near[0]), axis=1) / np.array(AWAY) / size
    slope = np.max(np.abs(far - near)[1:], axis=1) / 1e-10 / size
    return {"distance": list(AWAY), "change": change.tolist(), "slope": slope.tolist()}


class Servos:
    """The biped under its servos."""

    def __init__(self, data: dict[str, Any]):
        self.mech = usd_robot.build(data)
        self.top = mbd.topology(self.mech)
        self.names = [n for n, j in data["joints"].items() if j["driven"]]
        limits = [[data["joints"][n][k] for k in ("lower_deg", "upper_deg")] for n in self.names]
        self.limits = np.clip(np.radians(limits), -REACH, REACH)
        self.q = np.array([self.top.layout[n].q.start for n in self.names])
        self.v = np.array([self.top.layout[n].v.start for n in self.names])

    def run(self, q: Any, v: Any, targets: Any) -> Any:
        """The end of a few steps, and the status."""

        def efforts(_: Any, q: Any, v: Any) -> dict[str, Any]:
            wanted = STIFFNESS * (targets - q[self.q]) - DAMPING * v[self.v]
            return dict(zip(self.names, jnp.clip(wanted, -MOST, MOST), strict=True))

        t1 = STEPS * DT
        run = mbd.simulate(
            self.mech, q, v, t1=t1, dt=DT, inputs=efforts, outputs_only=True, throw=False
        )
        return run.q[-1], run.v[-1], run.status


def worlds(servos: Servos, count: int, targets: int, seed: int) -> dict[str, Any]:
    """Statuses of all runs, and how long they took; a world that fails starts anew."""
    rng = np.random.default_rng(seed)
    start = mbd.assemble(servos.mech).q
    q, v = jnp.tile(start, (count, 1)), jnp.zeros((count, servos.top.nv))
    step = jax.jit(lanes.vmap(servos.run))
    low, high = servos.limits.T
    found: dict[str, int] = {}
    seconds = []
    for _ in range(targets):
        begin = time.perf_counter()
        wanted = jnp.asarray(rng.uniform(low, high, (count, len(low))))
        ended, speeds, status = map(np.asarray, step(q, v, wanted))
        seconds.append(time.perf_counter() - begin)
        for s in status:
            name = mbd.Status(int(s)).name
            found[name] = found.get(name, 0) + 1
        fine = np.isfinite(ended).all(axis=1)[:, None]
        q, v = jnp.where(fine, ended, start), jnp.where(fine, speeds, 0.0)
    rate = count * STEPS * (targets - 1) / sum(seconds[1:]) if targets > 1 else None
    return {"statuses": found, "first call, s": seconds[0], "steps a second": rate, "seed": seed}


def gradient(servos: Servos) -> dict[str, float]:
    """Forward and reverse derivative of the last speeds along random targets, and differences."""
    rng = np.random.default_rng(1)
    q, rest = mbd.assemble(servos.mech).q, jnp.zeros(servos.top.nv)
    targets, along = jnp.asarray(0.1 * rng.normal(size=(2, len(servos.names))))
    weight = jnp.asarray(rng.normal(size=servos.top.nv))

    @jax.jit
    def value(x: Any) -> Any:
        return servos.run(q, rest, x)[1] @ weight

    h = 1e-4
    difference = (value(targets + h * along) - value(targets - h * along)) / (2.0 * h)
    reverse = jax.jit(jax.grad(value))(targets) @ along
    forward = jax.jit(lambda x: jax.jvp(value, (x,), (along,))[1])(targets)
    errors = {"reverse": reverse, "forward": forward}
    return {n: float(abs(x - difference) / abs(difference)) for n, x in errors.items()}


def main() -> int:
    parser = _script.parser(__doc__)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--targets", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    servos = Servos(json.loads(DATA.read_text(encoding="utf-8")))
    found = {"bricard": smoothness()}
    found["biped"] = worlds(servos, options.worlds, options.targets, options.seed)
    _script.write(options.json, found)
    found["gradient, relative error"] = gradient(servos)
    _script.write(options.json, found)
    print(json.dumps(found, indent=1))
    smooth = max(*found["bricard"]["change"], *found["bricard"]["slope"]) < 100.0
    exact = max(found["gradient, relative error"].values()) < 1e-6
    return int(not (smooth and exact and set(found["biped"]["statuses"]) == {"OK"}))


if __name__ == "__main__":
    sys.exit(main())
