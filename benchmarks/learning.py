"""An active suspension and a five-bar learned by gradients (SHAC) and from rewards (PPO).

    python benchmarks/learning.py [--seeds 0,1,2] [--json FILE]

Two cases: with a camera that sees the road ahead, and with the sensors of the car alone. The
learners have the same networks, discount and trace; PPO has ten times the samples of SHAC. The
skyhook's two gains, on the body's speed and on the rate of travel, are those of the best reward on
64 roads (BFGS with exact gradients). All are compared, by the middle of the policy, on 256 other
roads of class C, from rest, for 3 s.

Measures: root mean squares of the body's vertical acceleration (means of 10 ms, not weighted), of
the dynamic part of the tyre's load, of the wheel's travel, and of the motor's moment.

The same learners reach for points with the five-bar, and are judged on 256 other points.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import _script

_script.start()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from scipy.optimize import minimize  # noqa: E402
from throughput_cases.machine import commit, machine, versions  # noqa: E402

from jaxmbd import ml  # noqa: E402
from jaxmbd.observe import Element  # noqa: E402

CASES = {
    "with a camera": ((0.03, 0.06, 0.1, 0.15, 0.2, 0.3), ("SHAC", "PPO")),
    "without": ((), ("SHAC",)),
}
LEARNERS = {
    "SHAC": (partial(ml.shac, updates=200), 5),
    "PPO": (partial(ml.ppo, updates=500), 10),
}
STEPS, TUNING, UNSEEN = 300, ml.lane_keys(10**6, 64), ml.lane_keys(10**6 + 1, 256)
MEASURES = ("reward", "acceleration [m/s²]", "tyre load [N]", "travel [mm]", "moment [N m]")


def still(gains: Any, seen: Any, key: Any) -> Any:
    """The passive corner."""
    return jnp.zeros(1)


def skyhook(gains: Any, seen: Any, key: Any) -> Any:
    """Moments against the body's speed and, on top of the damper, the rate of travel [kN·m·s/m]."""
    return 1e3 * (gains[0] * seen[:1] + gains[1] * seen[4:5])


def measured(env: ml.Environment, policy: Any, params: Any, keys: Any = UNSEEN) -> dict[str, Any]:
    """The measures of a policy, which does not see the last sensor, the tyre's load."""

    def blind(params: Any, seen: Any, key: Any) -> Any:
        return policy(params, seen[:-1], key)

    run = jax.vmap(partial(ml.rollout, env, blind, params, steps=STEPS))(keys)
    heave = jnp.concatenate([run.observation[:, :1, 0], run.next_observation[..., 0]], axis=1)
    moments = jnp.clip(run.action, env.low, env.high)
    load = run.next_observation[..., -1]
    values = (
        jnp.mean(run.reward),
        _rms(jnp.diff(heave, axis=1) / env.control_dt),
        _rms(load - 9.81 * sum(body.mass for body in env.mechanism.bodies.values())),
        1e3 * _rms(run.next_observation[..., 3]),
        _rms(moments),
    )
    found = dict(zip(MEASURES, values, strict=True))
    return found | {"failed": jnp.sum(run.status != 0), "lifted": jnp.mean(load <= 0.0)}


def _rms(x: Any) -> Any:
    return jnp.sqrt(jnp.mean(x * x))


def tuned(env: ml.Environment) -> np.ndarray:
    """Gains of the skyhook."""
    cost = jax.jit(jax.value_and_grad(lambda g: -measured(env, skyhook, g, TUNING)["reward"]))

    def numbers(gains: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = cost(jnp.asarray(gains))
        return float(value), np.asarray(slope, float)

    best = minimize(numbers, np.zeros(2), jac=True, method="BFGS")
    return best.x


def plain(found: dict[str, Any]) -> dict[str, float]:
    return {name: float(x) for name, x in found.items()}


def at_target(env: ml.Environment, agent: Any) -> dict[str, Any]:
    """The mean reward, and how far the five-bar's tip is from its target after 2 s."""
    run = jax.vmap(partial(ml.rollout, env, ml.best_action, agent, steps=100))(UNSEEN)
    tip, target = run.next_observation[:, -1, 4:6], run.next_observation[:, -1, 6:8]
    apart = 1e3 * jnp.linalg.norm(tip - target, axis=1)
    values = jnp.mean(run.reward), jnp.median(apart), jnp.max(apart)
    found = dict(zip(("reward", "median [mm]", "largest [mm]"), values, strict=True))
    return found | {"failed": jnp.sum(run.status != 0)}


def learned(env: ml.Environment, name: str, seed: int, judge: Any) -> dict[str, Any]:
    """Measures of a learner, and its curve of rewards in episodes it never saw."""
    learn, every = LEARNERS[name]
    curve: list[list[float]] = []
    start, judging = time.perf_counter(), 0.0

    def told(n: int, agent: ml.Agent, row: Any) -> None:
        nonlocal judging
        if (n + 1) % every == 0:
            jax.block_until_ready(agent)
            begun = time.perf_counter()
            curve.append([row["samples"], float(judge(agent)["reward"])])
            judging += time.perf_counter() - begun

    found = learn(env, seed=seed, progress=told)
    taken = time.perf_counter() - start - judging
    failed = int(found.history["failed"].sum())
    more = {"seconds": taken, "failed in training": failed, "curve": curve}
    return plain(judge(found.agent)) | more


def trained(env: ml.Environment, judge: Any, names: Any, seeds: list[int]) -> dict[str, Any]:
    """The rows of learners by name."""
    found: dict[str, Any] = {}
    for name in names:
        for seed in seeds:
            row = learned(env, name, seed, judge)
            found.setdefault(name, []).append(row)
            cells = ", ".join(f"{k} {x:.4g}" for k, x in row.items() if isinstance(x, float))
            print(f"  {name} {seed}: {cells}", flush=True)
    return found


def suspension(preview: Any, names: Any, seeds: list[int]) -> dict[str, Any]:
    """The corner: its rivals and its learners."""
    env = ml.active_corner(preview=preview)
    loaded = {**env.observe, "load": Element("tyre", "normal")}
    judged = ml.active_corner(preview=preview, observe=loaded)
    gains = tuned(judged)
    judge = jax.jit(partial(measured, judged, ml.best_action))
    return {
        "passive": plain(jax.jit(partial(measured, judged, still))(None)),
        "skyhook": plain(jax.jit(partial(measured, judged, skyhook))(gains)),
        "gains": gains.tolist(),
        **trained(env, judge, names, seeds),
    }


def five_bar(seeds: list[int]) -> dict[str, Any]:
    """The five-bar that reaches for points."""
    env = ml.five_bar_reach()
    return trained(env, jax.jit(partial(at_target, env)), LEARNERS, seeds)


def main() -> None:
    parser = _script.parser(__doc__)
    parser.add_argument("--seeds", default="0,1,2")
    options = parser.parse_args()
    seeds = [int(x) for x in options.seeds.split(",")]
    found: dict[str, Any] = {"commit": commit(), "machine": machine(), "versions": versions()}
    for case, (preview, names) in CASES.items():
        print(case)
        found[case] = suspension(preview, names, seeds)
        _script.write(options.json, found)
    print("five-bar")
    found["five-bar"] = five_bar(seeds)
    _script.write(options.json, found)


if __name__ == "__main__":
    main()
