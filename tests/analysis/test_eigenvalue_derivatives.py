"""Derivatives of eigenvalues beside a defective one, and of those that have none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

EMPTY = jnp.zeros((0, 0))


def frequencies(a):
    return mbd.Linearization(a, EMPTY, EMPTY, EMPTY, EMPTY, (), ()).frequencies()


@jax.jit
def derivatives(a, dot):
    """Along a direction, and by each number of the matrix."""
    return jax.jvp(frequencies, (a,), (dot,))[1], jax.jacrev(frequencies)(a)


def oscillators(rng):
    """``[[0, 1], [−K, −K/1000]]`` of four stiff ones, and its change with K."""
    shape, turn = (rng.normal(size=(4, 4)) for _ in range(2))
    k, dot = (1e4 * (s @ s.T + np.eye(4)) for s in (shape, turn))
    zero, eye = np.zeros((4, 4)), np.eye(4)
    return np.block([[zero, eye], [-k, -1e-3 * k]]), np.block([[zero, zero], [-dot, -1e-3 * dot]])


def with_a_wheel(a, push, rate):
    """Two states more, driven by the others, acting on nothing: at rate 1 a defective zero."""
    whole = np.zeros((len(a) + 2, len(a) + 2))
    whole[:-2, :-2], whole[-2, -1], whole[-1, :-2] = a, rate, push
    return whole


@pytest.mark.parametrize("noise", [0.0, 3e-29])
def test_a_free_spin_costs_the_other_modes_no_digits(noise):
    """Without the wheel's row and columns A has the same other eigenvalues and no defect."""
    rng = np.random.default_rng(3)
    a, dot = oscillators(rng)
    push, change = 1e6 * rng.normal(size=(2, 8))
    whole, turn = with_a_wheel(a, push, 1.0), with_a_wheel(dot, change, 0.0)
    whole[9, 8] = noise
    alone, (forward, gradients) = derivatives(a, dot)[0], derivatives(whole, turn)
    np.testing.assert_allclose(forward[2:], alone, rtol=1e-9)
    np.testing.assert_allclose(np.tensordot(gradients[2:], turn, 2), alone, rtol=1e-9)
    assert np.isnan(forward[:2]).all()
    assert np.isfinite(jax.jit(jax.grad(lambda a: frequencies(a)[2:].sum()))(whole)).all()


REPEATED = {
    "critically damped": [[0.0, 1.0], [-1.0, -2.0]],
    "two equal oscillators": np.kron([[0.0, 1.0], [-4.0, 0.0]], np.eye(2)),
}


@pytest.mark.parametrize("a", REPEATED.values(), ids=REPEATED)
def test_repeated_eigenvalues_have_no_derivative(a):
    """NaN forward and reverse; beside them a simple pair keeps its own."""
    a = np.asarray(a)
    n = len(a)
    whole = np.zeros((n + 2, n + 2))
    whole[:n, :n], whole[n:, n:] = a, [[0.0, 1.0], [-900.0, 0.0]]
    turn = np.zeros_like(whole)
    turn[n // 2, 0], turn[n + 1, n] = -1.0, -60.0  # 30 rad/s grows by 1 rad/s
    forward, gradients = derivatives(whole, turn)
    assert np.isnan(forward[:n]).all()
    np.testing.assert_allclose(2.0 * np.pi * forward[n:], 1.0, rtol=1e-12)
    assert np.isnan(gradients[:n]).any(axis=(1, 2)).all()
    np.testing.assert_allclose(np.tensordot(gradients[n:], turn, 2), forward[n:], rtol=1e-12)
