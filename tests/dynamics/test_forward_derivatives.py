"""Derivatives of forward dynamics along the speeds, against central differences."""

import jax.numpy as jnp
import numpy as np
import pytest
from equipped_mechanisms import equipped_mechanism

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.dynamics import forward_slopes
from jaxmbd.kinematics import step_coordinates


def no_pull(m):
    return jnp.zeros(m.top.nc, m.q.dtype)


@pytest.mark.parametrize("friction", [False, True])
def test_every_element_against_differences(friction):
    """All force elements, a loop, a gear, driven coordinates of a joint and of a point."""
    mech, q, v, inputs, _ = equipped_mechanism(0, friction=friction)
    q, v, t, n = jnp.asarray(q), jnp.asarray(v), jnp.asarray(0.1), len(v)

    def efforts(t, q, v):
        """Given ones, and one that follows the motion and the time."""
        return inputs | {"shoulder": 0.3 * jnp.sin(t) * v[0] - q[0] ** 2}

    slopes = lanes.jit(lambda q, v, t: forward_slopes(mech, q, v, t, efforts, no_pull))(q, v, t)

    def near(x):
        """Accelerations after a small motion, change of speeds and time."""
        moved = step_coordinates(mech, q, x[:n])
        at = v + x[n:-1]
        return mbd.forward_dynamics(mech, moved, at, t + x[-1], efforts(t + x[-1], moved, at))[0]

    h = 1e-5
    steps = h * np.concatenate([np.eye(2 * n + 1), -np.eye(2 * n + 1)])
    ahead, behind = np.split(np.asarray(lanes.vmap(near)(jnp.asarray(steps))), 2)
    expected = ((ahead - behind) / (2.0 * h)).T
    for found, wanted in zip(slopes, np.split(expected, [n, 2 * n], axis=1), strict=True):
        wanted = wanted.reshape(found.shape)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-7 * np.abs(wanted).max() + 1e-8)
