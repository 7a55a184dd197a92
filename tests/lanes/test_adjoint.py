"""Reverse mode of loops: any length and nesting, checkpoints, guards, derivatives inside."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.lanes.kernel import Kernel

X, Y = np.random.default_rng(0).normal(size=(2, 5, 3))


def short(carry, scale):
    """A short inner loop, such as the stages of an integrator."""
    body = lambda c, _: (c + 0.01 * jnp.sin(c * scale), None)  # noqa: E731
    carry = jax.lax.scan(body, carry, None, length=4)[0]
    return carry, carry.sum()


def nested(length):
    def fn(x, y):
        def step(c, _):
            return short(c, y)

        def outer(c, _):
            c, z = jax.lax.scan(step, c, None, length=length)
            return c, z[-1]

        c, z = jax.lax.scan(outer, x, None, length=3)
        return jnp.cos(c).sum() + z.sum()

    return fn


def single(length):
    def fn(x, y):
        c, z = jax.lax.scan(lambda c, _: short(c, y), x, jnp.arange(length) * y[0])
        return jnp.cos(c).sum() + (z * jnp.arange(length)).sum() / length

    return fn


SLOW = [pytest.param(n, marks=pytest.mark.slow) for n in (2, 64, 101, 1000, 1500)]


def alike(x, y):
    """A loop in a loop, two carries of which stay equal, so that they have one place."""

    def inner(c, _):
        return c + 0.1 * jnp.sin(c * y[0]), None

    def outer(c, _):
        start = jnp.stack([c.sum(), c.sum(), c[0]])
        return jnp.cos(jax.lax.scan(inner, start, None, length=7)[0] + c), None

    return jax.lax.scan(outer, x, None, length=9)[0].sum()


@pytest.mark.parametrize("length", [1, 5, 65, 125, *SLOW])
@pytest.mark.parametrize("make", [nested, single])
def test_gradients_of_loops(make, length):
    compare_gradients(make(length))


def test_gradients_of_loops_whose_carries_are_one():
    compare_gradients(alike)


def compare_gradients(fn):
    def gradient(mapped):
        return jax.jit(jax.grad(lambda x, y: mapped(fn)(x, y).sum(), argnums=(0, 1)))(X, Y)

    found, expected = gradient(lambda f: lanes.vmap(f, strict=True)), gradient(jax.vmap)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * np.abs(b).max())


def mapped(x, y):
    """No carry at all, in a loop long enough to be split into two nested ones."""
    return jax.lax.map(lambda t: x[0] * jnp.sin(t), jnp.outer(jnp.arange(66.0), y[0]))


def counted(x, y):
    """A carry that is not differentiated."""

    def step(k, t):
        return k + 1, x[0] * t * k

    return jax.lax.scan(step, 0, jnp.outer(jnp.arange(70.0), y[0]))[1]


@pytest.mark.parametrize("fn", [mapped, counted])
def test_gradients_of_stacked_results_alone(fn):
    weights = np.random.default_rng(1).normal(size=fn(X, Y).shape)

    def gradient(f):
        total = lambda x, y: (weights * f(x, y)).sum()  # noqa: E731
        return jax.jit(jax.grad(total, argnums=(0, 1)))(X, Y)

    found = gradient(lambda x, y: lanes.jit(fn, strict=True)(x, y))
    for a, b in zip(found, gradient(fn), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * np.abs(b).max())
        assert np.abs(b).max() > 1.0


def test_memory_grows_like_the_root_of_the_length():
    def slots(length):
        closed = jax.make_jaxpr(single(length))(X[0], Y[0])
        kernel = Kernel(closed, (True, True), ((True, True), (True,)))
        emitter = kernel.emitter(8)
        emitter.module()
        # The stacked result z and its cotangent grow linearly with the length.
        return emitter.scratch_slots - 2 * length

    few, many = slots(400), slots(40000)
    assert many < 15 * few


def test_what_a_short_loop_depends_on_is_swept_once():
    """A network in each iteration of a long loop, whose result a short loop inside it needs.

    A gradient takes one evaluation for the value, two in the kernel that is swept (with the second
    the carries of all iterations need no room), and two products of each matrix.
    """
    rng, sizes = np.random.default_rng(0), (4, 16, 16, 1)
    weights = [jnp.asarray(rng.normal(size=s)) for s in zip(sizes[1:], sizes, strict=False)]
    x = jnp.linspace(0.0, 1.0, 4)

    def total(weights):
        def step(x, _):
            a = x
            for w in weights:
                a = jnp.tanh(w @ a)
            y, _ = jax.lax.scan(lambda y, _: (jnp.sin(y + 0.1 * a), None), x, None, 4)
            return y, y

        return jnp.sum(jax.lax.scan(step, x, None, 8)[1] ** 2)

    kernel = lambda w: lanes.compiled("lanes", total, w)  # noqa: E731
    value = lanes.explain(kernel, weights)
    slope = lanes.explain(jax.value_and_grad(kernel), weights)
    assert value.unsupported is None and slope.unsupported is None
    assert slope.flops < 4.5 * value.flops
    plain = jax.jit(jax.grad(total))(weights)
    for found, wanted in zip(jax.jit(jax.grad(kernel))(weights), plain, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)


def test_a_derivative_inside_a_function_is_the_graphs_own():
    inner = lanes.jit(single(100), strict=True)

    def newton(x, y):
        value, slope = jax.value_and_grad(inner)(x, y)
        return x - slope * value

    step = lambda x, y: x - jax.grad(single(100))(x, y) * single(100)(x, y)  # noqa: E731
    plain = jax.jit(jax.vmap(step))(X, Y)
    for mapped in (lanes.vmap(newton, strict=True), jax.vmap(newton)):
        np.testing.assert_allclose(jax.jit(mapped)(X, Y), plain, rtol=1e-11)


def test_a_failed_sample_passes_no_cotangent_to_what_all_share():
    def fn(shared, x):
        step = lambda c, _: (lanes.guarded(lambda c, s: jnp.sqrt(c * s), c, shared), None)  # noqa: E731
        return jax.lax.scan(step, x, None, length=3)[0]

    x = np.array([1.0, -1.0, 2.0])
    loss = lambda s, mapped: jnp.nansum(mapped(fn, in_axes=(None, 0))(s, x))  # noqa: E731
    found = jax.grad(loss)(1.5, lambda *a, **k: lanes.vmap(*a, strict=True, **k))
    assert np.isfinite(found)
    np.testing.assert_allclose(found, jax.grad(loss)(1.5, jax.vmap), rtol=1e-13)


INVERSES = [lambda x, y: x * y, lambda x, y: y / x, lambda x, y: jnp.log(x) * jnp.sqrt(y)]
"""Branches: those after the first are infinite at zero, and so are their derivatives."""


def chosen(x, y):
    return jax.lax.switch((jnp.abs(x) > 0.5).astype(int) + (x > 1), INVERSES, x, y)


def chosen_in_loop(x, y):
    return jax.lax.scan(lambda c, row: (c + chosen(x, row), c), y, jnp.stack([y, 2 * y]))[0]


def chosen_gradient(x, y):
    """The backward pass of `cond` keeps zeros for what the other branches saved."""
    tame = lambda x: x / jnp.sqrt(1 + x * x)  # noqa: E731
    square = lambda x: jax.lax.cond(x > 0.5, lambda x: tame(x * x), jnp.sin, x)  # noqa: E731
    return jax.grad(square)(x) * y


@pytest.mark.parametrize("fn", [chosen, chosen_in_loop, chosen_gradient])
def test_a_branch_that_is_not_taken_has_no_part_in_the_gradient(fn):
    x, y = np.array([0.0, 0.7, 2.0, 0.0, 1.0]), np.array([0.3, 0.2, 1.0, 0.0, 2.0])
    total = lambda x, y: lanes.vmap(fn, strict=True)(x, y).sum()  # noqa: E731
    found = jax.jit(jax.grad(total, argnums=(0, 1)))(x, y)
    gradient = jax.jit(jax.grad(fn, argnums=(0, 1)))
    alone = [gradient(*one) for one in zip(x, y, strict=True)]
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, np.transpose(alone), rtol=1e-13, atol=1e-15)


def forgotten(x):
    """A carry without a derivative: the second loop's cotangent for it is not used."""
    step = lambda i, s: (jnp.sin(s[0]) * x, jax.lax.stop_gradient(0.5 * s[0]))  # noqa: E731
    a, b = jax.lax.fori_loop(0, 2, step, (x, 0.3))
    return a + jax.lax.fori_loop(0, 3, lambda i, c: jnp.cos(c) * x, jnp.sin(b))


