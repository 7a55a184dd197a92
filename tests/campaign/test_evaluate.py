"""Campaigns that are wrongly asked for: a sentence instead of numbers or of NumPy's error."""

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


def test_the_line_of_statuses_needs_no_drift():
    drift = {"drift": Variable(np.array([1e-9, 1.0]))}
    status = {"status": Variable(np.array([0, 1]))}
    line = status_line(Results("study", status, {}, {}))
    assert line == "1 of 2 samples ok; 1 not assembled (sample 1)"
    whole = status_line(Results("study", status | drift, {}, {}))
    assert whole == line + "; largest closure error 1e-09 m"
