"""Fans and histograms: what is drawn is what the samples say."""

import numpy as np
import pytest

figure = pytest.importorskip("matplotlib.figure")
from jaxmbd import suspension  # noqa: E402
from jaxmbd.viz import ackermann_figure, curve_fan, histogram  # noqa: E402


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


def test_the_ackermann_figure_has_both_turns_of_each_table():
    """Wheels by Ackermann lie on its line, at a share of 100 per cent."""
    inner = np.deg2rad([30.0, 15.0, 0.0, 15.0, 30.0])
    outer = np.arctan(1.0 / (1.0 / np.tan(np.maximum(inner, 1e-12)) + 0.6))
    right = np.arange(5) < 2  # turns to the right come first
    nan = np.where(inner > 0.0, 1.0, np.nan)
    columns = {
        "left": np.where(right, -outer, inner), "right": np.where(right, -inner, outer),
        "inner": inner, "outer": outer, "ackermann_outer": outer, "ackermann_share": nan,
        "turning_circle": np.where(inner > 0.0, 5.4 / np.sin(np.maximum(outer, 1e-9)), np.inf),
    }  # fmt: skip
    table = suspension.Steering("steer", np.linspace(-0.04, 0.04, 5), columns, {})
    angles, share, circle = ackermann_figure({"a": table, "b": table}).axes
    for lines, label in ((share.lines, "share"), (circle.lines, "circle")):
        assert len(lines) == 4, label
    for line in share.lines:
        np.testing.assert_allclose(line.get_xdata(), [15.0, 30.0], rtol=1e-12)
        np.testing.assert_allclose(line.get_ydata(), 100.0)
    np.testing.assert_allclose(angles.lines[0].get_ydata(), np.rad2deg(outer[3:]), rtol=1e-12)
    np.testing.assert_allclose(circle.lines[0].get_ydata(), 5.4 / np.sin(outer[3:]), rtol=1e-12)
    assert angles.lines[0].get_linestyle() != angles.lines[4].get_linestyle()
    straight = {n: x[2:3] for n, x in columns.items()}
    with pytest.raises(ValueError, match="straight ahead"):
        ackermann_figure(suspension.Steering("steer", np.zeros(1), straight, {}))
    with pytest.raises(ValueError, match="suspension.steering"):
        ackermann_figure(suspension.Steering("steer", np.zeros(1), {"left": np.zeros(1)}, {}))
