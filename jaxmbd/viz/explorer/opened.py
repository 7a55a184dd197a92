"""`explore`: a page on which a design is changed, and the handle of it."""

from __future__ import annotations

import time
import webbrowser
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from jaxmbd.io import Imported
from jaxmbd.model import Mechanism
from jaxmbd.observe import Experiment, Position
from jaxmbd.plumbing import optional
from jaxmbd.suspension import CornerSweep
from jaxmbd.viz.explorer.exploration import Exploration, Vary
from jaxmbd.viz.explorer.page import Page
from jaxmbd.viz.glyphs import corner_wheel
from jaxmbd.viz.scene import Scene
from jaxmbd.viz.viser_scene import in_notebook, viser_server


class Explorer:
    """A page that is open.

    Attributes:
        design: the `Exploration` that it shows: ``design.mechanism()`` is what is on the page.
        url: where it is.

    Example:
        >>> import jaxmbd as mbd
        >>> page = mbd.viz.explore(mbd.zoo.four_bar(), vary="points/*", browser=False)
        >>> page.url.startswith("http://")
        True
        >>> page.close()
    """

    def __init__(self, page: Page, url: str, server: ExitStack):
        self.page, self.design, self.url, self._server = page, page.design, url, server

    def close(self) -> None:
        """Close the page."""
        self.page.close()
        self._server.close()

    def wait(self) -> None:
        """Stay open until Ctrl-C."""
        try:
            while True:
                time.sleep(3600.0)
        except KeyboardInterrupt:
            self.close()

    def __repr__(self) -> str:
        return f"explorer of {self.page.title} at {self.url}; .close() ends it"

    def _repr_html_(self) -> str:
        """The page itself, in a notebook."""
        return f'<iframe src="{self.url}" width="100%" height="720" frameborder="0"></iframe>'


def _scene(
    imported: Imported | None, design: Exploration, mech: Mechanism, glyph: float | None = None
) -> Scene:
    """What is drawn of a design: an imported model's shapes, the wheel of a corner.

    Bodies reach the points whose positions are observed.
    """
    sweep = design.live.experiment
    marked = [(x.body, x.point) for x in sweep.observed() if isinstance(x, Position)]
    corner = sweep.corner if isinstance(sweep, CornerSweep) else None
    wheels = [corner_wheel(mech, corner)] if corner else []
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
    serving = ExitStack()
    server = serving.enter_context(viser_server(port, "the explorer", host))
    scene = partial(_scene, imported, design)
    page = Page(server, design, title or "jaxmbd explorer", scene, title or "design")
    url = f"http://{host}:{server.get_port()}"
    if not in_notebook() if browser is None else browser:
        webbrowser.open(url)
    return Explorer(page, url, serving)
