"""Pictures of a scene by matplotlib: shaded triangles, the nearest painted last."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxmbd.numerics.extras import optional
from jaxmbd.viz.cast import ARROW, TRACE, Actor, Cast
from jaxmbd.viz.own_figure import own_figure
from jaxmbd.viz.scene import Colour, Placement, Scene
from jaxmbd.viz.solids import Mesh, arrow, bounding_corners
from jaxmbd.viz.stage import eye, grid_lines

_LIGHT = np.array([0.35, 0.55, 0.76])
"""Direction to the light in the camera's axes: right, up, backwards."""
_GRID = "#dfe4e8"
_PIECE = 0.05
"""Longest edge of a triangle that is sorted as a whole, as a share of the scene."""


class Camera(NamedTuple):
    """A perspective view: `axes` (3, 3) are its right, up and backward directions."""

    position: np.ndarray
    axes: np.ndarray

    @staticmethod
    def on(scene: Scene) -> Camera:
        """The view of a scene that the animation begins with."""
        position = eye(scene)
        back = position - scene.centre
        back /= np.linalg.norm(back)
        right = np.cross(scene.up, back)
        right /= np.linalg.norm(right)
        return Camera(position, np.stack([right, np.cross(back, right), back]))

    def seen(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Picture coordinates (…, 2) and depths (…) [m] of points (…, 3)."""
        local = (x - self.position) @ self.axes.T
        depth = -local[..., 2]
        return local[..., :2] / depth[..., None], depth


class Painter:
    """A figure of a cast that can be set to any of its frames.

    Args:
        cast: what is shown.
        title: of the picture.
        size: width and height of the figure [inches].
    """

    def __init__(self, cast: Cast, title: str | None = None, size: tuple[float, float] = (8, 4.5)):
        optional("matplotlib", "viz", "a picture")
        from matplotlib.collections import LineCollection, PolyCollection

        self.cast, self.camera = cast, Camera.on(cast.stage)
        self.figure = own_figure(*size)
        self._ax = ax = self.figure.add_axes((0, 0, 1, 1))
        ax.set_axis_off()
        ax.set_aspect("equal")
        self._frame(size[0] / size[1])
        lines = self.camera.seen(grid_lines(cast.stage))[0]
        ax.add_collection(LineCollection(list(lines), colors=_GRID, linewidths=0.6, zorder=0))
        self._faces: Any = ax.add_collection(PolyCollection([], zorder=2))
        self._text = ax.text(0.015, 0.975, "", transform=ax.transAxes, va="top", fontsize=8)
        self._heading = "\n".join([*([title] if title else []), *cast.notes])
        self.show(0)

    def show(self, frame: int) -> None:
        """Paint a frame."""
        colours: Any
        corners, colours = _triangles(self.cast, frame, self.camera)
        points, depth = self.camera.seen(corners)
        order = np.argsort(-depth.mean(axis=1))  # the farthest first
        self._faces.set_verts(points[order])
        self._faces.set_facecolor(colours[order])
        edges: Any = np.where(colours[order, 3:] < 1.0, 0.0, colours[order])
        self._faces.set_edgecolor(edges)  # hides the seams between triangles
        self._faces.set_linewidth(0.25)
        self._traces(frame)
        t = self.cast.actors[0].course.track.t
        time = [] if t is None or len(t) < 2 else [f"t = {t[min(frame, len(t) - 1)]:.3f} s"]
        self._text.set_text("\n".join([*([self._heading] if self._heading else []), *time]))

    def _traces(self, frame: int) -> None:
        for line in list(self._ax.lines):
            line.remove()
        for actor in self.cast.actors:
            for path in actor.traces:
                x, y = self.camera.seen(path)[0].T
                colour = TRACE if actor.colour is None else (*actor.colour[:3], 0.5)
                self._ax.plot(x, y, color=colour, linewidth=1.2, zorder=3)

    def _frame(self, aspect: float) -> None:
        """Limits within which everything stays during the course."""
        found = []
        for actor in self.cast.actors:
            steps = np.linspace(0, len(actor.course.clock) - 1, 12).astype(int)
            for k in np.unique(steps):
                for mesh, _ in _placed(actor, int(k)):
                    found.append(self.camera.seen(bounding_corners(mesh))[0])
        tips = self.cast.arrows.sum(axis=-2).reshape(-1, 3)
        found.append(self.camera.seen(tips)[0])
        every = np.concatenate(found)
        middle, span = 0.5 * (every.min(axis=0) + every.max(axis=0)), np.ptp(every, axis=0)
        half = 0.56 * max(span[0] / aspect, span[1])
        self._ax.set_xlim(middle[0] - half * aspect, middle[0] + half * aspect)
        self._ax.set_ylim(middle[1] - half, middle[1] + half)


def _triangles(cast: Cast, frame: int, camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, 3, 3) [m] and shaded colours (n, 4) of all triangles that face the camera."""
    meshes = [pair for actor in cast.actors for pair in _placed(actor, frame)]
    for foot, vector in cast.arrows[min(frame, len(cast.arrows) - 1)]:
        length = float(np.linalg.norm(vector))
        if length > 1e-3 * cast.actors[0].scene.size:
            meshes.append((arrow(foot, vector, 0.025 * length), ARROW))
    longest = _PIECE * cast.actors[0].scene.size
    corners, colours = [], []
    for mesh, colour in meshes:
        faces = _split(mesh.vertices[mesh.faces], longest)
        normal = np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0])
        size = np.linalg.norm(normal, axis=1)
        away = np.einsum("ij,ij->i", normal, camera.position - faces[:, 0])
        front = (size > 0.0) & (away > 0.0)
        light = (normal[front] / size[front, None]) @ camera.axes.T @ _LIGHT
        shade = 0.52 + 0.55 * np.maximum(light, 0.0)
        rgba = np.tile(np.asarray(colour, float), (int(front.sum()), 1))
        rgba[:, :3] = np.minimum(rgba[:, :3] * shade[:, None] + 0.06, 1.0)
        corners.append(faces[front])
        colours.append(rgba)
    return np.concatenate(corners), np.concatenate(colours)


