"""Curves by matplotlib: spreads of many samples, suspension kinematics, the demonstration's figure.

They need no pyplot: no window, no global state, and notebooks show them.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbd.analysis import Status
from jaxmbd.plumbing import optional
from jaxmbd.variables import shown

if TYPE_CHECKING:
    from jaxmbd.suspension import Kinematics

DPI = 110
BAND, LINE, WORST, GREY = "#4c78a8", "#1f3d5c", "#d1495b", "#5f6b76"


def own_figure(width: float, height: float, **options: Any) -> Any:
    """A matplotlib figure of a width and height [in] with a canvas of its own."""
    make = optional("matplotlib.figure", "viz", "a figure").Figure
    figure = make(figsize=(width, height), **options)
    optional("matplotlib.backends.backend_agg", "viz", "a figure").FigureCanvasAgg(figure)
    figure._repr_png_ = partial(_png, figure)  # where it is the last value of a notebook's cell
    return figure


def _png(figure: Any) -> bytes:
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=DPI)
    return page.getvalue()


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


# Suspension kinematics

_DASHES = ("solid", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))  # where curves coincide
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
    named = dict(tables) if isinstance(tables, Mapping) else {"": tables}
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


def ackermann_figure(
    tables: Kinematics | Mapping[str, Kinematics], path: str | os.PathLike[str] | None = None
) -> Any:
    """Steer angles of both wheels beside Ackermann's, the share of it, and the turning circle.

    The outer wheel's angle is over the inner one's, with Ackermann geometry (dashed) and parallel
    wheels (dotted); the share [%] over the inner angle, and the turning circle [m] over it, kerb to
    kerb. Turns to the right are the second branch of each curve.

    Args:
        tables: the result of `suspension.steering`, or several by name.
        path: file to write, if any; its extension sets the format.

    Returns:
        the matplotlib figure.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: a table without these columns.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.viz import ackermann_figure
        >>> table = mbd.suspension.steering(mbd.zoo.double_wishbone_kinematic())
        >>> [ax.get_ylabel() for ax in ackermann_figure(table).axes]
        ['outer wheel [deg]', 'Ackermann share [%]', 'turning circle [m]']
    """
    named = dict(tables) if isinstance(tables, Mapping) else {"": tables}
    needed = ("inner", "outer", "ackermann_outer", "ackermann_share", "turning_circle")
    if lost := [n for n in needed if any(n not in t.columns for t in named.values())]:
        raise ValueError(
            f"no table has, or not all have, {lost}; give those of suspension.steering"
        )
    figure = own_figure(10.5, 3.6, layout="constrained")
    angles, share, circle = figure.subplots(1, 3)
    for k, (label, table) in enumerate(named.items()):
        colour = _COLOURS[k % len(_COLOURS)]
        look = dict(color=colour, linewidth=1.8, linestyle=_DASHES[k % len(_DASHES)])
        for turn, own in enumerate(_turns(table)):
            inner, outer, ideal, part, diameter = (own[n] for n in needed)
            angles.plot(inner, outer, **look, label=(label or "as drawn") if not turn else None)
            thin = dict(color=colour, linewidth=1.0, linestyle=(0, (5, 3)))
            angles.plot(inner, ideal, **thin, label="Ackermann" if not (turn or k) else None)
            share.plot(inner, 100.0 * part, **look)
            circle.plot(inner, diameter, **look)
    ends = [0.0, float(max(np.nanmax(own["inner"]) for t in named.values() for own in _turns(t)))]
    angles.plot(ends, ends, color=GREY, linewidth=1.0, linestyle=(0, (1, 2)), label="parallel")
    least = [np.nanmin(own["turning_circle"]) for t in named.values() for own in _turns(t)]
    circle.set_ylim(0.0, _FAR * min(least))
    names = ("outer wheel [deg]", "Ackermann share [%]", "turning circle [m]")
    for ax, what in zip((angles, share, circle), names, strict=True):
        ax.set_xlabel("inner wheel [deg]", fontsize=9)
        ax.set_ylabel(what, fontsize=9)
        tidy(ax)
    angles.legend(fontsize=8, frameon=False)
    if path is not None:
        figure.savefig(path, dpi=DPI)
    return figure


def _turns(table: Kinematics) -> list[dict[str, np.ndarray]]:
    """Columns of turns to the left and to the right, by the inner angle [deg], lengths in [m]."""
    mean = table["left"] + table["right"]
    found = []
    for side in (mean > 0.0, mean < 0.0):
        rows = np.flatnonzero(side & np.isfinite(table["ackermann_share"]))
        rows = rows[np.argsort(table["inner"][rows])]
        own = {n: y[rows] for n, y in table.columns.items()}
        for n in ("inner", "outer", "ackermann_outer"):
            own[n] = np.rad2deg(own[n])
        if len(rows):
            found.append(own)
    if not found:
        raise ValueError("the wheels run straight ahead at all places: give steer= a range")
    return found


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
        place = shown(table.unit)[1] * table.x
        look = dict(color=_COLOURS[k % len(_COLOURS)], linestyle=_DASHES[k % len(_DASHES)])
        style = look | dict(linewidth=1.8, label=label or None)
        ax.plot(*((values, place) if travel else (place, values)), **style)
    what = f"{name.replace('_', ' ')} [{unit or '–'}]"
    if travel:
        ax.set_xlabel(what, fontsize=9)
        ax.set_ylabel("wheel travel [mm]", fontsize=9)
        ax.axhline(0.0, color="#c3c9cf", linewidth=0.8, zorder=0)
    else:
        first = next(iter(named.values()))
        along = "rack travel" if first.axis == "steer" else first.axis
        ax.set_xlabel(f"{along} [{shown(first.unit)[0]}]", fontsize=9)
        ax.set_ylabel(what, fontsize=9)
        _bounded(ax, named, name)
    tidy(ax)


def _bounded(ax: Any, named: Mapping[str, Kinematics], name: str) -> None:
    """A limit for the turning circles, which go to infinity straight ahead."""
    if name.startswith("turning_circle"):
        values = np.concatenate([table.shown(name)[0] for table in named.values()])
        ax.set_ylim(0.0, _FAR * np.nanmin(values))


# The demonstration

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
"""Of the axes: where matplotlib is to find them the figure takes two thirds longer."""
_AXES = {"travel": ("wheel travel", "mm", 1e3), "t": ("time", "s", 1.0)}


def corner_figure(results: Any, path: str | os.PathLike[str] | None = None) -> Any:
    """Curves over wheel travel and over time as fans, with a histogram below each.

    Args:
        results: the dataset of `jaxmbd.campaign.corner_study`.
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
    ax.set_title(f"{title} [{unit}]", fontsize=10)


def _histogram(ax: Any, results: Any, name: str) -> None:
    about = results[name].attrs
    unit, factor = shown(about["units"])
    values, far = factor * np.asarray(results[name]), _farthest(results, name)
    worst = values[far] if far is not None else np.nan
    histogram(ax, values, factor * float(results[f"nominal.{name}"]), worst)
    ax.set_xlabel(f"{_HISTOGRAMS[name]} [{unit}]", fontsize=9)
    count = int(np.sum(np.isfinite(values)))
    std = np.nanstd(values, ddof=1) if count > 1 else np.nan
    of = "" if count == values.size else f" of {count}"
    ax.set_title(f"std{of} {std:.3g} {unit}, farthest sample {far}", fontsize=8)


def _farthest(results: Any, name: str) -> int | None:
    """The sample whose output is farthest from the nominal one."""
    away = np.abs(np.asarray(results[name]) - float(results[f"nominal.{name}"]))
    return None if np.all(np.isnan(away)) else int(np.nanargmax(away))
