"""A mechanism from plain Python data, with all its problems in one message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from jaxmbd.io.data_file import check_depth
from jaxmbd.io.read_fields import READERS, attempt, numbers
from jaxmbd.io.write_dict import FORMAT, PRECISIONS
from jaxmbd.model.body import Body
from jaxmbd.model.joints import Fixed
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.model.numbers import ComRef
from jaxmbd.model.plane import is_planar
from jaxmbd.model.validation import validate
from jaxmbd.numerics.near_names import meant

PARTS = ("bodies", "joints", "forces", "drives", "points", "couplings")
KEYS = ("format", "dtype", "gravity", "cut", *PARTS)
KINDS = {
    "bodies": "body",
    "joints": "joint",
    "forces": "force",
    "drives": "drive",
    "points": "point",
    "couplings": "coupling",
}


def from_dict(
    data: dict[str, Any], *, source: str = "this data", found: Iterable[str] = ()
) -> Mechanism:
    """The mechanism that `to_dict` wrote.

    Args:
        data: see `to_dict`; an omitted field takes its type's default.
        source: the name of `data` in messages.
        found: earlier problems, reported with the others.

    Raises:
        ValueError: lists all problems, each with the part and the remedy.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.io import from_dict, to_dict
        >>> mech = mbd.zoo.four_bar()
        >>> from_dict(to_dict(mech)).structure == mech.structure
        True
    """
    problems = list(found)
    if not isinstance(data, dict):
        raise ValueError(f"{source} holds a {type(data).__name__}; a mechanism is an object")
    check_depth(data, source)
    _check_head(data, problems)
    dtype = np.dtype(data["dtype"]) if data.get("dtype") in PRECISIONS else np.dtype(np.float64)
    broken: set[str] = set()
    parts = {key: _part(key, data.get(key, []), dtype, problems, broken) for key in PARTS}
    gravity = data.get("gravity")
    if gravity is not None:
        gravity = attempt("gravity", lambda: numbers(data["gravity"], dtype), problems)
    cut = data.get("cut")
    if cut is not None and not (isinstance(cut, list) and all(isinstance(n, str) for n in cut)):
        problems.append(f"'cut' is {cut!r}; give a list of joint names, or leave it out")
        cut = None
    if problems:
        problems += _model_problems(parts, gravity, cut, broken)
        count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise ValueError(f"{source} has {count}:\n" + "\n".join(f"  - {p}" for p in problems))
    try:
        return Mechanism(**parts, gravity=gravity, cut=cut)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def _check_head(data: dict[str, Any], problems: list[str]) -> None:
    if data.get("format") != FORMAT:
        hint = (
            "; it looks like a reference mechanism: use read_gt_mech"
            if "mechanism" in data or str(data.get("format", "")).startswith("gt-mech")
            else ""
        )
        problems.append(f"'format' is {data.get('format')!r}; expected {FORMAT!r}{hint}")
    if data.get("dtype", "float64") not in PRECISIONS:
        problems.append(f"'dtype' is {data['dtype']!r}; expected one of {list(PRECISIONS)}")
    for key in data:
        if key not in KEYS:
            problems.append(f"unknown entry {key!r}{meant(key, KEYS)}; known: {list(KEYS)}")


def _part(
    key: str, entries: Any, dtype: Any, problems: list[str], broken: set[str]
) -> dict[str, Any]:
    """Name to object of one list; unreadable entries are replaced by stand-ins, in `broken`."""
    kind = KINDS[key]
    if not isinstance(entries, list):
        problems.append(f"'{key}' must be a list of objects, each with a \"name\"")
        return {}
    out: dict[str, Any] = {}
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            problems.append(f'{key}[{i}] must be an object with a "name" (a string)')
            continue
        name = entry["name"]
        if name in out:
            first = next(j for j, e in enumerate(entries) if e.get("name") == name)
            problems.append(
                f"{kind} '{name}' is given twice ({key}[{first}] and {key}[{i}]); two "
                f"{key} may not share a name: rename or remove one"
            )
            continue
        before = len(problems)
        fields = {k: v for k, v in entry.items() if k != "name"}
        out[name] = READERS[key](f"{kind} '{name}'", fields, dtype, problems)
        if len(problems) > before or out[name] is None:
            broken.add(name)
            out[name] = _stand_in(key, name, fields)
    return out


def _stand_in(key: str, name: str, fields: dict[str, Any]) -> Any:
    """A valid object in place of an unreadable entry, so that the others can be checked.

    It contains no point coordinates, so that it fits planar and spatial mechanisms.
    """
    if key == "bodies":
        return Body(com=ComRef(name))
    if key == "joints" and isinstance(fields.get("a"), str) and isinstance(fields.get("b"), str):
        return Fixed(fields["a"], fields["b"], at=ComRef(fields["b"]))
    return None


def _model_problems(
    parts: dict[str, dict[str, Any]], gravity: Any, cut: Any, broken: set[str]
) -> list[str]:
    """Validation problems of the readable rest, without those caused by unreadable entries."""
    present = {
        key: {n: x for n, x in entries.items() if x is not None} for key, entries in parts.items()
    }
    if gravity is None:
        flat = is_planar(*(present[key] for key in ("bodies", "joints", "forces", "points")))
        gravity = np.zeros(2 if flat else 3)
    lost = {n for key in PARTS for n in parts[key] if n not in present[key]}
    try:
        validate(**present, gravity=gravity, cut=None if cut is None else tuple(cut))
    except ValueError as error:
        lines = str(error).split("\n  - ")[1:]
        ours = broken | lost
        unconnected = "is not connected to the ground"
        return [
            line
            for line in lines
            if not any(f"'{n}'" in line for n in ours)
            and not (unconnected in line and any(n in lost for n in parts["joints"]))
        ]
    return []
