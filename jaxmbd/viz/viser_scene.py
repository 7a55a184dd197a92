"""A `Scene` in a viser server: put there once, then moved; and animations recorded from it.

The server is on this machine only, and says nothing of its own. An animation is one HTML file that
needs no network, a page in the browser or a notebook.
"""

from __future__ import annotations

import html
import os
import re
import sys
import tempfile
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from jaxmbd.io import Imported
from jaxmbd.kinematics import Pose
from jaxmbd.model import GROUND, Mechanism, in_space
from jaxmbd.plumbing import optional
from jaxmbd.viz.course import ARROW, TRACE, WORST, Actor, Cast, cast_of, poses_along
from jaxmbd.viz.scene import FIELD, Colour, Scene, Solid, Span, below, camera, cell_size
from jaxmbd.viz.solids import arrow, cylinder, frame_along
from jaxmbd.viz.suspension_lines import COLOURS as LINES


@contextmanager
def viser_server(
    port: int = 8080, purpose: str = "a picture that moves", host: str = "127.0.0.1"
) -> Iterator[Any]:
    """A `viser.ViserServer` that other machines cannot reach, for the length of a `with`.

    Args:
        port: the first that is tried; the next free one is taken.
        purpose: what needs it, for the message where viser is missing.
        host: address that it is served at; "0.0.0.0" lets other machines in.

    Raises:
        ImportError: viser is not installed.

    Example:
        >>> from jaxmbd.viz import viser_server
        >>> with viser_server() as server:
        ...     server.get_host()
        '127.0.0.1'
    """
    viser = optional("viser", "viz", purpose)
    with _silent():
        server = viser.ViserServer(host=host, port=port, verbose=False)
    try:
        yield server
    finally:
        with _silent():
            server.stop()


def in_notebook() -> bool:
    """Whether a value at the end of a cell shows itself."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ in ("ZMQInteractiveShell", "Shell")


@contextmanager
def _silent() -> Iterator[None]:
    """Without viser's own messages, which it prints by rich, in notebooks as rich text."""
    console = optional("rich", "viz", "a viser server").get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


def quaternion(rotation: np.ndarray) -> np.ndarray:
    """A rotation (3, 3) as a unit quaternion, scalar first."""
    return Rotation.from_matrix(rotation).as_quat(scalar_first=True)


_PALE = 0.25
"""Opacity of what cannot be, by its own."""


