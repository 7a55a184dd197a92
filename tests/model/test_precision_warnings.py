"""Double precision that JAX would cut without a word: one warning at the caller's line."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes

CURE = r"jax\.config\.update\('jax_enable_x64', True\)"
G32 = np.array([0.0, 0.0, -9.81], np.float32)


@pytest.fixture(autouse=True)
def single_precision():
    with jax.enable_x64(False), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def described(length, **more):
    """A point of a pendulum whose length may be traced."""
    return mbd.zoo.simple_pendulum(length=length, **more).com("bob")


@pytest.mark.parametrize("compiled", [lanes.jit, lanes.vmap])
def test_float64_arguments_of_lanes(compiled):
    double = compiled(lambda x: 2.0 * x)
    with pytest.warns(UserWarning, match=CURE) as found:
        assert double(np.ones(3)).dtype == jnp.float32
    assert [x.filename for x in found] == [__file__]


def test_an_argument_with_its_batch_elsewhere():
    with pytest.warns(UserWarning, match=CURE):
        lanes.vmap(lambda x: x, in_axes=1)(np.ones((2, 3)))


def test_nothing_that_is_not_cut_warns():
    scaled = lanes.vmap(lambda x, n, s: x * n * s, in_axes=(0, 0, None))
    out = scaled(np.ones(3, np.float32), np.arange(3), 2.0)
    np.testing.assert_array_equal(out, [0.0, 2.0, 4.0])
    lanes.jit(lambda x: x)(0.5)


def test_numbers_of_a_mechanism():
    with jax.enable_x64(True):
        mech = mbd.zoo.simple_pendulum()
    with pytest.warns(UserWarning, match=CURE) as found:
        assert mbd.neutral(mech).dtype == jnp.float32
    assert {x.filename for x in found} == {__file__}
    assert mech.astype("float32").dtype == jnp.float32


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.jacfwd])
def test_a_mechanism_that_is_single_only_by_what_is_traced(transform):
    with pytest.warns(UserWarning, match=CURE) as found:
        transform(described)(np.array([0.5, 1.0]) if transform is jax.vmap else np.array(0.5))
    assert [x.filename for x in found] == [__file__]


def test_single_precision_that_is_asked_for():
    mech = mbd.zoo.simple_pendulum(gravity=G32)
    assert mbd.neutral(mech).dtype == jnp.float32
    jax.jit(lambda x: described(x, gravity=G32))(0.5)
    heavy = jax.jit(lambda m: m.replace(bodies={"bob": mbd.Body(2.0, (1, 0, 0))}).com("bob"))
    assert heavy(mech).dtype == jnp.float32
