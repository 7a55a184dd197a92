"""Routines: a long function that a program calls several times is compiled once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graph_verifier import verify

from jaxmbd import lanes
from jaxmbd.lanes.kernel import Kernel
from jaxmbd.lanes.trace import routines

BATCH = 13
RNG = np.random.default_rng(3)
X, Y = RNG.uniform(0.2, 0.9, (2, BATCH, 4))


@pytest.fixture(autouse=True)
def _all_are_long(monkeypatch):
    monkeypatch.setattr(routines, "LARGE", 1)
    monkeypatch.setattr(routines, "LONG", 1)
    monkeypatch.setattr(routines, "PROMISING", 1)


@jax.jit
def mixed(x, scale, count, flag):
    """A number, a mask, an integer, an operand as it was given, and a constant."""
    y = x
    for _ in range(6):
        y = jnp.roll(y, 1) * scale + jnp.sin(y) / (1.0 + x * x)
    return y, (y > 1.0) & flag, count + jnp.argmax(y), x, jnp.ones(3, x.dtype)


@jax.jit
def after(y, mask):
    return jnp.where(mask, y, 2.0 * y) @ y / y[0]


def several(x, y):
    """Calls whose operands are constant, equal, computed, and what other calls have returned."""
    half, first, true = jnp.asarray(0.5, x.dtype), jnp.asarray(1), jnp.asarray(True)
    one, mask, k, same, ones = mixed(x, half, first, true)
    two, other, n, _, _ = mixed(one, half, k, mask[0])
    three, *_ = mixed(y, x[0], n, mask[1])
    four, *_ = mixed(y, x[1], n, mask[1])
    return after(one, mask) + after(two, other), three + four, k + n, same @ ones[:1].repeat(4)


def loops(x, y):
    """Calls in loops, with what is from outside, from an iteration before, and rarely."""
    outside = mixed(x, 0.5, 0, True)[0]

    def step(carry, _):
        z, mask, *_ = mixed(carry, 0.5, 0, carry[0] > 0.5)
        w, *_ = mixed(outside, 0.25, 1, mask[0])
        z = lanes.rarely(mask[1], lambda a, b: after(a, b) * a, z, z, mask)
        return 0.5 * z + 0.1 * w, after(outside, mask)

    end, found = jax.lax.scan(step, y, None, length=5)
    return end, found, after(end, end > 0.4)


def nested(x, y):
    """A function that calls another one twice, called twice."""

    @jax.jit
    def outer(x):
        return mixed(x, 0.5, 0, True)[0] + mixed(x * x, 0.5, 0, True)[0]

    return outer(x), outer(y), mixed(x * y, 0.5, 0, True)[0]


PROGRAMS = (several, loops, nested)


def calls(kernel):
    return kernel.emitter(kernel.lanes()).module().count("call void @routine")


def kernel_of(program, x, y):
    return Kernel(jax.make_jaxpr(program)(x[0], y[0]), (True, True))


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_are_those_of_vmap(program, dtype):
    x, y = X.astype(dtype), Y.astype(dtype)
    kernel = kernel_of(program, x, y)
    verify(kernel.graph)
    assert calls(kernel) > 1
    found = lanes.vmap(program, strict=True)(x, y)
    wanted = jax.vmap(program)(x, y)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=200 * np.finfo(dtype).eps)


@pytest.mark.parametrize("program", PROGRAMS)
def test_values_of_one_sample(program):
    found = lanes.jit(program, strict=True)(X[0], Y[0])
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(program(X[0], Y[0])), strict=True):
        np.testing.assert_allclose(a, b, rtol=200 * np.finfo(float).eps)


@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives(program):
    def total(x, batched):
        out = batched(program)(x, Y)
        return sum(jnp.sum(a) for a in jax.tree.leaves(out) if a.dtype == x.dtype)

    # JAX has no reverse mode through `rarely`.
    for way in (jax.jacfwd,) if program is loops else (jax.grad, jax.jacfwd):
        found, wanted = (way(total)(X, batched) for batched in (lanes.vmap, jax.vmap))
        np.testing.assert_allclose(found, wanted, rtol=2000 * np.finfo(float).eps)


def test_equal_calls_share_their_code():
    """The last two calls of `mixed` in `several` are of one kind."""
    code = kernel_of(several, X, Y).emitter(8).module()
    assert code.count("call void @routine") == code.count("define internal void @routine") + 1


def test_results_of_routines_are_passed_where_they_lie():
    kernel = kernel_of(several, X, Y)
    sites = [n.data for n in kernel.graph.base.nodes if n.op == "call"]
    assert any(len(site.given) > 1 for site in sites)


def test_gpu_kernels_have_none():
    assert "@routine" not in kernel_of(several, X, Y).emitter(1, gpu=True).module()


def test_functions_of_shared_operands_are_evaluated_in_place():
    """What is the same in all samples is computed once, not for each vector of samples."""
    closed = jax.make_jaxpr(several)(X[0], Y[0])
    assert calls(Kernel(closed, (False, True))) < calls(Kernel(closed, (True, True)))
