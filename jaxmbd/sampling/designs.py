"""Designs: which samples a study takes, and the space of numbers that they are points of.

Random and quasi-random points (Monte Carlo, Latin hypercube, Sobol), the points from which Sobol
indices are estimated (Saltelli), and points that are listed: grids, all combinations of levels, a
table given.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from jaxmbd.plumbing import hint
from jaxmbd.sampling.scatter import digest_of, inside_unit


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
    """Names of the numbers of an input, as `jaxmbd.variables` has them.

    ``p/x, p/y, p/z`` for three, ``p/x, p/y`` for a point, centre of mass, axis or gravity in the
    plane, ``p/0, p/1, …`` otherwise.

    Example:
        >>> from jaxmbd.sampling import components
        >>> components("points/p", (3,)), components("k", ()), components("m", (1, 2))
        (['points/p/x', 'points/p/y', 'points/p/z'], ['k'], ['m/0/0', 'm/0/1'])
    """
    if shape == ():
        return [name]
    steps = name.replace(".", "/").split("/")  # stores have dots
    planar = shape == (2,) and (steps[0] == "points" or steps[-1] in ("com", "gravity", "axis"))
    if planar or shape == (3,):
        return [f"{name}/{axis}" for axis in "xyz"[: shape[0]]]
    return ["/".join([name, *map(str, index)]) for index in np.ndindex(shape)]


def component_index(
    key: str, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[str, tuple[int, ...]] | None:
    """(input, index of a number in it) of a component's name; None if there is no such one."""
    for name, shape in shapes.items():
        if key.startswith(name + "/") and key in (names := components(name, shape)):
            return name, tuple(int(i) for i in np.unravel_index(names.index(key), shape))
    return None


#: Rows that are drawn together; a multiple of it is a good size of a piece.
BLOCK = 1024

# A study of more samples was not meant: all combinations of many inputs.
_MOST = 2**40


class Design:
    """Which samples a study takes.

    Samples are addressable: rows `start` to `stop` are the same numbers to the last bit however
    the rows of a study are divided among calls, machines and days.

    Example:
        >>> from jaxmbd.sampling import Design, MonteCarlo, Sobol
        >>> isinstance(MonteCarlo(), Design), isinstance(Sobol(), Design)
        (True, True)
    """

    kind: ClassVar[str] = ""

    def count(self, asked: int | None, space: Space) -> int | None:
        """Number of samples; `asked` by the user, or None; None if the design cannot tell."""
        return asked

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

    def describe(self) -> dict[str, Any]:
        """JSON values that determine the design."""
        return {"design": self.kind, **vars(self)}


class UnitDesign(Design, ABC):
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


class TableDesign(Design, ABC):
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


