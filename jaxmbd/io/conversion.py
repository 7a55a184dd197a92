"""What all conversions from and to other formats need: what is left out, and names that differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self, TypeVar

from jaxmbd.plumbing import listed, text_table

T = TypeVar("T")


class LeftOut(NamedTuple):
    """Something of a model that the mechanism does not have.

    Example:
        >>> from jaxmbd.io import LeftOut
        >>> LeftOut("contact shapes", ("geom0",), "bodies pass through each other").what
        'contact shapes'
    """

    what: str
    names: tuple[str, ...]
    consequence: str


class LeftOutTable(tuple[LeftOut, ...]):
    """All that a conversion left out, of which there is some; printed as a table.

    Example:
        >>> import jaxmbd as mbd
        >>> model = mbd.io.load_mjcf('''<mujoco><worldbody><body name="arm">
        ...   <joint name="hinge" axis="0 1 0"/><geom size="0.02" pos="0.5 0 0"/>
        ... </body></worldbody></mujoco>''')
        >>> print(model.left_out)
        nothing is left out
    """

    def __new__(cls, rows: Iterable[LeftOut] = ()) -> Self:
        """The rows that have names."""
        return super().__new__(cls, (row for row in rows if row.names))

    def __str__(self) -> str:
        if not self:
            return "nothing is left out"
        rows = [(f"{len(x.names)} {x.what}", listed(x.names), x.consequence) for x in self]
        return text_table(("left out", "names", "what that means"), rows, range(3), rule=False)

    __repr__ = __str__

    def refuse(self, strict: bool, text: str) -> None:
        """Raise a ValueError if something is left out and `strict`."""
        if strict and self:
            raise ValueError(f"strict=True, and {text}:\n{self}")


class LeftOutNotes:
    """Collects what is left out, by what it is and what that means."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], list[str]] = {}

    def add(self, what: str, consequence: str, name: str) -> None:
        """Note one thing."""
        self._names.setdefault((what, consequence), []).append(name)

    def rows(self) -> list[LeftOut]:
        """One row of the table for each kind of thing."""
        return [LeftOut(what, tuple(names), text) for (what, text), names in self._names.items()]


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
