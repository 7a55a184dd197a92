"""Steps per second of environments for learning, of 1 to 4096 lanes, by kernels and by `jax.vmap`.

    python benchmarks/environments.py [--lanes 1,64,4096] [--steps 100] [--json FILE]

A step is a control step: one Runge-Kutta step of the cart-pole, four of the five-bar. "steps":
calls of a step of all lanes, with random actions made outside the timer. "rollout": all steps in
one call, with a network of 2 × 32 tanh units inside. "gradient": of the squared observations by its
weights. "xla": the steps of a rollout by `jax.vmap` alone. Each is the best of three; episodes end
and begin on the way. The difference is the largest between what a rollout by both observes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import _script

_script.start()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from throughput_cases.machine import commit  # noqa: E402

from jaxmbd import ml  # noqa: E402

READY = {"cart-pole": ml.cart_pole, "five-bar": ml.five_bar_reach}
WIDTH = 32


def weights(env: ml.Environment) -> list[Any]:
    """Of two hidden layers."""
    sizes, rng = (env.size, WIDTH, WIDTH, len(env.names)), np.random.default_rng(0)
    pairs = zip(sizes[1:], sizes[:-1], strict=True)
    return [jnp.asarray(rng.normal(size=s) / np.sqrt(s[1])) for s in pairs]


def policy(layers: list[Any], seen: Any, key: Any) -> Any:
    for layer in layers[:-1]:
        seen = jnp.tanh(layer @ seen)
    return layers[-1] @ seen


def seconds(call: Callable[[], Any]) -> tuple[float, float]:
    """Of the best of three calls, and of the first, which compiles."""
    times = []
    for _ in range(4):
        start = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - start)
    return min(times[1:]), times[0]


def measured(make: Callable[..., ml.Environment], lanes: int, steps: int) -> dict[str, float]:
    """Steps per second, and seconds of first calls."""
    env, keys = make(), ml.lane_keys(0, lanes)
    layers, rng = weights(env), np.random.default_rng(1)
    first, step = jax.jit(jax.vmap(env.reset))(keys), jax.jit(jax.vmap(env.step))
    actions = jnp.asarray(rng.uniform(env.low, env.high, (steps, lanes, len(env.names))))

    def walk() -> Any:
        state = first
        for action in actions:
            state = step(state, action)
        return state

    def seen(env: ml.Environment, layers: Any) -> Any:
        return jax.vmap(partial(ml.rollout, env, policy, layers, steps=steps))(keys).observation

    run, plain = (jax.jit(partial(seen, e)) for e in (env, make(backend="xla")))
    slope = jax.jit(jax.grad(lambda layers: jnp.sum(seen(env, layers) ** 2)))
    calls = {"steps": walk, "rollout": partial(run, layers), "gradient": partial(slope, layers)}
    found = {}
    for name, call in (calls | {"xla": partial(plain, layers)}).items():
        taken, compiled = seconds(call)
        found |= {name: lanes * steps / taken, f"first call of {name} [s]": compiled}
    found["difference"] = float(jnp.max(jnp.abs(run(layers) - plain(layers))))
    return found


def main() -> None:
    parser = _script.parser(__doc__)
    parser.add_argument("--lanes", default="1,16,256,4096")
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    found: dict[str, Any] = {"commit": commit(), "steps": options.steps}
    columns = ("steps", "rollout", "gradient", "xla")
    print(f"{'':20}" + "".join(f"{name + ' [1/s]':>18}" for name in columns) + "  difference")
    for name, make in READY.items():
        for lanes in map(int, options.lanes.split(",")):
            row = found[f"{name}, {lanes}"] = measured(make, lanes, options.steps)
            cells = "".join(f"{row[column]:18.3g}" for column in columns)
            print(f"{name + ', ' + str(lanes):20}{cells}  {row['difference']:.1e}", flush=True)
    _script.write(options.json, found)


if __name__ == "__main__":
    main()
