"""Outlines of cams for those who make them: closed polylines as DXF, tables as CSV."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from jaxmbd.cams import CamStatus, Follower, Roller
from jaxmbd.viz.dxf import UNITS, write_parts
from jaxmbd.viz.plane_drawing import Line

_FEWEST, _MOST = 360, 360 * 2**8


def write_cam(
    path: str | os.PathLike[str],
    cam: Follower,
    *,
    unit: str = "mm",
    tolerance: float = 1e-6,
) -> Path:
    """Write a cam's profile, and the path of its roller's centre, as DXF or CSV.

    The origin is the shaft, and the follower at the cam's angle 0 is where it is drawn: its roller
    above the shaft, the pivot of an arm on +x. Points are at equal steps of the cam's angle, as
    many as keep chords within the tolerance. The DXF has closed polylines in full scale on the
    layers PROFILE and ROLLER_CENTRE, which a cutter as large as the roller follows; the CSV has a
    row for each angle from 0 to 360°, the last being the first again.

    Args:
        path: the file; its extension says which, .dxf or .csv.
        cam: the cam with its follower, concrete and sound.
        unit: of the file: "mm", "m" or "in"; its head names it.
        tolerance: how far chords may be from the curves [m].

    Raises:
        ValueError: another unit or extension; the cam is undercut or out of reach; more than
            92 160 points would be needed.

    Example:
        >>> import tempfile, numpy as np
        >>> from jaxmbd.cams import Dwell, Programme, Return, Rise, TranslatingRoller
        >>> from jaxmbd.viz import write_cam
        >>> lift = Programme([Rise(0.02, 1.5), Return(0.02, 1.5), Dwell()])
        >>> cam = TranslatingRoller(lift, base_radius=0.04, roller_radius=0.01)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lines = write_cam(folder + "/cam.csv", cam).read_text().splitlines()
        >>> print(lines[0])
        angle [deg],profile x [mm],profile y [mm],roller centre x [mm],roller centre y [mm]
        >>> print(lines[1])
        0,0,40,0,50
    """
    path = Path(path)
    if path.suffix.lower() not in (".dxf", ".csv"):
        raise ValueError(f"write_cam: {path.name!r}: give a name that ends in .dxf or .csv")
    if unit not in UNITS:
        raise ValueError(f"unit={unit!r}: give one of {list(UNITS)}")
    if status := CamStatus(int(cam.status())):
        raise ValueError(
            f"write_cam: the cam is {status.name}, so what is cut by its profile moves the "
            "follower otherwise; see Follower.status and least_base_radius"
        )
    curves = _curves(cam, tolerance)
    if path.suffix.lower() == ".dxf":
        lines = [Line(name, x, "line", closed=True) for name, x in curves.items()]
        comment = f"{path.stem}, unit {unit}, origin at the shaft, cam at its angle 0"
        write_parts(path, comment, unit, lines)
    else:
        _write_table(path, curves, unit)
    return path


def _curves(cam: Follower, tolerance: float) -> dict[str, np.ndarray]:
    """Points (n, 2) [m] of each closed curve, at equal steps of the cam's angle."""
    rolls = isinstance(cam, Roller) and float(cam.roller_radius) > 0.0
    fields = {"profile": "profile"} | ({"roller centre": "pitch"} if rolls else {})
    n = _FEWEST
    while n <= _MOST:
        curves = _at_equal_steps(cam, fields, 2 * n)
        if all(_chords_miss(x) <= tolerance for x in curves.values()):
            return {name: x[::2] for name, x in curves.items()}
        n *= 2
    raise ValueError(
        f"write_cam: {_MOST} points do not keep chords within tolerance={tolerance:g} m; allow more"
    )


def _at_equal_steps(cam: Follower, fields: dict[str, str], n: int) -> dict[str, np.ndarray]:
    """Points (n, 2) [m] of curves, n being a multiple of 720: in blocks, which compile once."""
    blocks = (np.arange(n) * (2.0 * np.pi / n)).reshape(-1, 2 * _FEWEST)
    shapes = [cam.geometry(block) for block in blocks]
    return {
        name: np.concatenate([np.asarray(getattr(x, field)) for x in shapes])
        for name, field in fields.items()
    }


def _chords_miss(x: np.ndarray) -> float:
    """How far a closed curve (2n, 2) is from the chords of every second point [m]."""
    start, middle, end = x[::2], x[1::2], np.roll(x[::2], -1, axis=0)
    chord, away = end - start, middle - start
    length = np.sqrt(np.sum(chord**2, axis=1))
    beside = chord[:, 0] * away[:, 1] - chord[:, 1] * away[:, 0]
    return float(np.max(np.abs(beside) / np.maximum(length, np.finfo(float).tiny)))


def _write_table(path: Path, curves: dict[str, np.ndarray], unit: str) -> None:
    names = [f"{name} {axis} [{unit}]" for name in curves for axis in "xy"]
    points = UNITS[unit][0] * np.concatenate(list(curves.values()), axis=1)
    angle = np.linspace(0.0, 360.0, len(points) + 1)[:, None]
    rows = np.concatenate([angle, np.concatenate([points, points[:1]])], axis=1)
    head = ",".join(["angle [deg]", *names])
    rows = np.round(rows, 9) + 0.0  # the latter takes the sign off zeros
    np.savetxt(path, rows, "%.12g", ",", header=head, comments="", encoding="ascii")