def _placed(actor: Actor, frame: int) -> list[tuple[Mesh, Colour]]:
    """All meshes of an actor where they are at a frame; none of a ghost whose motion has ended."""
    course, scene = actor.course, actor.scene
    if frame >= len(course.clock) and actor.colour is not None:
        return []
    poses = course.at(min(frame, len(course.clock) - 1))
    found = []
    for x in scene.solids:
        put = scene.solid_placement(x.body, poses)
        found.append((_put(x.mesh, put), actor.colour or x.colour))
    for x in scene.spans:
        put = scene.span_placement(x, poses)
        found.append((_put(x.mesh, put), actor.colour or x.colour))
    return found


def _put(mesh: Mesh, put: Placement) -> Mesh:
    stretched = Mesh(mesh.vertices * (1.0, 1.0, put.stretch), mesh.faces)
    return stretched.moved(put.rotation, put.position)


def _split(faces: np.ndarray, longest: float) -> np.ndarray:
    """Triangles (n, 3, 3) halved at their longest edge until none is over `longest`."""
    done = []
    for _ in range(8):
        edges = np.linalg.norm(faces - np.roll(faces, -1, axis=1), axis=2)
        over = edges.max(axis=1) > longest
        done.append(faces[~over])
        faces, edges = faces[over], edges[over]
        if not len(faces):
            break
        k, rows = edges.argmax(axis=1), np.arange(len(faces))
        a, b, c = (faces[rows, (k + i) % 3] for i in range(3))
        middle = 0.5 * (a + b)
        faces = np.concatenate([np.stack([a, middle, c], 1), np.stack([middle, b, c], 1)])
    return np.concatenate([*done, faces])
