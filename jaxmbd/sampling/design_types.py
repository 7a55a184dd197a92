"""What a design is: which samples a study takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from jaxmbd.sampling.names import Space, components

#: Rows that are drawn together; a multiple of it is a good size of a piece.
BLOCK = 1024

# A study of more samples was not meant: all combinations of many inputs.
_MOST = 2**40


class Design(ABC):
    """Which samples a study takes.

    Samples are addressable: rows `start` to `stop` are the same numbers to the last bit however
    the rows of a study are divided among calls, machines and days.

    Example:
        >>> from jaxmbd.sampling import Design, MonteCarlo, Sobol
        >>> isinstance(MonteCarlo(), Design), isinstance(Sobol(), Design)
        (True, True)
    """

    kind: ClassVar[str] = ""

    @abstractmethod
    def count(self, asked: int | None, space: Space) -> int | None:
        """Number of samples; `asked` by the user, or None; None if the design cannot tell."""

    def problems(self, asked: int | None, space: Space) -> list[str]:
        """What is wrong with this design of that space."""
        count = self.count(asked, space)
        if count is None:
            return ["the number of samples is missing"]
        if asked is not None and asked != count:
            return [f"{asked} samples asked for, {self} has {count}"]
        if count > _MOST:
            return [f"{self} has {float(count):.2g} samples: too many"]
        return [] if count > 0 else [f"there must be at least one sample, not {count}"]

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """JSON values that determine the design."""


class UnitDesign(Design):
    """A design in the unit cube, which the distributions of the inputs then stretch.

    Example:
        >>> from jaxmbd.sampling import Grid, LatinHypercube, UnitDesign
        >>> issubclass(LatinHypercube, UnitDesign), issubclass(Grid, UnitDesign)
        (True, True)
    """

    @abstractmethod
    def unit_samples(
        self, start: int, stop: int, space: Space, *, seed: int, count: int
    ) -> np.ndarray:
        """Rows `start` to `stop` of `count`, in (0, 1): an array (stop − start, columns)."""


class TableDesign(Design):
    """A design that says the values of inputs; those that it does not name keep the nominal one.

    Example:
        >>> from jaxmbd.sampling import Given, TableDesign
        >>> issubclass(Given, TableDesign)
        True
    """

    @abstractmethod
    def names(self) -> list[str]:
        """Names of the inputs or components that have values."""

    @abstractmethod
    def rows(self, start: int, stop: int) -> dict[str, np.ndarray]:
        """Their values in rows `start` to `stop`, by name."""


def space_of(units: Iterable[tuple[str, tuple[int, ...]]]) -> Space:
    """The space of (name, shape of what is drawn) of inputs."""
    pairs = [(column, name) for name, shape in units for column in components(name, shape)]
    return Space(tuple(c for c, _ in pairs), tuple(n for _, n in pairs))


def child_seed(seed: int, *path: int) -> np.random.SeedSequence:
    """The seed of one part of a design; parts of different path are independent."""
    return np.random.SeedSequence(entropy=seed, spawn_key=path)
