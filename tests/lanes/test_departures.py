"""Where kernels and XLA differ, and where they no longer do (the table in docs/theory/lanes.md)."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes

VMAP = partial(lanes.vmap, strict=True)


def values(fn, *args):
    """What lanes and XLA find."""
    return (np.asarray(jax.jit(v(fn))(*args)) for v in (VMAP, jax.vmap))


def slopes(fn, *args):
    """Reverse derivatives by lanes and by XLA."""
    every = tuple(range(len(args)))
    return (
        jax.jit(jax.grad(lambda *x, v=v: v(fn)(*x).sum(), every))(*args) for v in (VMAP, jax.vmap)
    )


AT = jnp.array([0.0, -0.0, 1.0, 0.5, 2.0, -1.0])


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (jnp.abs, (AT,)),
        (jnp.sign, (AT,)),
        (jnp.maximum, (AT, jnp.array([0.0, 0.0, 1.0, 0.4, 3.0, -1.0]))),
        (jax.lax.clamp, (jnp.zeros(6), AT, jnp.ones(6))),
        (lambda x: jnp.max(jnp.stack([x, x, 1.0 - x])), (AT,)),
        (lambda x: jax.lax.cummax(jnp.stack([x, x, 1.0 - x])) @ jnp.arange(3.0), (AT,)),
    ],
    ids=["abs", "sign", "max", "clamp", "reduce", "cumulative"],
)
def test_gradients_of_ties_are_those_of_jax(fn, args):
    for found, expected in zip(*slopes(fn, *args), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_large_unsigned_indices_are_clipped_to_the_last():
    index = jnp.array([0, 2, 5, 2**63, 2**64 - 1], dtype=jnp.uint64)
    table = jnp.array([10.0, 20.0, 30.0])
    found, expected = values(lambda i: jnp.take(table, i, mode="clip"), index)
    np.testing.assert_array_equal(found, expected)


def test_large_unsigned_indices_are_out_of_bounds():
    """XLA takes 2⁶³ for zero."""
    index = jnp.array([1, 2**63], dtype=jnp.uint64)
    table = jnp.array([10.0, 20.0, 30.0])
    found = VMAP(lambda i: jnp.take(table, i, mode="fill"))(index)
    np.testing.assert_array_equal(found, [20.0, np.nan])


def test_the_sign_of_zero():
    a, b = jnp.array([0.0, -0.0]), jnp.array([-0.0, 0.0])
    for fn in (jnp.maximum, jnp.minimum, lambda a, b: a + 0.0 * b):
        for found in values(fn, a, b):
            np.testing.assert_array_equal(found, 0.0)


def test_half_powers():
    x = jnp.array([-np.inf, -0.0, 0.0, 4.0, -1.0, np.inf])
    found, expected = values(lambda x: x**0.5, x)
    np.testing.assert_array_equal(found, [np.nan, -0.0, 0.0, 2.0, np.nan, np.inf])
    np.testing.assert_array_equal(found[1:], expected[1:])
    assert np.isposinf(expected[0])


def test_subnormals_are_flushed_as_by_xla():
    x = jnp.array([5e-324, -1e-309, 2.3e-308])
    for fn in (lambda x: 2.0 * x, lambda x: 0.5 * x, lambda x: x > 0, jnp.abs, lambda x: 1.0 / x):
        found, expected = values(fn, x)
        np.testing.assert_array_equal(found, expected)


def test_quotients_by_a_huge_denominator():
    """Two by one of more than 2¹⁰²² share its reciprocal, which is flushed to zero."""
    found, expected = values(lambda x: 2.0 / x + 3.0 / x, jnp.array([1e308]))
    assert found == 0.0 and 0.0 < expected < 1e-307


def test_the_derivative_of_nought_to_the_nought():
    found, expected = (x[0] for x in slopes(lambda x, y: x**y, jnp.zeros(1), jnp.zeros(1)))
    assert found == 0.0 and np.isnan(expected)


def test_a_literal_zero_annihilates():
    found, expected = values(lambda x: 0.0 * x, jnp.array([np.nan, np.inf, 1.0]))
    np.testing.assert_array_equal(found, 0.0)
    np.testing.assert_array_equal(expected, [np.nan, np.nan, 0.0])


def test_eigenvectors_agree_but_for_their_signs():
    a = np.random.default_rng(2).normal(size=(20, 3, 3))
    found, expected = values(lambda a: jnp.linalg.eigh(a + a.T)[1], a)
    cosines = np.einsum("bij,bij->bj", found, expected)
    assert set(np.sign(cosines).reshape(-1)) == {-1.0, 1.0}
    np.testing.assert_allclose(np.abs(cosines), 1.0, rtol=1e-14)


def test_known_zeros_of_a_product_pass_over_finite_numbers_only():
    """Where both operands are constants, 0·∞ and 0·NaN are NaN in sums of products, too."""
    table = jnp.array([[0.0, 2.0], [jnp.inf, 2.0], [jnp.nan, 2.0], [-5.0, 2.0]])

    def fn(x):
        return jnp.concatenate([table, jnp.stack([x, x])[None]]) @ jnp.array([0.0, 3.0])

    found, expected = values(fn, jnp.array([4.0]))
    np.testing.assert_array_equal(found, [[6.0, np.nan, np.nan, 6.0, 12.0]])
    np.testing.assert_array_equal(found, expected)
