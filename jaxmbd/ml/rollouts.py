"""Many steps of an environment with a policy, in one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.ml.draws import named
from jaxmbd.ml.environment import Environment, EnvState

Policy = Callable[[Any, Array, Array], Any]


class Rollout(NamedTuple):
    """The steps of a lane, a row for each.

    Attributes:
        observation: what the policy saw (n, no).
        action: what it did (n, na), before it is cut to the limits.
        reward: (n,).
        terminated: whether the step ended an episode by `terminate` (n,).
        truncated: whether it cut one short (n,).
        next_observation: what the step led to (n, no), before any reset.
        status: `Status` numbers (n,).
        end: the state after the last step, to go on from.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxmbd import ml
        >>> def policy(gain, observation, key):
        ...     return gain * observation[2:3]
        >>> run = ml.rollout(ml.cart_pole(), policy, 20.0, jax.random.key(0), 10)
        >>> run.observation.shape, run.next_observation.shape, int(run.end.steps)
        ((10, 4), (10, 4), 10)
    """

    observation: Array
    action: Array
    reward: Array
    terminated: Array
    truncated: Array
    next_observation: Array
    status: Array
    end: EnvState


def rollout(env: Environment, policy: Policy, params: Any, start: Any, steps: int) -> Rollout:
    """The given number of steps with a policy, of one lane; a batch by `jax.vmap`.

    Episodes that end on the way are followed by new ones. Environment, integrator and policy are
    one kernel, and so is the gradient; as everywhere, numbers that the policy closes over become
    constants, `params` do not.

    Args:
        env: the environment.
        policy: of the parameters, an observation (no,) and a random key to an action (na,).
        params: a pytree.
        start: the lane's random key, or a `EnvState` to go on from, as `Rollout.end`.
        steps: number of control steps.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxmbd import ml
        >>> env = ml.cart_pole()
        >>> def cost(gain, key):
        ...     policy = lambda gain, observation, key: gain * observation[2:3]
        ...     run = ml.rollout(env, policy, gain, key, 10)
        ...     return jnp.sum(run.next_observation[:, 2] ** 2)
        >>> jax.vmap(jax.grad(cost), (None, 0))(1.0, ml.lane_keys(0, 3)).shape
        (3,)
    """
    params = jax.tree_util.tree_map(lambda x: np.asarray(x) if isinstance(x, float) else x, params)
    return env.compiled(_rollout, env, policy, params, start, steps)


def _rollout(env: Environment, policy: Policy, params: Any, start: Any, steps: int) -> Rollout:
    first = start if isinstance(start, EnvState) else env.reset(start)

    def one(state: EnvState, _: None) -> tuple[EnvState, Any]:
        key = named(jax.random.fold_in(state.key, state.episode), "policy")
        key = jax.random.fold_in(key, state.steps)
        action = jnp.asarray(policy(params, state.observation, key))
        after = env.step(state, action)
        row = {
            "observation": state.observation,
            "action": action,
            "reward": after.reward,
            "terminated": after.terminated,
            "truncated": after.truncated,
            "next_observation": after.final_observation,
            "status": after.status,
        }
        return after, row

    end, rows = lax.scan(jax.checkpoint(one, prevent_cse=False), first, None, steps)
    return Rollout(**rows, end=end)
