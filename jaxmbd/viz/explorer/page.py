"""The explorer's page: what a viser server shows of a design, and what clicks do to it.

There is one chart for each output, with the given design and the kept variants.
"""

from __future__ import annotations

import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbd.suspension import number, shown
from jaxmbd.viz.curves import LINE, WORST
from jaxmbd.viz.explorer.exploration import Exploration, Variant
from jaxmbd.viz.explorer.live_curves import GOALS
from jaxmbd.viz.explorer.picture import Picture
from jaxmbd.viz.explorer.sliders import Sliders
from jaxmbd.viz.scene import Scene


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


GIVEN = "#a8b1ba"
KEPT = ("#d9a441", "#5fa777", "#9a7fb5", "#c9767f", "#6fa8c9")
"""Colours of the given design, and of kept variants in turn."""

_HEIGHT, _LABEL = 122, 18
_ROOM = 0.15
"""Heights of a chart and of the last one's label [px]; free share above and below the curves."""


def variant_colour(k: int) -> str:
    """The colour of a kept variant."""
    return KEPT[k % len(KEPT)]


class Charts:
    """Charts in viser, one below the other, in the container that is open.

    Args:
        gui: `viser.ViserServer.gui`.
        design: whose curves they are.
    """

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


_DOT = {"show": True, "size": 9, "width": 2, "stroke": LINE, "fill": "#ffffff"}


_PAUSE = 0.8
"""Seconds after which moving the same slider again is another step of the history."""

_FRAME, _BREATH, _BEHIND = 0.02, 0.03, 5
"""Seconds between two places while it moves, and between curves and picture; changes after which
the picture is due."""