def _generator(seed: int, *path: int) -> np.random.Generator:
    """The random numbers of one part of a design; parts of different path are independent."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=path)))


# First numbers of the seeds' paths: parts of one design are independent of those of another.
_POINTS, _PERMUTATIONS, _SCRAMBLING = 0, 1, 2
_SOBOL_BITS = 30


@dataclass(frozen=True)
class MonteCarlo(UnitDesign):
    """Independent random samples. More of them keep those that there are.

    Example:
        >>> from jaxmbd.sampling import MonteCarlo
        >>> MonteCarlo().describe()
        {'design': 'monte_carlo'}
    """

    kind = "monte_carlo"

    def unit_samples(self, start, stop, space, *, seed, count):
        return random_rows(start, stop, len(space.columns), seed)


@dataclass(frozen=True)
class LatinHypercube(UnitDesign):
    """Random samples that have each number once in each of `count` equally probable intervals.

    It keeps 4 bytes for each number of the whole design in memory.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.sampling import LatinHypercube, Sampler, Uniform
        >>> sampler = Sampler({"x": (0.0, Uniform(5.0))}, LatinHypercube(), count=5)
        >>> np.sort((sampler.draw(0, 5)["x"] + 5.0) // 2.0)
        array([0., 1., 2., 3., 4.])
    """

    kind = "latin_hypercube"

    def unit_samples(self, start, stop, space, *, seed, count):
        u = random_rows(start, stop, len(space.columns), seed)
        u += _permutations(seed, count, len(space.columns))[:, start:stop].T
        return inside_unit(u / count)


@dataclass(frozen=True)
class Sobol(UnitDesign):
    """Sobol's sequence: fills the space evenly; means of smooth outputs converge almost as 1/n.

    Best with a power of two of samples. More of them keep those that there are.

    Attributes:
        scramble: randomised by the seed (Owen's linear matrix scrambling and a shift).

    Example:
        >>> from jaxmbd.sampling import Sampler, Sobol, Uniform
        >>> sampler = Sampler({"x": (0.5, Uniform(0.5))}, Sobol(scramble=False), count=4)
        >>> sampler.draw(0, 4)["x"]
        array([0.125, 0.625, 0.875, 0.375])
    """

    scramble: bool = True

    kind = "sobol"

    def unit_samples(self, start, stop, space, *, seed, count):
        # Unscrambled points k/2^m are moved to the middle of their intervals.
        spacing = 2.0**-_SOBOL_BITS if self.scramble else 2.0 ** -max(count - 1, 0).bit_length()
        return sobol_points(start, stop, len(space.columns), seed, self.scramble) + 0.5 * spacing

    def problems(self, asked, space):
        found = super().problems(asked, space)
        if not found and (self.count(asked, space) or 0) > 2**_SOBOL_BITS:
            found.append(f"Sobol's sequence ends after {2**_SOBOL_BITS} samples")
        return found


def random_rows(start: int, stop: int, dimensions: int, seed: int) -> np.ndarray:
    """Rows of independent numbers in (0, 1), each block of rows from its own generator."""
    found = np.empty((stop - start, dimensions))
    for block in range(start // BLOCK, -(-stop // BLOCK)):
        rows = _generator(seed, _POINTS, block).random((BLOCK, dimensions))
        first = block * BLOCK
        low, high = max(start, first), min(stop, first + BLOCK)
        found[low - start : high - start] = rows[low - first : high - first]
    return inside_unit(found)


def sobol_points(start: int, stop: int, dimensions: int, seed: int, scramble: bool) -> np.ndarray:
    """Points of Sobol's sequence, multiples of 2^-30 in [0, 1)."""
    from scipy.stats import qmc

    if dimensions == 0:
        return np.empty((stop - start, 0))
    engine = qmc.Sobol(
        dimensions, scramble=scramble, bits=_SOBOL_BITS, rng=_generator(seed, _SCRAMBLING)
    )
    if start:
        engine.fast_forward(start)
        return engine.random(stop - start)
    # Asked for its first points, the engine warns unless they are a power of two.
    points = engine.random(1)
    return np.concatenate([points, engine.random(stop - 1)]) if stop > 1 else points[: max(stop, 0)]


@lru_cache(1)
def _permutations(seed: int, count: int, dimensions: int) -> np.ndarray:
    """Independent permutations of 0 … count − 1, one a row."""
    found = np.empty((dimensions, count), np.uint32)
    for i in range(dimensions):
        found[i] = _generator(seed, _PERMUTATIONS, i).permutation(count)
    return found


@dataclass(frozen=True)
class Saltelli(UnitDesign):
    """Pairs of points of Sobol's sequence that exchange one input at a time (Saltelli 2010).

    Each base sample gives, with d factors, d + 2 rows: A, then A with factor i from B for each i,
    then B; with `second_order` also B with factor i from A. That is the order in which SALib's
    `sobol.analyze` expects the outputs; `jaxmbd.statistics.sobol_indices` calls it.

    Attributes:
        base: number of base samples, a power of two.
        second_order: rows for the interactions of pairs too: 2 d + 2 a base sample.
        by: ``"input"``: all numbers of an array input are one factor; ``"number"``: each is one.

    Example:
        >>> from jaxmbd.sampling import Saltelli, Sampler, Uniform
        >>> inputs = {"x": (0.0, Uniform(1.0)), "y": (0.0, Uniform(1.0))}
        >>> Sampler(inputs, Saltelli(8)).count
        32
    """

    base: int = 1024
    second_order: bool = False
    by: str = "input"

    kind = "saltelli"

    def factors(self, space: Space) -> tuple[str, ...]:
        """Names of the factors, in the order of the rows."""
        return tuple(dict.fromkeys(space.owners if self.by == "input" else space.columns))

    def rows_per_base(self, space: Space) -> int:
        """Rows that each base sample gives."""
        return (2 if self.second_order else 1) * len(self.factors(space)) + 2

    def count(self, asked, space):
        return self.base * self.rows_per_base(space)

    def problems(self, asked, space):
        found = super().problems(asked, space)
        if self.by not in ("input", "number"):
            found.append(f'by must be "input" or "number", is {self.by!r}')
        if self.base < 2 or self.base & (self.base - 1):
            found.append(f"the number of base samples must be a power of two, is {self.base}")
        return found

    def unit_samples(self, start, stop, space, *, seed, count):
        per_base, size = self.rows_per_base(space), len(space.columns)
        first, last = start // per_base, -(-stop // per_base)
        points = sobol_points(first, last, 2 * size, seed, True) + 2.0**-31
        a, b = points[:, :size], points[:, size:]
        names = space.owners if self.by == "input" else space.columns
        masks = [np.array([n == factor for n in names]) for factor in self.factors(space)]
        parts = [a, *(np.where(mask, b, a) for mask in masks)]
        parts += [np.where(mask, a, b) for mask in masks] if self.second_order else []
        rows = np.stack([*parts, b], axis=1).reshape(-1, size)
        return rows[start - first * per_base : stop - first * per_base]


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
            f"levels of {n!r}, no input that scatters; {hint(n, known)}"
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
        return {"design": self.kind, "columns": {n: digest_of(x) for n, x in self.table.items()}}

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
