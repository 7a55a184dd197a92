"""Scans over stacked data, one after the other: values, derivatives, and what stays in memory."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.lanes.ir.graph import live_nodes
from jaxmbd.lanes.kernel import Kernel


def chain(x, slopes):
    """Three scans of a chain of bodies: outwards, inwards, and outwards again."""

    def out(c, row):
        slope, x = row
        c = 0.9 * jnp.cos(x) * c + slope
        block = jnp.outer(c, c) + jnp.eye(2)
        return c, (block, c, slope, jnp.zeros(2))

    def back(c, row):
        block, y, slope, nothing = row
        c = jnp.tanh(0.3 * block @ c + slope * y + nothing)
        return c, (c, block - jnp.outer(c, c) / (1.0 + c @ c))

    def forth(c, row):
        y, (z, block), before = row
        c = 0.3 * jnp.sin(block @ c) + y + (y - before) * z[0]
        return c, c[0]

    start = jnp.stack([x[0], 1.0 + x[0]])
    _, ys = jax.lax.scan(out, start, (slopes, x))
    _, zs = jax.lax.scan(back, start, ys, reverse=True)
    before = jnp.concatenate([start[None], ys[1][:-1]])
    return jax.lax.scan(forth, start, (ys[1], zs, before))[1]


def passed(x, slopes):
    """Stacked results that are inputs, invariants or one another, in long and short arrays."""

    def step(c, row):
        c = 0.5 * c + row
        return c, (row, c, c, x[0], jnp.stack([row, c, x[1], jnp.float64(0.3)]))

    _, ys = jax.lax.scan(step, x[0], x, reverse=True)
    other = jax.lax.scan(
        lambda c, r: (jnp.sin(c + r[0] * r[2]) * r[4][3] + r[4] @ r[4], c), x[0], ys
    )[1]
    pairs = (ys[1][::-1], ys[4][:, 1])
    turned = jax.lax.scan(lambda c, r: (0.5 * c * r[0] + r[1], c), x[2], pairs)[1]
    return other[1:].sum() + jnp.sum(turned**2) + (ys[4] * slopes[:, :1]).sum()


def unused(x, slopes):
    """A short scan, all of whose results are known without it, inside another one."""

    def outer(c, row):
        _, ys = jax.lax.scan(lambda d, r: (d * r, (row, 2.0, r)), c, slopes[:3, 0])
        return jnp.sin(c) * x[0] + ys[0].sum() * ys[2] @ ys[1], c

    return jax.lax.scan(outer, x[1], x)[1].sum()


def merged(x, slopes):
    """A symmetric matrix with zeros and two like it, carries that stay zero or equal."""

    def step(c, row):
        a, b, still, turned, (count, kept) = c
        slope, x = row
        arm = jnp.array([x, 0.0, slope[0]])
        a = jnp.cos(x) * a + jnp.outer(arm, arm) + b * kept
        b = 0.5 * b + jnp.diag(slope[1] * jnp.ones(3))
        still = still * jnp.sin(x)
        turned = turned[::-1] + jnp.array([1.0, x])
        return (a, b, still, turned, (count + 1, kept)), (a, still, turned)

    zero = jnp.zeros((3, 3))
    start = (zero, x[0] * jnp.eye(3), jnp.zeros(2), jnp.full(2, x[1]), (0, 0.5))
    (a, b, still, turned, (count, _)), ys = jax.lax.scan(step, start, (slopes, x))
    again = jax.lax.scan(lambda c, r: (jnp.tanh(r[0] @ c + r[1][0]), r[2] @ c[:2]), a[0], ys)
    return a.sum() + (b[0] * count).sum() + still.sum() + turned @ turned + again[1].sum()


def arguments(length, batch=9):
    rng = np.random.default_rng(length)
    return 0.3 * rng.normal(size=(batch, length)), 0.3 * rng.normal(size=(length, 2))


FAST = [(chain, 300), (passed, 300), (unused, 3), (merged, 3)]
CASES = [(fn, n) for fn in (chain, passed, unused, merged) for n in (3, 7, 80, 300)]


@pytest.mark.parametrize(
    ("fn", "length"),
    [*FAST, *(pytest.param(*x, marks=pytest.mark.slow) for x in CASES if x not in FAST)],
)
def test_values_and_derivatives(fn, length):
    x, slopes = arguments(length)
    rate, weight = np.cos(x), np.sin(x)

    def run(mapped):
        def total(x, slopes):
            return jnp.sum(mapped(fn, in_axes=(0, None))(x, slopes) ** 2)

        def all_of(x, slopes):
            value = mapped(fn, in_axes=(0, None))(x, slopes)
            tangent = jax.jvp(lambda x: mapped(fn, in_axes=(0, None))(x, slopes), (x,), (rate,))[1]
            return value, tangent, jax.grad(total, (0, 1))(x * weight, slopes)

        return jax.tree.leaves(jax.jit(all_of)(x, slopes))

    found = run(lambda f, in_axes: lanes.vmap(f, in_axes, strict=True))
    for got, want in zip(found, run(jax.vmap), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12 * np.abs(want).max())


def operations(fn, *args, batched=None, pullback=None):
    """How often each operation is in a function's graph, loops counted once."""
    closed = jax.make_jaxpr(fn)(*args)
    kernel = Kernel(closed, batched or (True,) * len(args), pullback)
    return Counter(n.op for n in live_nodes(kernel.graph))


