"""Environments by the names that Brax's training codes use.

Brax itself is not needed here: its wrappers and learners take any object with these names.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.analysis import Status
from jaxmbd.ml.environment import Environment, EnvState


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class BraxState:
    """A lane's state after a step, by Brax's names.

    Attributes:
        pipeline_state: the environment's own state.
        obs: (no,).
        reward: of the last step.
        done: 1.0 where the last step ended the episode, else 0.0.
        metrics: numbers that Brax's wrappers add up over an episode: `failed`, 1.0 at a failure.
        info: `status`, the `Status` number of the step, `time_out`, 1.0 where the end is a failure,
            and what Brax's wrappers keep there.

    Example:
        >>> import jax
        >>> from jaxmbd import ml
        >>> state = ml.BraxEnv(ml.cart_pole()).reset(jax.random.PRNGKey(0))
        >>> float(state.done), int(state.pipeline_state.steps)
        (0.0, 0)
    """

    pipeline_state: EnvState
    obs: Array
    reward: Array
    done: Array
    metrics: dict[str, Array]
    info: dict[str, Any]

    def replace(self, **changes: Any) -> BraxState:
        """The state with other values of the attributes named."""
        return dataclasses.replace(self, **changes)


class BraxEnv:
    """An environment for Brax's wrappers and training codes, as its `brax.envs.Env`.

    Functions are pure and of one lane; `brax.envs.training.wrap`, which the training codes call,
    makes them functions of many, counts steps and resets. It cuts episodes at `episode_length`,
    so that the environment's `horizon` is not used. Each episode of a lane is the first one again,
    with its start, variables and noise: that is how Brax resets.

    `done` tells that the task ended or that the step failed. A failure is told in `info` and
    `metrics` as well (`BraxState`), and Brax's PPO bootstraps there with
    ``bootstrap_on_timeout=True``.

    Args:
        env: the environment.

    Attributes:
        env: the environment.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxmbd import ml
        >>> env = ml.BraxEnv(ml.cart_pole())
        >>> env.observation_size, env.action_size
        (4, 1)
        >>> state = jax.vmap(env.reset)(jax.random.split(jax.random.PRNGKey(0), 3))
        >>> jax.vmap(env.step)(state, jnp.ones((3, 1))).obs.shape
        (3, 4)
    """

    def __init__(self, env: Environment):
        self.env = env

    def reset(self, rng: Array) -> BraxState:
        """The first state of a lane.

        Args:
            rng: its random key.
        """
        state = self.env.reset(rng)
        zero = jnp.zeros(())
        info = {"status": state.status, "time_out": zero}
        return BraxState(state, state.observation, state.reward, zero, {"failed": zero}, info)

    def step(self, state: BraxState, action: Any) -> BraxState:
        """The state a control step later, without a reset.

        Args:
            state: of one lane.
            action: (na,) in ±1, which are the limits of the environment's actions.
        """
        middle, half = (self.env.high + self.env.low) / 2, (self.env.high - self.env.low) / 2
        after = self.env.advance(state.pipeline_state, middle + half * jnp.asarray(action))
        failed = after.status != Status.OK
        number = jnp.zeros(()).dtype  # which Brax's wrappers make and carry in loops
        lost = failed.astype(number)
        return state.replace(
            pipeline_state=after,
            obs=after.observation,
            reward=after.reward,
            done=(after.terminated | failed).astype(number),
            metrics={**state.metrics, "failed": lost},
            info={**state.info, "status": after.status, "time_out": lost},
        )

    @property
    def observation_size(self) -> int:
        """How many numbers an observation has."""
        return self.env.size

    @property
    def action_size(self) -> int:
        """How many numbers an action has."""
        return len(self.env.names)

    @property
    def dt(self) -> float:
        """Time between two actions [s]."""
        return self.env.control_dt

    @property
    def backend(self) -> str:
        """What runs it: "auto", "lanes" or "xla"."""
        return self.env.backend

    @property
    def unwrapped(self) -> BraxEnv:
        """This environment, as nothing is wrapped around it."""
        return self
