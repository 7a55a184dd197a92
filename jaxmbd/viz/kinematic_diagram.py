"""Kinematic diagrams as figures for reports: links, joint symbols, names, paths of points."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jaxmbd.io import Imported
from jaxmbd.kinematics import poses
from jaxmbd.model import Mechanism, in_space
from jaxmbd.plumbing import optional
from jaxmbd.viz.course import checked_traces, paths_along, tracks
from jaxmbd.viz.curves import own_figure
from jaxmbd.viz.glyphs import Wheel
from jaxmbd.viz.plane_drawing import Circle, Drawing, Line, Name, draw
from jaxmbd.viz.plane_view import view_on
from jaxmbd.viz.scene import BODIES, round_number

PIN = 0.055
"""Radius of a pin on paper [in]."""
_ROOM = 0.45
"""Around the drawing [in]."""
_LEAST = (2.2, 1.4)
"""Width and height of a figure [in]."""
_INK, _PAPER, _PALE = "#1d242c", "#ffffff", "#8b96a1"
_PATHS = ("#1a73bf", "#c2337a", "#2f8f5b", "#b86a16", "#6a4fb3")
_SIZES = {"link": 9.0, "joint": 7.5, "point": 7.5}
"""Of letters [pt]."""
_LETTER = 0.58
"""Width of a letter over its height."""


def plane_drawing(
    model: Mechanism | Imported,
    solution: Any = None,
    *,
    plane: str | None = None,
    frame: int = 0,
    traces: Iterable[tuple[str, Any]] = (),
    along: Any = None,
    wheels: Iterable[Wheel] = (),
) -> Drawing:
    """The diagram that `plane_figure` and `write_dxf` draw, which explain the arguments."""
    mech = model.mechanism if isinstance(model, Imported) else model
    view, wheels, traces = view_on(mech, plane), tuple(wheels), checked_traces(mech, traces)
    track = tracks(mech, solution)[0]
    count = len(track.q)
    if not -count <= frame < count:
        raise ValueError(f"frame={frame}, but the motion has {count} places: 0 to {count - 1}, −1")
    here = poses(mech, track.q[frame])
    paths = []
    if traces:
        q = track.q if along is None else tracks(mech, along)[0].q
        if len(q) < 2:
            raise ValueError("traces are paths along a motion: give one, as solution or as along")
        found = zip(traces, paths_along(mech, q, traces), strict=True)
        paths = [(body, mech.point(point), path) for (body, point), path in found]
    return draw(in_space(mech), here, view, wheels=wheels, traces=paths)


def plane_figure(
    model: Mechanism | Imported,
    solution: Any = None,
    path: str | os.PathLike[str] | None = None,
    *,
    plane: str | None = None,
    names: bool | Sequence[str] = True,
    traces: Iterable[tuple[str, Any]] = (),
    along: Any = None,
    frame: int = 0,
    wheels: Iterable[Wheel] = (),
) -> Any:
    """A kinematic diagram for a report: links, symbols of joints, names, paths of points.

    Links are bars and plates through their joints; pins are circles, fixed ones on hatched ground,
    sliders blocks on a guide, gears and pulleys pitch circles, bevel gears cones, worms cylinders,
    cams their curves, springs zigzags, dampers dashpots. What turns about an axis in the plane of
    the picture is seen from its side.
    A `Gear` with a negative ratio is drawn as external gears, with a positive one as a belt.

    Args:
        model: a mechanism or an imported model with concrete numbers.
        solution: its coordinates or its motion, as of `animation`; by default the assembled pose.
        path: file to write, if any; its extension sets the format: .svg, .pdf or .png.
        plane: the axes to the right and upwards, as "xz", or "-yz" for y to the left; by default
            the plane in which the mechanism moves, gravity downwards.
        names: whether names of links, joints and markers are written, or which of the kinds
            "link", "joint" and "point".
        traces: pairs (body, point) whose paths along the motion are drawn.
        along: the motion of these paths, if `solution` is not.
        frame: which place of the motion is drawn; 0 is the first, -1 the last.
        wheels: wheels (`Wheel`, `corner_wheel`) beside those of tyres.

    Returns:
        the matplotlib figure, in the scale that its bar shows.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: the mechanism moves in no plane and none is named; as of `animation`; there is
            no such frame, no motion for traces, or no such kind of names.

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> from jaxmbd.viz import plane_figure
        >>> mech = mbd.zoo.slider_crank()
        >>> figure = plane_figure(mech, mbd.assemble(mech, known={"O": 0.8}))
        >>> [text.get_text() for text in figure.axes[0].texts][:3]
        ['crank', 'rod', 'slider']
    """
    kinds = _kinds(names)
    drawing = plane_drawing(
        model, solution, plane=plane, frame=frame, traces=traces, along=along, wheels=wheels
    )
    scale = drawing.pin / PIN  # [m/in]
    low, high = drawing.bounds()
    low, high = low - _ROOM * scale - [0.0, 0.35 * scale], high + _ROOM * scale
    short = np.maximum(np.array(_LEAST) * scale - (high - low), 0.0)
    low, high = low - 0.5 * short, high + 0.5 * short
    figure = own_figure(*((high - low) / scale))
    ax = figure.add_axes((0, 0, 1, 1), xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.set_axis_off()
    _paint(ax, drawing)
    written = [name for name in drawing.names if name.kind in kinds]
    for name, at in zip(written, placed(written, drawing, scale), strict=True):
        style: dict[str, Any] = {"fontsize": _SIZES[name.kind], "zorder": 9}
        style |= {"style": "italic"} if name.kind == "link" else {"color": "#5a6570"}
        ax.text(*at, name.text, ha="center", va="center", **style)
    _scale_bar(ax, drawing, low, scale)
    if path is not None:
        figure.savefig(path, dpi=200)
    return figure


def _kinds(names: bool | Sequence[str]) -> tuple[str, ...]:
    kinds = tuple(_SIZES) if names is True else () if names is False else names
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if wrong := [x for x in kinds if x not in _SIZES]:
        raise ValueError(f"names={wrong}: give True, False, or some of {list(_SIZES)}")
    return kinds


def _paint(ax: Any, drawing: Drawing) -> None:
    patches = optional("matplotlib.patches", "viz", "a figure")
    bodies = list(dict.fromkeys(x.layer for x in drawing.parts if x.style != "trace"))
    bodies = [x for x in bodies if x != "ground"]
    paths = [x for x in drawing.parts if x.style == "trace"]
    for part in drawing.parts:
        tint = BODIES[bodies.index(part.layer) % len(BODIES)] if part.layer in bodies else _INK
        look = _look(part.style, tint)
        if part.style == "trace":
            look["edgecolor"] = _PATHS[[x is part for x in paths].index(True) % len(_PATHS)]
        if isinstance(part, Circle):
            patch = patches.Circle(tuple(part.centre), part.radius, **look)
        else:
            patch = patches.Polygon(part.points, closed=part.closed, **look)
        ax.add_patch(patch)


def _look(style: str, tint: Any) -> dict[str, Any]:
    """Matplotlib's properties of a style, in the colour of a body."""
    line: dict[str, Any] = dict(fill=False, edgecolor=_INK, capstyle="round", joinstyle="round")
    return (
        line
        | {
            "plate": dict(
                fill=True,
                facecolor=(*tint[:3], 0.3) if not isinstance(tint, str) else "#dfe4e8",
                edgecolor=tint,
                linewidth=1.6,
                zorder=2,
            ),
            "link": dict(edgecolor=tint, linewidth=3.4, zorder=3),
            "pitch": dict(edgecolor=tint, linewidth=1.1, linestyle=(0, (8, 2, 1.5, 2)), zorder=2),
            "line": dict(linewidth=1.1, zorder=4),
            "thin": dict(linewidth=0.7, edgecolor="#55606b", zorder=1),
            "symbol": dict(fill=True, facecolor=_PAPER, linewidth=1.1, zorder=5),
            "solid": dict(fill=True, facecolor=_INK, linewidth=0.5, zorder=6),
            "trace": dict(linewidth=1.3, zorder=2.5),
        }[style]
    )