def test_results_of_a_scan_stay_in_memory_for_the_next():
    def last(x, slopes):
        return chain(x, slopes)[-1]

    for slopes_batched in (False, True):
        few, many = (
            operations(last, x[0], slopes, batched=(True, slopes_batched))
            for x, slopes in (arguments(10), arguments(20))
        )
        assert few == many
        # Both symmetric blocks, both vectors, and the last result, in the loops that compute them.
        assert few["store"] == 3 + 3 + 2 + 2 + 1


def test_long_rows_of_an_argument_are_stored_first():
    def fn(x):
        return jax.lax.scan(lambda c, row: (jnp.sin(c + jnp.sum(row**2)), None), x[0, 0], x)[0]

    x = np.random.default_rng(0).normal(size=(5, 7, 12))
    found = operations(fn, x[0])
    assert found["store"] == 7 * 12 and found["load"] == 12
    np.testing.assert_allclose(lanes.vmap(fn, strict=True)(x), jax.vmap(fn)(x), rtol=1e-12)


def test_structure_survives_from_scan_to_scan():
    """Of a symmetric block with zeros only what differs is stored."""
    values = np.random.default_rng(0).normal(size=12)

    def blocks(x):
        def step(c, a):
            c = jnp.cos(c * a)
            block = jnp.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
            block = block.at[0, 1].set(c).at[1, 0].set(c).at[2, 2].set(x[0])
            return c, block

        _, ys = jax.lax.scan(step, x[1], values)
        weights = jnp.array([1.0, 2.0, 3.0])
        return jax.lax.scan(lambda v, block: (jnp.sin(block @ v), None), weights, ys)[0]

    found = operations(blocks, values[:2])
    assert found["store"] == 1
    assert found["load"] == 2  # of `values` and of what is stored
    np.testing.assert_allclose(
        lanes.vmap(blocks, strict=True)(values.reshape(6, 2)),
        jax.vmap(blocks)(values.reshape(6, 2)), rtol=1e-12,
    )  # fmt: skip


@pytest.mark.parametrize("length", [20, 2000])
def test_equal_elements_of_a_table_are_constants(length):
    table = np.random.default_rng(0).normal(size=(length, 3))
    table[:, 1], table[:, 2] = 0.0, table[:, 0]

    def fn(x):
        return jax.lax.scan(lambda c, r: (jnp.sin(r[0] * c) + r[1] * c + r[2], None), x, table)[0]

    found = operations(fn, 0.5)
    assert found["load"] == 1
    np.testing.assert_allclose(
        lanes.vmap(fn, strict=True)(np.arange(3.0)), jax.vmap(fn)(np.arange(3.0)), rtol=1e-11
    )
