"""Hardpoints as suspension engineers keep them: a table in a CSV file or a workbook.

A mapping, a TOML file or a dictionary, gives the table's names, units and frame.
"""

from __future__ import annotations

import csv
import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbd.io.files import is_file, read_toml, replacing
from jaxmbd.model import (
    UNITS,
    Mechanism,
    TablePoints,
    named_points,
    problems_text,
    vector_in_space,
)
from jaxmbd.plumbing import meant, optional, refuse

NAME_TITLES = ("name", "point", "hardpoint", "hard point", "hardpoint name", "label")
WORKBOOKS = (".xlsx", ".xlsm")
LENGTHS = ("mm", "cm", "m", "in", "inch", "ft", "dm", "km", "um", "µm")
_BEHIND = re.compile(r"\s*[\[(].*[\])]\s*$|[_ ](mm|cm|m|in)$", re.IGNORECASE)
"""What follows the name in a title, a unit perhaps."""
_LONGEST = 100_000
"""Characters of the longest line of a table."""
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
Points = Mapping[str, Any] | Mechanism
_LARGEST = 1e9
"""Beyond any offset, in any unit."""
COLUMNS = ("name", "x", "y", "z")
KEYS = ("units", "sheet", "columns", "axes", "offset", "mirrored", "sides", "names", "ignore")
MappingLike = str | os.PathLike[str] | Mapping[str, Any] | None


def read_hardpoints(
    path: str | os.PathLike[str],
    mapping: MappingLike = None,
    *,
    units: str | None = None,
    side: str | None = None,
    points: Points | None = None,
    partial: bool = False,
) -> dict[str, np.ndarray]:
    """Hardpoints of a table with the columns name, x, y and z.

    The table's first row of titles may be preceded by others; titles may have units, as "x [m]",
    which then count, and rows may be empty. Texts may be separated by commas, semicolons or tabs,
    with decimal commas too. A mapping, a TOML file or a dictionary, describes other tables::

        units = "mm"                      # mm (default), cm, m or in; not against the titles
        sheet = "Front"                   # of a workbook; by default the first
        axes = ["-x", "-y", "z"]          # our x, y, z in the table's axes
        offset = [1200.0, 0.0, 0.0]       # of our origin in the table's axes, its units
        mirrored = false                  # true: y is turned round
        ignore = ["REF_*"]                # rows that are not read

        [columns]                         # titles, where they are not name, x, y, z
        name = "Hardpoint"

        [sides]                           # patterns of names, chosen by side=
        left = "*_L"
        right = "*_R"

        [names]                           # our name = the table's
        tierod_inboard = "TR_IB"          # with sides: "TR_IB_L" and "TR_IB_R" mean the same

    Rows under [names] must be there, those of the chosen side. All other rows have their own
    names, without what the side adds to them; rows of other sides are not read.

    Args:
        path: a text, or a workbook (.xlsx).
        mapping: the TOML file, or its content.
        units: in place of the mapping's.
        side: one of the mapping's sides.
        points: a mechanism, or its points: names that it does not have are an error, and so are
            points of it that the table does not have, and coordinates that fit in another unit.
        partial: whether points that the table does not have are to stay as they are.

    Returns:
        coordinates (3,) [m] by name, for the zoo's ``points=`` and functions of yours that build a
        mechanism from points. ``mech.replace(points=…)`` moves joints and forces alone: centres of
        mass given as numbers stay where they were. Both refuse what `points` would.

    Raises:
        ValueError: lists all that is wrong: columns that are missing, names that are unknown,
            missing or twice there, cells beyond the titles, and what is no number, each with its
            row.
        FileNotFoundError: there is no such file.
        ImportError: pandas, or openpyxl for a workbook, is not installed.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = f"{folder}/corner.csv"
        ...     mbd.io.write_hardpoints(table, mbd.zoo.multi_link())
        ...     read = mbd.io.read_hardpoints(table)
        >>> mbd.zoo.multi_link(points=read).points["wheel_centre"].round(6).tolist()
        [0.0, 0.95, 0.0]
    """
    found = read_mapping(mapping, units, side)
    rows, separator = _rows(Path(path), found.sheet)
    head, columns = _head(path, rows, found)
    found = _with_units(path, found, [rows[head][columns[c]] for c in "xyz"])
    whole = isinstance(points, Mechanism)
    others: Mapping[str, Any] | None = points.points if whole else points
    problems: list[str] = []
    out: dict[str, np.ndarray] = {}
    places: dict[str, int] = {}
    width = max(k for k, title in enumerate(rows[head]) if title) + 1
    for i, row in enumerate(rows[head + 1 :], start=head + 2):
        cells = {c: row[k] for c, k in columns.items()}
        name = found.our_name(cells["name"]) if cells["name"] else None
        if name is None:
            if not cells["name"] and any(cells.values()):
                problems.append(f"row {i} has no name")
            continue
        what = f"row {i} ({cells['name']!r})"
        if others is not None and name not in others:
            problems.append(
                f"{what}: there is no point {name!r}{meant(name, others)}; name it in [names], or "
                "ignore it"
            )
        if name in places:
            problems.append(f"{what}: {name!r} is in row {places[name]} already")
        if surplus := [x for x in row[width:] if x]:
            problems.append(
                f"{what}: {surplus} is beyond the last title, {rows[head][width - 1]!r}; are there "
                "decimal commas between commas? Separate cells by semicolons, or quote the numbers"
            )
        numbers = [_number(cells[c], f"{what}: {c}", separator, problems) for c in "xyz"]
        places.setdefault(name, i)
        if None not in numbers:
            out.setdefault(name, found.ours(np.array(numbers, float)))
    problems += _missing(found, places, [row[columns["name"]] for row in rows[head + 1 :]])
    read = TablePoints(out, os.fspath(path), found.unit, partial)
    if others is not None:
        needed = named_points(points) if whole else others
        problems += read.problems(others, [n for n in needed if n not in places])
    if problems:
        raise ValueError(problems_text(f"{os.fspath(path)} has", problems))
    return read


