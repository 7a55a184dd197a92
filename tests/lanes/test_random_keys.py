"""Random keys and numbers inside kernels: those of `jax.random`, to the bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes

BATCH = 11
KEYS = jax.random.split(jax.random.key(1), BATCH)
ULPS = 64 * np.finfo(float).eps  # of erf_inv and log, which lanes computes by itself


def same_bits(found, expected):
    for y, x in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (y.dtype, y.shape) == (x.dtype, x.shape)
        if jax.dtypes.issubdtype(y.dtype, jax.dtypes.prng_key):
            y, x = jax.random.key_data(y), jax.random.key_data(x)
        np.testing.assert_array_equal(y, x)


def whole(key, low):
    """What is made of keys without rounding; low is a number."""
    first, second = jax.random.split(key)
    many = jax.random.split(first, (2, 2))
    other = jax.random.fold_in(second, 7)
    chosen = jnp.where(low > 0.5, many[0, 1], other)
    return {
        "keys": (many, other, chosen),
        "words": jax.random.key_data(other),
        "bits": [jax.random.bits(first, (3,), t) for t in (jnp.uint8, jnp.uint32, jnp.uint64)],
        "uniform": jax.random.uniform(second, (2, 2)),
        "single": jax.random.uniform(second, (3,), jnp.float32),
        "integers": jax.random.randint(other, (3,), 0, 10),
        "coins": jax.random.bernoulli(chosen, 0.3, (2,)),
        "of each": jax.vmap(jax.random.uniform)(many[0]),
        "seeded": jax.random.uniform(jax.random.key(low.astype(int) + 3)),
    }


def test_keys_and_numbers_are_those_of_jax_to_the_bit():
    low = jnp.linspace(0.0, 1.0, BATCH)
    found = jax.jit(lanes.vmap(whole, strict=True))(KEYS, low)
    same_bits(found, jax.jit(jax.vmap(whole))(KEYS, low))


def test_raw_keys_pass_through_a_loop():
    def walk(raw):
        def step(state, _):
            key, total = state
            key, used = jax.random.split(key)
            return (key, total + jax.random.uniform(used)), total

        (last, _), path = jax.lax.scan(step, (raw, 0.0), None, length=70)
        return last, path

    raw = jax.random.split(jax.random.PRNGKey(3), BATCH)
    same_bits(jax.jit(lanes.vmap(walk, strict=True))(raw), jax.jit(jax.vmap(walk))(raw))


def test_long_arrays_and_gradients():
    """Gradients by a scale of noise, with a closed-over key; 3000 numbers are no array of nodes."""
    closed_over = jax.random.key(5)

    def noisy(key, x):
        noise = jax.random.normal(key, (3000,))
        return x * jnp.sum(noise) + x**2 * jax.random.normal(closed_over)

    x = jnp.linspace(0.1, 1.0, BATCH)

    def total(mapped):
        return jax.jit(jax.value_and_grad(lambda x: jnp.sum(mapped(noisy)(KEYS, x))))(x)

    for found, expected in zip(
        total(lambda f: lanes.vmap(f, strict=True)), total(jax.vmap), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=ULPS, atol=3000 * ULPS)


def test_keys_at_the_last_axis_and_of_one_sample():
    def number(key):
        return jax.random.uniform(key)

    expected = jax.vmap(number)(KEYS)
    same_bits(lanes.vmap(number, in_axes=-1, strict=True)(KEYS), expected)
    same_bits(jax.vmap(lanes.jit(number, strict=True))(KEYS), expected)


def test_keys_of_other_generators_are_unsupported():
    keys = jax.random.split(jax.random.key(1, impl="rbg"), 2)
    with pytest.raises(lanes.Unsupported, match="key<rbg>"):
        lanes.vmap(jax.random.uniform, strict=True)(keys)