def empty_rows(x):
    def step(c, row):
        return jnp.sin(c) * x + jnp.sum(jnp.concatenate([row, c * jnp.ones((2, 2))])), row

    return jax.lax.scan(step, x, jnp.zeros((3, 0, 2)) * x)[0]


@pytest.mark.parametrize("fn", [forgotten, empty_rows])
def test_gradients_of_loops_with_unused_carries_and_empty_rows(fn):
    x = np.linspace(0.1, 1.0, 9)
    found = jax.jit(jax.grad(lambda x: lanes.vmap(fn, strict=True)(x).sum()))(x)
    expected = jax.jit(jax.grad(lambda x: jax.vmap(fn)(x).sum()))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_reverse_mode_through_while_is_refused():
    def fn(x):
        return jax.lax.while_loop(lambda c: c < 10.0, lambda c: 2.0 * c, x)

    with pytest.raises((ValueError, lanes.Unsupported), match="while"):
        jax.grad(lambda x: lanes.vmap(fn, strict=True)(x).sum())(np.ones(3))


@pytest.mark.parametrize("kept", [5, 400])
def test_a_guarded_loop_with_stored_results(kept):
    """Cotangents of what a loop stores count once, in the guard's sweep."""

    def stored(x):
        return jax.lax.scan(lambda c, k: (jnp.sin(c) + k * x, c), x, jnp.arange(1.0 * kept))[1]

    def fn(of):
        return lambda x: (of(stored, x) ** 2).sum() + (of(stored, 2.0 * x) * x).sum()

    guarded = lanes.jit(fn(lanes.guarded), strict=True)
    found, expected = (
        jax.jit(jax.vmap(jax.grad(f)))(X[:, 0]) for f in (guarded, fn(lambda f, x: f(x)))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("extreme", [jnp.max, jnp.min])
def test_equal_extremes_have_equal_shares_of_a_cotangent(extreme):
    """As in JAX; pairs of operands would share it by their order."""
    x = np.array([[1.0, 1.0, 1.0], [2.0, 0.5, 2.0], [0.5, 2.0, 0.5], [3.0, 1.0, 2.0]])
    fn = lambda x: extreme(jnp.tile(x, 2))  # noqa: E731
    found = jax.grad(lambda x: lanes.vmap(fn, strict=True)(x).sum())(x)
    np.testing.assert_array_equal(found, jax.grad(lambda x: jax.vmap(fn)(x).sum())(x))
    np.testing.assert_allclose(found[0], 1 / 3)


def read(x, y, of=lambda f, *a: f(*a), count=40, rows=60):
    """Steps that read one element each of two tables, given or computed, some in failing calls."""
    table = jnp.concatenate([y, jnp.sin(y)])

    def step(c, k):
        def inner(c, k, table, given):
            return c + jnp.sqrt(table[(3 * k) % 60] + 1.5) * given[k % 7, 0] + 0.1 * c * table[k]

        return of(inner, c, k, table, jnp.tile(x, (30, 1))), None

    def outer(c, _):
        c, _ = jax.lax.scan(step, c, jnp.arange(count))
        local = c * jnp.arange(1.0, rows)
        return jax.lax.scan(lambda c, k: (c + 1e-3 * local[k] ** 2, None), c, jnp.arange(5))[
            0
        ], None

    return jax.lax.scan(outer, x[0], None, length=2)[0]


READ = np.random.default_rng(7).uniform(-1, 1, size=(9, 30))


@pytest.mark.parametrize("of", [lambda f, *a: f(*a), lanes.guarded])
def test_gradients_of_tables_that_loops_read(of):
    x, y = 0.1 * X[:, :3], READ[: len(X)]

    def gradient(vmap):
        return jax.jit(jax.grad(lambda x, y: vmap(partial(read, of=of))(x, y).sum(), (0, 1)))(x, y)

    found, expected = gradient(lambda f: lanes.vmap(f, strict=True)), gradient(jax.vmap)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * np.abs(b).max())


