"""An expression gives the same bits wherever it is computed, and so do parts of loops run again."""

from itertools import count

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.lanes.codegen import writer
from jaxmbd.lanes.kernel import CODES

STEPS = 300


def chaotic(x):
    """The next state of two coupled quadratic maps, where a last bit is lost after 50 steps."""
    a, b = x
    scale = 1.0 + 0.1 * b * b
    a, b = (a + 0.1 * b * b) / scale, (b + 0.2 * jnp.sin(a * b)) / 1.2
    return jnp.stack([1.0 - 1.99 * a * a, 1.0 - 1.98 * b * b])


def begins():
    return np.random.default_rng(0).uniform(-0.9, 0.9, (16, 2))


def test_a_reverse_sweep_runs_segments_again_to_the_bit(monkeypatch):
    """The derivatives by weights are the states that the sweep goes through.

    Those at the begin of a segment were saved in the first run, and those before are of the second.
    Blocks are cut at every third operation, so at others in one than in the other.
    """
    calls, real = count(), writer.Writer.end_long_block

    def cut(self):
        writer.LONG_BLOCK = -1 if next(calls) % 3 == 0 else 1 << 30
        real(self)

    def weighted(begin, weights):
        def step(state):
            k, x, total = state
            return k + 1, chaotic(x), total + weights[k] @ jax.lax.stop_gradient(x)

        start = (0, begin, jnp.zeros(()))
        return lanes.bounded_while(lambda s: s[0] < STEPS, step, start, 1024)[2]

    monkeypatch.setenv("JAXMBD_LANES_CACHE", "")  # else the kernel would be found on disk
    monkeypatch.setattr(writer, "LONG_BLOCK", writer.LONG_BLOCK)
    monkeypatch.setattr(writer.Writer, "end_long_block", cut)
    CODES.things.clear()
    batch = lanes.vmap(weighted, strict=True)
    states = jax.grad(lambda weights: batch(begins(), weights).sum())(jnp.zeros((16, STEPS, 2)))
    CODES.things.clear()
    following = jax.vmap(jax.vmap(chaotic))(states)
    assert next(calls) > 100
    np.testing.assert_allclose(following[:, :-1], states[:, 1:], rtol=0.0, atol=1e-14)


def test_products_and_quotients_do_not_depend_on_what_else_is_asked():
    x, y = begins(), begins()[::-1].copy()

    def alone(x, y):
        return x[0] * y[0] + x[1] * y[1] - y[0] / (2.0 + x[1])

    def among(x, y):
        return alone(x, y), x[0] * y[0], x[1] * y[1]

    expected = lanes.vmap(alone)(x, y)
    np.testing.assert_array_equal(lanes.vmap(among)(x, y)[0], expected)
    moved = lanes.vmap(lambda x, y: jax.jvp(lambda x: (alone(x, y), alone(x, y)), (x,), (x,))[0])
    np.testing.assert_array_equal(moved(x, y)[1], expected)


@pytest.mark.parametrize("count", [1, 3, 7, 9])
def test_a_sample_does_not_depend_on_the_size_of_its_batch(count):
    """Few samples fill no vector and are computed one by one; of more, some are computed twice."""
    x, y = begins(), begins()[::-1].copy()
    batch = lanes.vmap(lambda x, y: jnp.sin(x) @ y / (x + y) + jnp.exp(x[0] * y))
    np.testing.assert_array_equal(batch(x[:count], y[:count]), batch(x, y)[:count])


def test_the_difference_of_equal_products_is_zero():
    x, y = begins(), begins()[::-1].copy()
    assert not np.any(lanes.vmap(lambda x, y: x * y - y * x)(x, y))
