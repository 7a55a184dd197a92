"""The demonstration's figure."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from jaxmbd.campaign import Results, optional, shown, spread
from jaxmbd.viz.fan import curve_fan, histogram

_FANS = (
    ("toe", "toe_range", "travel", "toe, in positive"),
    ("camber", "camber_bump", "travel", "camber"),
    ("track_change", "track_range", "travel", "track change, outward"),
    ("wheel_travel", "travel_end", "t", "wheel travel after release"),
)
_HISTOGRAMS = ("toe_range", "camber_bump", "track_range", "travel_end")
_PLACES = dict(left=0.04, right=0.995, bottom=0.08, top=0.905, wspace=0.24, hspace=0.33)
"""Margins; those that matplotlib can find itself cost it a third of the figure's time."""
_AXES = {"travel": ("wheel travel", "mm", 1e3), "t": ("time", "s", 1.0)}


def corner_figure(results: Results, path: str | os.PathLike[str] | None = None) -> Any:
    """Curves over wheel travel and over time as fans, with a histogram below each.

    Args:
        results: results of `jaxmbd.campaign.run_corner`.
        path: file to write, if any; its extension sets the format.

    Returns:
        the matplotlib figure.

    Raises:
        ImportError: matplotlib is not installed.
    """
    optional("matplotlib", "viz", "a figure")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.0, 5.6))
    FigureCanvasAgg(figure)  # independent of pyplot: no window, no global state
    grid = figure.subplots(2, len(_FANS), height_ratios=(1.7, 1.0), gridspec_kw=_PLACES)
    for ax, fan in zip(grid[0], _FANS, strict=True):
        _fan(ax, results, *fan)
    grid[0][0].legend(fontsize=8, frameon=False, loc="upper left")
    for ax, name in zip(grid[1], _HISTOGRAMS, strict=True):
        _histogram(ax, results, name)
    ok = int(np.sum(results.ok))
    figure.suptitle(
        f"{results.title}: {ok} of {len(results.ok)} samples", fontsize=11, fontweight="bold"
    )
    if path is not None:
        figure.savefig(path, dpi=110)
    return figure


def _fan(ax: Any, results: Results, name: str, scalar: str, axis: str, title: str) -> None:
    unit, factor = shown(results.variables[name].unit)
    text, x_unit, x_factor = _AXES[axis]
    worst = spread(results[scalar], results.ok, float(results.nominal[scalar])).sample
    curves, nominal = factor * results[name], factor * results.nominal[name]
    curve_fan(ax, x_factor * results[axis], curves, nominal, worst)
    ax.set_xlabel(f"{text} [{x_unit}]", fontsize=9)
    ax.set_title(f"{title} [{unit}]", fontsize=10)


def _histogram(ax: Any, results: Results, name: str) -> None:
    variable = results.variables[name]
    unit, factor = shown(variable.unit)
    s = spread(variable.values, results.ok, float(results.nominal[name]))
    histogram(ax, factor * variable.values, factor * s.nominal, factor * s.worst)
    ax.set_xlabel(f"{variable.text} [{unit}]", fontsize=9)
    ax.set_title(f"std {factor * s.std:.3g} {unit}, worst sample {s.sample}", fontsize=8)