def _missing(found: HardpointMapping, places: Mapping[str, int], texts: list[str]) -> list[str]:
    """Rows under [names] that are not there."""
    lost = {name: found.their_name(name) for name in found.names if name not in places}
    return [
        f"there is no row {theirs!r}, for {name!r}{meant(theirs, texts)}"
        for name, theirs in lost.items()
    ]


def write_hardpoints(
    path: str | os.PathLike[str],
    points: Points,
    mapping: MappingLike = None,
    *,
    units: str | None = None,
    side: str | None = None,
    only_named: bool = False,
) -> None:
    """Write hardpoints as a table, in the frame and under the names of a mapping.

    It is the way back of `read_hardpoints` with the same mapping: what was designed goes back to
    where the table came from. Coordinates are rounded to 1e-9 of the unit.

    Args:
        path: a text (.csv), or a workbook (.xlsx); it is replaced.
        points: coordinates [m] by name, or a mechanism.
        mapping: as of `read_hardpoints`.
        units: in place of the mapping's.
        side: one of the mapping's sides.
        only_named: leave out points that are not under the mapping's [names]; by default they
            have their own names.

    Raises:
        ValueError: the mapping is wrong, two points get one name, or `only_named` and a name
            under [names] is no point.
        ImportError: pandas, or openpyxl for a workbook, is not installed.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = f"{folder}/corner.csv"
        ...     rearward = {"axes": ["-x", "-y", "z"]}
        ...     mbd.io.write_hardpoints(table, {"wheel": (0.1, 0.75, 0.3)}, rearward)
        ...     print(open(table).read())
        name,x [mm],y [mm],z [mm]
        wheel,-100.0,-750.0,300.0
        <BLANKLINE>
    """
    pandas = optional("pandas", "io", "writing hardpoint tables")
    found = read_mapping(mapping, units, side)
    given = points.points if isinstance(points, Mechanism) else points
    if only_named:
        if lost := [f"{name!r}{meant(name, given)}" for name in found.names if name not in given]:
            raise ValueError(f"[names] has what is no point: {', '.join(lost)}")
        given = {name: given[name] for name in found.names}
    rows = []
    for name, x in given.items():
        place = np.asarray(vector_in_space(np.asarray(x, float)))
        rows.append((found.their_name(name), *(found.theirs(place).round(9) + 0.0).tolist()))
    if twice := _repeated(row[0] for row in rows):
        raise ValueError(f"several points would be called {twice}; give others in [names]")
    titles = [found.columns.get("name", "name")]
    titles += [found.columns.get(c, f"{c} [{found.unit}]") for c in "xyz"]
    table = pandas.DataFrame(rows, columns=titles)
    with replacing(path) as draft:
        if draft.suffix.lower() in WORKBOOKS:
            optional("openpyxl", "io", "writing workbooks")
            table.to_excel(draft, index=False, sheet_name=found.sheet or "hardpoints")
        else:
            table.to_csv(draft, index=False)


