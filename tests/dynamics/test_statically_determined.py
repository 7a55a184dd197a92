"""Derivatives of multipliers where the constraints leave no freedom."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd


def slider_crank(mass, **drives):
    """A slider-crank under gravity."""
    points = {"shaft": (0.0, 0.0), "pin": (0.05, 0.02), "wrist": (0.20, 0.01)}
    return mbd.Mechanism(
        {"crank": mbd.Body(0.4, "pin"), "rod": mbd.Body(mass, (0.11, 0.02))},
        {
            "shaft": mbd.Revolute("ground", "crank", at="shaft"),
            "pin": mbd.Revolute("crank", "rod", at="pin"),
            "guide": mbd.PointOnLine("ground", "rod", at="wrist", axis=(1, 0)),
        },
        drives=drives,
        points=points,
    )


@pytest.mark.parametrize("turned", [0.0, 0.1, -0.3])
def test_forward_equals_reverse_where_nothing_can_move(turned):
    q = mbd.assemble(slider_crank(0.3), known={"shaft": turned}).q
    held = mbd.Drive("shaft", lambda t, x: x + 0.0 * t, turned)
    zero = jnp.zeros(2)

    def multipliers(mass):
        return mbd.inverse_dynamics(slider_crank(mass, held=held), q, zero, zero)[1]

    forward, reverse = jax.jacfwd(multipliers)(0.3), jax.jacrev(multipliers)(0.3)
    assert np.all(np.isfinite(forward))
    np.testing.assert_allclose(forward, reverse, rtol=1e-9, atol=1e-12)
    steps = (multipliers(0.31) - multipliers(0.29)) / 0.02  # the multipliers are linear in a mass
    np.testing.assert_allclose(forward, steps, rtol=1e-9, atol=1e-10)
