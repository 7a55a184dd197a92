"""Designs whose points are listed: grids, all combinations of levels, a table given."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmbd.sampling.design_types import TableDesign, UnitDesign
from jaxmbd.sampling.names import near


@dataclass(frozen=True)
class Grid(UnitDesign):
    """All combinations of equally probable values of each number; the last number runs fastest.

    With n values, they are the quantiles at ½/n, 1½/n, …, (n − ½)/n of the distribution. For
    values of one's own, see `FullFactorial`.

    Attributes:
        levels: number of values, of all numbers or by name of inputs and components; those not
            named stay at their median.

    Example:
        >>> from jaxmbd.sampling import Grid, Sampler, Uniform
        >>> Sampler({"x": (0.0, Uniform(2.0))}, Grid(4)).draw(0, 4)["x"]
        array([-1.5, -0.5,  0.5,  1.5])
    """

    levels: Any

    kind = "grid"

    def __post_init__(self) -> None:
        given: Any = self.levels
        if isinstance(given, Mapping):
            given = tuple((str(name), int(n)) for name, n in given.items())
        object.__setattr__(self, "levels", given)
        sizes = [n for _, n in given] if isinstance(given, tuple) else [int(given)]
        if wrong := [n for n in sizes if n < 1]:
            raise ValueError(f"a grid has at least one value of each number, not {wrong[0]}")

    def count(self, asked, space):
        return math.prod(self._sizes(space))

    def problems(self, asked, space):
        known = {*space.columns, *space.owners}
        named = dict(self.levels) if isinstance(self.levels, tuple) else {}
        found = [
            f"levels of {n!r}, no input that scatters; {near(n, known)}"
            for n in named
            if n not in known
        ]
        return found or super().problems(asked, space)

    def unit_samples(self, start, stop, space, *, seed, count):
        sizes = np.array(self._sizes(space), np.int64)
        if not sizes.size:
            return np.empty((stop - start, 0))
        strides = np.append(np.cumprod(sizes[:0:-1])[::-1], 1)
        at = np.arange(start, stop)[:, None] // strides % sizes
        return (at + 0.5) / sizes

    def describe(self):
        levels = dict(self.levels) if isinstance(self.levels, tuple) else self.levels
        return {"design": self.kind, "levels": levels}

    def _sizes(self, space) -> list[int]:
        if not isinstance(self.levels, tuple):
            return [int(self.levels)] * len(space.columns)
        named = dict(self.levels)
        pairs = zip(space.columns, space.owners, strict=True)
        return [named.get(column, named.get(owner, 1)) for column, owner in pairs]


@dataclass(frozen=True, eq=False)
class FullFactorial(TableDesign):
    """All combinations of given values; the last input runs fastest.

    Attributes:
        levels: values by name of scalar inputs and components; for an array input, an array of
            its values, one after another. A mapping, or pairs of name and values.

    Example:
        >>> from jaxmbd.sampling import FullFactorial, Sampler
        >>> inputs = {"stiffness": (25.0, None), "damping": (1.0, None)}
        >>> design = FullFactorial({"stiffness": [20.0, 30.0], "damping": [1.0, 2.0, 3.0]})
        >>> Sampler(inputs, design).draw(2, 4)
        {'stiffness': array([20., 30.]), 'damping': array([3., 1.])}
    """

    levels: Any

    kind = "full_factorial"

    def __post_init__(self) -> None:
        given = self.levels.items() if isinstance(self.levels, Mapping) else self.levels
        levels = {str(n): np.asarray(x, np.float64) for n, x in given}
        if empty := [n for n, x in levels.items() if x.ndim == 0 or len(x) == 0]:
            raise ValueError(f"{empty[0]}: its values must be a list")
        object.__setattr__(self, "levels", levels)

    def count(self, asked, space):
        return math.prod(len(x) for x in self.levels.values())

    def names(self):
        return list(self.levels)

    def rows(self, start, stop):
        sizes = [len(x) for x in self.levels.values()]
        at = np.unravel_index(np.arange(start, stop), sizes) if sizes else ()
        return {n: x[i] for (n, x), i in zip(self.levels.items(), at, strict=True)}

    def describe(self):
        return {"design": self.kind, "levels": [[n, x.tolist()] for n, x in self.levels.items()]}

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n}: {len(x)}" for n, x in self.levels.items())
        return f"FullFactorial({sizes})"


@dataclass(frozen=True, eq=False)
class Given(TableDesign):
    """The samples of a table.

    Attributes:
        table: mapping of names of inputs or components to columns (n, …); a pandas DataFrame; or
            an xarray Dataset whose variables' first dimension is the sample, of which the inputs
            are taken if it is a study's result.

    Example:
        >>> from jaxmbd.sampling import Given, Sampler
        >>> design = Given({"x": [1.0, 2.0, 4.0]})
        >>> Sampler({"x": (1.0, None)}, design).draw(1, 3)["x"]
        array([2., 4.])
    """

    table: Any

    kind = "given"

    def __post_init__(self) -> None:
        table = dict(_columns(self.table))
        if wrong := [n for n, x in table.items() if x.ndim == 0]:
            raise ValueError(f"{wrong[0]}: a table has columns, not single numbers")
        if not table:
            raise ValueError("the table has no columns")
        if len({len(x) for x in table.values()}) != 1:
            lengths = ", ".join(f"{n}: {len(x)}" for n, x in table.items())
            raise ValueError(f"columns of different lengths: {lengths}")
        if bad := [n for n, x in table.items() if not np.all(np.isfinite(x))]:
            raise ValueError(f"columns with missing or infinite numbers: {', '.join(bad)}")
        object.__setattr__(self, "table", table)

    def count(self, asked, space):
        return len(next(iter(self.table.values())))

    def names(self):
        return list(self.table)

    def rows(self, start, stop):
        return {n: x[start:stop] for n, x in self.table.items()}

    def describe(self):
        return {"design": self.kind, "columns": {n: _digest(x) for n, x in self.table.items()}}

    def __repr__(self) -> str:
        return f"Given({', '.join(self.table)})"


def _columns(table: Any) -> Iterable[tuple[str, np.ndarray]]:
    """(name, column) of a mapping, a DataFrame or a Dataset."""
    if hasattr(table, "data_vars"):
        roles = any("role" in table[n].attrs for n in table.data_vars)
        for name in table.data_vars:
            attributes = table[name].attrs
            if not roles or (
                attributes.get("role") == "input" and table[name].dims[:1] == ("sample",)
            ):
                yield attributes.get("path", str(name)), _numbers(name, table[name])
        return
    if not hasattr(table, "items"):
        raise TypeError(f"{type(table).__name__} is no table: give a mapping of names to columns")
    for name, column in table.items():
        yield str(name), _numbers(name, column)


def _numbers(name: Any, column: Any) -> np.ndarray:
    try:
        return np.array(column, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: its column has more than numbers") from error


def _digest(x: np.ndarray) -> dict[str, Any]:
    digest = hashlib.blake2b(np.ascontiguousarray(x).tobytes(), digest_size=16).hexdigest()
    return {"shape": list(x.shape), "blake2b": digest}
