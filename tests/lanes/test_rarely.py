"""`rarely`: the right values everywhere, computed only where a sample needs them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.lanes.ir.nodes import Loop
from jaxmbd.lanes.kernel import Kernel


def costly(x, k, np=jnp):
    for _ in range(20):
        x = np.sin(x) + k * np.roll(x, 1) * np.cumsum(x)
    return x


def program(x, k):
    y = jnp.tanh(x) * k
    z = lanes.rarely(x[0] > 2.0, costly, -y, x, k)
    return z + costly(y, k), z @ y


@pytest.mark.parametrize("vmap", [lanes.vmap, jax.vmap])
@pytest.mark.parametrize("few", [0, 1, 7])
def test_values(vmap, few):
    x = np.random.default_rng(few).uniform(-1.0, 1.0, (20, 5))
    x[3 : 3 + few, 0] = 3.0
    found = jax.jit(vmap(program, in_axes=(0, None)))(x, 0.3)
    for k in range(20):
        z = costly(x[k], 0.3, np) if x[k, 0] > 2.0 else -np.tanh(x[k]) * 0.3
        np.testing.assert_allclose(found[1][k], z @ (np.tanh(x[k]) * 0.3), rtol=1e-11, atol=1e-13)


def test_inside_a_loop_it_sees_each_iteration():
    def run(x):
        def step(_, y):
            return lanes.rarely(y[0] > 1.0, lambda y: 0.1 * y, 1.7 * y + 0.1, y)

        return jax.lax.fori_loop(0, 9, step, x)

    x = np.random.default_rng(0).uniform(0.0, 1.0, (11, 3))
    expected = x.copy()
    for _ in range(9):
        expected = np.where(expected[:, :1] > 1.0, 0.1 * expected, 1.7 * expected + 0.1)
    np.testing.assert_allclose(jax.jit(lanes.vmap(run))(x), expected, rtol=1e-13)


def test_nothing_of_it_moves_out():
    """Its operations stay in its region, and those that others need too are not only there."""
    example = (jnp.ones(5), jnp.asarray(0.3))
    graph = Kernel(jax.make_jaxpr(program)(*example), (True, False)).graph
    (body,) = [n.data.body for n in graph.base.nodes if isinstance(n.data, Loop)]
    inside = sum(n.op == "sin" for n in body.nodes)
    outside = sum(n.op == "sin" for n in graph.base.nodes)
    assert inside == 100
    assert outside == 100


def test_a_while_loop_that_no_sample_begins_is_skipped():
    def run(x, n):
        def step(state):
            k, y = state
            return k + 1, jnp.where(k < 10**9, y * 2.0, jnp.nan)

        return jax.lax.while_loop(lambda s: s[0] < n, step, (0, x))

    found = jax.jit(lanes.vmap(run, in_axes=(0, 0)))(np.arange(9.0), np.array([0] * 8 + [3]))
    np.testing.assert_array_equal(found[1], [*range(8), 64.0])
    np.testing.assert_array_equal(found[0], [0] * 8 + [3])
