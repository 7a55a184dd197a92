"""A corner or an axle in a model file together with the roles of its parts."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from jaxmbd.io import load, load_notes, save
from jaxmbd.model import Mechanism
from jaxmbd.plumbing import meant, refuse
from jaxmbd.suspension.corner import Corner

_NOTE = "corners"
_DEFAULTS = {f.name: f.default for f in dataclasses.fields(Corner)}


def save_with_roles(mech: Mechanism, path: str | os.PathLike[str], *corners: Corner) -> None:
    """Write a mechanism with the roles of one corner, or of an axle's left and right one.

    The file is one of `jaxmbd.save`, which `jaxmbd.load` and all commands of `jaxmbd` read; those
    that show a corner find its roles there.

    Args:
        mech: the mechanism.
        path: the file.
        *corners: the roles.

    Raises:
        ValueError: roles do not fit the mechanism, or what cannot be saved.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> roles = suspension.zoo_corner("multi_link")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     suspension.save_with_roles(mbd.zoo.multi_link(), f"{folder}/rear.json", roles)
        ...     mech, found = suspension.load_with_roles(f"{folder}/rear.json")
        >>> found == (roles,)
        True
    """
    refuse("Corner", [text for corner in corners for text in corner.problems(mech)])
    save(mech, path, notes={_NOTE: [_written(corner) for corner in corners]})


def load_with_roles(path: str | os.PathLike[str]) -> tuple[Mechanism, tuple[Corner, ...]]:
    """The mechanism of a file and the roles that `save_with_roles` wrote; none if it has none.

    Raises:
        ValueError: roles that do not exist, or that do not fit the mechanism.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mbd.save(mbd.zoo.multi_link(), f"{folder}/rear.json")
        ...     suspension.load_with_roles(f"{folder}/rear.json")[1]
        ()
    """
    mech, notes = load(path), load_notes(path).get(_NOTE, [])
    corners = tuple(_read(path, i, note) for i, note in enumerate(notes))
    refuse(f"{path}: {_NOTE}", [text for corner in corners for text in corner.problems(mech)])
    return mech, corners


def _written(corner: Corner) -> dict[str, Any]:
    """The roles that differ from the defaults."""
    values = ((n, getattr(corner, n)) for n in _DEFAULTS)
    return {n: x for n, x in values if x != _DEFAULTS[n]}


def _read(path: Any, index: int, note: Any) -> Corner:
    where = f"{path}: {_NOTE}[{index}]"
    if not isinstance(note, dict):
        raise ValueError(f"{where} is {note!r:.60}; give an object with the fields of Corner")
    refuse(
        where,
        [f"Corner has no {n!r}{meant(n, _DEFAULTS)}" for n in note if n not in _DEFAULTS]
        + [
            f"{n!r} is missing" for n in ("upright", "wheel_centre", "tyre_radius") if n not in note
        ],
    )
    return Corner(**{n: _tuples(x) for n, x in note.items()})


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if isinstance(x, list) else x
