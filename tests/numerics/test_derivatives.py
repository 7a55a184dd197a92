"""Jacobians by a loop over columns: the same numbers, a program that does not grow with them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.lanes.kernel import Kernel
from jaxmbd.numerics.redundant_equations import jacobian


def long(x, length=6):
    """Some operations on a few sums, so that what a column costs does not depend on its length."""
    y = jnp.stack([jnp.sum(x), jnp.sum(x[::2])])
    for k in range(length):
        y = jnp.sin(y[::-1] * (1.0 + 0.01 * k)) + 0.1 * y
    return y, {"last": y[0]}


def built(fn, *args):
    """Operations that a kernel of the function asks for."""
    leaves, tree = jax.tree_util.tree_flatten(args)

    def flat(*leaves):
        return jax.tree_util.tree_leaves(fn(*jax.tree_util.tree_unflatten(tree, leaves)))

    return Kernel(jax.make_jaxpr(flat)(*leaves), (True,) * len(leaves)).graph.built


@pytest.mark.parametrize("n", [2, 5])
def test_the_same_numbers_and_gradients(n):
    x = jnp.asarray(np.random.default_rng(n).normal(size=(3, n)))

    def both(of, mapped):
        def total(x):
            return sum(jnp.sum(jnp.cos(y)) for y in jax.tree_util.tree_leaves(of(long, x)))

        def run(x):
            return jax.value_and_grad(lambda x: jnp.sum(mapped(total)(x)))(x)

        return jax.jit(run)(x), jax.jit(mapped(lambda x: of(long, x)))(x)

    found = both(jacobian, lambda f: lanes.vmap(f, strict=True))
    expected = both(lambda fn, x: jax.jacfwd(fn)(x), jax.vmap)
    for a, b in zip(*map(jax.tree_util.tree_leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_the_program_does_not_grow_with_the_columns():
    longer = partial(long, length=200)
    few, many = (built(lambda x: jacobian(longer, x), jnp.ones(n)) for n in (6, 24))
    assert many < 1.5 * few


def test_linearize_takes_a_few_times_the_work_of_the_forward_dynamics():
    mech = mbd.zoo.double_wishbone()
    hinge = next(name for name, j in mech.joints.items() if isinstance(j, mbd.Revolute))
    soft = mbd.soften(mech, joint=hinge, stiffness=(1e4, 1e6), damping=(10.0, 100.0))
    q = mbd.assemble(soft).q
    v = jnp.zeros(mbd.topology(soft).nv)
    ball = [f"sph_uca[{k}]" for k in range(3)]
    names = ["rev_lca", "sph_lca[1]", "sph_lca[2]", "rev_spindle", *ball]
    linear = built(lambda m: mbd.linearize(m, q, v, independent=names).A, soft)
    assert linear < 7 * built(lambda m: mbd.forward_dynamics(m, q, v), soft)
