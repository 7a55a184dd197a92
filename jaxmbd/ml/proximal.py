"""Proximal policy optimisation: the policy's gradient from rewards alone.

Source: Schulman, Wolski, Dhariwal, Radford & Klimov, "Proximal Policy Optimization Algorithms",
arXiv:1707.06347 (2017), with clipped ratios and generalised advantages.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from jaxmbd.ml.draws import lane_keys
from jaxmbd.ml.environment import Environment, EnvState
from jaxmbd.ml.networks import Agent, drawn_action, log_density, new_agent, value
from jaxmbd.ml.rollouts import Rollout, rollout
from jaxmbd.ml.training import (
    Learned,
    Told,
    check,
    flat,
    optimizer,
    over_batches,
    row,
    seen,
    targets,
    train,
)


class _State(NamedTuple):
    """What an update makes the next one of."""

    agent: Agent
    lanes: EnvState
    memory: Any
    key: Array
    count: Array


def ppo(
    env: Environment,
    *,
    seed: int = 0,
    lanes: int = 128,
    window: int = 64,
    updates: int = 500,
    discount: float = 0.99,
    trace: float = 0.95,
    hidden: Sequence[int] = (32, 32),
    spread: float = 0.1,
    rate: float = 1e-3,
    passes: int = 8,
    batches: int = 4,
    clip: float = 0.2,
    entropy: float = 3e-3,
    largest_slope: float = 0.5,
    progress: bool | Told = False,
) -> Learned:
    """Learn from rewards, without a gradient of the simulation.

    An update runs all lanes for a window and improves policy and value by passes over its steps,
    as one compiled program. Networks, environment and history are those of `shac`; where episodes
    were truncated the value is that of the final observation.

    Args:
        env: the environment.
        seed: of the networks, of the lanes and of their actions.
        lanes: how many run side by side.
        window: control steps of each in an update.
        updates: how many.
        discount: γ.
        trace: λ of the generalised advantages.
        hidden: widths of the hidden layers of policy and value each.
        spread: first standard deviation of the actions, in half ranges.
        rate: of Adam; it falls on a line to a hundredth.
        passes: over the steps of an update.
        batches: into which each pass is cut.
        clip: change of a ratio of densities beyond which nothing is gained.
        entropy: weight of the policy's entropy.
        largest_slope: norm to which the gradient is cut.
        progress: whether to show a bar; or a function that is called after each update with its
            number, the `Agent` and the row of the history.

    Raises:
        ValueError: counts or shares that are none, or all steps of an update failed.
        FloatingPointError: the gradient stays not finite.

    Example:
        >>> from jaxmbd import ml
        >>> ml.ppo(ml.cart_pole(), lanes=4, window=8, updates=1, hidden=(4,)).history["samples"]
        array([32])
    """
    counts = {"lanes": lanes, "window": window, "updates": updates}
    counts |= {"passes": passes, "batches": batches}
    check(counts, {"discount": discount, "trace": trace, "clip": clip})
    adam = optimizer(rate, updates * passes * batches, largest_slope, 0.9, 0.999)

    def loss(parts: Any, agent: Agent, batch: Any) -> tuple[Array, Array]:
        observation, action, before, gain, goal = batch
        agent = agent._replace(policy=parts[0], log_spread=parts[1], value=parts[2])
        ratio = jnp.exp(log_density(agent, observation, action) - before)
        worth = jnp.minimum(ratio * gain, jnp.clip(ratio, 1.0 - clip, 1.0 + clip) * gain)
        error = jnp.mean((value(agent, observation) - goal) ** 2)
        return -jnp.mean(worth) - entropy * jnp.sum(agent.log_spread) + error, error

    def improved(agent: Agent, run: Rollout, memory: Any, key: Array) -> Any:
        """The agent after passes over the steps, the memory, error and slope."""
        ahead = value(agent, run.next_observation)
        goal = targets(run, ahead, discount, trace)
        gain = goal - value(agent, run.observation)
        gain = (gain - jnp.mean(gain)) / (jnp.std(gain) + 1e-12)
        before = log_density(agent, run.observation, run.action)

        def step(carry: Any, batch: Any) -> tuple[Any, Any]:
            parts, memory = carry
            (_, error), slope = jax.value_and_grad(loss, has_aux=True)(parts, agent, batch)
            change, memory = adam.update(slope, memory, parts)
            told = error, optax.tree.norm(slope[:2])
            return (optax.apply_updates(parts, change), memory), told

        data = tuple(map(flat, (run.observation, run.action, before, gain, goal)))
        start = (agent.policy, agent.log_spread, agent.value), memory
        (parts, memory), told = over_batches(step, start, data, key, passes=passes, batches=batches)
        agent = agent._replace(policy=parts[0], log_spread=parts[1], value=parts[2])
        return agent, memory, jnp.sqrt(jnp.mean(told[0][-1])), jnp.mean(told[1][0])

    @jax.jit
    def update(state: _State) -> tuple[_State, dict[str, Array]]:
        key = jax.random.fold_in(state.key, state.count)
        steps = partial(rollout, env, drawn_action, state.agent, steps=window)
        run = jax.vmap(steps)(state.lanes)
        agent, memory, error, slope = improved(state.agent, run, state.memory, key)
        agent = seen(agent, run, state.count < updates // 4 + 1)
        told = row(agent, run, error, slope)
        return _State(agent, run.end, memory, key, state.count + 1), told

    agent = new_agent(env, jax.random.key(seed), hidden=hidden, spread=spread)
    state = _State(
        agent,
        jax.jit(jax.vmap(env.reset))(lane_keys(seed, lanes)),
        adam.init((agent.policy, agent.log_spread, agent.value)),
        jax.random.key(seed),
        jnp.zeros((), jnp.int32),
    )
    return train(update, state, updates, lanes * window, progress)
