"""Names of the left and of the right: which name is that of the part on the other side."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
        >>> from jaxmbd.model.sides import name_pairs
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