class ViserScene:
    """The nodes of a scene in viser, one frame for each body, so that moving it sends little.

    Args:
        api: `viser.ViserServer.scene`.
        scene: what is drawn.
        name: node that all others are below.
        colour: in place of all colours, with its opacity, for a `Scene.ghost`.

    Attributes:
        nodes: its meshes in viser, in the order of the scene's solids and spans.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.viz import Scene, ViserScene, viser_server
        >>> mech = mbd.zoo.rssr()
        >>> with viser_server() as server:
        ...     shown = ViserScene(server.scene, Scene.of(mech))
        ...     shown.update(mbd.assemble(mech, {"crank": 0.5}).q)
    """

    def __init__(
        self, api: Any, scene: Scene, name: str = "/mechanism", colour: Colour | None = None
    ):
        self._api, self._name, self._colour = api, name, colour
        self._frames: dict[str, Any] = {}
        self.nodes: list[Any] = []
        self._parts: list[Solid | Span] = []
        self._pale = False
        self.redraw(scene)

    def redraw(self, scene: Scene) -> None:
        """Put another scene in the place of the one that is there, as drawn.

        Where it has the same parts, as a mechanism whose points have moved, only what looks
        otherwise is sent.
        """
        parts = [*scene.solids, *scene.spans]
        if not self._changed(parts):
            self.remove()
            for body in (GROUND, *scene.mech.structure.bodies):
                self._frames[body] = self._api.add_frame(self._path("body", body), show_axes=False)
            paths = [
                self._path("body", x.body, f"{x.name} ({k})") for k, x in enumerate(scene.solids)
            ]
            paths += [self._path("between", f"{x.name} ({k})") for k, x in enumerate(scene.spans)]
            self.nodes = [self._mesh(*both) for both in zip(paths, parts, strict=True)]
        self.scene, self._parts = scene, parts
        unmoved: Any = np.eye(3)
        self.place({body: Pose(unmoved, scene.mech.com(body)) for body in scene.mech.bodies})

    def _changed(self, parts: list[Solid | Span]) -> bool:
        """Give the nodes that are there other meshes; False if these are other parts."""
        if list(map(_looks, parts)) != list(map(_looks, self._parts)):
            return False
        for node, old, new in zip(self.nodes, self._parts, parts, strict=True):
            for field in ("vertices", "faces"):
                mesh = getattr(new.mesh, field)
                if not np.array_equal(mesh, getattr(old.mesh, field)):
                    setattr(node, field, mesh)
        return True

    def remove(self) -> None:
        """Take all its nodes out of the server."""
        for node in (*self.nodes, *self._frames.values()):
            node.remove()
        self.nodes, self._parts, self._frames, self._pale = [], [], {}, False

    def update(self, q: Any) -> None:
        """Move it to coordinates q (nq,); it is hidden where they are not finite."""
        if finite := bool(np.all(np.isfinite(q))):
            where = poses_along(self.scene.mech, np.asarray(q)[None])
            self.place(
                {body: Pose(*(np.asarray(x)[0] for x in pose)) for body, pose in where.items()}
            )
        self.visible = finite

    def place(self, where: Mapping[str, Pose]) -> None:
        """Move it to poses of its bodies."""
        for body, frame in self._frames.items():
            put = self.scene.solid_placement(body, where)
            frame.position, frame.wxyz = put.position, quaternion(put.rotation)
        for span, node in zip(self.scene.spans, self._span_nodes, strict=True):
            put = self.scene.span_placement(span, where)
            node.position, node.wxyz = put.position, quaternion(put.rotation)
            if span.fit == "stretched":
                node.scale = (1.0, 1.0, put.stretch)

    @property
    def _span_nodes(self) -> list[Any]:
        return self.nodes[len(self.scene.solids) :]

    @property
    def pale(self) -> bool:
        """Whether it is shown pale, as what cannot be."""
        return self._pale

    @pale.setter
    def pale(self, pale: bool) -> None:
        if pale == self._pale:
            return
        for part, node in zip(self._parts, self.nodes, strict=True):
            own = (self._colour or part.colour)[3]
            opacity = _PALE * own if pale else own
            node.opacity = None if opacity >= 1.0 else opacity
        self._pale = pale

    @property
    def visible(self) -> bool:
        """Whether it is shown."""
        return self._frames[GROUND].visible

    @visible.setter
    def visible(self, shown: bool) -> None:
        for node in (*self._frames.values(), *self._span_nodes):
            node.visible = shown

    def _path(self, *parts: str) -> str:
        return "/".join([self._name, *(part.replace("/", "|") for part in parts)])

    def _mesh(self, path: str, part: Solid | Span) -> Any:
        red, green, blue, opacity = self._colour or part.colour
        return self._api.add_mesh_simple(
            path,
            part.mesh.vertices,
            part.mesh.faces,
            color=tuple(x**1.4 for x in (red, green, blue)),  # its light is bright
            opacity=None if opacity >= 1.0 else opacity,
            cast_shadow=opacity >= 1.0,
            receive_shadow=False,
        )


def _looks(part: Solid | Span) -> tuple[Any, ...]:
    """What a part is, without its mesh."""
    bodies = (part.body,) if isinstance(part, Solid) else (part.a, part.b, part.fit)
    return part.name, part.colour, len(part.mesh.vertices), *bodies


