"""Figures by matplotlib: the spread of many samples as a fan of curves, or a histogram.

They need no pyplot: no window, no global state, and shown as they are in notebooks.
"""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import numpy as np

from jaxmbd.plumbing import optional

DPI = 110


def own_figure(width: float, height: float, **options: Any) -> Any:
    """A matplotlib figure with a canvas of its own.

    Args:
        width: of the page [in].
        height: of the page [in].
        **options: of matplotlib's Figure.

    Raises:
        ImportError: matplotlib is not installed.
    """
    optional("matplotlib", "viz", "a figure")
    return _class()(figsize=(width, height), **options)


@cache
def _class() -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class OwnFigure(Figure):
        """A figure that a notebook shows where it is the last value of a cell."""

        def __init__(self, *args: Any, **options: Any):
            super().__init__(*args, **options)
            FigureCanvasAgg(self)

        def _repr_png_(self) -> bytes:
            page = io.BytesIO()
            self.savefig(page, format="png", dpi=DPI)
            return page.getvalue()

    return OwnFigure


BAND, LINE, WORST, GREY = "#4c78a8", "#1f3d5c", "#d1495b", "#5f6b76"


def curve_fan(ax: Any, x: Any, curves: Any, nominal: Any, worst: int | None = None) -> None:
    """The range of all curves, its middle 90 %, the nominal curve and that of one sample.

    Args:
        ax: matplotlib axes.
        x: abscissa (n,).
        curves: one per sample (samples, n); rows with NaN are omitted.
        nominal: nominal curve (n,).
        worst: index of a sample to highlight.

    Example:
        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from jaxmbd.viz import curve_fan
        >>> ax = Figure().subplots()
        >>> curves = np.random.default_rng(0).normal(size=(50, 2))
        >>> curve_fan(ax, [0.0, 1.0], curves, [0.0, 0.0], worst=3)
        >>> len(ax.lines)
        2
    """
    curves = np.asarray(curves)
    good = curves[np.all(np.isfinite(curves), axis=1)]
    if len(good):
        low, high = np.percentile(good, [5.0, 95.0], axis=0)
        every = dict(color=BAND, linewidth=0)
        ax.fill_between(x, good.min(axis=0), good.max(axis=0), alpha=0.22, label="all", **every)
        ax.fill_between(x, low, high, alpha=0.45, label="middle 90 %", **every)
    if worst is not None and worst >= 0:
        ax.plot(x, curves[worst], color=WORST, linewidth=1.4, label="worst sample")
    ax.plot(x, nominal, color=LINE, linewidth=1.8, label="as published")
    tidy(ax)


def histogram(ax: Any, values: Any, nominal: float, worst: float) -> None:
    """A histogram with the nominal and the worst value marked.

    Args:
        ax: matplotlib axes.
        values: (samples,); NaN is omitted.
        nominal: nominal value.
        worst: worst value.

    Example:
        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from jaxmbd.viz import histogram
        >>> ax = Figure().subplots()
        >>> histogram(ax, np.arange(50.0), nominal=25.0, worst=49.0)
        >>> len(ax.patches), len(ax.lines)
        (1, 2)
    """
    values = np.asarray(values)
    values = values[np.isfinite(values)]
    bins = min(40, max(5, int(np.sqrt(values.size))))
    ax.stairs(*np.histogram(values, bins), fill=True, color=BAND, alpha=0.55)
    ax.axvline(nominal, color=LINE, linewidth=1.8)
    ax.axvline(worst, color=WORST, linewidth=1.4)
    ax.set_ylabel("samples")
    tidy(ax)


def tidy(ax: Any) -> None:
    """Show two spines only, and a light grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(colors=GREY, labelsize=8)
    ax.grid(True, color="#e3e7eb", linewidth=0.6)
    ax.set_axisbelow(True)
