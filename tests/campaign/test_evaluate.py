"""Campaigns that are wrongly asked for: a sentence instead of numbers or of NumPy's error."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.campaign import Results, Variable, evaluate, status_line


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        ({"x": np.ones(3), "y": np.ones((2, 4))}, r"one n for all; given: .*'y': \(2, 4\)"),
        ({"x": np.ones(0), "y": np.ones((0, 4))}, "no sample to evaluate"),
        ({"x": np.ones(3), "y": 2.0}, r"must be arrays \(n, …\).*'y': \(\)"),
        ({}, r"must be arrays \(n, …\)"),
    ],
    ids=["unequal", "empty", "a number", "nothing"],
)
def test_samples_of_no_one_number_are_refused(samples, says):
    with pytest.raises(ValueError, match=says):
        mbd.campaign.evaluate(lambda s: s, samples)


def test_samples_may_be_lists():
    found = evaluate(lambda s: {"z": s["x"] + s["y"]}, {"x": [1.0, 2.0, 3.0], "y": np.ones(3)})
    np.testing.assert_array_equal(found["z"], [2.0, 3.0, 4.0])


def test_a_function_is_traced_once_for_all_evaluations():
    traced = []

    def double(s):
        traced.append(1)
        return {"y": 2.0 * s["x"]}

    for shift in (0.0, 1.0):
        x = shift + np.arange(4.0)
        np.testing.assert_array_equal(evaluate(double, {"x": x})["y"], 2.0 * x)
    assert len(traced) == 1


def test_a_function_may_be_a_module_with_arrays():
    class Scaled(eqx.Module):
        factor: jax.Array

        def __call__(self, s):
            return {"y": self.factor * s["x"]}

    for factor in (2.0, 3.0):
        found = evaluate(Scaled(jnp.asarray(factor)), {"x": np.arange(4.0)})
        np.testing.assert_array_equal(found["y"], factor * np.arange(4.0))


def test_the_line_of_statuses_needs_no_drift():
    drift = {"drift": Variable(np.array([1e-9, 1.0]))}
    status = {"status": Variable(np.array([0, 1]))}
    line = status_line(Results("study", status, {}, {}))
    assert line == "1 of 2 samples ok; 1 not assembled (sample 1)"
    whole = status_line(Results("study", status | drift, {}, {}))
    assert whole == line + "; largest closure error 1e-09 m"
