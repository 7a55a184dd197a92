"""Sums over the batch: the cotangents of arguments that all samples share."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.lanes import summed_pullback
from jaxmbd.lanes.batch_sum import batch_sum
from jaxmbd.lanes.primitive import call_p

SHAPES = [(), (1,), (3,), (3, 3), (2, 0, 3)]


def arrays(size, dtype=np.float64):
    rng = np.random.default_rng(size)
    scale = np.exp(5 * rng.normal(size=size))  # so that the order of additions shows in the bits
    return [
        jnp.asarray(rng.normal(size=(size, *s)) * scale.reshape(-1, *[1] * len(s)), dtype)
        for s in SHAPES
    ]


def by_jax(xs):
    return jax.jit(lambda *ys: [jax.lax.reduce_sum(y, (0,)) for y in ys])(*xs)


def assert_equal(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 100, 1000, 1024, 1025, 33_000])
def test_sums_are_those_of_xla_to_the_bit(size):
    xs = arrays(size)
    assert_equal(batch_sum(xs), by_jax(xs))
    single = [x.astype(jnp.float32) for x in xs]
    for a, b, x in zip(batch_sum(single), by_jax(single), single, strict=True):
        bound = 1e-6 * np.sum(np.abs(x), axis=0)  # XLA adds long ones in several orders
        assert a.dtype == b.dtype
        assert np.all(np.abs(np.asarray(a) - np.asarray(b)) <= bound)


def test_types_that_are_mixed_or_foreign():
    xs = [jnp.ones((5, 2), t) for t in ("float32", "float64", "float16", "int32")]
    assert_equal(batch_sum(xs), [jnp.full(2, 5, x.dtype) for x in xs])
    assert_equal(batch_sum(xs[:2]), [jnp.full(2, 5, x.dtype) for x in xs[:2]])
    assert batch_sum([]) == []
    assert_equal(batch_sum([jnp.ones((0, 2))]), [jnp.zeros(2)])


def test_derivatives_and_batches():
    xs = arrays(40)[:4]
    weights = [jnp.cos(jnp.arange(float(x[0].size))).reshape(x.shape[1:]) for x in xs]

    def loss(total, xs):
        return sum(jnp.sum(w * y**2) for w, y in zip(weights, total(xs), strict=True))

    def plain(xs):
        return [x.sum(0) for x in xs]

    for derivative in (jax.grad, lambda f: jax.jacfwd(jax.grad(f))):
        ours = derivative(lambda x: loss(batch_sum, x))(xs)
        expected = jax.jit(derivative(lambda x: loss(plain, x)))(xs)
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * np.max(np.abs(b)))
    stacked = [jnp.stack([x, 2 * x], 1) for x in xs[:-1]]  # the last is not mapped
    found = jax.vmap(lambda *y: batch_sum([*y, xs[-1]]), in_axes=(1, 1, 1))(*stacked)
    for y, s in zip(found[:-1], batch_sum(xs[:-1]), strict=True):
        np.testing.assert_array_equal(y, jnp.stack([s, 2 * s]))
    np.testing.assert_array_equal(found[-1], jnp.stack([batch_sum(xs)[-1]] * 2))


def f(shared, x):
    return jnp.sin(shared["a"] * x) @ shared["b"]


def gradient(value):
    return jax.grad(lambda shared, x: jnp.sum(value(shared, x) ** 2))


SHARED = {"a": jnp.asarray(1.3), "b": jnp.asarray([0.4, -0.7, 2.0])}


def test_a_gradient_by_shared_arguments_adds_no_operation_for_each():
    value = lanes.vmap(f, in_axes=(None, 0))
    text = jax.jit(gradient(value)).lower(SHARED, jnp.ones((100, 3))).as_text()
    assert "reduce" not in text
    assert text.count("custom_call") == 2  # value, and pullback with its sums


def test_the_results_of_a_gradient_are_the_kernels_own():
    """XLA handles no operation for each of them."""
    value = lanes.vmap(f, in_axes=(None, 0))
    text = jax.jit(gradient(value)).lower(SHARED, jnp.ones((100, 3))).compile().as_text()
    assert "get-tuple-element(" not in text
    assert "custom-call(" in text


@pytest.mark.parametrize("size", [1, 5, 32, 33, 1000, 3000])
def test_summed_pullback_is_the_pullback_and_its_sums_to_the_bit(size):
    """Shared arguments in single and double precision, and one that is not, in turn."""

    def fn(a, x, b, c):
        return jnp.sin(a * x) @ (b * c), a * jnp.sum(x)

    def loss(*args):
        y, z = lanes.vmap(fn, in_axes=(None, 0, None, None))(*args)
        return jnp.sum(jnp.sum(y**2, axis=1) * z)

    b, c = jnp.asarray([[0.4, -0.7], [2.0, 1.1], [0.3, 0.9]]), jnp.float32(0.7)
    args = jnp.asarray(1.3), jnp.ones((size, 3)), b, c
    jaxpr = jax.make_jaxpr(jax.grad(loss, argnums=(0, 1, 2, 3)))(*args)
    (eqn,) = (e for e in jaxpr.eqns if e.primitive is summed_pullback.summed_p)
    rng = np.random.default_rng(size)
    given = [jnp.asarray(rng.normal(size=v.aval.shape), v.aval.dtype) for v in eqn.invars]
    rows = jax.jit(lambda *x: call_p.bind(*x, **eqn.params))(*given)
    expected = [x if k == 1 else by_jax([x])[0] for k, x in enumerate(rows)]
    assert_equal(jax.jit(lambda *x: eqn.primitive.bind(*x, **eqn.params))(*given), expected)
    assert_equal(summed_pullback.composed(*given, **eqn.params), expected)


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
        lambda of: jax.jit(jax.grad(lambda s: total(of, s)))(SHARED),
        lambda of: jax.hessian(lambda s: total(of, s))(SHARED),
    ):
        expected = jax.jit(lambda of=derivative: of(plain))()
        pairs = zip(*map(jax.tree.leaves, (derivative(ours), expected)), strict=True)
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


def test_first_uses_in_several_threads_at_once(tmp_path):
    """A process in which no sum was compiled yet."""
    text = """
import threading, warnings
import jax, jax.numpy as jnp
from jaxmbd import lanes
from jaxmbd.lanes.batch_sum import batch_sum

warnings.simplefilter("error")
start, done = threading.Barrier(4), []

def use(k):
    start.wait()
    assert batch_sum([jnp.ones((50, k + 1))])[0].tolist() == [50.0] * (k + 1)
    values = lanes.vmap(lambda a, x: (a * x) ** (k + 2), in_axes=(None, 0))
    done.append(float(jax.jit(jax.grad(lambda a: jnp.sum(values(a, jnp.ones(9)))))(1.0)) / (k + 2))

threads = [threading.Thread(target=use, args=(k,)) for k in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert done == [9.0] * 4, done
"""
    run = [sys.executable, "-c", text]
    env = dict(os.environ, JAXMBD_LANES_CACHE=str(tmp_path))
    found = subprocess.run(run, env=env, capture_output=True, text=True, check=False)
    assert not found.returncode, found.stderr
    assert not found.stderr
