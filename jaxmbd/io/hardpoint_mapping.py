"""Whose hardpoint is whose, and in which frame: a mapping file of a hardpoint table."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from jaxmbd.io.data_file import read_toml
from jaxmbd.model import UNITS
from jaxmbd.plumbing import meant

_LARGEST = 1e9
"""Beyond any offset, in any unit."""
COLUMNS = ("name", "x", "y", "z")
KEYS = ("units", "sheet", "columns", "axes", "offset", "mirrored", "sides", "names", "ignore")
MappingLike = str | os.PathLike[str] | Mapping[str, Any] | None


@dataclass(frozen=True)
class HardpointMapping:
    """How a table's points become a mechanism's.

    Attributes:
        units: of its coordinates; None: those of its titles, or mm.
        sheet: of a workbook; by default the first.
        columns: titles of the columns of name, x, y and z.
        axes: our x, y and z in the table's axes, for example ("-x", "-y", "z").
        offset: of our origin in the table's axes, in its units (3,).
        mirrored: whether y is turned round, the other side of the vehicle.
        side, others: pattern of the names of the side that is read, with * for what our names
            have, and those of the other sides, whose rows are not read.
        names: our name to the table's, with the pattern of any side or without.
        ignore: patterns of rows that are not read.
    """

    units: str | None = None
    sheet: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    axes: tuple[str, ...] = ("x", "y", "z")
    offset: tuple[float, ...] = (0.0, 0.0, 0.0)
    mirrored: bool = False
    side: str | None = None
    others: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """Unit of the table's coordinates."""
        return self.units or "mm"

    @property
    def matrix(self) -> np.ndarray:
        """(3, 3) that takes the table's components to ours."""
        rows = np.zeros((3, 3))
        for i, axis in enumerate(self.axes):
            rows[i, "xyz".index(axis[-1])] = -1.0 if axis.startswith("-") else 1.0
        return np.diag([1.0, -1.0 if self.mirrored else 1.0, 1.0]) @ rows

    def ours(self, numbers: np.ndarray) -> np.ndarray:
        """Our coordinates (3,) [m] of the table's."""
        return self.matrix @ (numbers - np.asarray(self.offset)) * UNITS[self.unit]

    def theirs(self, point: np.ndarray) -> np.ndarray:
        """The table's coordinates (3,) of ours [m]."""
        return self.matrix.T @ point / UNITS[self.unit] + np.asarray(self.offset)

    def our_name(self, name: str) -> str | None:
        """Our name of a row; None if the row is not read."""
        if any(fnmatchcase(name, pattern) for pattern in self.others):
            return None
        bare = name
        if self.side is not None and fnmatchcase(name, self.side):
            start, _, end = self.side.partition("*")
            bare = name[len(start) : len(name) - len(end)]
        for own, other in self.names.items():
            if name == self.their_name(own) or name == other or bare == other:
                return own
        return None if any(fnmatchcase(name, pattern) for pattern in self.ignore) else bare

    def their_name(self, name: str) -> str:
        """The table's name of one of our points, on the side that is chosen."""
        given = self.names.get(name, name)
        if self.side is None or (name in self.names and _stem(given, self.side) is not None):
            return given
        stems = (_stem(given, pattern) for pattern in self.others if name in self.names)
        return self.side.replace("*", next((x for x in stems if x is not None), given), 1)


def _stem(name: str, pattern: str) -> str | None:
    """What * stands for in a name, whichever separators it has; None if it does not fit."""
    start, end = (
        "".join("[ _.-]" if c in " _.-" else re.escape(c) for c in part)
        for part in pattern.split("*")
    )
    fits = re.fullmatch(f"{start}(.+){end}", name)
    return fits[1] if fits else None


