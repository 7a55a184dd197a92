"""Learners: returns and gradients by independent routes, values by closed forms."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import norm

import jaxmbd as mbd
from jaxmbd import ml
from jaxmbd.ml.short_horizon import window_loss, window_return
from jaxmbd.observe import Coordinate, CoordinateRate
from jaxmbd.sampling import Uniform

DT, RATE, DRAG, HORIZON, DISCOUNT = 0.1, 4.0, 0.4, 10, 0.9


def oscillator(kind=ml.Environment, limit=1.0, **options):
    """A mass on a spring and a damper, pushed within ±`limit`; it starts anywhere in a square."""
    mech = mbd.Mechanism(
        {"mass": mbd.Body(1.0, com=(0.0, 0.0))},
        {"rail": mbd.Prismatic("ground", "mass", at=(0.0, 0.0), axis=(1.0, 0.0))},
        {"spring": mbd.TorsionSpring("rail", stiffness=RATE, damping=DRAG)},
    )
    given = {
        "observe": {"x": Coordinate("rail"), "v": CoordinateRate("rail")},
        "actions": {"rail": (-limit, limit)},
        "reward": lambda before, action, after: 1.0 + after.q[0] - 0.5 * after.v[0],
        "start": {"rail": Uniform(1.0)},
        "speeds": {"rail": Uniform(low=1.0, high=3.0)},
        "horizon": HORIZON,
        "substeps": 4,
    }
    return kind(mech, DT, **{**given, **options})


class Forgetful(ml.Environment):
    """One that tells the first observation of the next episode in place of the final one."""

    def step(self, state, action):
        after = super().step(state, action)
        return after._replace(final_observation=after.observation)


def value_error(kind, learn, **options):
    """Largest error of a linear value that is learned where actions have no effect.

    By M the exact map of a step, ``V = 1 + (1 − γ) Σ γᵏ c Mᵏ⁺¹ x = 1 + (1 − γ) c M (1 − γM)⁻¹ x``.
    """
    env = oscillator(kind, limit=1e-9)
    found = learn(
        env, lanes=16, window=16, updates=100, discount=DISCOUNT, trace=0.9, hidden=(), **options
    )
    step = expm(DT * np.array([[0.0, 1.0], [-RATE, -DRAG]]))
    closed = np.array([1.0, -0.5]) @ step @ np.linalg.inv(np.eye(2) - DISCOUNT * step)
    states = np.random.default_rng(0).uniform(-2.0, 2.0, (50, 2))
    exact = 1.0 + (1.0 - DISCOUNT) * states @ closed
    return np.abs(ml.value(found.agent, states) - exact).max()


@pytest.mark.parametrize(
    "learn, options",
    [(ml.shac, {"value_rate": 0.05}), (ml.ppo, {"rate": 0.05})],
    ids=["shac", "ppo"],
)
def test_values_of_cut_episodes_are_those_of_endless_ones(learn, options):
    assert value_error(ml.Environment, learn, **options) < 1e-6


def test_the_first_observation_of_the_next_episode_would_give_a_wrong_value():
    assert value_error(Forgetful, ml.ppo, rate=0.05) > 0.1


def steps_of(count=30, seed=0):
    """Rewards, ends of episodes, and values before and after each step of a lane."""
    rng = np.random.default_rng(seed)
    reward, ahead = rng.normal(size=(2, count))
    terminated, late = rng.uniform(size=(2, count)) < 0.15
    truncated = late & ~terminated
    here = np.append(rng.normal(), ahead[:-1])  # of an observation: what the last step led to
    begun = np.append(False, (terminated | truncated)[:-1])
    return reward, terminated, truncated, ahead, np.where(begun, rng.normal(size=count), here)


@pytest.mark.parametrize("trace", [0.0, 0.7, 1.0])
def test_returns_are_the_sums_of_their_definitions(trace):
    """TD(λ) by n-step returns, and generalised advantages by sums of TD errors."""
    g = 0.9
    reward, terminated, truncated, ahead, here = steps_of()
    found = ml.lambda_returns(reward, terminated, truncated, ahead, discount=g, trace=trace)
    done, count = terminated | truncated, len(reward)
    errors = (1 - g) * reward + g * np.where(terminated, 0.0, ahead) - here
    for t in range(count):
        end = next((k for k in range(t, count) if done[k]), count - 1)
        gained = np.cumsum((1 - g) * g ** np.arange(end - t + 1) * reward[t : end + 1])
        kept = np.where(terminated[t : end + 1], 0.0, ahead[t : end + 1])
        n_step = gained + g ** np.arange(1, end - t + 2) * kept
        weights = (1 - trace) * trace ** np.arange(end - t + 1.0)
        weights[-1] = trace ** float(end - t)
        np.testing.assert_allclose(found[t], weights @ n_step, rtol=1e-12, atol=1e-14)
        advantage = (g * trace) ** np.arange(end - t + 1.0) @ errors[t : end + 1]
        np.testing.assert_allclose(found[t] - here[t], advantage, rtol=1e-12, atol=1e-14)


def test_the_return_of_a_window():
    """Parts between ends of episodes, each with its own discount and its value at the end."""
    g = 0.9
    reward, terminated, truncated, ahead, _ = steps_of()
    none = jnp.zeros((), jnp.int32)
    run = ml.Rollout(none, none, reward, terminated, truncated, none, none, none)
    ends = sorted({*np.flatnonzero(terminated | truncated).tolist(), 29})
    first, total = 0, 0.0
    for end in ends:
        size = end - first + 1
        total += (1 - g) * g ** np.arange(size) @ reward[first : end + 1]
        total += 0.0 if terminated[end] else g**size * ahead[end]
        first = end + 1
    assert len(ends) > 4
    np.testing.assert_allclose(window_return(run, ahead, g), total / 30, rtol=1e-12)


@cache
def window():
    """A window's loss, and its gradient, as functions of the policy's weights and spread."""
    env = oscillator()
    agent = ml.new_agent(env, jax.random.key(0), hidden=(4,), spread=0.05)
    agent = agent._replace(scale=agent.scale.updated(np.random.default_rng(0).normal(size=(9, 2))))
    parts = jax.tree_util.tree_map(lambda x: x + 0.1, (agent.policy, agent.log_spread))
    state = jax.vmap(env.reset)(ml.lane_keys(3, 4))

    def loss(parts):
        return window_loss(parts, env, agent, agent.value, state, 2 * HORIZON - 3, DISCOUNT)

    return env, agent, state, parts, jax.jit(jax.value_and_grad(loss, has_aux=True))


def test_the_policys_gradient_is_that_of_differences():
    *_, parts, slope_of = window()
    (value, run), slope = slope_of(parts)
    assert run.truncated.any() and not run.truncated.all()  # values in the middle and at the end
    leaves, tree = jax.tree_util.tree_flatten(parts)
    rng = np.random.default_rng(1)
    for k in range(4):
        way = [rng.normal(size=x.shape) for x in leaves]

        def along(h, way=way):
            moved = [x + h * d for x, d in zip(leaves, way, strict=True)]
            return float(slope_of(jax.tree_util.tree_unflatten(tree, moved))[0][0])

        h = 1e-3
        difference = (8 * (along(h) - along(-h)) - along(2 * h) + along(-2 * h)) / (12 * h)
        exact = sum(np.sum(x * d) for x, d in zip(jax.tree.leaves(slope), way, strict=True))
        np.testing.assert_allclose(exact, difference, rtol=1e-7, err_msg=str(k))


def test_densities_are_those_of_what_is_drawn():
    env, agent, *_ = window()
    seen = jnp.array([0.3, -0.2])
    drawn = jax.vmap(partial(ml.drawn_action, agent, seen))(
        jax.random.split(jax.random.key(1), 4000)
    )
    middle, spread = float(ml.best_action(agent, seen)[0]), float(jnp.exp(agent.log_spread[0]))
    assert abs(drawn.mean() - middle) < 0.02 * spread * 3 and abs(drawn.std() / spread - 1) < 0.05
    expected = norm.logpdf(drawn[:, 0], middle, spread)  # half the range is one here
    np.testing.assert_allclose(jax.vmap(partial(ml.log_density, agent, seen))(drawn), expected)


def test_the_scale_of_observations_is_that_of_all_of_them():
    parts = np.split(np.random.default_rng(2).normal([3.0, -1.0], [2.0, 0.1], (90, 2)), [10, 50])
    scale = ml.Scale(jnp.zeros(()), jnp.zeros(2), jnp.ones(2))
    for part in parts:
        scale = scale.updated(part)
    every = np.concatenate(parts)
    np.testing.assert_allclose(scale.mean, every.mean(0), rtol=1e-12)
    np.testing.assert_allclose(scale.variance, every.var(0), rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(scale)(every).std(0), 1.0, rtol=1e-9)


def damped(**options):
    """The oscillator, to be brought to rest by up to ±4 N."""
    return oscillator(
        limit=4.0, reward=lambda before, action, after: -after.q[0] ** 2 - 0.2 * after.v[0] ** 2,
        speeds={}, horizon=40, **options,
    )  # fmt: skip


@pytest.mark.parametrize(
    "learn, options",
    [
        (ml.shac, {"lanes": 16, "window": 20, "updates": 40, "rate": 0.02}),
        (ml.ppo, {"lanes": 64, "window": 40, "updates": 60, "rate": 5e-3, "spread": 0.3}),
    ],
    ids=["shac", "ppo"],
)
def test_learners_damp_an_oscillation(learn, options):
    env, told = damped(), []
    size = options["lanes"] * options["window"]
    found = learn(
        env, hidden=(8,), **options, progress=lambda n, agent, row: told.append((n, agent, row))
    )
    keys = ml.lane_keys(99, 32)

    def reward(policy, agent):
        return jax.vmap(partial(ml.rollout, env, policy, agent, steps=40))(keys).reward.mean()

    free = reward(lambda p, seen, key: jnp.zeros(1), None)
    assert reward(ml.best_action, found.agent) > 0.5 * free  # which is negative
    assert isinstance(found, ml.Learned) and isinstance(found.agent, ml.Agent)
    assert len(told) == options["updates"] and told[-1][1] is found.agent
    assert found.history["samples"].tolist() == [size * (n + 1) for n in range(len(told))]
    assert {x.shape for x in found.history.values()} == {(len(told),)}
    assert np.all(np.isfinite(np.concatenate(list(found.history.values()))))
    assert found.history["reward"][-5:].mean() > found.history["reward"][0]


def test_a_seed_determines_a_training_and_failures_are_counted():
    broken = oscillator(
        reward=lambda before, action, after: jnp.where(
            after.q[0] > 0.5, jnp.nan, -(after.q[0] ** 2)
        )
    )
    options = {"lanes": 8, "window": 8, "updates": 3, "hidden": (4,), "batches": 2}
    first, second = (ml.shac(broken, **options) for _ in range(2))
    for x, y in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        assert np.array_equal(x, y)
    assert first.history["failed"].sum() > 5 and np.all(np.isfinite(first.history["slope"]))


def test_a_training_in_which_every_step_fails_is_stopped():
    hopeless = oscillator(reward=lambda before, action, after: jnp.nan)
    with pytest.raises(ValueError, match="all 64 steps of update 1 failed.*check reward="):
        ml.shac(hopeless, lanes=8, window=8, updates=3, hidden=(4,), batches=2)


def test_an_agent_that_is_lost_is_told():
    steep = damped()
    with pytest.raises(FloatingPointError, match="shorten window="):
        ml.ppo(steep, rate=jnp.nan, lanes=8, window=8, updates=2, hidden=(4,))


@pytest.mark.parametrize("learn", [ml.shac, ml.ppo])
def test_errors_name_the_part_and_the_cure(learn):
    env = window()[0]
    with pytest.raises(ValueError, match="window=0: give a whole number, at least 1"):
        learn(env, window=0)
    with pytest.raises(ValueError, match="discount=1.5: give a number from 0 to 1"):
        learn(env, discount=1.5)
    with pytest.raises(ValueError, match="batches=7 does not divide the 8 · 4 steps"):
        learn(env, lanes=8, window=4, batches=7)
