"""Functions with operations that lanes cannot compile: kernels of all that precedes these."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.lanes.kernel import Kernel
from jaxmbd.lanes.trace.parts import parted

RNG = np.random.default_rng(2)
X = RNG.uniform(0.5, 1.5, (5, 3))
inner = lanes.jit(lambda x: jnp.outer(x, x) + jnp.diag(jnp.sin(x)))


def largest(x):
    """The largest wave in a row of a matrix, which two kernels would make."""
    a = inner(x) @ inner(x * x)
    return jnp.max(jnp.fft.fft(a[0]).real), a[0]


def plain(x):
    def alone(x):
        return jnp.outer(x, x) + jnp.diag(jnp.sin(x))

    a = alone(x) @ alone(x * x)
    return jnp.max(jnp.fft.fft(a[0]).real), a[0]


@pytest.fixture(autouse=True)
def _kernels(monkeypatch):
    warnings.simplefilter("ignore")
    made = []
    compiled = Kernel.compile_cpu
    monkeypatch.setattr(
        Kernel, "compile_cpu", lambda k, *args: (compiled(k, *args), made.append(k))[0]
    )
    return made


def test_values_and_derivatives(_kernels):
    def total(x, fn):
        return sum(jnp.sum(y) for y in fn(x))

    for a, b in zip(lanes.vmap(largest)(X), jax.vmap(plain)(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert len(_kernels) == 1
    for way in (jax.grad, jax.jacfwd):
        found = way(total)(X, lanes.vmap(largest))
        np.testing.assert_allclose(found, way(total)(X, jax.vmap(plain)), rtol=1e-10)


def test_a_function_without_kernels_is_left_to_jax():
    assert parted(jax.make_jaxpr(plain)(X[0])) is None
    assert parted(jax.make_jaxpr(lambda x: inner(x) + 1.0)(X[0])) is None


def test_what_cannot_be_compiled_is_found_before_anything_is_traced(monkeypatch):
    kernel = Kernel(jax.make_jaxpr(largest)(X[0]), (True,))
    monkeypatch.setattr("jaxmbd.lanes.ir.graph.Graph.op", None)
    with pytest.raises(lanes.Unsupported, match="fft"):
        kernel.graph  # noqa: B018
