"""Names that differ, where one format keeps them apart by kind and another does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")


class UniqueNames:
    """A register of names: each is given once."""

    def __init__(self, taken: Iterable[str] = ()):
        self._taken = set(taken)

    def unique(self, wanted: str, kind: str) -> str:
        """The name that is wanted, with ``.kind`` behind it as often as it is already taken."""
        while wanted in self._taken:
            wanted += f".{kind}"
        self._taken.add(wanted)
        return wanted

    def renamed(self, parts: Mapping[str, T], kind: str) -> dict[str, T]:
        """The parts by names that differ from all that are taken."""
        return {self.unique(name, kind): part for name, part in parts.items()}


def joined(first: Mapping[str, T], second: Mapping[str, T]) -> dict[str, T]:
    """Both in one.

    Raises:
        ValueError: a name is in both.
    """
    if both := first.keys() & second.keys():
        raise ValueError(f"two parts have the same name: {', '.join(sorted(both))}")
    return {**first, **second}
