"""What the explorer's page is made of in viser: charts, sliders, the picture with its arrows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fnmatch import fnmatchcase
from html import escape
from typing import Any

import jax
import numpy as np

from jaxmbd.graph import neutral
from jaxmbd.kinematics import poses
from jaxmbd.model import in_space
from jaxmbd.suspension import number
from jaxmbd.variables import shown
from jaxmbd.viz.curves import LINE, WORST
from jaxmbd.viz.explorer.exploration import Exploration
from jaxmbd.viz.explorer.live_curves import GOALS
from jaxmbd.viz.scene import Scene, point_bodies, round_number
from jaxmbd.viz.viser_scene import ViserScene, set_stage

GIVEN = "#a8b1ba"
KEPT = ("#d9a441", "#5fa777", "#9a7fb5", "#c9767f", "#6fa8c9")
"""Colours of the given design, and of kept variants in turn."""


def variant_colour(k: int) -> str:
    """The colour of a kept variant."""
    return KEPT[k % len(KEPT)]


def trouble_box(text: str) -> str:
    """What is wrong, marked."""
    return (
        f'<div style="margin:0.4em 1em;padding:0.5em 0.7em;border-left:4px solid {WORST};'
        f'background:#fbeef0;color:#7a1f2b;font-size:0.85em">{escape(text)}</div>'
    )


def legend(design: Exploration) -> str:
    """The colours of the curves."""
    kept = [(v.name, variant_colour(k)) for k, v in enumerate(design.variants)]
    parts = (
        f'<span style="color:{colour};font-weight:600">■</span> {escape(name)}'
        for name, colour in (("given", GIVEN), *kept, ("now", LINE))
    )
    return f'<div style="padding:0.3em 1em;font-size:0.85em">{" &nbsp; ".join(parts)}</div>'


def goal_text(design: Exploration) -> str:
    """The goal's value and what it is."""
    value, _ = design.improvement()
    unit, factor = shown(design.live.about[design.curve].unit)
    return f"**{number(factor * value)} {unit}** · {GOALS[design.goal].text}"


def changes_table(design: Exploration) -> str:
    """The changes as a table."""
    rows = []
    for x in design.changes():
        unit, factor = shown(x.unit)
        by = factor * (x.after - x.before)
        rows.append(f"| {x.path} | {number(factor * x.after)} | {by:+.3g} {unit} |")
    if not rows:
        return "as given"
    return "\n".join(["| number | now | change |", "|---|---|---|", *rows])


_HEIGHT, _LABEL = 122, 18
_ROOM = 0.15
"""Heights of a chart and of the last one's label [px]; free share above and below the curves."""
_DOT = {"show": True, "size": 9, "width": 2, "stroke": LINE, "fill": "#ffffff"}


class Charts:
    """Charts of a design's curves, one below the other, in the container of viser that is open."""

    def __init__(self, gui: Any, design: Exploration):
        self._gui, self._design = gui, design
        live = design.live
        self._unit, self._factor = shown(live.unit)
        self._order = np.argsort(live.x, kind="stable")
        self.axis = self._factor * live.x[self._order]
        self._kept = 0
        self._spans: dict[str, tuple[float, float]] = {}
        self._charts = {name: self._chart(name) for name in live.about}

    def _chart(self, name: str) -> Any:
        unit, _ = shown(self._design.live.about[name].unit)
        data = self._data(name, None)
        axis: dict[str, Any] = {"size": 24}
        if last := name == list(self._design.live.about)[-1]:
            axis |= {"label": f"{self._design.live.axis} [{self._unit or '–'}]", "labelSize": 14}
        return self._gui.add_uplot(
            data,
            self._series(),
            title=f"{name.replace('_', ' ')} [{unit or '–'}]",
            scales=self._scales(name, data),
            axes=(axis, {"size": 52}),
            legend={"show": False},
            padding=(8, 14, 0, 0),
            height=_HEIGHT + (_LABEL if last else 0),
        )

    def _scales(self, name: str, data: tuple[np.ndarray, ...]) -> dict[str, Any]:
        """Scales that hold the curves; the same object while they do, for an axis that stands."""
        every = np.concatenate(data[1:])
        every = every[np.isfinite(every)]
        low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
        old = self._spans.get(name)
        if old is None or low < old[0] or high > old[1]:
            room = _ROOM * (high - low) or 0.5 * abs(high) or 1.0
            self._spans[name] = low - room, high + room
        return {"x": {"time": False}, "y": {"range": self._spans[name]}}

    def _series(self) -> tuple[dict[str, Any], ...]:
        """The axis, the given design, kept variants, the design at hand, and where it is shown."""
        plain = {"points": {"show": False}, "pxAlign": 0}
        kept = [
            {"label": v.name, "stroke": variant_colour(k), "width": 1.5} | plain
            for k, v in enumerate(self._design.variants)
        ]
        return (
            {"label": self._design.live.axis},
            {"label": "given", "stroke": GIVEN, "width": 1.5} | plain,
            *kept,
            {"label": "now", "stroke": LINE, "width": 2.5} | plain,
            {"label": "shown", "stroke": LINE, "width": 0, "points": _DOT},
        )

    def _data(self, name: str, place: int | None) -> tuple[np.ndarray, ...]:
        design = self._design
        row = list(design.live.about).index(name)
        factor = shown(design.live.about[name].unit)[1]
        every = [design.given, *design.variants, design.response]
        rows = [factor * np.asarray(x.curves[row])[self._order] for x in every]
        here = np.full(len(self.axis), np.nan)
        if place is not None:
            k = int(np.flatnonzero(self._order == place)[0])
            here[k] = rows[-1][k]
        return (self.axis, *rows, here)

    def update(self, place: int | None) -> None:
        """Draw the curves of the design at hand, with a dot at a place of the axis."""
        series = None
        if self._kept != len(self._design.variants):
            self._kept, series = len(self._design.variants), self._series()
        for name, chart in self._charts.items():
            data, before = self._data(name, place), self._spans[name]
            scales = self._scales(name, data)
            if series is not None:
                chart.series = series
            if self._spans[name] != before:
                chart.scales = scales
            chart.data = data

    def shown(self, name: str) -> tuple[np.ndarray, ...]:
        """What a chart shows: its axis, the given design, variants, the design, and the dot."""
        return self._charts[name].data


