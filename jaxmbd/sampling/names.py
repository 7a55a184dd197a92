"""Names of inputs and of the numbers of array inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class Space(NamedTuple):
    """The numbers that a design draws for one sample.

    Attributes:
        columns: name of each number: of a scalar input, or of a component as `components` has it.
        owners: name of the input that it belongs to.

    Example:
        >>> from jaxmbd.sampling import MonteCarlo, Normal, Sampler
        >>> Sampler({"p": ([0.0, 1.0], Normal(0.1))}, MonteCarlo(), count=8).space.columns
        ('p/0', 'p/1')
    """

    columns: tuple[str, ...]
    owners: tuple[str, ...]


def components(name: str, shape: tuple[int, ...]) -> list[str]:
    """Names of the numbers of an input: ``p/x, p/y, p/z`` for three, ``p/0, p/1, …`` otherwise.

    Example:
        >>> from jaxmbd.sampling import components
        >>> components("points/p", (3,)), components("k", ()), components("m", (1, 2))
        (['points/p/x', 'points/p/y', 'points/p/z'], ['k'], ['m/0/0', 'm/0/1'])
    """
    if shape == ():
        return [name]
    if shape == (3,):
        return [f"{name}/{axis}" for axis in "xyz"]
    return ["/".join([name, *map(str, index)]) for index in np.ndindex(shape)]


def component_index(
    key: str, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[str, tuple[int, ...]] | None:
    """(input, index of a number in it) of a component's name; None if there is no such one."""
    for name, shape in shapes.items():
        if key.startswith(name + "/") and key in (names := components(name, shape)):
            return name, tuple(int(i) for i in np.unravel_index(names.index(key), shape))
    return None
