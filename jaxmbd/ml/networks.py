"""What learns: a Gaussian policy and a value, by networks, and the scale of what they see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.ml.environment import Environment

Layers = list[tuple[Array, Array]]


class Scale(NamedTuple):
    """Running mean and variance of observations, by which networks see them.

    Attributes:
        count: of the observations so far, ().
        mean: (no,).
        variance: (no,).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd import ml
        >>> scale = ml.Scale(jnp.zeros(()), jnp.zeros(1), jnp.ones(1))
        >>> scale = scale.updated(jnp.array([[1.0], [5.0]]))
        >>> float(scale.mean[0]), float(scale.variance[0])
        (3.0, 4.0)
    """

    count: Array
    mean: Array
    variance: Array

    def updated(self, observations: Array) -> Scale:
        """With more observations (n, no); Chan, Golub & LeVeque (1979), on merging variances."""
        more, total = len(observations), self.count + len(observations)
        apart = jnp.mean(observations, 0) - self.mean
        share = more / total
        variance = (1.0 - share) * self.variance + share * jnp.var(observations, 0)
        return Scale(
            total, self.mean + share * apart, variance + share * (1.0 - share) * apart * apart
        )

    def __call__(self, observation: Array) -> Array:
        """An observation in standard deviations from the mean."""
        return (observation - self.mean) / jnp.sqrt(self.variance + 1e-12)


class Agent(NamedTuple):
    """A policy and a value. The action is normal about ``centre + half · tanh(policy)``.

    Attributes:
        policy: weights and biases of the layers.
        log_spread: logarithm of the action's standard deviation in units of `half`, (na,).
        value: layers of the value: the discounted mean of the rewards to come (`lambda_returns`).
        scale: of observations.
        centre, half: middle and half width of the actions' limits (na,).

    Example:
        >>> import jax
        >>> from jaxmbd import ml
        >>> agent = ml.new_agent(ml.cart_pole(), jax.random.key(0), hidden=(8,))
        >>> agent.half.tolist(), ml.best_action(agent, jax.numpy.ones(4)).shape
        ([10.0], (1,))
    """

    policy: Layers
    log_spread: Array
    value: Layers
    scale: Scale
    centre: Array
    half: Array


def new_agent(
    env: Environment, key: Any, *, hidden: Sequence[int] = (32, 32), spread: float = 0.3
) -> Agent:
    """An agent that does and expects next to nothing: last layers are small.

    Args:
        env: what it is to act in.
        key: random key.
        hidden: widths of the hidden layers, of tanh units, of policy and value each.
        spread: standard deviation of an action in units of half its range.

    Example:
        >>> import jax
        >>> from jaxmbd import ml
        >>> [w.shape for w, _ in ml.new_agent(ml.cart_pole(), jax.random.key(0)).value]
        [(32, 4), (32, 32), (1, 32)]
    """
    dtype, actions = env.mechanism.dtype, len(env.names)
    ours, others = jax.random.split(key)
    return Agent(
        policy=_layers(ours, (env.size, *hidden, actions), dtype),
        log_spread=jnp.full(actions, np.log(spread), dtype),
        value=_layers(others, (env.size, *hidden, 1), dtype),
        scale=Scale(jnp.zeros((), dtype), jnp.zeros(env.size, dtype), jnp.ones(env.size, dtype)),
        centre=jnp.asarray(0.5 * (env.low + env.high)),
        half=jnp.asarray(0.5 * (env.high - env.low)),
    )


def best_action(agent: Agent, observation: Array, key: Any = None) -> Array:
    """The middle of the policy (na,): a policy of `rollout`, whose parameters are an `Agent`.

    Example:
        >>> import jax
        >>> from jaxmbd import ml
        >>> env = ml.cart_pole()
        >>> agent = ml.new_agent(env, jax.random.key(0), hidden=())
        >>> ml.rollout(env, ml.best_action, agent, jax.random.key(1), 5).action.shape
        (5, 1)
    """
    return agent.centre + agent.half * jnp.tanh(_applied(agent.policy, agent.scale(observation)))


def drawn_action(agent: Agent, observation: Array, key: Any) -> Array:
    """An action of the policy (na,) by a random key; a policy of `rollout`.

    Example:
        >>> import jax
        >>> from jaxmbd import ml
        >>> agent = ml.new_agent(ml.cart_pole(), jax.random.key(0), spread=1e-9)
        >>> seen = jax.numpy.ones(4)
        >>> moved = ml.drawn_action(agent, seen, jax.random.key(1)) - ml.best_action(agent, seen)
        >>> bool(abs(moved[0]) < 1e-6)
        True
    """
    noise = jax.random.normal(key, agent.half.shape, agent.half.dtype)
    return best_action(agent, observation) + agent.half * jnp.exp(agent.log_spread) * noise


def log_density(agent: Agent, observation: Array, action: Array) -> Array:
    """Logarithm of the density of an action (na,), in units of `half`, where it was observed so.

    Example:
        >>> import jax
        >>> from jaxmbd import ml
        >>> agent = ml.new_agent(ml.cart_pole(), jax.random.key(0), spread=1.0)
        >>> seen = jax.numpy.ones(4)
        >>> round(float(ml.log_density(agent, seen, ml.best_action(agent, seen))), 4)  # -log(√2π)
        -0.9189
    """
    off = (action - best_action(agent, observation)) / (agent.half * jnp.exp(agent.log_spread))
    return jnp.sum(-0.5 * off * off - agent.log_spread - 0.5 * np.log(2.0 * np.pi), axis=-1)


def value(agent: Agent, observation: Array) -> Array:
    """The agent's value of an observation, or of observations (…, no).

    Example:
        >>> import jax
        >>> from jaxmbd import ml
        >>> agent = ml.new_agent(ml.cart_pole(), jax.random.key(0))
        >>> ml.value(agent, jax.numpy.ones((5, 4))).shape
        (5,)
    """
    return _applied(agent.value, agent.scale(observation))[..., 0]


def _layers(key: Any, sizes: Sequence[int], dtype: Any) -> Layers:
    """Weights that keep the variance of what goes in, those of the last layer a hundredth."""
    pairs = list(zip(sizes[1:], sizes[:-1], strict=True))
    keys = jax.random.split(key, len(pairs))
    gains = [*[1.0] * (len(pairs) - 1), 0.01]
    return [
        (jax.random.normal(k, pair, dtype) * (gain / np.sqrt(pair[1])), jnp.zeros(pair[0], dtype))
        for k, pair, gain in zip(keys, pairs, gains, strict=True)
    ]


def _applied(layers: Layers, x: Array) -> Array:
    *hidden, (weights, bias) = layers
    for w, b in hidden:
        x = jnp.tanh(x @ w.T + b)
    return x @ weights.T + bias
