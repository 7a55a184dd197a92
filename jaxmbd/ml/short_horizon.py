"""Short-horizon actor-critic: the policy's gradient through short windows of the simulation.

Source: Xu, Makoviychuk, Narang, Ramos, Matusik, Garg & Macklin, "Accelerated Policy Learning with
Parallel Differentiable Simulation", ICLR 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from jaxmbd.ml.draws import lane_keys
from jaxmbd.ml.environment import Environment, EnvState
from jaxmbd.ml.networks import Agent, drawn_action, new_agent, value
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
    target: Any
    lanes: EnvState
    memories: tuple[Any, Any]
    key: Array
    count: Array


def window_return(run: Rollout, next_value: Array, discount: float) -> Array:
    """What a window of a lane is worth, per step, with the values of where its parts end, ().

    The discount begins anew after each end of an episode; parts that were truncated, and the last,
    go on with the value of what their last step led to.
    """
    done = run.terminated | run.truncated
    last = jnp.arange(len(done)) == len(done) - 1

    def one(weight: Array, over: Array) -> tuple[Array, Array]:
        return jnp.where(over, 1.0, weight * discount), weight

    weights = lax.scan(one, jnp.ones((), run.reward.dtype), done)[1]
    goes_on = (run.truncated | last) & ~run.terminated
    gained = (1.0 - discount) * run.reward + jnp.where(goes_on, discount * next_value, 0.0)
    return jnp.mean(weights * gained)


def window_loss(
    parts: Any,
    env: Environment,
    agent: Agent,
    target: Any,
    lanes: EnvState,
    window: int,
    discount: float,
) -> tuple[Array, Rollout]:
    """Minus the mean `window_return` of lanes, and their runs.

    Args:
        parts: layers of the policy and the logarithm of its spread, in place of the agent's.
        env: the environment.
        agent: the rest of the agent.
        target: layers of the value at the ends.
        lanes: states to go on from.
        window: control steps.
        discount: γ.
    """
    agent = agent._replace(policy=parts[0], log_spread=parts[1])
    run = jax.vmap(partial(rollout, env, drawn_action, agent, steps=window))(lanes)
    ahead = value(agent._replace(value=target), run.next_observation)
    return -jnp.mean(jax.vmap(partial(window_return, discount=discount))(run, ahead)), run


def shac(
    env: Environment,
    *,
    seed: int = 0,
    lanes: int = 32,
    window: int = 64,
    updates: int = 200,
    discount: float = 0.99,
    trace: float = 0.95,
    hidden: Sequence[int] = (32, 32),
    spread: float = 0.05,
    rate: float = 5e-3,
    value_rate: float = 5e-3,
    passes: int = 8,
    batches: int = 4,
    target_share: float = 0.2,
    largest_slope: float = 1.0,
    progress: bool | Told = False,
) -> Learned:
    """Learn by gradients through the simulation, with a critic at the end of short windows.

    An update runs all lanes for a window, follows the gradient of `drawn_action`'s rewards and of
    the value beyond (a target critic's), and fits the critic to TD(λ) returns. It is one compiled
    program. Where episodes were truncated the value is that of the final observation.

    Args:
        env: the environment; its reward and observations are to be differentiable.
        seed: of the networks, of the lanes and of their actions.
        lanes: how many run side by side.
        window: control steps of each in an update.
        updates: how many.
        discount: γ.
        trace: λ of the critic's targets.
        hidden: widths of the hidden layers of policy and value each.
        spread: first standard deviation of the actions, in half ranges.
        rate: of Adam for the policy; it falls on a line to a hundredth.
        value_rate: for the critic.
        passes: of the critic over the steps of an update.
        batches: into which each pass is cut.
        target_share: what the target critic keeps of itself in an update.
        largest_slope: norm to which the policy's gradient is cut.
        progress: whether to show a bar; or a function that is called after each update with its
            number, the `Agent` and the row of the history.

    Raises:
        ValueError: counts or shares that are none, or all steps of an update failed.
        FloatingPointError: the gradient stays not finite.

    Example:
        >>> from jaxmbd import ml
        >>> ml.shac(ml.cart_pole(), lanes=4, window=4, updates=1, hidden=(4,)).history["samples"]
        array([16])
    """
    counts = {"lanes": lanes, "window": window, "updates": updates}
    counts |= {"passes": passes, "batches": batches}
    check(counts, {"discount": discount, "trace": trace, "target_share": target_share})
    ours = optimizer(rate, updates, largest_slope, 0.7, 0.95)
    critic = optimizer(value_rate, updates * passes * batches, 1e9, 0.9, 0.999)

    def fitted(agent: Agent, target: Any, run: Rollout, memory: Any, key: Array) -> Any:
        """The critic's layers after passes over the targets, its memory, and the error."""
        ahead = value(agent._replace(value=target), run.next_observation)
        goal = targets(run, ahead, discount, trace)

        def step(carry: Any, batch: Any) -> tuple[Any, Array]:
            layers, memory = carry

            def off(layers: Any) -> Array:
                return jnp.mean((value(agent._replace(value=layers), batch[0]) - batch[1]) ** 2)

            error, slope = jax.value_and_grad(off)(layers)
            change, memory = critic.update(slope, memory, layers)
            return (optax.apply_updates(layers, change), memory), error

        data = flat(run.observation), flat(goal)
        start = agent.value, memory
        (layers, memory), errors = over_batches(
            step, start, data, key, passes=passes, batches=batches
        )
        return layers, memory, jnp.sqrt(jnp.mean(errors[-1]))

    @jax.jit
    def update(state: _State) -> tuple[_State, dict[str, Array]]:
        agent, key = state.agent, jax.random.fold_in(state.key, state.count)
        parts: Any = agent.policy, agent.log_spread
        (_, run), slope = jax.value_and_grad(window_loss, has_aux=True)(
            parts, env, agent, state.target, state.lanes, window, discount
        )
        change, mine = ours.update(slope, state.memories[0], parts)
        parts = optax.apply_updates(parts, change)
        agent = seen(agent, run, state.count < updates // 4 + 1)
        agent = agent._replace(policy=parts[0], log_spread=parts[1])
        layers, theirs, error = fitted(agent, state.target, run, state.memories[1], key)
        target = optax.incremental_update(layers, state.target, 1.0 - target_share)
        agent = agent._replace(value=layers)
        told = row(agent, run, error, optax.tree.norm(slope))
        return _State(agent, target, run.end, (mine, theirs), key, state.count + 1), told

    agent = new_agent(env, jax.random.key(seed), hidden=hidden, spread=spread)
    state = _State(
        agent,
        agent.value,
        jax.jit(jax.vmap(env.reset))(lane_keys(seed, lanes)),
        (ours.init((agent.policy, agent.log_spread)), critic.init(agent.value)),
        jax.random.key(seed),
        jnp.zeros((), jnp.int32),
    )
    return train(update, state, updates, lanes * window, progress)