def _rows(path: Path, sheet: str | None) -> tuple[list[list[str]], str]:
    """The cells of a table as texts, without what surrounds them, and what separates them."""
    separator = ""
    pandas = optional("pandas", "io", "reading hardpoint tables")
    if not is_file(path, "read_hardpoints"):
        raise FileNotFoundError(f"there is no file {os.fspath(path)!r}")
    if path.suffix.lower() in WORKBOOKS:
        optional("openpyxl", "io", "reading workbooks")
        with _workbook(path) as book:
            if sheet is not None and sheet not in book.sheet_names:
                raise ValueError(
                    f"{path} has no sheet {sheet!r}{meant(sheet, book.sheet_names)}; it has "
                    f"{', '.join(book.sheet_names)}"
                )
            table = pandas.read_excel(book, sheet_name=sheet or 0, header=None, dtype=object)
        cells = table.where(table.notna(), "").to_numpy().tolist()
    else:
        text = _decoded(path)
        separator = max(";\t,", key=_first_titles(text).count)
        lines = text.splitlines()
        if long := [i for i, line in enumerate(lines, start=1) if len(line) > _LONGEST]:
            raise ValueError(
                f"{path}, line {long[0]} is longer than {_LONGEST} characters: it is no row of a "
                "table; save it as one row for each point"
            )
        cells = [_split(line, separator) for line in lines]
    width = max((len(row) for row in cells), default=0)
    rows = [[str(x).strip() for x in row] + [""] * (width - len(row)) for row in cells]
    return rows, separator


def _workbook(path: Path) -> Any:
    """An open workbook."""
    try:
        return optional("pandas", "io", "reading hardpoint tables").ExcelFile(path)
    except (ValueError, LookupError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is no workbook ({error}); save it again as .xlsx, or as .csv"
        ) from None


def _decoded(path: Path) -> str:
    """Text of a file; spreadsheets still write their own code pages."""
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _first_titles(text: str) -> str:
    """The line that looks most like titles."""
    lines = text.splitlines()
    titles = [line for line in lines if re.search(r"\bx\b.*\by\b.*\bz\b", line, re.IGNORECASE)]
    return (titles or lines or [""])[0]


def _split(line: str, separator: str) -> list[str]:
    if line.lstrip().startswith("#"):
        return [""]
    return next(csv.reader([line], delimiter=separator), [""])


def _head(
    path: str | os.PathLike[str], rows: list[list[str]], mapping: HardpointMapping
) -> tuple[int, dict[str, int]]:
    """The row of titles, and the column of each."""
    best: dict[str, int] = {}
    for i, row in enumerate(rows):
        found = _columns(row, mapping)
        if len(found) == len(COLUMNS):
            _check_once(path, row, found)
            return i, found
        best = max(best, found, key=len)
    wanted = {c: mapping.columns.get(c, c) for c in COLUMNS}
    lost = [title for c, title in wanted.items() if c not in best]
    raise ValueError(
        f"{os.fspath(path)} has no row of titles with {list(wanted.values())}: {lost} not found. "
        f"Its first row is {next((row for row in rows if any(row)), [])}. Give the titles that it "
        "has in [columns] of a mapping"
    )


def _check_once(path: str | os.PathLike[str], row: list[str], columns: dict[str, int]) -> None:
    """No title of a column that is read is there twice, whatever its unit."""
    bare = [_BEHIND.sub("", x.lower()) for x in row]
    titles = [row[k] for k in columns.values() if bare.count(bare[k]) > 1]
    if titles:
        raise ValueError(
            f"{os.fspath(path)} has the titles {titles} more than once: {[x for x in row if x]}. "
            "Call those that are not meant otherwise"
        )


def _columns(row: list[str], mapping: HardpointMapping) -> dict[str, int]:
    found: dict[str, int] = {}
    bare = [_BEHIND.sub("", x.lower()) for x in row]
    for c in COLUMNS:
        title = mapping.columns.get(c)
        titles = NAME_TITLES if c == "name" else (c,)
        for i, text in enumerate(row):
            if title is None and bare[i] in titles:
                found.setdefault(c, i)
            elif title is not None and title in (text, _BEHIND.sub("", text)):
                found.setdefault(c, i)
    return found


def _with_units(
    path: str | os.PathLike[str], mapping: HardpointMapping, titles: list[str]
) -> HardpointMapping:
    """The mapping with the units that the titles of x, y and z have, if any.

    Raises:
        ValueError: the titles' units differ, or are not those that the mapping gives.
    """
    given = [m[0].strip(" _[]()") for t in titles if (m := _BEHIND.search(t))]
    units = {u.lower() for u in given if u.lower() in LENGTHS}
    if not units:
        return mapping
    if len(units) > 1 or mapping.units not in (None, *units) or not units <= UNITS.keys():
        given = f", and units={mapping.units!r} is given" if mapping.units else ""
        raise ValueError(
            f"{os.fspath(path)} has the titles {titles}{given}; give one of {', '.join(UNITS)} in "
            "all three"
        )
    return replace(mapping, units=units.pop())