def _scale_bar(ax: Any, drawing: Drawing, low: np.ndarray, scale: float) -> None:
    """A length to compare with, and the names of the axes."""
    length = round_number(1.0 * scale)
    start = low + np.array([0.15, 0.16]) * scale
    ax.plot(start[0] + np.array([0.0, length]), [start[1]] * 2, color=_PALE, linewidth=2.0)
    text = f"{1e3 * length:g} mm" if length < 1.0 else f"{length:g} m"
    right, up = drawing.view.names()
    text += f"   {right} →  {up} ↑" if right and up else ""
    at = (start[0], start[1] + 0.05 * scale)
    ax.text(*at, text, color=_PALE, fontsize=7, va="bottom")


# Names

_WAYS = np.array([[np.cos(u), np.sin(u)] for u in np.pi * np.arange(16) / 8.0])
_REACH = (0.1, 0.17, 0.27, 0.4)
"""Gaps between a name's box and its place that are tried [in]."""


def placed(names: Sequence[Name], drawing: Drawing, scale: float) -> list[np.ndarray]:
    """Centres (2,) [m] of names where they cover the drawing and each other least.

    Args:
        names: what is written.
        drawing: what should not be covered.
        scale: of the figure [m/in].
    """
    ink, weight = _ink(drawing, 0.5 * drawing.pin)
    boxes: list[tuple[np.ndarray, np.ndarray]] = []
    for name in names:
        size = _SIZES[name.kind] / 72.0 * scale
        half = 0.5 * size * np.array([_LETTER * len(name.text), 1.1])
        gaps = np.repeat(np.array(_REACH) * scale, len(_WAYS))
        ways = np.tile(_WAYS, (len(_REACH), 1))
        # The nearest point of the box is a gap away from the place.
        centres = name.near + ways * (gaps[:, None] + np.abs(ways @ np.diag(half)).sum(1)[:, None])
        cost = 6.0 * gaps / scale
        inside = np.all(np.abs(centres[:, None] - ink) < half + 0.02 * scale, axis=2)
        cost += 0.5 * inside @ weight
        for centre, other in boxes:
            apart = np.abs(centres - centre) - half - other
            cost += 30.0 * np.all(apart < 0.02 * scale, axis=1)
        best = centres[int(np.argmin(cost))]
        boxes.append((best, half))
    return [centre for centre, _ in boxes]


def _ink(drawing: Drawing, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 2) [m] along all that is drawn, and how bad it is to cover each."""
    points, weights = [np.zeros((0, 2))], [np.zeros(0)]
    angle = np.linspace(0.0, 2.0 * np.pi, 25)
    for part in drawing.parts:
        if isinstance(part, Line):
            corners = part.points if not part.closed else np.vstack([part.points, part.points[:1]])
        else:
            rim = np.stack([np.cos(angle), np.sin(angle)], axis=1)
            corners = part.centre + part.radius * rim
        length = np.linalg.norm(np.diff(corners, axis=0), axis=1)
        s = np.concatenate([[0.0], np.cumsum(length)])
        t = np.linspace(0.0, s[-1], max(2, int(s[-1] / step)))
        points.append(np.stack([np.interp(t, s, x) for x in corners.T], axis=1))
        weights.append(np.full(len(t), 0.4 if part.style in ("thin", "pitch") else 1.0))
    return np.concatenate(points), np.concatenate(weights)