def set_stage(server: Any, scene: Scene) -> None:
    """Put the ground, the light and the camera of a scene into a viser server.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.viz import Scene, set_stage, viser_server
        >>> with viser_server() as server:
        ...     set_stage(server, Scene.of(mbd.zoo.rssr()))
    """
    api, up = server.scene, scene.up
    api.set_up_direction(tuple(up))
    cell = cell_size(scene)
    api.add_grid(
        "/ground",
        width=40.0 * cell,
        height=40.0 * cell,
        cell_size=cell,
        section_size=5.0 * cell,
        cell_color=(222, 226, 230),
        section_color=(190, 197, 204),
        fade_distance=6.0 * scene.size,
        shadow_opacity=0.2,
        position=below(scene),
        wxyz=quaternion(frame_along(up)),
    )
    first = server.initial_camera
    first.position, first.look_at, first.up = camera(scene).position, tuple(scene.centre), tuple(up)
    first.fov, first.near, first.far = FIELD, 0.01 * scene.size, 100.0 * scene.size


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
        solution: an experiment, such as `observe.Driven`, or what has coordinates ``q``, and
            perhaps times ``t`` (a `Solution`, a `DrivenMotion`, an `Assembly`, a `Trajectory`, one
            of `Imported.states`), or coordinates alone: (nq,) for a still picture, (n, nq), or
            (samples, n, nq), which draws samples over each other. What has no times is played to
            and fro. By default the assembled pose.
        **options: further arguments, all optional:

            * ``title``: of the page.
            * ``wheels``: wheels (`Wheel`, `corner_wheel`) beside those of tyres.
            * ``traces``: pairs (body, point) whose paths are drawn.
            * ``arrows``: names of joints and force elements whose forces are drawn as arrows;
              "reactions" and "forces" are all of them.
            * ``corners``: roles of a suspension's wheels (`suspension.Corner`), one or both, whose
              instant and steering axes and lines from the contacts to the roll centre are drawn; an
              axle has its roll centre on its rig (`suspension.on_rig`).
            * ``labels``: True for the names of all hardpoints, or names of some.
            * ``inputs``: efforts on joints during the motion, as of `simulate`, for the reactions.
            * ``full``: sample that is drawn in full, by default 0.
            * ``worst``: sample that is highlighted in red.
            * ``ghosts``: how many samples are drawn pale, at most 24, by default 12.
            * ``speed``: of the playback, 1 for real time, 0.1 for ten times slower; by default real
              time, but motions of less than half a second take some three seconds.
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
    thin = cylinder(0.0016 * cast.stage.size, 0.0, 1.0)
    lines = [
        server.scene.add_mesh_simple(
            f"/lines/{kind} ({k})", thin.vertices, thin.faces, color=LINES[kind][:3],
            cast_shadow=False,
        )
        for k, kind in enumerate(cast.kinds)
    ]  # fmt: skip
    _name_points(server.scene, cast.labels, cast.actors[0])
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
        for node, ends in zip(lines, cast.lines[min(k, len(cast.lines) - 1)], strict=True):
            _place_line(node, *ends)
    serializer = serializer or server.get_scene_serializer()
    return _captioned(serializer.as_html(), title, cast.notes)


def _set_frame(shown: ViserScene, actor: Actor, k: int) -> None:
    """The actor at a frame; one whose motion has ended stays where it was, if it is the first."""
    last = len(actor.course.clock) - 1
    if k <= last:
        shown.place(actor.course.at(k))
    elif k == last + 1 and actor.colour is not None:
        shown.visible = False


def _place_line(node: Any, start: np.ndarray, end: np.ndarray) -> None:
    """A thin bar between two points; hidden where one is NaN."""
    length = float(np.linalg.norm(end - start))
    node.visible = bool(length > 0.0)
    if node.visible:
        node.position, node.wxyz = start, quaternion(frame_along(end - start))
        node.scale = (1.0, 1.0, length)


def _name_points(api: Any, labels: tuple[tuple[str, str], ...], actor: Actor) -> None:
    """Names at points, which move with the frames of their bodies."""
    space = in_space(actor.scene.mech)
    for name, body in labels:
        path = f"/mechanism/body/{body.replace('/', '|')}/name of {name.replace('/', '|')}"
        api.add_label(path, name, position=np.asarray(space.point(name)))


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
