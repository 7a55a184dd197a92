"""The explicit method of order 8: its steps are SciPy's, its derivatives those of the motion."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import DOP853

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.analysis.methods import Equations


def test_steps_are_those_of_scipy():
    """States and estimated errors of three steps; SciPy's estimate of each number is for tests."""
    mech = mbd.zoo.double_pendulum()

    @jax.jit
    def acceleration(t, q, v):
        return mbd.forward_dynamics(mech, q, v, t)[0]

    @jax.jit
    def attempt(t, q, v, h):
        equations = Equations(mech, acceleration, lambda q, v, t: (q, v))
        return mbd.DormandPrince8().attempt(equations, t, q, v, h)

    t, h, q, v = 0.0, 0.05, np.array([0.5, 0.2]), np.array([0.0, 1.0])
    steps = DOP853(
        lambda t, y: np.r_[y[2:], acceleration(t, y[:2], y[2:])],
        t, np.r_[q, v], 1.0, first_step=h, max_step=h, rtol=1e3, atol=1e3,
    )  # fmt: skip
    for _ in range(3):
        found = attempt(t, q, v, h)
        steps.step()
        np.testing.assert_allclose(np.r_[found.q, found.v], steps.y, rtol=0, atol=1e-14)
        error = steps._estimate_error(steps.K, h)  # noqa: SLF001
        errors = np.r_[found.error_q, found.error_v]
        np.testing.assert_allclose(errors, error, rtol=0, atol=1e-4 * abs(error).max())
        t, q, v = t + h, found.q, found.v


P, DP, WEIGHTS = np.array([9.81, 0.7]), np.array([0.6, -1.0]), np.cos(np.arange(6.0))
"""Gravity and the crank's first speed, their changes, and what counts of the end."""


@pytest.fixture(scope="module")
def end():
    """The end of a motion of a parallelogram, by P."""
    mech = mbd.zoo.n_four_bar(1, planar=True)
    q = mbd.assemble(mech, known={"ground_0": 2.3}).q

    def end(p, backend="auto"):
        run = mbd.simulate(
            mech.replace(gravity=jnp.stack([0.0 * p[0], -p[0]])), q, p[1] * np.array([1, -1, 1]),
            t1=0.5, dt=0.25, method=mbd.DormandPrince8(most=64), throw=False, backend=backend,
        )  # fmt: skip
        return jnp.concatenate([run.q[-1], run.v[-1]])

    return end


@pytest.fixture(scope="module")
def derivatives(end):
    """Value and change in forward mode, and the gradient of the sum with WEIGHTS."""

    @cache
    def found(backend):
        slope = jax.jit(lambda p: jax.jvp(lambda p: end(p, backend), (p,), (DP,)))(P)
        return *slope, jax.jit(jax.grad(lambda p: WEIGHTS @ end(p, backend)))(P)

    return found


@pytest.mark.slow
def test_derivatives_are_those_of_the_motion(end, derivatives):
    _, slope, pulled = derivatives("lanes")
    np.testing.assert_allclose(pulled @ DP, WEIGHTS @ slope, rtol=1e-12)
    value, h = jax.jit(end), 1e-3
    near, far = ((value(P + k * h * DP) - value(P - k * h * DP)) / (2 * k * h) for k in (1, 2))
    np.testing.assert_allclose(slope, (4 * near - far) / 3, rtol=0, atol=2e-9)


@pytest.mark.slow
def test_lanes_and_xla_agree(derivatives):
    for one, other in zip(derivatives("lanes"), derivatives("xla"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_samples_take_their_own_steps(end):
    many = np.array([[9.81, 0.7], [2.0, 0.1], [40.0, -3.0]])
    batch = lanes.vmap(end)
    np.testing.assert_array_equal(batch(many), [batch(x[None])[0] for x in many])
