"""A study's dataset as arrays: by the names of the study, at coordinates, reduced."""

import numpy as np
import pytest

from jaxmbd.statistics import (
    ValueCount,
    computed,
    input_values,
    nominal_value,
    output_names,
    output_values,
    sobol_of,
    succeeded,
    value_counts,
)

xarray = pytest.importorskip("xarray")


@pytest.fixture(scope="module")
def dataset():
    def about(role, path):
        return {"role": role, "path": path}

    toe = np.array([[0.0, 1.0, -2.0], [5.0, 4.0, 3.0]])
    return xarray.Dataset(
        {
            "points.p": (("sample", "axis"), np.eye(2, 3), about("input", "points/p")),
            "left.toe": (("sample", "travel"), toe, about("output", "left/toe")),
            "mass": ("sample", [1.0, 2.0], about("output", "mass")),
            "status": ("sample", [0, 3], about("status", "status")),
            "nominal.left.toe": ("travel", [1.0, 2.0, 3.0], about("nominal", "left/toe")),
        },
        {"travel": [-0.1, 0.0, 0.1]},
        {"study": {"design": {"design": "monte_carlo"}}},
    )


def test_names_are_those_of_the_study(dataset):
    assert output_names(dataset) == ["left/toe", "mass"]
    assert list(input_values(dataset)) == ["points/p"]
    assert succeeded(dataset).tolist() == [True, False]
    for name in ("left/toe", "left.toe"):
        assert output_values(dataset, name, at={"travel": 0.04}).tolist() == [1.0, 4.0]


@pytest.mark.parametrize(
    ("reduce", "expected", "nominal"),
    [
        ("max", [1.0, 5.0], 3.0),
        ("min", [-2.0, 3.0], 1.0),
        ("last", [-2.0, 3.0], 3.0),
        ("range", [3.0, 2.0], 2.0),
        ("mean", [-1.0 / 3.0, 4.0], 2.0),
    ],
)
def test_curves_are_reduced(dataset, reduce, expected, nominal):
    np.testing.assert_allclose(output_values(dataset, "left/toe", reduce=reduce), expected)
    assert nominal_value(dataset, "left/toe", reduce=reduce) == nominal


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda d: output_values(d, "left/to"), "did you mean 'left/toe'"),
        (lambda d: output_values(d, "left/toe"), "is over travel: say where"),
        (lambda d: output_values(d, "left/toe", at={"travl": 0.0}), "did you mean 'travel'"),
        (lambda d: sobol_of(d, "mass"), "design Saltelli; this has monte_carlo"),
    ],
)
def test_what_is_not_there_is_said(dataset, ask, says):
    with pytest.raises(ValueError, match=says):
        ask(dataset)


def test_samples_with_a_value_are_counted_for_each_output():
    nan, about = np.nan, {"role": "output"}
    results = xarray.Dataset(
        {
            "place": ("sample", [1.0, nan, nan, nan, 5.0, nan], about),
            "curve": (("sample", "k"), np.where(np.eye(6, 2, -1) > 0.0, nan, 1.0), about),
            "why": ("sample", np.full(6, nan), {"role": "reason"}),
            "status": ("sample", [0, 0, 3, -1, 0, 0], {"role": "status"}),
        }
    )
    assert computed(results).tolist() == [True, True, True, False, True, True]
    found = value_counts(results)
    assert found == {"place": ValueCount(5, 2, 1, 2), "curve": ValueCount(5, 3, 1, 1)}
    assert all(x.count + x.failed + x.missing == x.samples for x in found.values())


def test_a_place_beyond_the_axis_is_refused():
    toe = (("sample", "travel"), np.zeros((3, 2)), {"role": "output"})
    results = xarray.Dataset({"toe": toe}, {"travel": ("travel", [-0.06, 0.06], {"units": "m"})})
    with pytest.raises(ValueError, match="the axis reaches from -0.06 to 0.06 m"):
        output_values(results, "toe", at={"travel": 60.0})