FEW = 6
MOST = 12
"""Sliders that are shown unless others are looked for, and at most."""

_STEPS = 600
_SAME = 1e-6


class Sliders:
    """Sliders in viser for a few numbers of a design, in a folder of their own.

    `changed` is called with a path and a value in SI units when a slider was moved.
    """

    def __init__(self, gui: Any, design: Exploration, changed: Callable[[str, float], None]):
        self._gui, self._design, self._changed = gui, design, changed
        self._folder = gui.add_folder("Numbers")
        self._handles: dict[str, Any] = {}
        with self._folder:
            self.search = gui.add_text("find", "", hint="parts of names, or patterns with * and ?")
            self._note = gui.add_markdown("")

    @property
    def paths(self) -> list[str]:
        """Numbers that have a slider."""
        return list(self._handles)

    def handle(self, path: str) -> Any:
        """The slider of a number; its value is in the unit that it shows."""
        return self._handles[path]

    def choose(self) -> None:
        """Show sliders of the numbers that were searched for, or else of those that matter most."""
        paths, note = self._chosen()
        self._note.content = note
        if paths == self.paths:
            return
        for handle in self._handles.values():
            handle.remove()
        with self._folder:
            self._handles = {path: self._slider(path) for path in paths}

    def _chosen(self) -> tuple[list[str], str]:
        names, words = self._design.names, self.search.value.replace(",", " ").split()
        if words:
            fit = [n for n in names if any(w in n or fnmatchcase(n, w) for w in words)]
            few = fit[:MOST]
            rest = f"; the first {MOST} of them are shown" if len(fit) > MOST else ""
            return few, f"{len(fit)} of {len(names)} numbers{rest}"
        effect = np.abs(self._design.improvement()[1])
        ranked = [k for k in np.argsort(-effect, kind="stable")[:FEW] if effect[k] > 0.0]
        chosen = {x.path for x in self._design.changes()} & set(self.paths)
        chosen |= {names[k] for k in ranked or range(min(FEW, len(names)))}
        few = [n for n in names if n in chosen][:MOST]
        return (
            few,
            f"those of {len(names)} numbers that move *{self._design.curve}* most; lengths in mm",
        )

    def _slider(self, path: str) -> Any:
        unit, factor = shown(self._design.live.unknowns.units[self._design.index(path)])
        low, high, step, _ = self._scale(path)
        handle = self._gui.add_slider(
            label_of(path) + (f" [{unit}]" if unit not in ("", "mm") else ""),
            min=low,
            max=high,
            step=step,
            initial_value=self._value(path),
            hint=path,
        )

        @handle.on_update
        def _(_: Any) -> None:
            if abs(handle.value - self._value(path)) > _SAME * (high - low):
                self._changed(path, handle.value / factor)

        return handle

    def _scale(self, path: str) -> tuple[float, float, float, int]:
        """Limits and step of a slider in the unit that it shows, and the digits of its numbers."""
        k, one = self._design.index(path), self._design.live.unknowns
        factor = shown(one.units[k])[1]
        low, high = factor * float(one.lower[k]), factor * float(one.upper[k])
        step = round_number((high - low) / _STEPS)
        digits = max(0, -int(np.floor(np.log10(step))))
        return round(low, digits), round(high, digits), step, digits

    def _value(self, path: str) -> float:
        """A number at hand in the unit of its slider."""
        k, one = self._design.index(path), self._design.live.unknowns
        low, high, _, digits = self._scale(path)
        now = shown(one.units[k])[1] * float(self._design.numbers[k])
        return min(max(round(now, digits), low), high)

    def follow(self) -> None:
        """Move the sliders to the numbers at hand."""
        for path, handle in self._handles.items():
            handle.value = self._value(path)


