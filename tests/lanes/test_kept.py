"""Caches of kernels and their lifetimes: equal functions share a kernel, different ones do not."""

import gc
import os
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from repository import ROOT

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.lanes.ir.nodes import Node
from jaxmbd.lanes.kernel import CODES, Kernel
from jaxmbd.lanes.targets import cpu, disk
from jaxmbd.lanes.trace.content import Key

X = np.linspace(0.1, 0.9, 15).reshape(5, 3)


def key(fn, *args):
    return Key(jax.make_jaxpr(fn)(*args))


def curved(slope):
    """sin, whose derivative is said to be `slope` times cos."""

    @jax.custom_jvp
    def fn(x):
        return jnp.sin(x)

    fn.defjvp(lambda p, t: (fn(*p), slope * jnp.cos(p[0]) * t[0]))
    return fn


def test_equal_functions_are_one_kernel():
    table = np.arange(9.0).reshape(3, 3)

    def make():
        return lambda x: jnp.tanh(table @ x) * 1.25

    def value_and_slope(fn):
        batch = lanes.vmap(fn, strict=True)
        return jax.jit(batch)(X), jax.jit(jax.grad(lambda x: batch(x).sum()))(X)

    first = value_and_slope(make())
    codes, targets = len(CODES), len(cpu._TARGETS)
    for _ in range(3):
        for a, b in zip(value_and_slope(make()), first, strict=True):
            np.testing.assert_array_equal(a, b)
    assert (len(CODES), len(cpu._TARGETS)) == (codes, targets)


def test_simulations_that_differ_in_nothing_are_one_kernel():
    pendulum = mbd.zoo.simple_pendulum()
    for k in range(3):
        mbd.simulate(pendulum, [0.1], [0.0], t1=0.02, dt=0.01, outputs=lambda t, q, v: q + v)
        if k == 0:
            codes, targets = len(CODES), len(cpu._TARGETS)
    assert (len(CODES), len(cpu._TARGETS)) == (codes, targets)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x * 2.0, lambda x: x * 3.0),
        (lambda x: x @ np.arange(3.0), lambda x: x @ np.arange(1.0, 4.0)),
        (lambda x: x[0] - x[1], lambda x: x[1] - x[0]),
        (lambda x: jnp.sum(x, axis=0), lambda x: jnp.prod(x, axis=0)),
        (lambda x: jnp.flip(x)[0], lambda x: x[0]),
        (lambda x: x.astype(jnp.float32), lambda x: x.astype(jnp.float64)),
        (
            lambda x: jax.lax.fori_loop(0, 5, lambda i, y: y + 1.0, x),
            lambda x: jax.lax.fori_loop(0, 5, lambda i, y: y + 2.0, x),
        ),
        (
            lambda x: jax.lax.cond(x[0] > 0.5, jnp.sin, jnp.cos, x),
            lambda x: jax.lax.cond(x[0] > 0.5, jnp.cos, jnp.sin, x),
        ),
        (lambda x: lanes.jit(jnp.sin)(x), lambda x: lanes.jit(jnp.cos)(x)),
    ],
)
def test_different_functions_are_different(one, other):
    assert key(one, X[0]) == key(lambda x: one(x), X[0])
    assert key(one, X[0]) != key(other, X[0])
    assert key(one, X[0]).content.value != key(other, X[0]).content.value


def test_derivative_rules_are_told_apart():
    one, other = (curved(slope) for slope in (1.0, 2.0))
    a, b = key(one, X[0]), key(other, X[0])
    assert a != b and a.content.value == b.content.value
    for fn, slope in ((one, 1.0), (other, 2.0)):
        batch = lanes.vmap(fn, strict=True)
        grad = jax.jit(jax.grad(lambda x, batch=batch: batch(x).sum()))(X)
        np.testing.assert_allclose(grad, slope * np.cos(X), rtol=1e-14)

    def inner_slope(fn):  # a pullback inside is part of a value
        return jax.grad(lambda x: lanes.jit(fn)(x).sum())

    a, b = (key(inner_slope(fn), X[0]) for fn in (one, other))
    assert a.content.value != b.content.value


def test_a_graph_goes_once_code_is_made():
    kernel = Kernel(jax.make_jaxpr(jnp.sin)(X[0]), (True,))
    code = kernel.compile_cpu()
    assert "graph" not in vars(kernel)
    assert kernel.compile_cpu() is code


def test_nothing_of_a_graph_stays(few_objects):
    """Reference cycles that Python's collector misses: loops, derivative rules, closures."""

    def fn(x):
        return jax.lax.fori_loop(0, 40, lambda i, y: jnp.sin(y) + curved(1.0)(x), x)

    def nodes():
        gc.collect()
        return sum(type(o) is Node for o in gc.get_objects())

    jax.jit(jax.grad(lambda x: lanes.vmap(fn, strict=True)(x).sum()))(X)
    with pytest.warns(UserWarning, match="complex"):
        jax.jit(lanes.vmap(lambda x: fn(jnp.real(jax.lax.complex(fn(x), x)))))(X)
    assert nodes() == 0


def test_the_disk_cache_has_a_bound(tmp_path):
    for k in range(12):
        disk_file = tmp_path / f"kernel{k}"
        disk_file.write_bytes(bytes(100))
        os.utime(disk_file, ns=(k, k))
    disk.trim(tmp_path, 1200)
    assert len(list(tmp_path.iterdir())) == 12
    disk.trim(tmp_path, 1199)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(f"kernel{k}" for k in range(4, 12))


@pytest.mark.slow
def test_memory_is_flat_over_500_retraces():
    program = textwrap.dedent(
        """
        import gc, resource
        import jax, jax.numpy as jnp, numpy as np
        from jaxmbd import lanes

        def resident():
            gc.collect()
            with open("/proc/self/statm") as facts:
                return int(facts.read().split()[1]) * resource.getpagesize() / 2**20

        x = jnp.ones((8, 3))
        for k in range(501):
            fn = lambda x: jnp.sin(jnp.arange(9.0).reshape(3, 3) @ x) + jax.nn.relu(x)
            jax.jit(lanes.vmap(fn))(x)
            jax.jit(jax.grad(lambda x: lanes.vmap(fn)(x).sum()))(x)
            if k in (100, 500):
                print(resident())
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    early, full = map(float, done.stdout.split())
    assert full - early < 3.0, f"{early:.1f} MiB after 100 retraces, {full:.1f} MiB after 500"
