"""Calls from the host: what is static, and which arguments they take."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.lanes.backend import given, host_jit


def test_leaves_that_are_not_arrays_are_static_and_keep_their_places():
    runs = []

    @host_jit
    def f(how, x, rest):
        runs.append(how)
        return x if how is True else rest["f"](x) + rest["k"] * rest["y"]

    x, y = jnp.ones(2), np.full(2, 3.0)
    rest = {"f": jnp.negative, "k": 2, "y": y}
    assert f(True, x, rest).tolist() == [1.0, 1.0]
    assert f(1, x, rest).tolist() == [5.0, 5.0]  # 1 == True, but is another argument
    assert f(1, x, rest | {"k": 3}).tolist() == [8.0, 8.0]
    assert f(1, x, rest | {"f": jnp.square}).tolist() == [7.0, 7.0]
    assert f(True, y, rest).tolist() == [3.0, 3.0]
    assert runs == [True, 1, 1, 1]


def test_given_keeps_arrays_of_the_right_type():
    x, weak = np.ones(3), jnp.asarray(1.0)
    assert given(x, np.float64) is x
    assert given(x, np.float32).dtype == np.float32
    assert weak.weak_type and not given(weak, np.float64).weak_type
    assert given(2.0, np.float32).dtype == np.float32
    assert given([1, 2], np.float64).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("kind", [list, tuple, np.asarray, jnp.asarray, np.float32])
def test_a_state_may_be_given_in_any_form(kind):
    mech = mbd.zoo.double_pendulum()
    q, v = [0.25, -0.5], [1.0, 2.0]
    expected = mbd.forward_dynamics(mech, jnp.asarray(q), jnp.asarray(v))[0]
    found = mbd.forward_dynamics(mech, kind(q), kind(v), 0, {})[0]
    assert np.array_equal(found, expected)
    tau = mbd.inverse_dynamics(mech, kind(q), kind(v), np.asarray(expected))[0]
    assert np.max(np.abs(tau)) < 1e-12
