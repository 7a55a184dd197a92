"""The rules of `jaxmbd.lanes.ir.fold`: constants follow IEEE 754, literal zeros annihilate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes

ODD = [0.0, -0.0, 1.0, -3.5, np.inf, -np.inf, np.nan]
NAN, INF = np.nan, np.inf


def pairs(dtype):
    a, b = np.meshgrid(np.array(ODD, dtype), np.array(ODD, dtype))
    return a.reshape(-1), b.reshape(-1)


def binary(a, b):
    return a + b, a - b, a * b, a / b, jnp.maximum(a, b), a < b, a == b


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constants_fold_as_ieee_has_it(dtype):
    """0/0, ∞ − ∞, 0·∞ and 0·NaN are NaN; zeros keep their signs."""
    a, b = pairs(dtype)
    fn = lambda x: (x, *binary(jnp.asarray(a), jnp.asarray(b)))  # noqa: E731
    found = lanes.vmap(fn)(jnp.zeros(1))[1:]
    with np.errstate(all="ignore"):
        expected = (a + b, a - b, a * b, a / b, np.maximum(a, b), a < b, a == b)
    for k, (x, y) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_array_equal(x[0], y)
        if k < 4:
            zeros = y == 0
            np.testing.assert_array_equal(np.signbit(x[0])[zeros], np.signbit(y)[zeros])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arguments_are_computed_as_ieee_has_it(dtype):
    a, b = pairs(dtype)
    found, expected = lanes.vmap(binary)(a, b), jax.vmap(binary)(a, b)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_literal_zero_annihilates_and_adds_nothing():
    """Departures from IEEE for NaN and infinities; no operations are generated."""
    x = jnp.array([NAN, INF, -INF, 0.0, 2.0])
    zero = np.zeros(())
    product, quotient, total = lanes.vmap(lambda x: (zero * x, zero / x, x + zero))(x)
    np.testing.assert_array_equal(product, np.zeros(5))
    np.testing.assert_array_equal(quotient, np.zeros(5))
    np.testing.assert_array_equal(total, x)
    assert lanes.explain(lambda x: (zero * x, zero / x, x + zero), 1.0).operations == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_shared_reciprocals_in_their_range(dtype):
    """Three quotients by one denominator: within two ulp of XLA, with the same special values."""
    info = np.finfo(dtype)
    sizes = np.array([info.tiny, info.tiny * 8, 1e-3, 3.0, 0.24 * info.max], dtype)
    b = np.concatenate([sizes, -sizes, np.array([0.0, -0.0, INF, -INF, NAN], dtype)])
    a = np.array([0.0, 1e-3, 1.0, -7.0, INF, NAN], dtype)

    def quotients(a, b):
        return a / b, (2 * a) / b, a * a / b

    a, b = (x.reshape(-1) for x in np.meshgrid(a, b))
    for x, y in zip(lanes.vmap(quotients)(a, b), jax.vmap(quotients)(a, b), strict=True):
        np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
        np.testing.assert_array_equal(np.isinf(x), np.isinf(y))
        np.testing.assert_allclose(x, y, rtol=3 * info.eps, atol=info.tiny)
