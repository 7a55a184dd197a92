"""Arrays too long to be held as scalars: combined with their own rows and columns."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes


def test_outer_products_of_rows_and_columns():
    """A product of axes of length one, as JAX writes it without broadcasting first."""
    x = np.random.default_rng(0).normal(size=(2, 40, 41))

    def eliminated(a):
        """Gaussian elimination of the first column, and the rows and columns on their own."""
        outer = a[1:, :1] / a[0, 0] * a[None, 0, 1:]
        rest = a[1:, 1:] - outer
        return jnp.sum(rest * (a[:1, 1:] + a[1:, :1]), axis=0), jnp.max(outer, axis=1)

    found = lanes.vmap(eliminated, strict=True)(x)
    for k in range(len(x)):
        for got, want in zip(found, eliminated(jnp.asarray(x[k])), strict=True):
            np.testing.assert_allclose(got[k], want, rtol=1e-12)


@pytest.mark.parametrize("wanted", [(3,), (-1,), (0, 7, -1)])
def test_the_gradient_of_a_few_saved_rows(wanted):
    """Their cotangents are zero but in a few rows, and so are no long array themselves."""

    def saved(x):
        def step(y, _):
            y = y + 0.1 * jnp.sin(y[::-1])
            return y, y

        end, rows = jax.lax.scan(step, x, None, length=100)
        return jnp.concatenate([x[None], rows]), end

    def few(run, x):
        rows, end = run(x)
        return sum(rows[k] @ jnp.cos(x) for k in wanted) + end[0]

    x = np.random.default_rng(1).normal(size=(3, 5))
    found = jax.jit(lanes.vmap(jax.grad(partial(few, lanes.jit(saved, strict=True)))))(x)
    expected = jax.jit(jax.vmap(jax.grad(partial(few, saved))))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_a_long_stacked_result_is_transposed():
    """As a Jacobian that is made column by column, with 70 rows."""
    x = np.random.default_rng(2).normal(size=(2, 70))

    def columns(x):
        made = jax.lax.map(lambda y: jnp.cos(x) * y, x * x)
        return jnp.where(x[0] < 9.0, made.T, jnp.nan)[1:, 3:60]

    found = lanes.vmap(columns, strict=True)(x)
    np.testing.assert_allclose(found, jax.vmap(columns)(x), rtol=1e-14)


def test_columns_of_a_long_array_side_by_side_are_written_in_a_loop():
    def fn(x):
        def step(y, k):
            y = jnp.sin(y) + x
            return y, jnp.concatenate([y, jnp.cos(k * y)])

        rows = jax.lax.scan(step, x, jnp.arange(400.0))[1]
        masked = jnp.where(x[0] > -9.0, rows[1:], jnp.nan)
        return jnp.stack([masked[:, k] for k in (3, 0, 5)], axis=1)

    x = np.random.default_rng(0).normal(size=(5, 3))
    found, wanted = lanes.vmap(fn, strict=True)(x), jax.vmap(fn)(x)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    tangents = [jax.jvp(f, (x,), (0.5 * x,))[1] for f in (lanes.vmap(fn), jax.vmap(fn))]
    np.testing.assert_allclose(*tangents, rtol=1e-9, atol=1e-12)
    assert lanes.explain(fn, x[0]).operations < 400
