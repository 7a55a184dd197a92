"""Gradients of natural frequencies about an equilibrium that moves, forward and reverse."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd


@pytest.mark.slow
def test_frequencies_of_a_corner_by_its_bushing_rates():
    """Both arms are soft. The search for the equilibrium and the Jacobians compile in seconds, and
    the wheel's free spin, a defective zero, costs the other modes no digits."""
    soft = mbd.soften(mbd.zoo.double_wishbone(), "rev_uca", (1e4, 1e7), (10.0, 1e3))
    soft = mbd.soften(soft, "rev_lca", (1e4, 1e7), (10.0, 1e3))
    held = {"rev_spindle": 0.0}
    names = mbd.linearize(soft, mbd.equilibrium(soft, known=held).q).independent

    def frequencies(scale):
        mech = eqx.tree_at(
            lambda m: m.forces["rev_uca"].stiffness,
            soft,
            scale * jnp.asarray(soft.forces["rev_uca"].stiffness),
        )
        q = mbd.equilibrium(mech, known=held).q
        return mbd.linearize(mech, q, independent=names).frequencies()[2:]  # the wheel's spin is 0

    reverse, forward = jax.jacrev(frequencies)(1.0), jax.jacfwd(frequencies)(1.0)
    np.testing.assert_allclose(reverse, forward, rtol=1e-8)
    h = 1e-4
    difference = (frequencies(1.0 + h) - frequencies(1.0 - h)) / (2.0 * h)
    np.testing.assert_allclose(reverse, difference, rtol=1e-6)
