"""Reverse over reverse, by pullbacks of tangent maps: against JAX's own derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.lanes import tangent

RNG = np.random.default_rng(8)
X, S, K = jnp.asarray(RNG.normal(size=(3, 2))), jnp.asarray(RNG.normal(size=2)), jnp.arange(3)


def function(x, s, k):
    """Two results and a count, of an argument of each sample, a shared one and an integer."""

    def step(c, _):
        c = jnp.sin(c * s) + 0.1 * k * c[::-1]
        return c, c[0] * s[1]

    c, kept = jax.lax.scan(step, x, None, length=7)
    return {"end": c * jnp.exp(s), "sum": kept.sum(), "count": k + 1}


def totals(mapped):
    """Scalars that use one result, or both in a way that makes their cotangents vary."""

    def batch(x, s):
        return mapped(function, in_axes=(0, None, 0))(x, s, K)

    return (
        lambda x, s: batch(x, s)["sum"].sum(),
        lambda x, s: (batch(x, s)["end"] ** 2 * batch(x, s)["sum"][:, None]).sum(),
    )


@pytest.fixture
def no_reverse_of_a_reverse(monkeypatch):
    def only_values(key, pullback):
        assert pullback is None
        return key

    monkeypatch.setattr(tangent, "without_pullback", only_values)


@pytest.mark.usefixtures("no_reverse_of_a_reverse")
@pytest.mark.parametrize("which", [0, 1])
def test_reverse_over_reverse(which):
    def mapped(fn, in_axes):
        return lanes.vmap(fn, in_axes, strict=True)

    found, expected = (
        jax.jit(jax.jacrev(jax.grad(totals(m)[which], (0, 1)), (0, 1)))(X, S)
        for m in (mapped, jax.vmap)
    )
    for a, b in zip(*map(jax.tree_util.tree_leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


@pytest.mark.usefixtures("no_reverse_of_a_reverse")
def test_three_times_reverse():
    def thrice(mapped):
        fn = mapped(lambda x, s: (jnp.sin(x) * jnp.exp(s * x)).sum())
        grad = jax.grad(jax.grad(fn, 1), 1)
        return jax.jit(jax.vmap(jax.grad(lambda x, s: grad(x, s) ** 2, (0, 1)), (0, None)))(X, 0.3)

    found, expected = thrice(lambda f: lanes.jit(f, strict=True)), thrice(lambda f: f)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)