def read_mapping(given: MappingLike, units: str | None, side: str | None) -> HardpointMapping:
    """The mapping of a TOML file or of a dictionary of the same form; `units` come before its own.

    Raises:
        ValueError: lists all that is wrong with it.
        FileNotFoundError: there is no such file.
    """
    data, source = _loaded(given)
    found = [f"unknown key {k!r}{meant(k, KEYS)}" for k in data if k not in KEYS]
    chosen = units or data.get("units")
    if chosen is not None and chosen not in tuple(UNITS):
        found.append(f"units are {chosen!r}; give one of {', '.join(UNITS)}")
    axes = _listed(data, "axes", "xyz")
    letters = sorted(str(a)[-1:] for a in axes)
    signed = all(str(a) in ("x", "y", "z", "-x", "-y", "-z") for a in axes)
    if not signed or letters != ["x", "y", "z"]:
        found.append(f"axes are {list(axes)}; give ours in the table's, as ['-x', '-y', 'z']")
    offset = data.get("offset", (0.0, 0.0, 0.0))
    fits = isinstance(offset, list | tuple) and len(offset) == 3
    if not fits or not all(isinstance(x, (int, float)) and abs(x) < _LARGEST for x in offset):
        found.append(f"offset is {offset!r}; give three numbers")
    if not isinstance(data.get("sheet"), str | None):
        found.append(f"sheet is {data['sheet']!r}; give its name")
    ignored = _listed(data, "ignore", ())
    if not all(isinstance(x, str) for x in ignored):
        found.append(f"ignore is {data['ignore']!r}; give a list of patterns of names")
    for key in ("columns", "names", "sides"):
        if not all(isinstance(x, str) for x in _table(data, key, found).values()):
            found.append(f"{key} has entries that are no text")
    columns, names = _table(data, "columns"), _table(data, "names")
    found += [f"unknown column {k!r}; known are {COLUMNS}" for k in columns if k not in COLUMNS]
    twice = sorted({x for x in names.values() if list(names.values()).count(x) > 1})
    found += [f"names give {x!r} to several points" for x in twice]
    pattern, others = _side(_table(data, "sides"), side, found)
    if found:
        raise ValueError(f"{source}:\n" + "\n".join(f"  - {text}" for text in found))
    mapping = HardpointMapping(
        units=chosen,
        sheet=data.get("sheet"),
        columns=columns,
        axes=axes,
        offset=tuple(float(x) for x in offset),
        mirrored=bool(data.get("mirrored", False)),
        side=pattern,
        others=others,
        names=names,
        ignore=ignored,
    )
    theirs = [mapping.their_name(name) for name in names]
    if twice := sorted({x for x in theirs if theirs.count(x) > 1}):
        raise ValueError(f"{source}: on side {side!r}, names give {twice} to several points")
    if np.linalg.det(mapping.matrix) < 0.0 and not mapping.mirrored:
        raise ValueError(
            f"{source}: axes {list(axes)} are left-handed: they turn the vehicle inside out. Turn "
            "one of them round, or give mirrored = true if the other side of it is meant"
        )
    return mapping


def _loaded(given: MappingLike) -> tuple[Mapping[str, Any], str]:
    if given is None or isinstance(given, Mapping):
        return given or {}, "this mapping"
    return read_toml(given), os.fspath(given)


def _listed(data: Mapping[str, Any], key: str, default: Any) -> tuple[Any, ...]:
    """The entries of a list, or what is given in its place alone."""
    value = data.get(key, default)
    return tuple(value) if isinstance(value, list | tuple | str) else (value,)


def _table(data: Mapping[str, Any], key: str, found: list[str] | None = None) -> dict[str, Any]:
    value = data.get(key, {})
    if isinstance(value, Mapping):
        return dict(value)
    if found is not None:
        found.append(f"{key} is {value!r}; give a table")
    return {}


def _side(
    sides: dict[str, Any], side: str | None, found: list[str]
) -> tuple[str | None, tuple[str, ...]]:
    """The pattern of the side that is read, and those of the others."""
    found += [f"side {k!r} is {x!r}; put one * for the name" for k, x in sides.items()
              if str(x).count("*") != 1]  # fmt: skip
    if side is None and not sides:
        return None, ()
    if side not in tuple(sides):
        known = ", ".join(sides) or "none: the mapping has no table [sides]"
        found.append(f"side={side!r}; its sides are {known}")
        return None, ()
    return sides[side], tuple(x for name, x in sides.items() if name != side)
