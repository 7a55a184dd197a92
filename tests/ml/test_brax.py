"""Environments by Brax's names: the same steps, and what its wrappers do with a state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import ml
from jaxmbd.sampling import Uniform

ENV = ml.cart_pole(horizon=5, actions={"motor": (-4.0, 10.0)}, speeds={"hinge": Uniform(3.0)})
KEYS = jax.random.split(jax.random.PRNGKey(0), 3)


def test_a_trace_is_that_of_the_functional_environment():
    """Actions in ±1 are the limits, and the horizon is left to Brax."""
    env, key = ml.BraxEnv(ENV), KEYS[0]
    state, own = env.reset(key), ENV.reset(key)
    assert np.array_equal(state.obs, own.observation) and state.done == 0.0
    for action in (-1.0, 1.0, 0.5, 3.0, 0.0, 0.0):
        state = env.step(state, [action])
        own = ENV.advance(own, [3.0 + 7.0 * action])
        assert np.array_equal(state.obs, own.observation)
        assert (state.reward, state.done) == (own.reward, own.terminated)
    assert own.truncated and not own.terminated and int(state.pipeline_state.steps) == 6
    sizes = env.observation_size, env.action_size, env.dt, env.backend
    assert sizes == (4, 1, 0.02, "auto") and env.unwrapped is env


def wrapped(env, length):
    """`reset` and `step` of many lanes with what wrappers keep in a state's info, counts and all.

    As of Brax's: episodes are cut at a length, and begin again with their first state.
    """

    def reset(keys):
        state = jax.vmap(env.reset)(keys)
        state.info["steps"] = jnp.zeros(len(keys))
        state.info["total"] = {name: jnp.zeros(len(keys)) for name in state.metrics}
        state.info["first"] = state.pipeline_state, state.obs
        return state

    def step(state, action):
        before = state.info["steps"] * (1.0 - state.done)
        state = jax.vmap(env.step)(state.replace(done=jnp.zeros_like(state.done)), action)
        state.info["steps"] = steps = before + 1
        state.info["truncation"] = jnp.where(steps >= length, 1.0 - state.done, 0.0)
        for name in state.metrics:
            state.info["total"][name] += state.metrics[name]
        state = state.replace(done=jnp.where(steps >= length, 1.0, state.done))

        def chosen(x, y):
            return jnp.where(jnp.reshape(state.done, (-1, *[1] * (x.ndim - 1))), x, y)

        again = jax.tree_util.tree_map(
            chosen, state.info["first"], (state.pipeline_state, state.obs)
        )
        return state.replace(pipeline_state=again[0], obs=again[1])

    return reset, step


def test_wrappers_may_add_to_a_state_within_a_scan():
    """A loop over wrapped steps is compiled once; a loop by hand is its oracle."""
    reset, step = wrapped(ml.BraxEnv(ENV), 7)
    actions = jnp.linspace(-1.0, 1.0, 60).reshape(20, 3, 1)

    @jax.jit
    def run(keys):
        state = reset(keys)
        state.info["truncation"] = jnp.zeros(3)

        def one(state, action):
            state = step(state, action)
            return state, (state.obs, state.done, state.info["truncation"])

        return jax.lax.scan(one, state, actions)

    end, (seen, done, cut) = run(KEYS)
    advance = jax.jit(jax.vmap(ENV.advance))
    first = state = jax.vmap(ENV.reset)(KEYS)
    steps = np.zeros(3)
    for k, action in enumerate(actions):
        state, steps = advance(state, 3.0 + 7.0 * action), steps + 1
        over = np.asarray(state.terminated) | (steps >= 7)
        assert np.array_equal(done[k], over)
        assert np.array_equal(cut[k], over & ~np.asarray(state.terminated))
        steps = np.where(over, 0, steps)
        state = jax.tree_util.tree_map(
            lambda x, y, over=over: jnp.where(over.reshape(-1, *[1] * (x.ndim - 1)), x, y),
            first,
            state,
        )
        np.testing.assert_allclose(seen[k], state.observation, rtol=1e-12, atol=1e-14)
    assert 0 < np.sum(cut) < np.sum(done) and not np.any(end.info["total"]["failed"])


def test_a_failure_ends_an_episode_and_is_told():
    """A reading that is not finite is no end of the task, so its value is not zero."""

    def steep(t, q, v):
        return jnp.where(t < 0.03, q[1], jnp.nan)

    env = ml.BraxEnv(ml.cart_pole(observe={"angle": steep}))
    state = env.reset(KEYS[0])
    told = []
    for _ in range(2):
        state = env.step(state, [0.0])
        told.append([float(x) for x in (state.done, state.metrics["failed"], state.reward)])
        assert bool(state.info["time_out"]) == bool(state.info["status"])
    assert told == [[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]] and np.all(np.isfinite(state.obs))
    fallen = ml.BraxEnv(ml.cart_pole(terminate=lambda at: True)).step(env.reset(KEYS[0]), [0.0])
    assert fallen.done == 1.0 and fallen.info["time_out"] == 0.0


def test_a_state_is_a_pytree_that_can_be_replaced():
    state = ml.BraxEnv(ENV).reset(KEYS[0])
    assert isinstance(state, ml.BraxState)
    leaves, tree = jax.tree_util.tree_flatten(state)
    again = jax.tree_util.tree_unflatten(tree, leaves).replace(reward=jnp.array(2.0))
    assert float(again.reward) == 2.0 and np.array_equal(again.obs, state.obs)


def test_brax_itself_wraps_and_trains():
    """Where it is installed: its own wrappers and its PPO, to the end of a short training."""
    pytest.importorskip("brax")
    from brax import envs
    from brax.training.agents.ppo.train import train

    env = envs.training.wrap(ml.BraxEnv(ENV), episode_length=4)
    reset, step = wrapped(ml.BraxEnv(ENV), 4)
    theirs, ours = env.reset(KEYS), reset(KEYS)
    for k in range(10):
        action = jnp.full((3, 1), np.sin(k))
        theirs, ours = env.step(theirs, action), step(ours, action)
        np.testing.assert_allclose(theirs.obs, ours.obs, rtol=1e-12)
        assert np.array_equal(theirs.done, ours.done)
        assert np.array_equal(theirs.info["truncation"], ours.info["truncation"])
    found = []
    train(
        ml.BraxEnv(ml.cart_pole()), num_timesteps=2**16, episode_length=100, num_envs=32,
        batch_size=32, num_minibatches=8, unroll_length=16, num_evals=2, num_eval_envs=16,
        learning_rate=1e-3, progress_fn=lambda n, told: found.append(told["eval/episode_reward"]),
    )  # fmt: skip
    assert found[-1] > 1.3 * found[0]
