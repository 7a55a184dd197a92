"""Sorting in kernels: the order of `jax.vmap`, also of NaN, of zeros with signs and of equals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes

RNG = np.random.default_rng(4)


def same(fn, *args):
    """Equal to the bit, signs of zeros included."""
    found, expected = (jax.jit(m(fn))(*args) for m in (lanes.vmap, jax.vmap))
    lanes.vmap(fn, strict=True)(*args)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(x, y)
        if x.dtype.kind == "f":
            numbers = ~np.isnan(x)
            np.testing.assert_array_equal(np.signbit(x)[numbers], np.signbit(y)[numbers])


def with_ties(dtype, shape=(40, 7)):
    """Few different numbers, infinities, zeros of both signs and NaN among them."""
    x = RNG.integers(-2, 3, size=shape).astype(dtype)
    for value in (np.nan, -np.nan, np.inf, -np.inf, -0.0):
        x[RNG.random(shape) < 0.1] = value
    return x


SORTS = {
    "sort": lambda x: (jnp.sort(x), jnp.sort(x, descending=True)),
    "argsort": lambda x: (jnp.argsort(x), jnp.argsort(x, descending=True)),
    "top_k": lambda x: (jax.lax.top_k(x, 3), jax.lax.top_k(x[:, None], 7, axis=0)),
    "axis": lambda x: jnp.sort(jnp.stack([x[:5], x[2:]], axis=1), axis=0),
    "nothing": lambda x: (jnp.sort(x[:0]), jnp.argsort(x[:1])),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint8, bool])
@pytest.mark.parametrize("name", SORTS)
def test_orders(name, dtype):
    if np.issubdtype(dtype, np.floating):
        same(SORTS[name], with_ties(dtype))
    elif (dtype, name) != (bool, "top_k"):  # which JAX has not
        same(SORTS[name], RNG.integers(0, 4, size=(40, 7)).astype(dtype))


def test_several_operands():
    x, y = with_ties(float), with_ties(float)
    k = RNG.integers(-1, 2, size=(40, 7))

    def fn(x, k, y):
        sorts = [jax.lax.sort((x, k, y), num_keys=n) for n in (1, 2, 3)]
        return sorts, jnp.lexsort((y, k)), jnp.unique(k, size=3)

    same(fn, x, k, y)


def test_what_uses_it():
    x = RNG.normal(size=(40, 6))
    found, expected = (
        m(lambda x: (jnp.median(x), jnp.percentile(x, 30.0), jnp.nanmedian(x)))(x)
        for m in (lambda f: lanes.vmap(f, strict=True), jax.vmap)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_derivatives():
    """Of equals too: each keeps its own."""

    def fn(x):
        ordered = jnp.sort(x)
        return ordered**2 @ jnp.arange(5.0) + jax.lax.top_k(x, 2)[0][1] ** 3 + jnp.median(x)

    x = np.concatenate([RNG.normal(size=(8, 5)), RNG.integers(-1, 2, size=(8, 5))])

    def ways(m):
        gradient = jax.grad(lambda x: jnp.sum(m(fn)(x)))
        return jax.jit(lambda x: (gradient(x), jax.jvp(gradient, (x,), (x,))[1]))

    found, expected = ways(lambda f: lanes.vmap(f, strict=True))(x), ways(jax.vmap)(x)
    for y, z in zip(found, expected, strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-14)


def test_long_arrays_fall_back_and_say_so():
    assert lanes.explain(jnp.sort, jnp.ones(64)).unsupported is None
    with pytest.raises(lanes.Unsupported, match=r"'sort'.* 2080 .*at most 2016.*in sort at "):
        lanes.vmap(jnp.sort, strict=True)(np.ones((2, 65)))
    same(lambda x: jax.lax.top_k(x, 2), RNG.normal(size=(9, 300)))
