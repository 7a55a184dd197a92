"""Named points that no element uses: markers for output, or misspelt names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax

from jaxmbd.model.numbers import PointRef, Toward
from jaxmbd.model.user_warning import warn_user


class MarkedPoints(dict[str, Any]):
    """Points of which the `markers` are for output only and need not be used by an element.

    Attributes:
        markers: their names, by default all.
        earlier: the mechanism that is being changed: what looks wrong in it has been told.
        image: whether it is an image of that one, in which nothing else can look wrong.
    """

    def __init__(
        self,
        points: Mapping[str, Any],
        markers: Iterable[str] | None = None,
        earlier: Any = None,
        image: bool = False,
    ):
        super().__init__(points)
        self.markers = frozenset(points if markers is None else markers)
        self.earlier = earlier
        self.image = image


def used_points(elements: Any) -> set[str]:
    """Names of the points that bodies, joints, forces, drives, … refer to."""

    def is_reference(x: Any) -> bool:
        return isinstance(x, (PointRef, Toward))

    found: set[str] = set()
    for leaf in jax.tree_util.tree_leaves(elements, is_leaf=is_reference):
        if isinstance(leaf, PointRef):
            found.add(leaf.name)
        elif isinstance(leaf, Toward):
            found |= {leaf.start, leaf.end}
    return found


def warn_of_unused_points(points: Mapping[str, Any] | None, elements: Any) -> None:
    """One warning that names the points that no element uses and that are not markers."""
    markers = getattr(points, "markers", ())
    if not (left := [name for name in points or {} if name not in markers]):
        return
    used = used_points(elements)
    if unused := [name for name in left if name not in used]:
        warn_user(
            f"no element uses the points {unused}, so moving them changes nothing: is a name "
            f"misspelt, or are they only to be looked at? Points in use: {sorted(used)}",
        )
