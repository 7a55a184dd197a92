"""Still pictures and films by matplotlib, for papers, slides and mails.

A scene is shaded triangles, the nearest painted last. Matplotlib's own mplot3d does the same in
0.36 s a frame of a suspension corner, where this takes 0.17 s, clips it to a square, and sorts long
triangles wrongly unless they are split as here.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbd.io import Imported
from jaxmbd.model import Mechanism, in_space
from jaxmbd.plumbing import optional
from jaxmbd.viz.course import ARROW, TRACE, Actor, Cast, cast_of
from jaxmbd.viz.curves import own_figure
from jaxmbd.viz.scene import Camera, Colour, camera, grid_lines
from jaxmbd.viz.solids import arrow, bounding_corners
from jaxmbd.viz.suspension_lines import COLOURS as LINES

_SIZE, _DPI = (8.0, 4.5), 150
"""Of a picture [in]; together 1200 × 675 points."""
_LIGHT = np.array([0.35, 0.55, 0.76])
"""Direction to the light in the camera's axes: right, up, backwards."""
_GRID = "#dfe4e8"
_PIECE = 0.05
"""Longest edge of a triangle that is sorted as a whole, as a share of the scene."""


class Painter:
    """A figure of a cast that can be set to any of its frames.

    Args:
        cast: what is shown.
        title: of the picture.
    """

    def __init__(self, cast: Cast, title: str | None = None):
        collections = optional("matplotlib.collections", "viz", "a picture")
        self.cast, self.camera = cast, camera(cast.stage)
        self.figure = own_figure(*_SIZE)
        self._ax = ax = self.figure.add_axes((0, 0, 1, 1))
        ax.set_axis_off()
        ax.set_aspect("equal")
        self._set_limits(_SIZE[0] / _SIZE[1])
        lines = self.camera.seen(grid_lines(cast.stage))[0]
        grid = dict(colors=_GRID, linewidths=0.6, zorder=0)
        ax.add_collection(collections.LineCollection(list(lines), **grid))
        self._faces = ax.add_collection(collections.PolyCollection([], linewidths=0.25, zorder=2))
        for actor in cast.actors:
            colour = TRACE if actor.colour is None else (*actor.colour[:3], 0.5)
            for path in actor.traces:
                ax.plot(*self.camera.seen(path)[0].T, color=colour, linewidth=1.2, zorder=3)
        look: dict[str, Any] = dict(linewidths=1.4, zorder=3)
        colours = [LINES[kind] for kind in cast.kinds]
        self._lines = collections.LineCollection([], colors=colours, **look)
        ax.add_collection(self._lines)
        near: dict[str, Any] = dict(xytext=(3, 3), textcoords="offset points", fontsize=6)
        near |= dict(color="#39424e", zorder=4)
        self._labels = [ax.annotate(name, (0.0, 0.0), **near) for name, _ in cast.labels]
        self._text = ax.text(0.015, 0.975, "", transform=ax.transAxes, va="top", fontsize=8)
        self._heading = [*([title] if title else []), *cast.notes]
        self.show(0)

    def show(self, frame: int) -> None:
        """Paint a frame."""
        corners, colours = _triangles(self.cast, frame, self.camera)
        points, depth = self.camera.seen(corners)
        order = np.argsort(-depth.mean(axis=1))  # the farthest first
        colours = colours[order]
        self._faces.set_verts(points[order])
        self._faces.set_facecolor(colours)
        # Edges hide the seams between triangles.
        self._faces.set_edgecolor(np.where(colours[:, 3:] < 1.0, 0.0, colours))
        self._show_lines(frame)
        t = self.cast.actors[0].course.track.t
        time = [] if t is None or len(t) < 2 else [f"t = {t[min(frame, len(t) - 1)]:.3f} s"]
        self._text.set_text("\n".join([*self._heading, *time]))

    def _show_lines(self, frame: int) -> None:
        """Lines of a suspension, and names of points, where they are in a frame."""
        cast, first = self.cast, self.cast.actors[0]
        if cast.kinds:
            ends = cast.lines[min(frame, len(cast.lines) - 1)]
            self._lines.set_segments(list(self.camera.seen(ends)[0]))
        poses = first.course.at(min(frame, len(first.course.clock) - 1)) if cast.labels else {}
        space = in_space(first.scene.mech)
        for text, (name, body) in zip(self._labels, cast.labels, strict=True):
            at = first.scene.solid_placement(body, poses).put(np.asarray(space.point(name)))
            text.xy = tuple(self.camera.seen(at)[0])

    def _set_limits(self, aspect: float) -> None:
        """Limits within which everything stays during the course."""
        found = []
        for actor in self.cast.actors:
            steps = np.linspace(0, len(actor.course.clock) - 1, 12).astype(int)
            for k in np.unique(steps):
                for vertices, _, _ in _placed(actor, int(k)):
                    found.append(self.camera.seen(bounding_corners(vertices))[0])
        tips = self.cast.arrows.sum(axis=-2).reshape(-1, 3)
        found.append(self.camera.seen(tips)[0])
        to_centre = [k for k, kind in enumerate(self.cast.kinds) if kind == "roll centre"]
        ends = self.cast.lines[:, to_centre].reshape(-1, 3)
        found.append(self.camera.seen(ends[np.all(np.isfinite(ends), axis=1)])[0])
        every = np.concatenate(found)
        middle, span = 0.5 * (every.min(axis=0) + every.max(axis=0)), np.ptp(every, axis=0)
        half = 0.56 * max(span[0] / aspect, span[1])
        self._ax.set_xlim(middle[0] - half * aspect, middle[0] + half * aspect)
        self._ax.set_ylim(middle[1] - half, middle[1] + half)


