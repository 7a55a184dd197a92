"""Kinematic diagrams as DXF, for CAD programs: lines, polylines, circles and names by layers.

ASCII DXF of release 12 (AC1009), after Autodesk's "DXF Reference": pairs of a group code and a
value, in a header, a table of layers, and the entities LINE, POLYLINE, CIRCLE and TEXT.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jaxmbd.io import Imported
from jaxmbd.model import Mechanism
from jaxmbd.viz.glyphs import Wheel
from jaxmbd.viz.kinematic_diagram import PIN, placed, plane_drawing
from jaxmbd.viz.plane_drawing import Circle, Line

UNITS = {"mm": (1e3, 4), "m": (1.0, 6), "in": (1.0 / 0.0254, 1)}
"""Each unit in a metre, and its number as ``$INSUNITS``."""
_TEXT = 1.8
"""Height of letters over the radius of a pin."""

Pair = tuple[int, Any]
Letters = tuple[str, Any, float]


def write_dxf(
    path: str | os.PathLike[str],
    model: Mechanism | Imported,
    solution: Any = None,
    *,
    unit: str = "mm",
    plane: str | None = None,
    names: bool = True,
    traces: Iterable[tuple[str, Any]] = (),
    along: Any = None,
    frame: int = 0,
    wheels: Iterable[Wheel] = (),
) -> Path:
    """Write a mechanism at a pose as a DXF drawing in full scale, which CAD programs open.

    Each body, rod, joint and force element is a layer with its name, paths of points are on the
    layer TRACES, names on NAMES. Letters that a layer's name cannot have become ``_``.

    Args:
        path: the file.
        model: as of `plane_figure`.
        solution: as of `plane_figure`.
        unit: of the drawing: "mm", "m" or "in"; the header names it.
        plane: as of `plane_figure`.
        names: whether names of links, joints and markers are written.
        traces: as of `plane_figure`.
        along: as of `plane_figure`.
        frame: as of `plane_figure`.
        wheels: as of `plane_figure`.

    Raises:
        ValueError: another unit; as of `plane_figure`.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> from jaxmbd.viz import write_dxf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = write_dxf(folder + "/crank.dxf", mbd.zoo.slider_crank())
        ...     path.read_text().splitlines()[1]
        'crank, unit mm, x to the right, y upwards'
    """
    if unit not in UNITS:
        raise ValueError(f"unit={unit!r}: give one of {list(UNITS)}")
    drawing = plane_drawing(
        model, solution, plane=plane, frame=frame, traces=traces, along=along, wheels=wheels
    )
    path = Path(path)
    right, up = drawing.view.names()
    axes = f", {right} to the right, {up} upwards" if right and up else ""
    texts = drawing.names if names else ()
    places = placed(texts, drawing, drawing.pin / PIN)
    height = _TEXT * drawing.pin
    letters = [(name.text, at, height) for name, at in zip(texts, places, strict=True)]
    return write_parts(path, f"{path.stem}, unit {unit}{axes}", unit, drawing.parts, letters)


def write_parts(
    path: Path,
    comment: str,
    unit: str,
    parts: Sequence[Line | Circle],
    letters: Sequence[Letters] = (),
) -> Path:
    """Write lines, circles and names.

    Args:
        path: the file.
        comment: its first line.
        unit: of `UNITS`.
        parts: lines and circles [m].
        letters: names, each with its middle (2,) and its height [m].

    Returns:
        the file.
    """
    pairs = _document(comment, unit, parts, letters)
    text = "".join(f"{code}\n{_value(x)}\n" for code, x in pairs)
    path.write_text(text, "ascii", newline="\r\n")
    return path


def _document(
    comment: str, unit: str, parts: Sequence[Line | Circle], letters: Sequence[Letters]
) -> Iterator[Pair]:
    """All of a file."""
    factor, number = UNITS[unit]
    yield 999, comment
    yield from _section("HEADER", [(9, "$ACADVER"), (1, "AC1009"), (9, "$INSUNITS"), (70, number)])
    layers = dict.fromkeys([*(_layer(x) for x in parts), *(["NAMES"] if letters else [])])
    table: list[Pair] = [(0, "TABLE"), (2, "LAYER"), (70, len(layers))]
    for k, layer in enumerate(layers):
        table += [(0, "LAYER"), (2, layer), (70, 0), (62, k % 7 + 1), (6, "CONTINUOUS")]
    yield from _section("TABLES", [*table, (0, "ENDTAB")])
    entities = [pair for part in parts for pair in _entity(part, factor)]
    for text, at, height in letters:
        entities += [(0, "TEXT"), (8, "NAMES"), *_point(at, factor, 0)]
        entities += [(40, factor * height), (1, text), (72, 4), *_point(at, factor, 1)]
    yield from _section("ENTITIES", entities)
    yield 0, "EOF"


def _section(name: str, pairs: Iterable[Pair]) -> Iterator[Pair]:
    yield from [(0, "SECTION"), (2, name), *pairs, (0, "ENDSEC")]


def _layer(part: Line | Circle) -> str:
    return "TRACES" if part.style == "trace" else re.sub(r"[^A-Z0-9$_-]", "_", part.layer.upper())


def _entity(part: Line | Circle, factor: float) -> Iterator[Pair]:
    layer = _layer(part)
    if isinstance(part, Circle):
        yield from [(0, "CIRCLE"), (8, layer), *_point(part.centre, factor, 0)]
        yield 40, factor * part.radius
    elif len(part.points) == 2:
        yield from [(0, "LINE"), (8, layer)]
        for k, x in enumerate(part.points):
            yield from _point(x, factor, k)
    else:
        yield from [(0, "POLYLINE"), (8, layer), (66, 1), (70, int(part.closed))]
        yield from _point((0.0, 0.0), factor, 0)
        for x in part.points:
            yield from [(0, "VERTEX"), (8, layer), *_point(x, factor, 0)]
        yield from [(0, "SEQEND"), (8, layer)]


def _point(x: Any, factor: float, which: int) -> Iterator[Pair]:
    """Groups of the coordinates of an entity's first point (0) or second one (1)."""
    for k, value in enumerate((*x, 0.0)):
        yield 10 * (k + 1) + which, factor * float(value)


def _value(x: Any) -> str:
    """A value as ASCII: other letters by their numbers, as CAD programs read them."""
    if isinstance(x, float):
        return f"{x:.12g}"
    return "".join(c if c.isascii() else f"\\U+{ord(c):04X}" for c in str(x))
