"""Scans over many arguments that are stacked: each row is loaded from its own argument."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.lanes.ir.graph import live_nodes
from jaxmbd.lanes.kernel import Kernel


def bodies(count, batch=(), dtype: Any = np.float64):
    """Arguments of every layout: scalars, rows shorter and longer than a vector, other types."""
    rng = np.random.default_rng(count)

    def body(k):
        return {
            "mass": 1.0 + rng.uniform(size=batch).astype(dtype),
            "point": rng.normal(size=(*batch, 3)).astype(dtype),
            "inertia": rng.normal(size=(*batch, 3, 3)).astype(dtype),
            "long": rng.normal(size=(*batch, 11)).astype(dtype),
            "turns": rng.integers(4, size=batch),
            "free": rng.random(batch) < 0.5,
        }

    return [body(k) for k in range(count)]


def swing(order, bodies, x):
    """A scan over the bodies in some order, and over points one place on."""
    rows = jax.tree.map(lambda *parts: jnp.stack(parts), *[bodies[k] for k in order])
    before = jnp.concatenate([jnp.zeros((1, 3), x.dtype), rows["point"][:-1]])

    def step(c, row):
        row, before = row
        c = jnp.tanh(0.3 * row["inertia"] @ c + row["point"] - before) * row["mass"]
        c = jnp.where(row["free"], c * row["turns"], c + row["long"][7:10])
        return c, row["long"] @ jnp.arange(11.0, dtype=x.dtype) + c[0]

    end, ys = jax.lax.scan(step, x, (rows, before), reverse=True)
    return end, ys


ORDERS = {
    "as given": lambda n: list(range(n)),
    "backwards": lambda n: list(range(n))[::-1],
    "in pairs": lambda n: [k ^ 1 for k in range(n)],
    "repeated": lambda n: [0, *range(n), n - 1, 2],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("batch", "dtype"), [(1, "f8"), (8, "f8"), (21, "f8"), (19, "f4"), (None, "f8")]
)
def test_values(order, batch, dtype):
    fn = partial(swing, ORDERS[order](6))
    given = bodies(6, () if batch is None else (batch,), np.dtype(dtype))
    x = np.random.default_rng(1).normal(size=(batch or 9, 3)).astype(dtype)
    axes = (None if batch is None else 0, 0)
    found = jax.jit(lanes.vmap(fn, axes, strict=True))(given, x)
    for got, want in zip(found, jax.jit(jax.vmap(fn, axes))(given, x), strict=True):
        tolerance = 500 * np.finfo(dtype).eps
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_some_batched_and_some_shared():
    given = bodies(6, (9,))
    axes = [jax.tree.map(lambda x, k=k: 0 if k % 2 else None, b) for k, b in enumerate(given)]
    one = [jax.tree.map(lambda x, k=k: x if k % 2 else x[0], b) for k, b in enumerate(given)]
    fn, x = partial(swing, range(6)), np.random.default_rng(1).normal(size=(9, 3))
    found = jax.jit(lanes.vmap(fn, (axes, 0), strict=True))(one, x)
    for got, want in zip(found, jax.jit(jax.vmap(fn, (axes, 0)))(one, x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shared", [False, True])
def test_derivatives(shared):
    axes = (None if shared else 0, 0)
    given = bodies(5, () if shared else (9,))
    floats = [{k: v for k, v in b.items() if v.dtype == float} for b in given]
    x = np.random.default_rng(1).normal(size=(9, 3))

    def run(mapped):
        def of(floats, x):
            merged = [b | f for b, f in zip(given, floats, strict=True)]
            return mapped(partial(swing, range(5)), axes)(merged, x)

        def total(floats, x):
            end, ys = of(floats, x)
            return jnp.sum(jnp.sin(end)) + jnp.sum(ys**2)

        def both(floats, x):
            rates = (jax.tree.map(jnp.cos, floats), x)
            return jax.jvp(of, (floats, x), rates), jax.grad(total, (0, 1))(floats, x)

        return jax.tree.leaves(jax.jit(both)(floats, x))

    for got, want in zip(run(partial(lanes.vmap, strict=True)), run(jax.vmap), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12 * np.abs(want).max())


@pytest.mark.parametrize("count", [6, 90])
def test_rows_that_a_scan_hands_on_are_looked_up_elsewhere(count):
    """At an index that differs between samples, in results of few and of many elements."""

    def fn(points, k, x):
        step = lambda c, p: (jnp.sin(c + p), (p, c))  # noqa: E731
        _, (points, _) = jax.lax.scan(step, x, jnp.stack(points))
        return points[k] + points[::-1][k]

    rng = np.random.default_rng(0)
    points = list(rng.normal(size=(count, 9, 3)))
    args = (points, rng.integers(count, size=9), rng.normal(size=(9, 3)))
    np.testing.assert_array_equal(lanes.vmap(fn, strict=True)(*args), jax.vmap(fn)(*args))


@pytest.mark.parametrize("batched", [False, True])
def test_operations_do_not_grow_with_the_number_of_arguments(batched):
    def size(count):
        leaves, tree = jax.tree.flatten(bodies(count))
        x = np.ones(3)

        def fn(*leaves):
            return swing(range(count), jax.tree.unflatten(tree, leaves[:-1]), leaves[-1])[0]

        closed = jax.make_jaxpr(fn)(*leaves, x)
        kernel = Kernel(closed, (batched,) * len(leaves) + (True,))
        return len(live_nodes(kernel.graph))

    assert size(30) == size(6)


def test_instructions_do_not_grow_with_the_number_of_arguments():
    few, many = (
        lanes.explain(lambda b, x, n=n: swing(range(n), b, x)[0], bodies(n), np.ones(3))
        for n in (6, 30)
    )
    assert many.operations == few.operations
    assert many.instructions is not None and few.instructions is not None
    assert many.instructions < few.instructions + 20


def test_what_is_computed_from_rows_is_computed_in_the_loop():
    """Differences and unit vectors of many arguments: code does not grow with their number."""

    def f(ends, starts, gain):
        arms = jnp.stack(ends) - jnp.stack(starts)
        units = gain * arms / jnp.sqrt(jnp.sum(arms * arms, axis=1))[:, None]
        return jax.lax.scan(lambda x, u: (jnp.cos(x) + u, x @ u), jnp.ones(3), units)

    def given(n, batch=()):
        rng = np.random.default_rng(n)
        ends, starts = (
            [jnp.asarray(rng.normal(size=(*batch, 3))) for _ in range(n)] for _ in range(2)
        )
        return ends, starts, jnp.asarray(rng.normal(size=batch))

    counts = [lanes.explain(f, *given(n)).operations for n in (12, 24)]
    assert counts[0] == counts[1]
    found, expected = (v(f)(*given(12, (5,))) for v in (lanes.vmap, jax.vmap))
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)