def _triangles(cast: Cast, frame: int, camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, 3, 3) [m] and shaded colours (n, 4) of all triangles that face the camera."""
    size = cast.actors[0].scene.size
    meshes = [part for actor in cast.actors for part in _placed(actor, frame)]
    for foot, vector in cast.arrows[min(frame, len(cast.arrows) - 1)]:
        length = float(np.linalg.norm(vector))
        if length > 1e-3 * size:
            mesh = arrow(foot, vector, 0.025 * length)
            meshes.append((mesh.vertices, mesh.faces, ARROW))
    corners, colours = [], []
    for vertices, indices, colour in meshes:
        faces = _split(vertices[indices], _PIECE * size)
        normal = np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0])
        area = np.linalg.norm(normal, axis=1)
        away = np.einsum("ij,ij->i", normal, camera.position - faces[:, 0])
        front = (area > 0.0) & (away > 0.0)
        light = (normal[front] / area[front, None]) @ camera.axes.T @ _LIGHT
        shade = 0.52 + 0.55 * np.maximum(light, 0.0)
        rgba = np.tile(np.asarray(colour, float), (int(front.sum()), 1))
        rgba[:, :3] = np.minimum(rgba[:, :3] * shade[:, None] + 0.06, 1.0)
        corners.append(faces[front])
        colours.append(rgba)
    return np.concatenate(corners), np.concatenate(colours)


def _placed(actor: Actor, frame: int) -> list[tuple[np.ndarray, np.ndarray, Colour]]:
    """Vertices [m], faces and colours of an actor at a frame; of a ghost until its motion ends."""
    course, scene = actor.course, actor.scene
    if frame >= len(course.clock) and actor.colour is not None:
        return []
    poses = course.at(min(frame, len(course.clock) - 1))
    put = [(x, scene.solid_placement(x.body, poses)) for x in scene.solids]
    put += [(x, scene.span_placement(x, poses)) for x in scene.spans]
    return [(at.put(x.mesh.vertices), x.mesh.faces, actor.colour or x.colour) for x, at in put]


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


def picture(
    model: Mechanism | Imported,
    solution: Any = None,
    path: str | os.PathLike[str] | None = None,
    *,
    frame: int = 0,
    **options: Any,
) -> Any:
    """A still picture of a mechanism.

    Args:
        model: a mechanism or an imported model, as of `animation`.
        solution: its motion or coordinates, as of `animation`.
        path: file to write, if any; its extension sets the format.
        frame: which moment of the motion: 0 is the first, -1 the last. A motion in time has 30
            frames for each second of playback (`rate`, `speed`), a sweep one for each of its
            positions, there and back; coordinates of one pose have a single frame.
        **options: as of `animation`.

    Returns:
        the matplotlib figure.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: as of `animation`; the motion has no such frame.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.viz import picture
        >>> picture(mbd.zoo.rssr()).get_size_inches().tolist()
        [8.0, 4.5]
    """
    title = options.pop("title", None)
    painter = Painter(cast_of(model, solution, **options), title)
    frames = len(painter.cast.clock)
    if not -frames <= frame < frames:
        raise ValueError(
            f"frame={frame}, but there are {frames} frames: give 0 to {frames - 1}, or -1 for the "
            "last"
            if frames > 1
            else f"frame={frame}, but a single pose has one frame, 0; give a motion to choose from"
        )
    painter.show(frame % frames)
    if path is not None:
        painter.figure.savefig(path, dpi=_DPI)
    return painter.figure


def movie(
    path: str | os.PathLike[str],
    model: Mechanism | Imported,
    solution: Any = None,
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Path:
    """Write a motion as a film, MP4 or GIF.

    Args:
        path: the file, ``.mp4`` (with ffmpeg, or the extra ``film``) or ``.gif``.
        model: a mechanism or an imported model, as of `animation`.
        solution: its motion, as of `animation`.
        progress: called after each frame with how many are done, and how many there are.
        **options: as of `animation`; a GIF has 20 frames a second unless `rate` is given.

    Raises:
        ImportError: matplotlib is not installed; for an MP4, neither ffmpeg nor imageio-ffmpeg.
        ValueError: as of `animation`; another extension.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> from jaxmbd.viz import movie
        >>> mech = mbd.zoo.simple_pendulum()
        >>> swing = mbd.simulate(mech, [0.1], t1=0.2, dt=1e-2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     movie(folder + "/swing.gif", mech, swing).name
        'swing.gif'
    """
    path, title = Path(path), options.pop("title", None)
    if path.suffix not in (".gif", ".mp4"):
        raise ValueError(f"{path.name} is neither .mp4 nor .gif; name a file that is")
    optional("matplotlib", "viz", "a film")
    if path.suffix == ".gif":
        options["rate"] = options.get("rate") or 20.0
    import matplotlib as mpl

    make, settings = _writer(path.suffix)
    cast = cast_of(model, solution, **options)
    frames = len(cast.clock)
    rate = (frames - 1) / float(cast.clock[-1]) if frames > 1 else 1.0
    painter, writer = Painter(cast, title), make(fps=rate)
    unfinished = path.with_name(f"{path.stem}.part{path.suffix}")
    try:
        with mpl.rc_context(settings), writer.saving(painter.figure, str(unfinished), dpi=_DPI):
            for k in range(frames):
                painter.show(k)
                writer.grab_frame()
                if progress is not None:
                    progress(k + 1, frames)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def _writer(suffix: str) -> tuple[Any, dict[Any, Any]]:
    """Matplotlib's writer of a kind of film, and the settings that it needs."""
    from matplotlib.animation import FFMpegWriter, PillowWriter

    if suffix == ".gif":
        return PillowWriter, {}
    program = shutil.which("ffmpeg")
    if program is None:
        purpose = "an MP4 where there is no ffmpeg (a .gif needs none)"
        program = optional("imageio_ffmpeg", "film", purpose).get_ffmpeg_exe()
    return FFMpegWriter, {"animation.ffmpeg_path": program}
