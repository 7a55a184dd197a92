"""Python numbers take the type of the other operand, as in `jax.vmap`; so do results of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes

X = np.linspace(0.5, 2.0, 6).reshape(2, 3)
WEAK = jnp.asarray(2.0) * jnp.asarray(1.5)


def types(tree):
    return [(x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(tree)]


def same(found, expected, rtol=1e-6):
    assert types(found) == types(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol)


def everything(x, s):
    """Products with Python numbers, and results of Python numbers alone."""
    sums = {"product": x * s, "number": 2.0, "count": 3, "own": s + 1, "square": s * s}
    return sums | {"quotient": jnp.sin(x) / s, "choice": jnp.where(x > s, x, s)}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("number", [2.0, 2, WEAK, np.float32(2.0)], ids=["2.0", "2", "jax", "f32"])
def test_results_have_the_types_of_jax_vmap(dtype, number):
    fn, x = everything, jnp.asarray(4 * X, dtype)
    expected = jax.vmap(fn, (0, None))(x, number)
    same(lanes.vmap(fn, (0, None))(x, number), expected)
    same(lanes.vmap(fn, (0, None), static=(1,))(x, number), expected)
    one = lanes.jit(fn)
    same(one(x[0], number), jax.jit(fn)(x[0], number))
    same(jax.vmap(one, (0, None))(x, number), expected)


def test_a_batch_may_be_weak():
    x = jnp.broadcast_to(WEAK, 4)
    assert x.weak_type
    y = jnp.ones(4, jnp.float32)
    for axis in (0, -1):
        same(
            lanes.vmap(lambda x, y: (x * y, x), 0, axis)(x, y),
            jax.vmap(lambda x, y: (x * y, x), 0, axis)(x, y),
        )


def test_derivatives_have_the_types_of_jax():
    x = jnp.asarray(X, jnp.float32)

    def total(vmap):
        return lambda x, s: vmap(lambda x, s: jnp.sum(jnp.sin(x * s)), (0, None))(x, s).sum()

    for transform in (
        lambda f: jax.jit(jax.grad(f, (0, 1))),
        lambda f: jax.jacfwd(f, (0, 1)),
        lambda f: jax.jit(jax.hessian(f, 1)),
    ):
        same(transform(total(lanes.vmap))(x, 2.0), transform(total(jax.vmap))(x, 2.0), 1e-5)


def test_a_number_that_becomes_an_array_is_traced_anew():
    seen = []

    @lanes.jit
    def fn(x, s):
        seen.append(1)
        return x * s

    x = jnp.ones(3, jnp.float32)
    assert fn(x, 2.0).dtype == np.float32
    assert fn(x, jnp.float64(2.0)).dtype == np.float64
    assert fn(x, 3.0).dtype == np.float32 and len(seen) == 2


@pytest.mark.parametrize(
    "first", [jnp.sum, lambda x: jnp.fft.rfft(x)[0].real], ids=["kernel", "jax"]
)
@pytest.mark.filterwarnings("ignore:lanes cannot compile:UserWarning")
def test_constant_results_and_their_derivatives(first):
    def fn(x):
        return first(x**3), {"flag": True, "number": 2.0, "count": 3, "none": jnp.zeros(2) > 1.0}

    one = lanes.jit(fn)
    same(one(X[0]), jax.jit(fn)(X[0]))
    same(lanes.vmap(fn)(X), jax.vmap(fn)(X))
    for derivative in (jax.jacfwd, jax.jacrev):
        expected = jax.vmap(derivative(fn, has_aux=True))(X)
        same(jax.vmap(derivative(one, has_aux=True))(X), expected)
        alone = [jax.jit(derivative(f, has_aux=True))(X[0]) for f in (one, fn)]
        same(*alone)
