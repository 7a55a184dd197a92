"""Signs of topology diagrams: the ground, letters of joints, squares of rows, widths of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxmbd.viz.fan import BAND, GREY, WORST

RING = 0.13
"""Radius of the circle of a joint's letter [in]."""
SQUARE = 0.085
"""Side of a row's square [in]."""


def extent(text: str, size: float, *, bold: bool = False) -> float:
    """Width of a text [in]."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(weight="bold" if bold else "normal")
    return TextPath((0, 0), text, size=size, prop=font).get_extents().width / 72.0


def hatched(ax: Any, left: float, right: float, y: float, *, up: bool) -> None:
    """The sign of the ground: a line at y, hatched on the other side."""
    from matplotlib.patches import Rectangle

    low = y if up else y - 0.1
    ax.add_patch(Rectangle((left, low), right - left, 0.1, hatch="//////", facecolor="none",
                           edgecolor=GREY, linewidth=0.0, zorder=1))  # fmt: skip
    ax.plot([left, right], [y, y], color=GREY, linewidth=1.5, zorder=1)


def ring(ax: Any, x: float, y: float, text: str, colour: str) -> None:
    """The letter of a joint type, in a circle."""
    from matplotlib.patches import Circle

    ax.add_patch(Circle((x, y), RING, facecolor=colour, edgecolor="white", lw=1.0, zorder=4))
    ax.text(x, y, text, color="white", fontsize=8 if len(text) == 1 else 6.5, fontweight="bold",
            ha="center", va="center_baseline", zorder=5)  # fmt: skip


def squares(ax: Any, x: float, y: float, rows: Sequence[bool]) -> None:
    """One square for each row, red and crossed if it is redundant."""
    from matplotlib.patches import Rectangle

    step = SQUARE + 0.04
    left = x - step * len(rows) / 2 + 0.02
    for k, redundant in enumerate(rows):
        at, colour = (left + step * k, y - SQUARE / 2), WORST if redundant else BAND
        face = "none" if redundant else colour
        look: dict[str, Any] = dict(facecolor=face, edgecolor=colour, lw=0.9, zorder=3)
        ax.add_patch(Rectangle(at, SQUARE, SQUARE, **look))
        if redundant:
            (u, v), s = at, SQUARE
            ax.plot([u, u + s], [v, v + s], color=colour, linewidth=0.9, zorder=3)
            ax.plot([u, u + s], [v + s, v], color=colour, linewidth=0.9, zorder=3)
