"""Calls with equal content and operands are one: a rule does not repeat its function's search."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.lanes.kernel import Kernel

X = jnp.asarray(np.random.default_rng(5).uniform(0.5, 2.0, size=(4, 2)))
TRACED = []


@jax.jit
def _newton(x):
    TRACED.append(1)

    def step(state):
        y, k = state
        return y - (y**3 + y - x) / (3.0 * y**2 + 1.0), k + 1

    def going(state):
        return (state[1] < 40) & jnp.any(abs(state[0] ** 3 + state[0] - x) > 1e-14)

    return jax.lax.while_loop(going, step, (x, 0))[0]


@jax.custom_jvp
def root(x):
    """The y with y³ + y = x."""
    return _newton(x)


@root.defjvp
def _root_jvp(primals, tangents):
    y = root(*primals)
    return y, tangents[0] / (3.0 * y**2 + 1.0)


def total(x):
    return jnp.sin(root(x[0])) * root(x[1])


def closed_form(x):
    """The derivatives, from roots that are found by bisection."""
    low, high = np.zeros_like(x), np.full_like(x, 3.0)
    for _ in range(60):
        y = 0.5 * (low + high)
        low, high = (np.where(y**3 + y < x, a, b) for a, b in ((y, low), (high, y)))
    (a, b), (da, db) = y.T, 1.0 / (3.0 * y.T**2 + 1.0)
    return np.stack([np.cos(a) * b * da, np.sin(a) * db], axis=1)


def loops(closed, pullback=None):
    kernel = Kernel(closed, (True,) * len(closed.in_avals), pullback)
    live = kernel.emitter(8).live
    return sum(n.op == "loop" for n in live)


def test_a_reverse_kernel_searches_once():
    closed = jax.make_jaxpr(total)(X[0])
    assert loops(closed) == 2
    assert loops(closed, ((True,), (True,))) == 2
    gradient = jax.vmap(jax.grad(lanes.jit(total, strict=True)))(X)
    np.testing.assert_allclose(gradient, closed_form(np.asarray(X)), rtol=1e-12)


def test_a_forward_kernel_searches_once():
    """Value and tangent of a call inside a kernel are two calls, of one search."""
    inner = lanes.jit(total, strict=True)

    def both(x, dot):
        return jax.jvp(inner, (x,), (dot,))

    assert loops(jax.make_jaxpr(both)(X[0], X[0])) == 2
    _, rate = lanes.vmap(both, strict=True)(X, jnp.ones_like(X))
    np.testing.assert_allclose(rate, closed_form(np.asarray(X)).sum(1), rtol=1e-12)


def test_equal_calls_of_a_jit_function_run_once():
    def fn(x):
        same = x[0] + 0.0 * x[1]  # the operand of both, once it is folded
        return _newton(x[0]) - 3.0 * _newton(same) + _newton(x[1])

    assert loops(jax.make_jaxpr(fn)(X[0])) == 2
    expected = -2.0 * _newton(X[:, 0]) + _newton(X[:, 1])
    np.testing.assert_allclose(lanes.vmap(fn, strict=True)(X), expected, rtol=1e-14)


def test_a_search_in_a_loop_runs_once_for_each_pass():
    def steps(x):
        def step(c, _):
            return 0.5 * c + root(c[::-1]) + total(c), None

        return jax.lax.scan(step, x, None, length=6)[0].sum()

    closed = jax.make_jaxpr(steps)(X[0])
    kernel = Kernel(closed, (True,), ((True,), (True,)))
    # The loop with its searches; its adjoint, which runs the body again to recompute it.
    forward = loops(closed) - 1
    assert sum(n.op == "loop" for n in kernel.emitter(8).live) == 2 * (1 + forward)
    found = jax.vmap(jax.grad(lanes.jit(steps, strict=True)))(X)
    h = 1e-5
    for k, e in enumerate(np.eye(2)):
        difference = (jax.vmap(steps)(X + h * e) - jax.vmap(steps)(X - h * e)) / (2.0 * h)
        np.testing.assert_allclose(found[:, k], difference, rtol=1e-7)


def _scaled(factor):
    """Functions of equal values whose rules differ."""

    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda x, t: (f(*x), factor * t[0]))
    return f


@pytest.mark.parametrize("derivative", [jax.jacrev, jax.jacfwd])
def test_each_call_keeps_its_own_rule(derivative):
    one, two = _scaled(1.0), _scaled(2.0)
    fn = lanes.jit(lambda x: jnp.stack([one(x), two(x), one(x)]), strict=True)
    np.testing.assert_allclose(derivative(fn)(0.3), [1.0, 2.0, 1.0])


def test_what_was_traced_is_not_traced_again_for_derivatives():
    def fn(scale, x):
        return root(scale * x)

    for derivative in (jax.grad, jax.jacfwd):
        TRACED.clear()
        _newton.clear_cache()
        derivative(lanes.jit(partial(fn, 0.5), strict=True))(1.5)
        assert len(TRACED) == 1
