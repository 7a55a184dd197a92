"""Gradients of rollouts with a policy inside, of up to a thousand steps."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from environment_cases import gradients

from jaxmbd import ml


def policy(params, seen, key):
    gains, layer, last = params
    return gains @ seen + last @ jnp.tanh(layer @ seen)


def test_a_gradient_through_32_steps_is_that_of_differences():
    env = ml.cart_pole(terminate=None, horizon=None)
    rng = np.random.default_rng(0)
    params = np.array([[0.9, 2.1, -30.2, -7.7]]), rng.normal(size=(4, 4)), rng.normal(size=(1, 4))
    along = jax.tree_util.tree_map(lambda x: 0.1 * rng.normal(size=x.shape), params)
    keys = ml.lane_keys(0, 2)

    @partial(jax.jit, static_argnums=1)
    def loss(x, slope=False):
        moved = jax.tree_util.tree_map(lambda p, d: p + x * d, params, along)

        def value(params):
            run = jax.vmap(partial(ml.rollout, env, policy, params, steps=32))(keys)
            return jnp.mean(run.next_observation**2)

        return jax.grad(value)(moved) if slope else value(moved)

    found = jax.tree_util.tree_map(np.vdot, loss(0.0, True), along)
    h = 1e-2
    near, far = (float(loss(x) - loss(-x)) for x in (h, 2.0 * h))
    wanted = (8.0 * near - far) / (12.0 * h)
    np.testing.assert_allclose(sum(found), wanted, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", gradients.ENVIRONMENTS)
@pytest.mark.parametrize(("steps", "most"), [(32, 1e-8), (200, 1e-6), (1000, 1e-6)])
def test_gradients_are_those_of_xla_and_of_differences(name, steps, most):
    found = gradients.against(name, steps, 2)
    assert found["failed steps"] == 0
    assert found["from XLA"] < 1e-10 and found["from differences"] < most


def test_memory_of_a_gradient_grows_like_the_root_of_the_steps():
    """Of the kernel for one lane, where no row of all steps is asked for."""
    env, params = ml.cart_pole(terminate=None, horizon=None), np.zeros((1, 4))

    def memory(steps):
        def end(gains):
            run = ml.rollout(env, lambda w, o, key: w @ o, gains, jax.random.key(0), steps)
            return jnp.sum(run.end.observation**2)

        return gradients.lanes.explain(jax.grad(end), params).scratch

    assert memory(1600) < 1.5 * 4.0 * memory(100)