def label_of(path: str) -> str:
    """A number's path as a short label: ``tierod inboard z``."""
    return path.partition("/")[2].replace("/", " ").replace("_", " ") or path


ARROW, BALL = (232, 89, 12), (255, 212, 59)
_SMALL, _LONGEST = 0.04, 0.16
"""Arrows shorter than this share of the longest are left out; the longest as a share of the
scene."""
_BALL, _AWAY = 1.25, 1.4
"""Radius of a hardpoint's ball by that of a ball joint; distance of the camera by the usual one."""


class Picture:
    """A design in the scene of a viser server, with balls on its hardpoints and arrows at them.

    Args:
        server: a `viser.ViserServer`.
        design: what is explored.
        scene: of a mechanism, what is drawn of it.
        clicked: called with the name of a hardpoint.

    Attributes:
        view: the mechanism in the picture.
        note: text above it that says that it does not close.
    """

    def __init__(
        self,
        server: Any,
        design: Exploration,
        scene: Callable[..., Scene],
        clicked: Callable[[str], None],
    ):
        self._design, self._scene = design, scene
        mech = design.pictured()
        first = scene(mech)
        set_stage(server, first)
        camera = server.initial_camera  # from farther away, because panels take room
        camera.position = first.centre + _AWAY * (np.asarray(camera.position) - first.centre)
        self._glyph, self._x, self._size = first.glyph, design.x, first.size
        self.view, self._space = ViserScene(server.scene, first), in_space(mech)
        self.note = server.scene.add_label(
            "/note",
            "closes nowhere: shown as drawn",
            position=first.centre + 0.35 * first.size * first.up,
            anchor="bottom-center",
            visible=False,
        )
        moved = {x.rpartition("/")[0].partition("/")[2] for x in design.names}
        self._bodies = {name: body for name, body in point_bodies(mech).items() if name in moved}
        self._balls = {name: self._ball(server.scene, name, clicked) for name in self._bodies}
        self._arrows = server.scene.add_arrows(
            "/improvement",
            np.zeros((1, 2, 3)),
            ARROW,
            shaft_radius=0.005 * first.size,
            head_radius=0.014 * first.size,
            head_length=0.035 * first.size,
            visible=False,
        )

    def _ball(self, scene: Any, name: str, clicked: Callable[[str], None]) -> Any:
        path, radius = f"/points/{name.replace('/', '|')}", _BALL * self._glyph
        look = dict(color=BALL, opacity=0.6, subdivisions=2, cast_shadow=False)
        ball = scene.add_icosphere(path, radius, **look)
        ball.on_click(lambda _: clicked(name))
        return ball

    def update(self, place: int) -> None:
        """Show the design at hand at a place of the axis, or pale, as drawn, if it does not close.

        Raises:
            ValueError: it is no mechanism, for example because two points of a link coincide.
        """
        self._redraw()
        mech = self.view.scene.mech
        q = self._design.response.q[place]
        self.view.pale = self.note.visible = not np.all(np.isfinite(q))
        where = _poses(mech, np.asarray(neutral(mech)) if self.view.pale else q)
        self.view.place(where)
        arrows, shafts = self._design.arrows(), []
        longest = max((float(np.linalg.norm(x)) for x in arrows.values()), default=0.0)
        for name, ball in self._balls.items():
            placement = self.view.scene.solid_placement(self._bodies[name], where)
            ball.position = at = placement.put(np.asarray(self._space.point(name)))
            way = placement.rotation @ arrows.get(name, np.zeros(3))
            if np.linalg.norm(way) > _SMALL * longest:
                shafts.append([at, at + _LONGEST * self._size / longest * way])
        self._arrows.visible = bool(shafts)
        if shafts:
            self._arrows.points = np.asarray(shafts, np.float32)

    def _redraw(self) -> None:
        """Draw the mechanism anew if its numbers have changed."""
        if np.array_equal(self._x, self._design.x):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of implausible numbers, at every move
            mech = self._design.pictured()
            self.view.redraw(self._scene(mech, glyph=self._glyph))
        self._x, self._space = self._design.x, in_space(mech)


_poses = jax.jit(poses)