def test_an_iteration_writes_no_table_and_no_cotangents_but_of_what_it_reads():
    def stores(rows):
        def fn(y):
            return jax.lax.scan(lambda c, k: (jnp.sin(c) * y[k], None), 1.0, jnp.arange(50) % 30)[0]

        closed = jax.make_jaxpr(fn)(READ[0].repeat(rows))
        graph = Kernel(closed, (True,), ((True,), (True,))).graph
        loops = [n.data.body for n in graph.base.nodes if n.op == "loop"]
        return [len(loop.nodes) for loop in loops]

    assert stores(1) == stores(20)


def test_a_failed_sample_passes_no_cotangent_to_a_table_that_all_share():
    def fn(table, x):
        call = lambda c, k, table: jnp.sqrt(c * table[k])  # noqa: E731
        return jax.lax.scan(
            lambda c, k: (lanes.guarded(call, c, k, table), None), x, jnp.arange(3)
        )[0]

    x, table = np.array([1.0, -1.0, 2.0]), np.linspace(0.5, 2.0, 40)
    loss = lambda s, mapped: jnp.nansum(mapped(fn, in_axes=(None, 0))(s, x))  # noqa: E731
    found = jax.grad(loss)(table, lambda *a, **k: lanes.vmap(*a, strict=True, **k))
    np.testing.assert_allclose(found, jax.grad(loss)(table, jax.vmap), rtol=1e-13)
    assert np.all(np.isfinite(found)) and np.all(found[:3] > 0.0)
