"""A ball joint with rates of Euler parameters as speeds is analysed as the other is."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.formulations import with_euler_parameter_rates
from jaxmbd.formulations.euler_parameter_rates import speeds_from_angular_velocity


@pytest.fixture(scope="module")
def pair():
    """A body that hangs on a ball, drawn 70° off its rest, in both forms."""
    mech = mbd.Mechanism(
        bodies={"bob": mbd.Body(2.0, com=(0.3, 0.1, -0.05), inertia=(0.05, 0.04, 0.03))},
        joints={"ball": mbd.Spherical("ground", "bob", at=(0, 0, 0))},
        forces={
            "cord": mbd.SpringDamper(
                "ground", "bob", (0.3, 0.4, -0.2), (0.35, 0.1, 0.0), stiffness=90.0, damping=3.0
            )
        },
    )
    return mech, with_euler_parameter_rates(mech)


def test_its_frequencies_are_those_of_the_ball(pair):
    rest = mbd.equilibrium(pair[0]).q
    assert float(rest[0]) < 0.95  # far from where the two speeds differ by a factor alone
    ball, rates = (mbd.linearize(m, rest) for m in pair)
    np.testing.assert_allclose(rates.frequencies(), ball.frequencies(), rtol=1e-9)
    np.testing.assert_allclose(rates.damping_ratios(), ball.damping_ratios(), rtol=1e-8, atol=1e-12)


def test_its_balance_is_that_of_the_ball(pair):
    """Held as a whole, with the moment that holds it as efforts ``G*ᵀ n`` along ė."""
    tilt = np.array([0.8, 0.3, -0.4, 0.33])
    ball, rates = (mbd.equilibrium(m, known={"ball": tilt}) for m in pair)
    held = tilt / np.linalg.norm(tilt)
    np.testing.assert_allclose(rates.q, held, rtol=0, atol=1e-13)
    np.testing.assert_allclose(ball.q, held, rtol=0, atol=1e-13)
    turn = np.stack([speeds_from_angular_velocity(jnp.asarray(held), e) for e in np.eye(3)], 1)
    np.testing.assert_allclose(turn.T @ rates.held, ball.held, rtol=1e-9)


def test_a_driven_one_moves_as_the_ball(pair):
    """Rates and accelerations of the Euler parameters, in each joint's own speeds."""

    def swing(t):
        return jnp.stack([1.0 + 0.0 * t, 0.4 * jnp.sin(t), 0.3 * t, 0.2 * t * t])

    ball, rates = (
        mbd.simulate_driven(
            m, known={"ball": swing}, t=jnp.linspace(0.0, 0.4, 5), actuated=("ball",)
        )
        for m in pair
    )
    np.testing.assert_allclose(rates.q, ball.q, rtol=0, atol=1e-13)
    for k, (q, v) in enumerate(zip(ball.q, ball.v, strict=True)):
        speeds = speeds_from_angular_velocity(q, v)
        np.testing.assert_allclose(rates.v[k], speeds, rtol=0, atol=1e-12)
        power = float(ball.tau[k] @ v)
        np.testing.assert_allclose(float(rates.tau[k] @ rates.v[k]), power, rtol=1e-10)
