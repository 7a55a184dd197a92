"""Curves of suspension kinematics in the conventional layout, with wheel travel upwards."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmbd.suspension import Kinematics
from jaxmbd.viz.figures import DPI, LINE, WORST, own_figure, tidy

_COLOURS = (LINE, WORST, "#4c9f70", "#e0a030", "#7a5195", "#5f6b76")
_TRAVEL = (
    "toe",
    "camber",
    "half_track_change",
    "wheelbase_change",
    "caster",
    "virtual_caster",
    "kingpin_inclination",
    "roll_centre_height",
    "motion_ratio",
    "wheel_rate",
    "anti_dive",
    "anti_lift_braking",
    "anti_squat",
)
_STEER = ("left", "right", "ackermann_error", "turning_circle", "steer_angle", "camber", "caster")
_ACROSS = 4
_MOST = 8
_FAR = 5.0


def kinematics_figure(
    tables: Kinematics | Mapping[str, Kinematics],
    columns: Sequence[str] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Curves of one corner or of several designs over each other.

    Over wheel travel the layout is the conventional one: travel on the vertical axis, upwards, each
    characteristic on a horizontal one. Over steering, the rack's travel is on the horizontal axis.

    Args:
        tables: the result of `suspension.kinematics` or `suspension.steering`, or several by name,
            over the same axis.
        columns: names of the columns, one panel each; by default the usual ones, up to eight.
        path: file to write, if any; its extension sets the format.

    Returns:
        the matplotlib figure.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: tables of different axes, or without one of the columns.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.viz import kinematics_figure
        >>> table = mbd.suspension.kinematics(mbd.zoo.multi_link(), observe=["toe", "camber"])
        >>> len(kinematics_figure(table, ["toe", "camber"]).axes)
        2
    """
    named = {"": tables} if isinstance(tables, Kinematics) else dict(tables)
    names = _columns(named, columns)
    down = -(-len(names) // _ACROSS)
    width = 3.3 * min(len(names), _ACROSS)
    figure = own_figure(width, 3.4 * down, layout="constrained")
    grid = np.ravel(figure.subplots(down, min(len(names), _ACROSS), squeeze=False))
    for ax, name in zip(grid, names, strict=False):
        _panel(ax, named, name)
    for ax in grid[len(names) :]:
        ax.set_visible(False)
    if any(named):
        grid[0].legend(fontsize=8, frameon=False)
    if path is not None:
        figure.savefig(path, dpi=DPI)
    return figure


def _columns(named: Mapping[str, Kinematics], columns: Sequence[str] | None) -> list[str]:
    axes = sorted({table.axis for table in named.values()})
    if len(axes) != 1:
        raise ValueError(f"the tables are over different axes: {axes}; draw them one by one")
    shared = [
        n for n in next(iter(named.values())).columns if all(n in t.columns for t in named.values())
    ]
    if columns is None:
        usual = _TRAVEL if axes == ["travel"] else _STEER
        chosen = [n for n in usual if n in shared][:_MOST]
        return chosen or [n for n in shared if not n.endswith("_gradient")][:_MOST]
    if missing := [n for n in columns if n not in shared]:
        raise ValueError(
            f"no table has, or not all have, the columns {missing}; there are {shared}"
        )
    return list(columns)


def _panel(ax: Any, named: Mapping[str, Kinematics], name: str) -> None:
    travel = next(iter(named.values())).axis == "travel"
    unit = ""
    for k, (label, table) in enumerate(named.items()):
        values, unit = table.shown(name)
        place = 1e3 * table.x
        style = dict(color=_COLOURS[k % len(_COLOURS)], linewidth=1.8, label=label or None)
        ax.plot(*((values, place) if travel else (place, values)), **style)
    what = f"{name.replace('_', ' ')} [{unit or '–'}]"
    if travel:
        ax.set_xlabel(what, fontsize=9)
        ax.set_ylabel("wheel travel [mm]", fontsize=9)
        ax.axhline(0.0, color="#c3c9cf", linewidth=0.8, zorder=0)
    else:
        ax.set_xlabel("rack travel [mm]", fontsize=9)
        ax.set_ylabel(what, fontsize=9)
        _bounded(ax, named, name)
    tidy(ax)


def _bounded(ax: Any, named: Mapping[str, Kinematics], name: str) -> None:
    """A limit for the turning circles, which go to infinity straight ahead."""
    if name.startswith("turning_circle"):
        values = np.concatenate([table.shown(name)[0] for table in named.values()])
        ax.set_ylim(0.0, _FAR * np.nanmin(values))
