"""Solutions of rows and their derivatives, against NumPy and differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd.numerics import SplitRows, factor_rows

RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(4, 7))
ROWS[2] = ROWS[0] - 2.0 * ROWS[1]  # redundant
TURN, WEIGHT = RNG.normal(size=(4, 4)), RNG.uniform(0.5, 2.0, 7)


def wanted(rows, weight, b):
    half = np.sqrt(weight)
    return half * (np.linalg.pinv(rows * half) @ b)


def moved(s):
    """Rows, weights and consistent right-hand side on a path along which the rank stays."""
    rows = (jnp.eye(4) + s * TURN) @ ROWS + 0.3 * s * jnp.ones((4, 1)) * jnp.sin(ROWS[:1])
    rows = rows.at[2].set(rows[0] - 2.0 * rows[1])
    return rows, jnp.asarray(WEIGHT) * (1.0 + s), rows @ jnp.cos(jnp.arange(7.0) + s)


def test_least_norm_with_its_derivatives_where_rows_are_redundant():
    def x(s):
        rows, weight, b = moved(s)
        return factor_rows(rows, weight).solve(b)

    np.testing.assert_allclose(x(0.0), wanted(*map(np.asarray, moved(0.0))), atol=1e-12)
    first, second = jax.jacfwd(x), jax.jacfwd(jax.jacfwd(x))
    for found, fn, h in ((first, x, 1e-5), (second, first, 1e-5)):
        slope = (fn(0.1 + h) - fn(0.1 - h)) / (2.0 * h)
        np.testing.assert_allclose(found(0.1), slope, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(jax.jacrev(x)(0.1), first(0.1), rtol=1e-11)


@pytest.mark.parametrize("single", [[], [(4, 5)], [(4, 5), (5, 1)]])
def test_rows_of_one_element_are_solved_first(single):
    extra = np.zeros((len(single), 7))
    for k, (_, column) in enumerate(single):
        extra[k, column] = 2.0 + k
    rows = np.concatenate([ROWS, extra])
    split = SplitRows(jnp.asarray(rows), jnp.asarray(WEIGHT), single)
    b, f = rows @ RNG.normal(size=7), rows.T @ RNG.normal(size=len(rows))
    x, y = np.asarray(split.solve(jnp.asarray(b))), np.asarray(split.balancing(jnp.asarray(f)))
    np.testing.assert_allclose(x, wanted(rows, WEIGHT, b), atol=1e-12)
    np.testing.assert_allclose(rows.T @ y, f, atol=1e-12)
    assert abs(y[2]) < 1e-12  # the redundant row bears nothing
