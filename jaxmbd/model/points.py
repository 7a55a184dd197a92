"""Hardpoints by name: which of them are used, and those that were read from a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxmbd.model.numbers import PointRef, Toward, is_concrete
from jaxmbd.plumbing import refuse, warn_user

UNITS = {"mm": 1e-3, "cm": 1e-2, "m": 1.0, "in": 0.0254}
"""Length of each unit [m]."""
_FAR, _FITS = 5.0, 2.0
"""How much larger or smaller a design may be than another, and to which a unit must bring it."""


class CheckedPoints(dict[str, Any]):
    """Points of a mechanism that is made from another, whose warnings are not repeated.

    Attributes:
        earlier: the mechanism that is being changed: what looks wrong in it was warned of.
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


class TablePoints(dict[str, np.ndarray]):
    """Coordinates (3,) [m] by name, that know their table where they take the place of others.

    Attributes:
        source: name of the table.
        unit: in which its coordinates were read.
        partial: whether points that it does not have are to stay as they are.
    """

    def __init__(self, points: Mapping[str, Any], source: str, unit: str, partial: bool):
        super().__init__(points)
        self.source, self.unit, self.partial = source, unit, partial

    def problems(self, others: Mapping[str, Any], needed: Iterable[str]) -> list[str]:
        """What speaks against these points in place of others, each with its remedy.

        Args:
            others: points by name.
            needed: names of those that a whole table has.
        """
        found = []
        missing = [name for name in needed if name not in self]
        if missing and not self.partial:
            found.append(
                f"it has no rows for the points {missing}, which would stay where they are: add "
                "the rows, or name theirs in [names] of the mapping; if they are to stay, read it "
                "with partial=True"
            )
        names = [n for n in self if n in others and is_concrete(others[n])]
        sizes = [_spread([np.asarray(x[n], float) for n in names]) for x in (self, others)]
        if len(names) > 2 and all(sizes):
            ratio = sizes[0] / sizes[1]
            fit = {u: abs(np.log(ratio * x / UNITS[self.unit])) for u, x in UNITS.items()}
            unit = min(fit, key=lambda u: fit[u])
            if abs(np.log(ratio)) > np.log(_FAR) and fit[unit] < np.log(_FITS):
                found.append(
                    f"its coordinates are read as {self.unit}, and its points are {ratio:.3g} "
                    f"times as far apart as those that they replace: in {unit} they would fit. "
                    f"Give units={unit!r}, or the unit in the titles, as 'x [{unit}]'"
                )
        return found

    def check(self, others: Mapping[str, Any], needed: Iterable[str]) -> None:
        """Raise a ValueError with all problems."""
        refuse(self.source, self.problems(others, needed))


def named_points(mech: Any) -> list[str]:
    """Names of a mechanism's points, without those made of an element's literal coordinates."""
    elements = {**mech.joints, **mech.forces, **mech.drives, **mech.couplings}
    own = {f"{n}.{field}" for n, x in elements.items() for field in getattr(x, "points", {})}
    return [name for name in mech.structure.points if name not in own]


def _spread(points: list[np.ndarray]) -> float:
    """Mean distance of some points from their middle."""
    if not points:
        return 0.0
    every = np.stack(points)
    return float(np.linalg.norm(every - every.mean(axis=0), axis=1).mean())


def _plain(names: tuple[str, ...], values: Any) -> Any:
    """What is made of them is a plain dictionary: as read alone do they stand for their table."""
    return dict(zip(names, values, strict=True))


jax.tree_util.register_pytree_node(
    TablePoints, lambda x: ([x[name] for name in x], tuple(x)), _plain
)
