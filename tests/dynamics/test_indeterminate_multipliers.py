"""Multipliers of redundant rows, which are those of least norm: their derivatives."""

import re

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd

INERTIA = np.diag([0.02, 0.03, 0.04])
FRAME = mbd.Mechanism(
    {
        "strut": mbd.Body(2.0, (0.3, 0.1, 0.2), INERTIA),
        "stay": mbd.Body(1.0, (0.7, -0.2, 0.3), INERTIA),
    },
    {
        "foot": mbd.Revolute("ground", "strut", (0.0, 0.0, 0.0), (0.2, 1.0, 0.1)),
        "ball": mbd.Spherical("ground", "stay", (1.0, 0.1, 0.0)),
        "apex": mbd.Revolute("stay", "strut", (0.5, 0.1, 0.6), (0.5, 0.8, -0.4)),
    },
    gravity=(1.0, -2.0, -9.0),
    cut=("apex",),
)
"""It cannot move: five rows against four speeds, so that it may carry a stress without a load."""


def test_multipliers_of_least_norm_follow_the_mechanisms_length():
    """Forces and moments are weighed with that length, which changes with the drawing."""
    q, v = mbd.neutral(FRAME), jnp.zeros(4)

    def multipliers(size):
        def drawn_larger(path, x):
            return size * x if re.search("points|com", jax.tree_util.keystr(path)) else x

        return mbd.forward_dynamics(jax.tree_util.tree_map_with_path(drawn_larger, FRAME), q, v)[1]

    rate = jax.jvp(multipliers, (1.0,), (1.0,))[1]
    h = 1e-4
    difference = (multipliers(1.0 + h) - multipliers(1.0 - h)) / (2.0 * h)
    assert np.abs(difference).max() > 0.1
    np.testing.assert_allclose(rate, difference, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(jax.grad(lambda s: multipliers(s).sum())(1.0), rate.sum(), rtol=1e-9)
