"""Changed, added and removed parts of a description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxmbd.model.numbers import PointRef
from jaxmbd.model.points_in_use import used_points
from jaxmbd.numerics.near_names import meant

Parts = Mapping[str, Mapping[str, Any]]
"""Kind of part ("bodies", "joints", …) to name to part."""


def merged(old: Parts, changes: Parts) -> dict[str, Any]:
    """The parts with changes by name, where None removes a part.

    A point made of an element's literal coordinates (``element.at``) goes with the element, unless
    another one refers to it or it is given anew.

    Raises:
        ValueError: a part to be removed is not there.
    """
    missing = [
        f"there is no {name!r} among the {key} to remove"
        f"{meant(name, old[key]) or f': {list(old[key])}'}"
        for key, parts in changes.items()
        for name, part in parts.items()
        if part is None and name not in old[key]
    ]
    if missing:
        raise ValueError("; ".join(missing))
    new = {key: {**parts, **changes[key]} for key, parts in old.items()}
    new = {key: {n: x for n, x in parts.items() if x is not None} for key, parts in new.items()}
    if orphans := _own_points(old, changes):
        used = used_points([parts for key, parts in new.items() if key != "points"])
        for name in orphans - used - changes["points"].keys():
            new["points"].pop(name, None)
    return new


def _own_points(old: Parts, changes: Parts) -> set[str]:
    """Points named after elements that are replaced or removed."""
    found = set()
    for key, parts in changes.items():
        for name in parts.keys() & old[key].keys():
            for field, ref in getattr(old[key][name], "points", {}).items():
                if isinstance(ref, PointRef) and ref.name == f"{name}.{field}":
                    found.add(ref.name)
    return found
