"""Animations: one HTML file that needs no network, a page in the browser or a notebook."""

from __future__ import annotations

import html
import os
import re
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbd.io import Imported
from jaxmbd.model import Mechanism
from jaxmbd.viz.course import ARROW, TRACE, WORST, Actor, Cast, cast_of
from jaxmbd.viz.solids import arrow, frame_along
from jaxmbd.viz.viser_scene import ViserScene, in_notebook, quaternion, set_stage, viser_server

_CAPTION = """<div style="position:fixed;left:14px;top:12px;z-index:5;pointer-events:none;
font:13px/1.45 system-ui,sans-serif;color:#39424e;background:rgba(255,255,255,.72);
padding:6px 10px;border-radius:4px;max-width:60vw">{}</div>"""


class Page:
    """An animation as a page: in a notebook it shows itself.

    Attributes:
        html: the whole page, which needs no network.
        path: the file that it was written to, or None.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.viz import Page
        >>> Page("<!doctype html>").html
        '<!doctype html>'
    """

    def __init__(self, text: str):
        self.html = text
        self.path: Path | None = None

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it as one file."""
        self.path = Path(path)
        self.path.write_text(self.html, "utf-8")
        return self.path

    def open(self) -> Path:
        """Write it to a temporary file and open that in the browser."""
        with tempfile.NamedTemporaryFile(prefix="jaxmbd_", suffix=".html", delete=False) as file:
            pass  # Windows writes to no file that is open
        path = self.save(file.name)
        webbrowser.open(path.as_uri())
        return path

    def _repr_html_(self) -> str:
        inside = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{inside}" width="100%" height="520" frameborder="0"></iframe>'

    def __repr__(self) -> str:
        where = "" if self.path is None else f" at {self.path}"
        size = f"{len(self.html) / 1e6:.1f} MB"
        return f"Page of {size}{where}; .save(path) writes it, .open() shows it"


def page(model: Mechanism | Imported, solution: Any = None, **options: Any) -> Page:
    """An animation as a page; `animation` explains the arguments."""
    title = options.pop("title", None)
    cast = cast_of(model, solution, **options)
    with viser_server(purpose="an animation") as server:
        return Page(_recorded(server, cast, title))


def animation(
    path: str | os.PathLike[str],
    model: Mechanism | Imported,
    solution: Any = None,
    **options: Any,
) -> Path:
    """Write an animation as one HTML file, which opens in a browser without a network.

    The page plays, scrubs, slows down, turns by the mouse, and hides parts (the button at the
    right shows their tree).

    Args:
        path: the file.
        model: a mechanism, or an imported model, which is drawn with its shapes. For samples with
            numbers of their own a batch of mechanisms, as `jax.vmap` makes it.
        solution: what has coordinates ``q``, and perhaps times ``t`` (a `Solution`, a
            `DrivenMotion`, an `Assembly`, a `Trajectory`, one of `Imported.states`), or
            coordinates alone: (nq,) for a still picture, (n, nq), or (samples, n, nq), which draws
            samples over each other. What has no times is played to and fro. By default the
            assembled pose.
        **options: further arguments, all optional:

            * ``title``: of the page.
            * ``wheels``: wheels (`Wheel`, `corner_wheel`) beside those of tyres.
            * ``traces``: pairs (body, point) whose paths are drawn.
            * ``arrows``: names of joints and force elements whose forces are drawn as arrows;
              "reactions" and "forces" are all of them.
            * ``inputs``: efforts on joints during the motion, as of `simulate`, for the reactions.
            * ``full``: sample that is drawn in full, by default 0.
            * ``worst``: sample that is highlighted in red.
            * ``ghosts``: how many samples are drawn pale, at most 24, by default 12.
            * ``speed``: of the playback, 1 for real time, 0.1 for ten times slower.
            * ``rate``: frames for each second of playback, by default 30.

    Raises:
        ImportError: viser is not installed.
        ValueError: the solution is of another mechanism or failed, or a name is unknown.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> from jaxmbd.viz import animation
        >>> mech = mbd.zoo.simple_pendulum()
        >>> swing = mbd.simulate(mech, [0.1], t1=1.0, dt=1e-2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     animation(folder + "/swing.html", mech, swing, arrows="hinge").name
        'swing.html'
    """
    return page(model, solution, **options).save(path)


def show(model: Mechanism | Imported, solution: Any = None, **options: Any) -> Page:
    """Show a mechanism and its motion: in a notebook in the cell, else in the browser.

    Args:
        model: as of `animation`.
        solution: as of `animation`.
        **options: as of `animation`.

    Raises:
        ImportError: viser is not installed.
        ValueError: as of `animation`.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.viz import show
        >>> show(mbd.zoo.rssr())  # doctest: +SKIP
        Page of 0.9 MB; .save(path) writes it, .open() shows it
    """
    shown = page(model, solution, **options)
    if not in_notebook():
        shown.open()
    return shown


def _recorded(server: Any, cast: Cast, title: str | None) -> str:
    """The page of a server in which the whole course was played."""
    set_stage(server, cast.stage)
    moving = []
    for k, actor in enumerate(cast.actors):
        name = "/mechanism" if k == 0 else f"/samples/{actor.sample}"
        moving.append(ViserScene(server.scene, actor.scene, name, actor.colour))
        _draw_traces(server.scene, actor, name)
    mesh = arrow((0, 0, 0), (0, 0, 1.0), 0.025)
    look: dict[str, Any] = dict(color=ARROW[:3], cast_shadow=False)
    arrows = [
        server.scene.add_mesh_simple(f"/arrows/{k}", mesh.vertices, mesh.faces, **look)
        for k in range(cast.arrows.shape[1])
    ]
    clock = cast.clock
    serializer = None
    for k in range(len(clock)):
        if k == 1:
            serializer = server.get_scene_serializer()
        if serializer is not None:
            serializer.insert_sleep(float(clock[k] - clock[k - 1]))
        for actor, shown in zip(cast.actors, moving, strict=True):
            _set_frame(shown, actor, k)
        for node, field in zip(arrows, cast.arrows[min(k, len(cast.arrows) - 1)], strict=True):
            _place_arrow(node, *field)
    serializer = serializer or server.get_scene_serializer()
    return _captioned(serializer.as_html(), title, cast.notes)


def _set_frame(shown: ViserScene, actor: Actor, k: int) -> None:
    """The actor at a frame; one whose motion has ended stays where it was, if it is the first."""
    last = len(actor.course.clock) - 1
    if k <= last:
        shown.place(actor.course.at(k))
    elif k == last + 1 and actor.colour is not None:
        shown.visible = False


def _place_arrow(node: Any, foot: np.ndarray, vector: np.ndarray) -> None:
    length = float(np.linalg.norm(vector))
    node.position, node.scale = foot, max(length, 1e-9)
    if length > 0.0:
        node.wxyz = quaternion(frame_along(vector))


def _draw_traces(api: Any, actor: Actor, name: str) -> None:
    ghost = actor.colour
    colour = TRACE if ghost is None else WORST if ghost == WORST else (0.70, 0.74, 0.78, 1.0)
    look: dict[str, Any] = dict(colors=colour[:3], thickness=2.5 if ghost is None else 1.2)
    for k, path in enumerate(actor.traces):
        if len(path) > 1:
            lines = np.stack([path[:-1], path[1:]], axis=1)
            api.add_line_segments(f"{name}/trace/{k}", lines, thickness_units="screen", **look)


def _captioned(page: str, title: str | None, notes: tuple[str, ...]) -> str:
    """The page with its title, and a caption in the corner."""
    lines = [f"<b>{html.escape(title)}</b>"] if title else []
    lines += [html.escape(note) for note in notes]
    caption = _CAPTION.format("<br>".join(lines)) if lines else ""
    name = f"<title>{html.escape(title or 'jaxmbd')}</title>"
    page = re.sub("<title>.*?</title>", lambda _: name, page, count=1)
    return page.replace("<body>", f"<body>{caption}", 1)