class Page:
    """A design in a viser server. Clicks and sliders change the design; one thread shows it.

    Callbacks only change the design and wake that thread, which always shows the latest numbers: a
    picture that takes longer than a slider's next move is left out, the curves are not.

    Args:
        server: a `viser.ViserServer`.
        design: what is explored.
        title: what it is called.
        scene: of a mechanism, what is drawn of it.
        file: name of exported files, without extension.

    Attributes:
        busy: seconds from a change of the design until its curves were sent, latest last.
        place: index of the place of the axis that is shown.
        trouble: what is wrong with the design at hand; empty if nothing is.
        restoring: kept variants, each with the button that restores it.
    """

    def __init__(
        self,
        server: Any,
        design: Exploration,
        title: str,
        scene: Callable[..., Scene] = Scene.of,
        file: str = "design",
    ):
        self.server, self.design, self.title = server, design, title
        self._file = file
        self.busy: list[float] = []
        self.place, self.trouble, self._way = int(np.argmin(np.abs(design.live.x))), "", 1
        self._lock, self._turn = threading.RLock(), threading.Condition()
        self._asked, self._done, self._pictured, self._ended = 0, 0, 0, False
        self._since: float | None = None
        self._slid: tuple[str, float] = ("", 0.0)
        server.gui.configure_theme(show_logo=False, show_share_button=False)
        server.gui.set_panel_label(title)
        self.picture = Picture(server, design, scene, self.look_at)
        self._controls()
        self._refresh()
        self._thread = threading.Thread(target=self._run, name="explorer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop showing; the server is its owner's."""
        self._ended = True
        self._show()
        self._thread.join(10.0)

    # What is on the page.

    def _controls(self) -> None:
        gui, design = self.server.gui, self.design
        curves = gui.add_panel()
        with curves.add_tab("Curves"):
            self._legend = gui.add_html("")
            self.charts = Charts(gui, design)
        curves.dock_left()
        curves.set_width(380)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(400)
        self._box = gui.add_html("", visible=False)
        self._show_controls(gui)
        with gui.add_folder("Aim"):
            self.curve = gui.add_dropdown(
                "curve", tuple(design.live.about), initial_value=design.curve
            )
            self.goal = gui.add_dropdown("becomes", tuple(GOALS), initial_value=design.goal)
            self._aim = gui.add_markdown("")
            follow = gui.add_button("Follow the arrows", hint="moves the numbers below")
            follow.on_click(lambda _: self.act(self.improve))
        self.sliders = Sliders(gui, design, self.slide)
        with gui.add_folder("Design") as self._folder:
            steps = gui.add_button_group("history", ("undo", "redo", "reset"))
            steps.on_click(lambda _: self.act(getattr(design, steps.value)))
            gui.add_button("Keep for comparison").on_click(lambda _: self.act(design.keep))
            gui.add_button("Export the design").on_click(self.export)
            self._changes = gui.add_markdown("")
        self.restoring: list[tuple[Variant, Any]] = []
        self.curve.on_update(lambda _: self.act(lambda: design.choose(curve=self.curve.value)))
        self.goal.on_update(lambda _: self.act(lambda: design.choose(goal=self.goal.value)))
        self.sliders.search.on_update(lambda _: self.act(lambda: None))
        with self._lock:
            self.sliders.choose()

    def _show_controls(self, gui: Any) -> None:
        live = self.design.live
        unit, factor = shown(live.unit)
        self._axis = factor * live.x
        low, high = float(self._axis.min()), float(self._axis.max())
        self._playing = gui.add_checkbox("move", False, hint="goes to and fro")
        self.where = gui.add_slider(
            f"{live.axis} [{unit}]" if unit else live.axis,
            min=low,
            max=high,
            step=(high - low) / (len(live.x) - 1),
            initial_value=float(self._axis[self.place]),
        )
        self.where.on_update(self._show)
        self._playing.on_update(self._show)

    # What clicks do.

    def act(self, action: Callable[[], Any]) -> None:
        """Do something to the design, and have it shown."""
        with self._lock:
            self._since = time.perf_counter()
            self._slid = ("", 0.0)
            action()
            self.sliders.choose()
            self.sliders.follow()
        self._show()

    def _show(self, _: Any = None) -> None:
        """Have the thread show the design."""
        with self._turn:
            self._asked += 1
            self._turn.notify_all()

    def shown(self, seconds: float = 60.0) -> bool:
        """Wait until the page shows the design at hand; False if it takes longer."""
        with self._turn:
            number = self._asked
            return self._turn.wait_for(lambda: self._done >= number, seconds)

    def slide(self, path: str, value: float) -> None:
        """Set a number [SI], as its slider does: moves without a pause are one step of history."""
        with self._lock:
            now = time.perf_counter()
            same = self._slid[0] == path and now - self._slid[1] < _PAUSE
            self.design.set(path, value, remember=not same)
            self._since, self._slid = now, (path, now)
        self._show()

    def improve(self) -> None:
        """Follow the arrows with the numbers that have sliders."""
        if not self.design.improve(self.sliders.paths):
            text = f"No step of the numbers shown makes {self.design.curve} better"
            for client in self.server.get_clients().values():
                client.add_notification("Nothing to be gained", text, auto_close_seconds=4.0)

    def look_at(self, point: str) -> None:
        """Bring the sliders of a hardpoint, as a click on it does."""
        self.sliders.search.value = f"points/{point}/*"

    def export(self, event: Any) -> None:
        """Have the browser that clicked save the design and the table of its changes."""
        with tempfile.TemporaryDirectory() as folder, self._lock:
            try:
                files = self.design.export(Path(folder) / self._file)
            except ValueError as error:
                event.client.add_notification("Not exported", str(error), color="red")
                return
            for file in files:
                event.client.send_file_download(file.name, file.read_bytes())

    # What is shown.

    def _run(self) -> None:
        while not self._ended:
            with self._turn:
                moves = self._playing.value
                self._turn.wait_for(lambda: self._asked != self._done, _FRAME if moves else None)
                number, idle = self._asked, self._asked == self._done
            if idle and self._playing.value:
                self._step()
            if not self._ended:
                self._refresh()
            with self._turn:
                self._done = number
                self._turn.notify_all()

    def _step(self) -> None:
        """The next place of the axis, to and fro."""
        last = len(self._axis) - 1
        self._way = -1 if self.place >= last else 1 if self.place <= 0 else self._way
        self.place += self._way
        self.where.value = float(self._axis[self.place])

    def _refresh(self) -> None:
        """Show the design: its curves at once, the rest if nothing new was asked meanwhile."""
        number = self._asked
        try:
            with self._lock:
                self._show_curves()
            with self._turn:  # a browser that has curves to draw draws them before it sees more
                self._turn.wait_for(lambda: self._asked != number or self._ended, _BREATH)
            if self._asked == number or number - self._pictured > _BEHIND:
                self._pictured = number
                with self._lock, self.server.atomic():
                    self._show_words()
                    self.picture.update(self.place)
        except ValueError as error:
            self._tell(f"this is no mechanism: {error}")
        except Exception as error:  # the page lives on, and says what happened
            traceback.print_exc()
            self._tell(f"{type(error).__name__}: {error}")
        self.server.flush()

    def _show_curves(self) -> None:
        wanted = int(np.argmin(np.abs(self._axis - self.where.value)))
        self.place = _nearest(self.design.response.reached, wanted)
        with self.server.atomic():
            self.charts.update(self.place)
        self.server.flush()
        if self._since is not None:
            self.busy.append(time.perf_counter() - self._since)
            self._since = None

    def _show_words(self) -> None:
        self._tell(self.design.response.trouble)
        self._aim.content = goal_text(self.design)
        self._legend.content = legend(self.design)
        self._changes.content = changes_table(self.design)
        self._offer_variants()

    def _offer_variants(self) -> None:
        """A button for each kept variant."""
        kept = self.design.variants
        if [id(v) for v, _ in self.restoring] == list(map(id, kept)):
            return
        for _, button in self.restoring:
            button.remove()
        with self._folder:
            self.restoring = [(v, self._restore_button(v)) for v in kept]

    def _restore_button(self, variant: Variant) -> Any:
        button = self.server.gui.add_button(f"Restore {variant.name}")
        button.on_click(lambda _: self.act(lambda: self.design.move(variant.x)))
        return button

    def _tell(self, trouble: str) -> None:
        self.trouble = trouble
        self._box.content = trouble_box(trouble)
        self._box.visible = bool(trouble)


def _nearest(reached: np.ndarray, wanted: int) -> int:
    """The place nearest to the wanted one at which the design closes."""
    good = np.flatnonzero(reached)
    return wanted if not len(good) else int(good[np.argmin(np.abs(good - wanted))])
