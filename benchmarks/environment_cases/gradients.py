"""Gradients of rollouts by all numbers of a policy inside: right, and what they cost.

The loss is the mean of the squared observations after each step and lane. Its gradient by kernels
is compared with that by XLA, and along a direction with differences of fourth order. Episodes do
not end.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from integration_cases.timing import by_turns

from environment_cases.policies import policy, weights
from jaxmbd import lanes, ml

ENVIRONMENTS = {"cart-pole": ml.cart_pole, "five-bar": ml.five_bar_reach}
SCALE = 0.1  # of the network's last layer: the gains decide
STEP = 3e-4  # of the differences


def environment(name: str, **options: Any) -> ml.Environment:
    return ENVIRONMENTS[name](horizon=None, terminate=None, **options)


def loss(env: ml.Environment, steps: int, keys: Any, params: Any) -> Any:
    run = jax.vmap(partial(ml.rollout, env, policy, params, steps=steps))(keys)
    return jnp.mean(run.next_observation**2), jnp.sum(run.status != 0)


def size(tree: Any) -> float:
    return float(max(jnp.max(jnp.abs(x)) for x in jax.tree_util.tree_leaves(tree)))


def difference(value: Any, params: Any, along: Any) -> float:
    """The derivative along a direction, by four values."""

    def at(x: float) -> float:
        return float(value(jax.tree_util.tree_map(lambda p, d: p + x * d, params, along))[0])

    near, far = (at(x) - at(-x) for x in (STEP, 2.0 * STEP))
    return (8.0 * near - far) / (12.0 * STEP)


def against(name: str, steps: int, number: int) -> dict[str, float]:
    """Relative errors of the gradient by kernels."""
    keys = ml.lane_keys(0, number)
    env, plain = environment(name), environment(name, backend="xla")
    params = weights(env, name, SCALE)
    rng = np.random.default_rng(1)
    along = jax.tree_util.tree_map(lambda x: 0.1 * size(x) * rng.normal(size=x.shape), params)
    value = jax.jit(partial(loss, env, steps, keys))
    slopes, failed = jax.jit(jax.grad(partial(loss, env, steps, keys), has_aux=True))(params)
    others, _ = jax.jit(jax.grad(partial(loss, plain, steps, keys), has_aux=True))(params)
    off = jax.tree_util.tree_map(jnp.subtract, slopes, others)
    ours = float(sum(jax.tree_util.tree_leaves(jax.tree_util.tree_map(jnp.vdot, slopes, along))))
    theirs = difference(value, params, along)
    return {
        "from XLA": size(off) / size(others),
        "from differences": abs(ours - theirs) / abs(theirs),
        "failed steps": int(failed),
    }


def cost(name: str, steps: int, number: int) -> dict[str, float]:
    """CPU seconds of the loss and of its gradient, and memory of a lane [kB]."""
    env, keys = environment(name), ml.lane_keys(0, number)
    params = weights(env, name, SCALE)
    value = jax.jit(lambda p: loss(env, steps, keys, p)[0])
    slope = jax.jit(jax.value_and_grad(lambda p: loss(env, steps, keys, p)[0]))
    jax.block_until_ready((value(params), slope(params)))
    spent = by_turns({"value": partial(value, params), "gradient": partial(slope, params)})

    def end(params: Any, key: Any) -> Any:
        return jnp.sum(ml.rollout(env, policy, params, key, steps).end.observation ** 2)

    alone = lanes.explain(jax.grad(end), params, keys[0])
    return {
        "rollouts [s]": spent["value"].cpu,
        "gradient [s]": spent["gradient"].cpu,
        "in rollouts": spent["gradient"].cpu / spent["value"].cpu,
        "memory of a lane [kB]": 1e-3 * alone.scratch,
    }
