"""Mirror images of vectors in a coordinate plane through the origin.

`name_pairs` says which name is that of the part on the other side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from jax import Array

from jaxmbd.model.numbers import Toward


class Reflection(NamedTuple):
    """The reflection ``S = 1 − 2 n nᵀ`` in a plane with the normal n along a coordinate axis.

    A polar vector (a position, a force) becomes ``S x``, an axial one (an axis of rotation, a
    moment) ``−S x``, so that a rotation by some angle about an axis becomes the rotation by the
    same angle about its image.

    Attributes:
        axis: index of the plane's normal.
    """

    axis: int

    @property
    def signs(self) -> np.ndarray:
        """The diagonal of S (3,)."""
        signs = np.ones(3)
        signs[self.axis] = -1.0
        return signs

    def polar(self, x: Any) -> Any:
        """The image of a polar vector (…, 3), or of a direction from one point to another."""
        return x if x is None or isinstance(x, Toward) else x * self.signs.astype(x.dtype)

    def axial(self, x: Any) -> Any:
        """The image of an axial vector (…, 3), or of a direction from one point to another."""
        if isinstance(x, Toward):
            return Toward(x.end, x.start)
        return x if x is None else -x * self.signs.astype(x.dtype)

    def tensor(self, x: Any) -> Array:
        """``S x S`` of a tensor (3, 3), such as an inertia."""
        signs = self.signs.astype(x.dtype)
        return x * (signs[:, None] * signs)


_WORDS = {"left": "right", "l": "r", "lh": "rh", "fl": "fr", "rl": "rr", "lf": "rf", "lr": "rr"}
_OTHER: dict[str, tuple[str, ...]] = {}
for _left, _right in _WORDS.items():
    _OTHER[_left] = (*_OTHER.get(_left, ()), _right)
    _OTHER[_right] = (*_OTHER.get(_right, ()), _left)


def name_pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs (left, right) of names that differ in one word for the side.

    Words are separated by anything but letters and digits: ``left_arm`` and ``right_arm``,
    ``arm.L`` and ``arm.R``, ``FL hub`` and ``FR hub``.

    Example:
        >>> from jaxmbd.model.reflection import name_pairs
        >>> name_pairs(["arm_R", "left hub", "arm_L", "right hub", "rack"])
        [('left hub', 'right hub'), ('arm_L', 'arm_R')]
    """
    names = list(names)
    known = set(names)
    return [(n, other) for n in names for other in _right_of(n) if other in known]


def _right_of(name: str) -> list[str]:
    """What a left name may be called on the right."""
    words = re.split(r"([^A-Za-z0-9]+)", name)
    found = []
    for i, word in enumerate(words):
        for other in _OTHER.get(word.lower(), ()):
            if word.lower() in _WORDS and other in _WORDS.values():
                found.append("".join([*words[:i], _cased(other, word), *words[i + 1 :]]))
    return found


def _cased(word: str, like: str) -> str:
    if like.isupper():
        return word.upper()
    return word.capitalize() if like[:1].isupper() else word
