"""Hardpoints as suspension engineers keep them: a table in a CSV file or a workbook."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbd.io.hardpoint_mapping import COLUMNS, HardpointMapping, MappingLike, read_mapping
from jaxmbd.io.named_files import is_file
from jaxmbd.model import UNITS, Mechanism, TablePoints, named_points, vector_in_space
from jaxmbd.plumbing import meant, optional

NAME_TITLES = ("name", "point", "hardpoint", "hard point", "hardpoint name", "label")
WORKBOOKS = (".xlsx", ".xlsm")
LENGTHS = ("mm", "cm", "m", "in", "inch", "ft", "dm", "km", "um", "µm")
_BEHIND = re.compile(r"\s*[\[(].*[\])]\s*$|[_ ](mm|cm|m|in)$", re.IGNORECASE)
"""What follows the name in a title, a unit perhaps."""
_LONGEST = 100_000
"""Characters of the longest line of a table."""
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
Points = Mapping[str, Any] | Mechanism


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
    with decimal commas too. A mapping, a TOML file or a dictionary, says what differs::

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
        tierod_inboard = "TR_IB"          # with sides: "TR_IB_L" and "TR_IB_R" say the same

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
    width = max(k for k, title in enumerate(rows[head]) if title) + 1
    known = _known(points)
    out: dict[str, np.ndarray] = {}
    places: dict[str, int] = {}
    problems: list[str] = []
    for i, row in enumerate(rows[head + 1 :], start=head + 2):
        theirs = row[columns["name"]]
        name = found.our_name(theirs) if theirs else None
        if not theirs and any(row[columns[c]] for c in "xyz"):
            problems.append(f"row {i} has no name")
        if name is None:
            continue
        what = f"row {i} ({theirs!r})"
        if known is not None and name not in known:
            problems.append(
                f"{what}: there is no point {name!r}{meant(name, known)}; name it in [names], or "
                "ignore it"
            )
        if name in places:
            problems.append(f"{what}: {name!r} is in row {places[name]} already")
        if surplus := [x for x in row[width:] if x]:
            problems.append(
                f"{what}: {surplus} is beyond the last title, {rows[head][width - 1]!r}; are there "
                "decimal commas between commas? Separate cells by semicolons, or quote the numbers"
            )
        numbers = [_number(row[columns[c]], f"{what}: {c}", separator, problems) for c in "xyz"]
        places.setdefault(name, i)
        if None not in numbers:
            out.setdefault(name, found.ours(np.array(numbers, float)))
    for name in found.names:
        if name not in places:
            theirs = found.their_name(name)
            texts = [row[columns["name"]] for row in rows[head + 1 :]]
            problems.append(f"there is no row {theirs!r}, for {name!r}{meant(theirs, texts)}")
    read = TablePoints(out, os.fspath(path), found.unit, partial)
    if points is not None:
        whole = isinstance(points, Mechanism)
        needed = [n for n in (named_points(points) if whole else points) if n not in places]
        problems += read.problems(points.points if whole else points, needed)
    if problems:
        raise ValueError(
            f"{os.fspath(path)} has {len(problems)} problems:\n"
            + "\n".join(f"  - {text}" for text in problems)
        )
    return read


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
    names = [row[0] for row in rows]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise ValueError(f"several points would be called {twice}; give others in [names]")
    titles = [found.columns.get("name", "name")]
    titles += [found.columns.get(c, f"{c} [{found.unit}]") for c in "xyz"]
    table = pandas.DataFrame(rows, columns=titles)
    path = Path(path)
    draft = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        if path.suffix.lower() in WORKBOOKS:
            optional("openpyxl", "io", "writing workbooks")
            table.to_excel(draft, index=False, sheet_name=found.sheet or "hardpoints")
        else:
            table.to_csv(draft, index=False)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _known(points: Points | None) -> set[str] | None:
    if points is None:
        return None
    return set(points.points if isinstance(points, Mechanism) else points)


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
    import csv

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
    told = [m[0].strip(" _[]()") for t in titles if (m := _BEHIND.search(t))]
    units = {u.lower() for u in told if u.lower() in LENGTHS}
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
