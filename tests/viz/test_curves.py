"""Fans and histograms: what is drawn is what the samples say."""

import numpy as np
import pytest

figure = pytest.importorskip("matplotlib.figure")
from jaxmbd.viz import curve_fan, histogram  # noqa: E402


def test_a_fan_has_the_range_and_the_middle_of_whole_curves():
    x, curves = np.linspace(0.0, 1.0, 5), np.random.default_rng(0).normal(size=(200, 5))
    curves[3, 2] = np.nan
    ax = figure.Figure().subplots()
    curve_fan(ax, x, curves, np.zeros(5), worst=7)
    whole = np.delete(curves, 3, axis=0)
    ends = [(whole.min(axis=0), whole.max(axis=0)), np.percentile(whole, [5.0, 95.0], axis=0)]
    for band, (low, high) in zip(ax.collections, ends, strict=True):
        drawn = band.get_paths()[0].vertices
        for at, bottom, top in zip(x, low, high, strict=True):
            here = drawn[np.isclose(drawn[:, 0], at), 1]
            assert here.min() == pytest.approx(bottom) and here.max() == pytest.approx(top)
    worst, nominal = (line.get_ydata() for line in ax.lines)
    np.testing.assert_array_equal(worst, curves[7])
    np.testing.assert_array_equal(nominal, np.zeros(5))


def test_a_histogram_counts_all_finite_values():
    values = np.random.default_rng(0).normal(size=100)
    values[:4] = np.nan
    ax = figure.Figure().subplots()
    histogram(ax, values, nominal=0.0, worst=2.5)
    [bars] = ax.patches
    counts, edges, _ = bars.get_data()
    assert counts.sum() == 96 and edges[[0, -1]] == pytest.approx(
        [np.nanmin(values), np.nanmax(values)]
    )
    assert [line.get_xdata()[0] for line in ax.lines] == [0.0, 2.5]
