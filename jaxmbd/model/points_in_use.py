"""Which named points the elements of a mechanism use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from jaxmbd.model.numbers import PointRef, Toward
from jaxmbd.model.user_warning import warn_user


class CheckedPoints(dict[str, Any]):
    """Points of a mechanism that is made from another, for which much has been told.

    Attributes:
        earlier: the mechanism that is being changed: what looks wrong in it has been told.
        image: whether it is an image of that one, in which nothing else can look wrong.
    """

    def __init__(self, points: Mapping[str, Any], earlier: Any = None, image: bool = False):
        super().__init__(points)
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


def warn_of_new_points(names: Sequence[str], elements: Any) -> None:
    """One warning that names the points of a change that are new and that no element uses."""
    used = used_points(elements) if names else set()
    if unused := [name for name in names if name not in used]:
        warn_user(
            f"the points {unused} are new, and no element uses them: is a name misspelt? "
            f"Points in use: {sorted(used)}",
        )
