"""Left and right moved together: one value sets a number and its mirror image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.model import Mechanism, is_concrete, name_pairs, number
from jaxmbd.variables.leaves import (
    Number,
    addresses,
    is_vector,
    numbers_of,
    order_of,
    set_variables,
)
from jaxmbd.variables.table import Parametrization, Variables, variables
from jaxmbd.variables.units import in_si

_NEAR = 1e-6
"""Two points are mirror images within this part of the drawing's size."""


class Image(NamedTuple):
    """The mirror image of a number.

    Attributes:
        path: of the number on the other side.
        signs: what a change is multiplied by there, of the number's shape.
        first, second: nominal values of the number and of its image.
    """

    path: str
    signs: np.ndarray
    first: Any
    second: Any


@dataclass(frozen=True)
class _Mirror:
    """Sets numbers, and their images by the mirrored change."""

    mech: Mechanism
    images: Mapping[str, Image]

    def __call__(self, values: Mapping[str, Any]) -> Mechanism:
        both = dict(values)
        followers = {image.path: whole for whole, image in self.images.items()}
        for path, place in addresses(self.mech, values).items():
            whole, component = place.number.path, place.component
            if whole in followers:
                raise ValueError(f"{path!r} follows {followers[whole]!r}: set that one")
            if (image := self.images.get(whole)) is None:
                continue
            value = values[path]
            value = in_si(value, place.unit, path) if isinstance(value, str) else number(value)
            at = () if component is None else place.number.components[component][0]
            moved = image.second[at] + image.signs[at] * (value - image.first[at])
            both[image.path if component is None else f"{image.path}/{component}"] = moved
        return set_variables(self.mech, both)


def mirrored(mech: Mechanism, plane: str = "y") -> Parametrization:
    """The variables of a mechanism with the left and the right side as one.

    A number of one side and its image on the other are one variable, that of the side that is
    declared first: both change by mirrored amounts, so that what is symmetric stays so. Pairs of
    points are found by name (``left_…`` and ``right_…``, ``…_L`` and ``…_R``, ``fl`` and ``fr``, …)
    on opposite sides of the plane, and by position; pairs of other numbers by the names of their
    parts, where their values are mirror images. All other numbers are variables of their own.

    Args:
        mech: the mechanism; its numbers must be known.
        plane: the axis normal to the plane of symmetry, which runs through the origin: "x", "y" or
            "z".

    Returns:
        a function of path to value, whose `variables` leave the images out.

    Raises:
        ValueError: nothing has a mirror image.

    Example:
        >>> import jaxmbd as mbd
        >>> steering = mbd.mirrored(mbd.zoo.macpherson_steering())
        >>> wider = steering({"points/left_tie_outer/y": "0.7 m"})
        >>> [float(wider.points[f"{side}_tie_outer"][1]) for side in ("left", "right")]
        [0.7, -0.7]
    """
    if plane not in ("x", "y", "z"):
        raise ValueError(f"plane={plane!r}; give the axis normal to it: 'x', 'y' or 'z'")
    known = {x.path: x for x in numbers_of(mech, implied=True)}
    if unknown := [path for path, x in known.items() if not is_concrete(x.value)]:
        raise ValueError(f"{unknown[0]!r} is traced; find mirror images of known numbers")
    axis = "xyz".index(plane)
    images = _point_images(mech, axis) | _part_images(mech, axis, known)
    if not images:
        raise ValueError(
            f"nothing has a mirror image in the plane normal to {plane}: name the parts of both "
            "sides alike, left_arm and right_arm, or draw their points symmetric"
        )
    second = {image.path for image in images.values()}
    table = Variables(
        x._replace(text=f"{x.text}, with {images[path].path}") if path in images else x
        for path, x in variables(mech).items()
        if path not in second
    )
    return Parametrization(_Mirror(mech, images), table)


def _flip(n: int, axis: int) -> np.ndarray:
    signs = np.ones(n)
    signs[axis] = -1.0
    return signs


def _point_images(mech: Mechanism, axis: int) -> dict[str, Image]:
    """Pairs of points: first by name, then by position."""
    names = mech.structure.points
    x = {n: np.asarray(mech.points[n], float) for n in names}
    size = np.ptp(np.stack(list(x.values())), axis=0).max() if x else 0.0
    pairs = [(a, b) for a, b in name_pairs(names) if x[a][axis] * x[b][axis] < 0.0]
    left = [n for n in names if abs(x[n][axis]) > _NEAR * size and not any(n in p for p in pairs)]
    for i, a in enumerate(left):
        image = x[a] * _flip(x[a].size, axis)
        near = [b for b in left[i + 1 :] if np.abs(x[b] - image).max() <= _NEAR * size]
        pairs += [(a, near[0])] if len(near) == 1 else []
    order = {n: i for i, n in enumerate(names)}
    found = {}
    for pair in pairs:
        a, b = sorted(pair, key=order.__getitem__)
        signs = _flip(x[a].size, axis)
        found[f"points/{a}"] = Image(f"points/{b}", signs, x[a], x[b])
    return found


def _part_images(mech: Mechanism, axis: int, known: dict[str, Number]) -> dict[str, Image]:
    """Numbers of pairs of bodies, joints, forces, … by name, that are mirror images."""
    found = {}
    for kind, names in order_of(mech).items():
        order = {n: i for i, n in enumerate(names)}
        for pair in name_pairs(names) if kind != "points" else ():
            a, b = sorted(pair, key=order.__getitem__)
            for path, x in known.items():
                other = known.get("/".join([kind, b, *x.keys[2:]]))
                if x.keys[:2] == (kind, a) and other is not None:
                    signs = _image_signs(mech, x, other, axis)
                    if signs is not None:
                        found[path] = Image(other.path, signs, x.value, other.value)
    return found


def _image_signs(mech: Mechanism, x: Number, other: Number, axis: int) -> np.ndarray | None:
    """What changes are multiplied by on the other side; None if the two are no mirror images."""
    first, second = np.asarray(x.value), np.asarray(other.value)
    if first.shape != second.shape:
        return None
    candidates = [np.ones(first.shape)]
    if first.ndim == 1 and is_vector(getattr(mech, x.keys[0])[x.keys[1]], x.keys[2]):
        flip = _flip(first.size, axis)
        candidates = [flip] if x.keys[2] == "com" else [flip, -flip]
    elif first.shape == (3, 3):
        flip = _flip(3, axis)
        candidates = [flip[:, None] * flip]
    size = np.abs(first).max(initial=0.0)
    for signs in candidates:
        if np.abs(signs * first - second).max(initial=0.0) <= 1e-9 * size:
            return signs
    return None
