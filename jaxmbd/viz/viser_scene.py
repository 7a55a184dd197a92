"""A `Scene` in a viser server: put there once, then moved.

The server is on this machine only, and says nothing of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from jaxmbd.kinematics import Pose
from jaxmbd.model import GROUND
from jaxmbd.plumbing import optional
from jaxmbd.viz.course import poses_along
from jaxmbd.viz.scene import FIELD, Colour, Scene, Solid, Span, below, camera, cell_size
from jaxmbd.viz.solids import frame_along


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
