"""The demonstration's figure."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from jaxmbd.analysis import Status
from jaxmbd.campaign import shown
from jaxmbd.viz.figures import DPI, curve_fan, histogram, own_figure

_FANS = (
    ("toe", "toe_rest", "travel", "toe, in positive"),
    ("camber", "camber_bump", "travel", "camber"),
    ("track_change", "track_range", "travel", "track change, outward"),
    ("wheel_travel", "travel_end", "t", "wheel travel after release"),
)
_HISTOGRAMS = {
    "toe_rest": "toe at rest",
    "camber_bump": "camber, wheel up",
    "track_range": "range of track change",
    "travel_end": "wheel travel at the end",
}
_PLACES = dict(left=0.04, right=0.995, bottom=0.08, top=0.905, wspace=0.24, hspace=0.33)
_ABOVE = dict(y=1.0)
_BELOW_FAN, _BELOW_HISTOGRAM, _BESIDE = (0.5, -0.106), (0.5, -0.18), (-0.141, 0.5)
"""Places of the axes, of titles above them and of labels; those that matplotlib can find itself
cost it half of the figure's time."""
_TICKS = (5, 4)
"""Intervals of an axis at most, of fans and of histograms; each tick takes a millisecond."""
_AXES = {"travel": ("wheel travel", "mm", 1e3), "t": ("time", "s", 1.0)}


def corner_figure(results: Any, path: str | os.PathLike[str] | None = None) -> Any:
    """Curves over wheel travel and over time as fans, with a histogram below each.

    Args:
        results: the dataset of `jaxmbd.campaign.corner_study`, or its store's arrays.
        path: file to write, if any; its extension sets the format.

    Returns:
        the matplotlib figure.

    Raises:
        ImportError: matplotlib is not installed.

    Example:
        >>> import tempfile
        >>> from jaxmbd.campaign import corner_study
        >>> from jaxmbd.viz import corner_figure
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results = corner_study(8, scatter="design").run(folder + "/s.zarr", progress=False)
        ...     len(corner_figure(results).axes) > 3
        True
    """
    figure = own_figure(13.0, 5.6)
    grid = figure.subplots(2, len(_FANS), height_ratios=(1.7, 1.0), gridspec_kw=_PLACES)
    for row, intervals in zip(grid, _TICKS, strict=True):
        for ax in row:
            ax.locator_params(nbins=intervals)
    for ax, fan in zip(grid[0], _FANS, strict=True):
        _fan(ax, results, *fan)
    grid[0][2].legend(fontsize=8, frameon=False, loc="lower left")
    for ax, name in zip(grid[1], _HISTOGRAMS, strict=True):
        _histogram(ax, results, name)
    status = np.asarray(results["status"])
    title = f"{results.attrs['title']}: {np.sum(status == Status.OK)} of {status.size} samples"
    figure.suptitle(title, fontsize=11, fontweight="bold")
    if path is not None:
        figure.savefig(path, dpi=DPI)
    return figure


def _fan(ax: Any, results: Any, name: str, scalar: str, axis: str, title: str) -> None:
    unit, factor = shown(results[name].attrs["units"])
    text, x_unit, x_factor = _AXES[axis]
    curves, nominal = np.asarray(results[name]), np.asarray(results[f"nominal.{name}"])
    x = x_factor * np.asarray(results[axis])
    curve_fan(ax, x, factor * curves, factor * nominal, _farthest(results, scalar))
    ax.set_xlabel(f"{text} [{x_unit}]", fontsize=9)
    ax.xaxis.set_label_coords(*_BELOW_FAN)
    ax.set_title(f"{title} [{unit}]", fontsize=10, **_ABOVE)


def _histogram(ax: Any, results: Any, name: str) -> None:
    about = results[name].attrs
    unit, factor = shown(about["units"])
    values, far = factor * np.asarray(results[name]), _farthest(results, name)
    worst = values[far] if far is not None else np.nan
    histogram(ax, values, factor * float(results[f"nominal.{name}"]), worst)
    ax.set_xlabel(f"{_HISTOGRAMS[name]} [{unit}]", fontsize=9)
    ax.xaxis.set_label_coords(*_BELOW_HISTOGRAM)
    ax.yaxis.set_label_coords(*_BESIDE)
    count = int(np.sum(np.isfinite(values)))
    std = np.nanstd(values, ddof=1) if count > 1 else np.nan
    of = "" if count == values.size else f" of {count}"
    ax.set_title(f"std{of} {std:.3g} {unit}, farthest sample {far}", fontsize=8, **_ABOVE)


def _farthest(results: Any, name: str) -> int | None:
    """The sample whose output is farthest from the nominal one."""
    away = np.abs(np.asarray(results[name]) - float(results[f"nominal.{name}"]))
    return None if np.all(np.isnan(away)) else int(np.nanargmax(away))
