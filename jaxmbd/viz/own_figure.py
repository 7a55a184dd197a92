"""Figures that need no pyplot: no window, no global state, and shown as they are in notebooks."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

from jaxmbd.numerics.extras import optional

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
