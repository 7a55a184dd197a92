"""Gradients by arguments that all samples share: cotangents summed over the batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes


def assert_equal(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def f(shared, x):
    return jnp.sin(shared["a"] * x) @ shared["b"]


def gradient(value):
    return jax.grad(lambda shared, x: jnp.sum(value(shared, x) ** 2))


SHARED = {"a": jnp.asarray(1.3), "b": jnp.asarray([0.4, -0.7, 2.0])}


@pytest.mark.parametrize("size", [1, 5, 33, 1000])
def test_gradients_in_both_precisions_and_of_what_is_not_shared(size):
    def fn(a, x, b, c):
        return jnp.sin(a * x) @ (b * c), a * jnp.sum(x)

    def loss(vmap, *args):
        y, z = vmap(fn, in_axes=(None, 0, None, None))(*args)
        return jnp.sum(jnp.sum(y**2, axis=1) * z)

    b, c = jnp.asarray([[0.4, -0.7], [2.0, 1.1], [0.3, 0.9]]), jnp.float32(0.7)
    args = jnp.asarray(1.3), jnp.linspace(0.1, 1.0, 3 * size).reshape(size, 3), b, c
    found, expected = (
        jax.jit(jax.grad(lambda *x, v=v: loss(v, *x), argnums=(0, 1, 2, 3)))(*args)
        for v in (lanes.vmap, jax.vmap)
    )
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-12 if x.dtype == np.float64 else 1e-5)


def test_the_memory_of_a_gradient_is_the_cotangents_of_all_samples():
    """Of a leaf of n numbers that 100 000 samples share: (100 000, n) doubles, and no more."""
    size, leaf = 100_000, jnp.linspace(0.1, 1.0, 9)
    total = lanes.vmap(lambda a, x: jnp.sum(jnp.sin(a * x)), in_axes=(None, 0), strict=True)
    slope = jax.jit(jax.grad(lambda a, x: jnp.sum(total(a, x))))
    compiled = slope.lower(leaf, jnp.zeros(size)).compile()
    room = compiled.memory_analysis().temp_size_in_bytes
    assert 8 * size * leaf.size <= room < 1.3 * 8 * size * leaf.size


def test_derivatives_and_batches_of_a_gradient():
    x = jnp.linspace(-1.0, 1.0, 120).reshape(40, 3)
    ours, plain = (gradient(v(f, in_axes=(None, 0))) for v in (lanes.vmap, jax.vmap))
    scales = jnp.asarray([0.5, 1.0, 1.5])
    rates = jax.tree.map(lambda y: 0.1 * jnp.ones_like(y), SHARED)

    def total(of, s):
        return sum(jnp.sum(jnp.cos(y)) for y in jax.tree.leaves(of(s, x)))

    for derivative in (
        lambda of: jax.vmap(of, in_axes=(None, 0))(SHARED, scales[:, None, None] * x),
        lambda of: jax.vmap(lambda k: of(dict(SHARED, a=k), x))(scales),
        lambda of: jax.jvp(lambda s: of(s, x), (SHARED,), (rates,))[1],
        lambda of: jax.grad(lambda s: total(of, s))(SHARED),
        lambda of: jax.hessian(lambda s: total(of, s))(SHARED),
    ):
        found, expected = (jax.jit(lambda d=derivative, g=g: d(g))() for g in (ours, plain))
        pairs = zip(*map(jax.tree.leaves, (found, expected)), strict=True)
        for a, b in pairs:
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def test_gradient_inside_another_kernel():
    """A kernel that differentiates a call over a batch adds on its graph."""
    x = jnp.linspace(-1.0, 1.0, 12).reshape(4, 3)
    inner = gradient(lanes.vmap(f, in_axes=(None, 0)))
    outer = lanes.vmap(lambda s: inner(dict(SHARED, a=s), x), strict=True)(jnp.asarray([0.5, 1.5]))
    expected = gradient(jax.vmap(f, in_axes=(None, 0)))
    for k, a in enumerate((0.5, 1.5)):
        for name, y in expected(dict(SHARED, a=jnp.asarray(a)), x).items():
            np.testing.assert_allclose(outer[name][k], y, rtol=1e-13)


def test_an_empty_batch_has_no_gradient():
    found = jax.jit(gradient(lanes.vmap(f, in_axes=(None, 0))))(SHARED, jnp.zeros((0, 3)))
    assert_equal(jax.tree.leaves(found), [jnp.zeros(()), jnp.zeros(3)])


def test_a_function_without_kernel_has_the_same_gradient(recwarn):
    def sorts(a, x):
        return jnp.sum(jnp.sort(a * x) ** 2)

    def total(v):
        return jax.grad(lambda a: jnp.sum(v(sorts, in_axes=(None, 0))(a, jnp.ones((4, 70)))))(1.5)

    np.testing.assert_allclose(total(lanes.vmap), total(jax.vmap), rtol=1e-13)