def _number(text: str, what: str, separator: str, problems: list[str]) -> float | None:
    """A cell's number, with a decimal point or comma."""
    if not text:
        problems.append(f"{what} is empty")
        return None
    if separator == "," and _THOUSANDS.fullmatch(text):
        problems.append(
            f"{what} is {text!r}: a decimal comma, or thousands? Write {text.replace(',', '.')} or "
            f"{text.replace(',', '')}"
        )
        return None
    try:
        value = float(text.replace(",", ".") if text.count(",") == 1 and "." not in text else text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value) or "_" in text:
        problems.append(f"{what} is {text!r}, no number")
        return None
    return value


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
    columns, names, sides = (_texts(data, key, found) for key in ("columns", "names", "sides"))
    chosen = units or data.get("units")
    axes, ignored = _listed(data, "axes", "xyz"), _listed(data, "ignore", ())
    offset = data.get("offset", (0.0, 0.0, 0.0))
    sheet, listed = data.get("sheet"), list(axes)
    checks = (
        (chosen in (None, *UNITS), f"units are {chosen!r}; give one of {', '.join(UNITS)}"),
        (_are_axes(axes), f"axes are {listed}; give ours in the table's, as ['-x', '-y', 'z']"),
        (_is_offset(offset), f"offset is {offset!r}; give three numbers"),
        (isinstance(sheet, str | None), f"sheet is {sheet!r}; give its name"),
        (_are_texts(ignored), f"ignore is {list(ignored)}; give a list of patterns of names"),
    )
    found += [text for fits, text in checks if not fits]
    found += [f"names give {x!r} to several points" for x in _repeated(names.values())]
    found += [f"unknown column {k!r}; known are {COLUMNS}" for k in columns if k not in COLUMNS]
    pattern, others = _side(sides, side, found)
    refuse(source, found)
    mapping = HardpointMapping(
        units=chosen,
        sheet=sheet,
        columns=columns,
        axes=axes,
        offset=tuple(float(x) for x in offset),
        mirrored=bool(data.get("mirrored", False)),
        side=pattern,
        others=others,
        names=names,
        ignore=ignored,
    )
    if twice := _repeated(mapping.their_name(name) for name in names):
        raise ValueError(f"{source}: on side {side!r}, names give {twice} to several points")
    if np.linalg.det(mapping.matrix) < 0.0 and not mapping.mirrored:
        raise ValueError(
            f"{source}: axes {list(axes)} are left-handed: they turn the vehicle inside out. Turn "
            "one of them round, or give mirrored = true if the other side of it is meant"
        )
    return mapping


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(x, str) for x in values)


def _are_axes(axes: tuple[Any, ...]) -> bool:
    return _are_texts(axes) and sorted(axis.removeprefix("-") for axis in axes) == ["x", "y", "z"]


def _is_offset(offset: Any) -> bool:
    return (
        isinstance(offset, list | tuple)
        and len(offset) == 3
        and all(isinstance(x, (int, float)) and abs(x) < _LARGEST for x in offset)
    )


def _repeated(names: Iterable[str]) -> list[str]:
    """Names that come more than once."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _loaded(given: MappingLike) -> tuple[Mapping[str, Any], str]:
    if given is None or isinstance(given, Mapping):
        return given or {}, "this mapping"
    return read_toml(given), os.fspath(given)


def _listed(data: Mapping[str, Any], key: str, default: Any) -> tuple[Any, ...]:
    """The entries of a list, or what is given in its place alone."""
    value = data.get(key, default)
    return tuple(value) if isinstance(value, list | tuple | str) else (value,)


def _texts(data: Mapping[str, Any], key: str, found: list[str]) -> dict[str, str]:
    """A table of texts; an empty one, and a line in `found`, where it is none."""
    value = data.get(key, {})
    if not isinstance(value, Mapping):
        found.append(f"{key} is {value!r}; give a table")
    elif not _are_texts(value.values()):
        found.append(f"{key} has entries that are no text")
    else:
        return dict(value)
    return {}


def _side(
    sides: dict[str, str], side: str | None, found: list[str]
) -> tuple[str | None, tuple[str, ...]]:
    """The pattern of the side that is read, and those of the others."""
    wrong = {k: x for k, x in sides.items() if x.count("*") != 1}
    found += [f"side {k!r} is {x!r}; put one * for the name" for k, x in wrong.items()]
    if side is None and not sides:
        return None, ()
    if side not in tuple(sides):
        known = ", ".join(sides) or "none: the mapping has no table [sides]"
        found.append(f"side={side!r}; its sides are {known}")
        return None, ()
    return sides[side], tuple(x for name, x in sides.items() if name != side)
