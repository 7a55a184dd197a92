"""The explorer's page: what a viser server shows of a design, and what clicks do to it."""

from __future__ import annotations

import tempfile
import threading
import time
import traceback
import webbrowser
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbd.io import Imported
from jaxmbd.model import Mechanism
from jaxmbd.observe import Experiment, Position
from jaxmbd.plumbing import optional
from jaxmbd.suspension import AxleSweep, CornerSweep
from jaxmbd.variables import shown
from jaxmbd.viz.explorer.exploration import Exploration, Variant, Vary
from jaxmbd.viz.explorer.live_curves import GOALS, Held
from jaxmbd.viz.explorer.widgets import (
    Charts,
    Picture,
    Sliders,
    changes_table,
    goal_text,
    legend,
    trouble_box,
)
from jaxmbd.viz.glyphs import corner_wheel
from jaxmbd.viz.scene import Scene, round_number
from jaxmbd.viz.viser_scene import in_notebook, viser_server

_PAUSE = 0.8
"""Seconds after which moving the same slider again is another step of the history."""

_STEPS = 200
"""Steps to either side of a slider of what is held."""
_FRAME, _BREATH, _BEHIND = 0.02, 0.03, 5
"""Seconds between two places while it moves, and between curves and picture; changes after which
the picture is due."""


class Explorer:
    """A page that is open: a design in a viser server.

    Callbacks of clicks and sliders only change the design and wake one thread, which always shows
    the latest numbers: a picture that takes longer than a slider's next move is left out, the
    curves are not.

    Attributes:
        design: the `Exploration` that it shows: ``design.mechanism()`` is what is on the page.
        url: where it is.
        busy: seconds from a change of the design until its curves were sent, latest last.
        place: index of the place of the axis that is shown.
        trouble: what is wrong with the design at hand; empty if nothing is.
        restoring: kept variants, each with the button that restores it.
        held: sliders of what of a suspension is held, by name: pads and roll of an axle's rig, and
            its steering.

    Example:
        >>> import jaxmbd as mbd
        >>> page = mbd.viz.explore(mbd.zoo.four_bar(), vary="points/*", browser=False)
        >>> page.url.startswith("http://")
        True
        >>> page.close()
    """

    def __init__(
        self, design: Exploration, scene: Callable[..., Scene], title: str, host: str, port: int
    ):
        self.design, self._title, self._serving = design, title, ExitStack()
        serving = viser_server(port, "the explorer", host)
        self.server = server = self._serving.enter_context(serving)
        self.url = f"http://{host}:{server.get_port()}"
        self.busy: list[float] = []
        self.place, self.trouble, self._way = int(np.argmin(np.abs(design.live.x))), "", 1
        self._lock, self._turn = threading.RLock(), threading.Condition()
        self._asked, self._done, self._pictured, self._ended = 0, 0, 0, False
        self._since: float | None = None
        self._slid: tuple[str, float] = ("", 0.0)
        server.gui.configure_theme(show_logo=False, show_share_button=False)
        server.gui.set_panel_label(title or "jaxmbd explorer")
        self.picture = Picture(server, design, scene, self.look_at)
        self._controls()
        self._refresh()
        self._thread = threading.Thread(target=self._run, name="explorer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the page."""
        self._ended = True
        self._show()
        self._thread.join(10.0)
        self._serving.close()

    def wait(self) -> None:
        """Stay open until Ctrl-C."""
        try:
            while True:
                time.sleep(3600.0)
        except KeyboardInterrupt:
            self.close()

    def __repr__(self) -> str:
        return f"explorer of {self._title or 'a design'} at {self.url}; .close() ends it"

    def _repr_html_(self) -> str:
        """The page itself, in a notebook."""
        return f'<iframe src="{self.url}" width="100%" height="720" frameborder="0"></iframe>'

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
        self.held = {x.name: self._held_slider(gui, x) for x in live.held}

    def _held_slider(self, gui: Any, held: Held) -> Any:
        """A slider that holds a place of the rig or the steering elsewhere."""
        unit, factor = shown(held.unit)
        far = round(factor * held.far, 6)
        handle = gui.add_slider(
            f"{held.name} [{unit}]",
            min=-far,
            max=far,
            step=round_number(far / _STEPS),
            initial_value=round(factor * held.value, 6),
            hint=f"where {held.joint!r} is held",
        )

        @handle.on_update
        def _(_: Any) -> None:
            with self._lock:
                self._since = time.perf_counter()
                self.design.hold(held.name, handle.value / factor)
            self._show()

        return handle

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
                files = self.design.export(Path(folder) / (self._title or "design"))
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


def _scene(
    imported: Imported | None, design: Exploration, mech: Mechanism, glyph: float | None = None
) -> Scene:
    """What is drawn of a design: an imported model's shapes, the wheel of a corner.

    Bodies reach the points whose positions are observed.
    """
    sweep = design.live.experiment
    marked = [(x.body, x.point) for x in sweep.observed() if isinstance(x, Position)]
    corners: tuple[Any, ...] = ()
    if isinstance(sweep, CornerSweep) and sweep.corner is not None:
        corners = (sweep.corner,)
    elif isinstance(sweep, AxleSweep):
        corners = sweep.corners
    wheels = [corner_wheel(mech, corner) for corner in corners]
    model = replace(imported, mechanism=mech) if imported else mech
    return Scene.of(model, wheels=wheels, marked=marked, glyph=glyph)


def explore(
    model: Any,
    experiment: Experiment | None = None,
    vary: Vary = None,
    *,
    title: str = "",
    host: str = "127.0.0.1",
    port: int = 8080,
    browser: bool | None = None,
) -> Explorer:
    """Open a page with sliders on a mechanism's numbers, live curves and the picture.

    Arrows on the hardpoints show which way the chosen curve becomes better; a click on a hardpoint
    brings its sliders. Kept variants stay in the charts. The page is of this process and ends with
    it; only this machine can see it unless `host` says otherwise.

    Args:
        model: a mechanism, a parametrisation of one, or an imported model.
        experiment: what is drawn, a `Sweep` or a `Motion`; by default wheel travel of a corner with
            names of the zoo, or else the first joint that can be moved.
        vary: paths or patterns of the numbers that may move, or path to a range of `jaxmbd.design`;
            by default all points, masses and numbers of force elements.
        title: what it is called.
        host: address that the page is served at.
        port: of the page; the next free one is taken.
        browser: whether to open the page in a browser; by default unless in a notebook, whose cell
            shows it.

    Returns:
        a handle: ``.design`` is the design on the page, ``.close()`` ends it, and ``.wait()`` keeps
        a script alive.

    Raises:
        ImportError: viser is not installed.
        ValueError: as of `Exploration.of`.

    Example:
        >>> import jaxmbd as mbd
        >>> page = mbd.viz.explore(mbd.zoo.four_bar(), vary="points/*", browser=False)
        >>> page.design.live.axis, page.close()
        ('A', None)
    """
    imported = model if isinstance(model, Imported) else None
    optional("viser", "viz", "the explorer")  # before anything is compiled
    design = Exploration.of(model, experiment, vary)
    explorer = Explorer(design, partial(_scene, imported, design), title, host, port)
    if not in_notebook() if browser is None else browser:
        webbrowser.open(explorer.url)
    return explorer
