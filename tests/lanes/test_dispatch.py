"""A call whose kernel runs long returns before it has run, as JAX's own operations do."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbd import lanes

# XLA does not run a program in the caller's thread while its arguments are being copied: these are
# on the device.
LONG, SHORT = jax.block_until_ready([jnp.linspace(0.0, 1.0, n) for n in (15_000, 100)])


def orbit(x):
    return jax.lax.fori_loop(0, 1000, lambda _, y: jnp.cos(y) + 0.1 * x, x)


def test_a_long_call_returns_before_its_result_is_there():
    called = lanes.vmap(orbit)
    jax.block_until_ready(called(LONG))
    results = [called(LONG) for _ in range(5)]
    # This thread may be suspended until the first has run, not until all have.
    assert not results[-1].is_ready()
    for y in results:
        np.testing.assert_allclose(y, jnp.cos(y) + 0.1 * LONG, rtol=1e-12)  # where orbits end
        np.testing.assert_array_equal(y, results[0])


def test_a_short_call_carries_nothing_more():
    def ignored(x):
        return "dot_general" in jax.jit(lanes.vmap(orbit)).lower(x).as_text()

    assert ignored(LONG)
    assert not ignored(SHORT)


def test_derivatives_and_loops_of_long_calls():
    def total(scale):
        _, rows = jax.lax.scan(
            lambda _, k: (None, lanes.vmap(orbit)(scale * k * LONG)), None, jnp.arange(1.0, 3.0)
        )
        return rows.sum()

    value, slope = jax.jit(jax.value_and_grad(total))(1.0)
    h = 1e-4
    assert np.isfinite(value)
    np.testing.assert_allclose(slope, (total(1.0 + h) - total(1.0 - h)) / (2 * h), rtol=1e-6)
