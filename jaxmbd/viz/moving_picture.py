"""Still pictures and films by matplotlib, for papers, slides and mails."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxmbd.io import Imported
from jaxmbd.model import Mechanism
from jaxmbd.numerics.extras import optional
from jaxmbd.viz.cast import cast_of
from jaxmbd.viz.painter import Painter

_SIZE = (8.0, 4.5)
_DPI = 150
"""Together 1200 × 675 points."""


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
        frame: of the motion that is shown, counted as `animation` shows them; -1 is the last.
        **options: as of `animation`.

    Returns:
        the matplotlib figure.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: as of `animation`.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.viz import picture
        >>> picture(mbd.zoo.rssr()).get_size_inches().tolist()
        [8.0, 4.5]
    """
    title = options.pop("title", None)
    painter = Painter(cast_of(model, solution, **options), title, _SIZE)
    painter.show(range(len(painter.cast.clock))[frame])
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
    painter, writer = Painter(cast, title, _SIZE), make(fps=rate)
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
