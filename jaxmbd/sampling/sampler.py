"""Inputs, their distributions, correlations and a design: the samples of a study.

Distributions and designs are read here from their descriptions too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from scipy.special import ndtri

from jaxmbd.plumbing import hint
from jaxmbd.sampling import distributions  # noqa: F401, which fills DISTRIBUTIONS
from jaxmbd.sampling.correlation import (
    Copula,
    Covariance,
    RankCorrelation,
    as_correlations,
    copula,
    correlated,
    covariance_scatter,
    drawn_covariance,
    rank_correlation,
)
from jaxmbd.sampling.designs import (
    BLOCK,
    Design,
    FullFactorial,
    Given,
    Grid,
    LatinHypercube,
    MonteCarlo,
    Saltelli,
    Sobol,
    Space,
    TableDesign,
    UnitDesign,
    component_index,
    space_of,
)
from jaxmbd.sampling.scatter import DISTRIBUTIONS, Distribution, as_distribution, scipy_distribution

# Rows whose unit numbers are made at once: bounds the memory of a long draw.
_SPAN = 64 * BLOCK


class Sampler:
    """The samples of a study: any range of them, the same numbers however it is cut.

    Args:
        inputs: (nominal value, distribution or None) by name.
        design: which samples; `MonteCarlo` by default.
        count: number of samples, for designs that do not say it.
        seed: of all that is random.
        correlation: `RankCorrelation`, `Covariance`, a mapping of pairs, or several of them.

    Attributes:
        nominal: nominal values by name.
        scatter: distributions of those inputs that have one.
        space: names of the numbers drawn for each sample.
        sampled: names of the inputs that `draw` returns; the others keep their nominal value.

    Example:
        >>> from jaxmbd.sampling import Normal, Sampler, Uniform
        >>> inputs = {"x": (1.0, Normal(0.1)), "y": (5.0, Uniform(0.5)), "z": (0.0, None)}
        >>> sampler = Sampler(inputs, count=1000, correlation={("x", "y"): 0.8})
        >>> all(sampler.draw(0, 1000)["y"][500:502] == sampler.draw(500, 502)["y"])
        True
    """

    def __init__(
        self,
        inputs: Mapping[str, tuple[Any, Any]],
        design: Design | None = None,
        *,
        count: int | None = None,
        seed: int = 0,
        correlation: Any = None,
    ) -> None:
        self.design = MonteCarlo() if design is None else design
        self.asked, self.seed = count, seed
        self.correlations = as_correlations(correlation)
        self.nominal = {n: np.asarray(x, np.float64) for n, (x, _) in inputs.items()}
        scatter, unknown = _distributions({n: d for n, (_, d) in inputs.items() if d is not None})
        joint, self._problems = covariance_scatter(self.correlations, self.nominal, scatter)
        self.scatter: dict[str, Distribution] = {
            n: joint.get(n) or scatter[n] for n in inputs if n in joint or n in scatter
        }
        self.space: Space = space_of(
            (n, d.unit_shape(self.nominal[n].shape)) for n, d in self.scatter.items()
        )
        self._copula: Copula | None = None
        if not self._problems:
            self._copula, self._problems = copula(
                self.correlations, self.space, self.nominal, self.scatter
            )
        self._problems = [*unknown, *self._input_problems(), *self._problems]
        self._problems += self._design_problems()

    @property
    def count(self) -> int:
        """Number of samples."""
        return self.design.count(self.asked, self.space) or 0

    @property
    def dimensions(self) -> int:
        """How many numbers are drawn for each sample."""
        return len(self.space.columns)

    @property
    def sampled(self) -> tuple[str, ...]:
        """Names of the inputs that `draw` returns."""
        if not isinstance(self.design, TableDesign):
            return tuple(self.scatter)
        return tuple(dict.fromkeys(n for n, _ in self._places().values()))

    def problems(self) -> list[str]:
        """All that is wrong with the inputs, their correlations and the design."""
        return list(self._problems)

    def draw(self, start: int, stop: int) -> dict[str, np.ndarray]:
        """Samples `start` to `stop` of the inputs that vary, arrays ``(stop − start, *shape)``."""
        if self._problems:
            raise ValueError("the samples cannot be drawn:\n  " + "\n  ".join(self._problems))
        if not 0 <= start <= stop <= self.count:
            raise ValueError(f"samples {start} to {stop} of {self.count} do not exist")
        if isinstance(self.design, TableDesign):
            return self._table(start, stop)
        assert isinstance(self.design, UnitDesign)
        shapes = {n: self.nominal[n].shape for n in self.scatter}
        drawn = {n: np.empty((stop - start, *shape)) for n, shape in shapes.items()}
        # Whole blocks, whatever the range is: no function's rounding then depends on the cut.
        end = min(-(-stop // BLOCK) * BLOCK, self.count)
        for first in range(start // BLOCK * BLOCK, end, _SPAN):
            last = min(first + _SPAN, end)
            u = self.design.unit_samples(first, last, self.space, seed=self.seed, count=self.count)
            for at in range(first, last, BLOCK):
                block = self._values(u[at - first : at - first + BLOCK])
                low, high = max(start, at), min(stop, at + BLOCK)
                for name, values in block.items():
                    drawn[name][low - start : high - start] = values[low - at : high - at]
        return drawn

    def std(self) -> dict[str, np.ndarray]:
        """Standard deviations of the inputs that scatter, in their shapes."""
        return {n: d.std(self.nominal[n]) for n, d in self.scatter.items()}

    @property
    def independent(self) -> bool:
        """Whether all numbers that scatter do so independently of each other."""
        shapes = {n: self.nominal[n].shape for n in self.scatter}
        own = all(d.unit_shape(shapes[n]) == shapes[n] for n, d in self.scatter.items())
        return own and self._copula is None

    def covariance(self) -> Covariance:
        """Covariance of all numbers that scatter, as drawn.

        Example:
            >>> from jaxmbd.sampling import Normal, Sampler
            >>> inputs = {"x": (1.0, Normal(0.1)), "y": (5.0, Normal(0.2))}
            >>> found = Sampler(inputs, count=8, correlation={("x", "y"): 0.5}).covariance()
            >>> found.names, round(found.matrix[0][1], 6)
            (('x', 'y'), 0.010353)
        """
        return drawn_covariance(self.scatter, self.nominal, self._copula)

    def rank_correlation(self) -> RankCorrelation | None:
        """The rank correlations of the inputs, however they were given; None without any.

        With them the inputs of a `Covariance` may have distributions of their own: those of
        `scatter`, tightened.
        """
        if self._copula is None:
            return None
        columns, lower = self._copula
        names = [self.space.columns[k] for k in columns]
        steps = [self.scatter[self.space.owners[k]].steps() for k in columns]
        r = lower @ lower.T
        pairs = [(i, j) for i in range(len(r)) for j in range(i) if abs(r[i, j]) > 1e-12]
        return RankCorrelation(
            [(names[j], names[i], rank_correlation(r[i, j], steps[i], steps[j])) for i, j in pairs]
        )

    def describe(self) -> dict[str, Any]:
        """JSON values that determine the samples."""
        return {
            "inputs": {
                n: {
                    "nominal": x.tolist(),
                    **(self.scatter[n].describe() if n in self.scatter else {}),
                }
                for n, x in self.nominal.items()
            },
            # In this order: it decides which random numbers are whose, and JSON objects have none.
            "drawn": [
                [n, list(d.unit_shape(self.nominal[n].shape))] for n, d in self.scatter.items()
            ],
            "design": self.design.describe(),
            "samples": self.count,
            "seed": self.seed,
            "correlation": [c.describe() for c in self.correlations],
        }

    def _values(self, u: np.ndarray) -> dict[str, np.ndarray]:
        """Inputs of rows of unit numbers (n, dimensions)."""
        linked = np.zeros(self.dimensions, bool)
        z = u
        if self._copula is not None:
            columns, lower = self._copula
            linked[columns] = True
            z = u.copy()
            z[:, columns] = correlated(lower, ndtri(u[:, columns]))
        found, at = {}, 0
        for name, distribution in self.scatter.items():
            nominal = self.nominal[name]
            shape = distribution.unit_shape(nominal.shape)
            size = int(np.prod(shape))
            part = slice(at, at + size)
            at += size
            if not linked[part].any():
                values = distribution.quantile(u[:, part].reshape(-1, *shape), nominal)
            else:
                own = np.where(linked[part], z[:, part], ndtri(u[:, part]))
                values = distribution.from_normal(own.reshape(-1, *shape), nominal)
            found[name] = values
        return found

    def _table(self, start: int, stop: int) -> dict[str, np.ndarray]:
        assert isinstance(self.design, TableDesign)
        found: dict[str, np.ndarray] = {}
        rows, places = self.design.rows(start, stop), self._places()
        for column, values in rows.items():
            name, index = places[column]
            nominal = self.nominal[name]
            whole = found.setdefault(name, np.repeat(nominal[None], stop - start, axis=0))
            whole[(slice(None), *index)] = values
        return found

    def _places(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """(input, index of the number in it, empty for all of it) of a table's columns."""
        assert isinstance(self.design, TableDesign)
        shapes = {n: x.shape for n, x in self.nominal.items()}
        found = {
            c: (c, ()) if c in shapes else component_index(c, shapes) for c in self.design.names()
        }
        return {c: place for c, place in found.items() if place is not None}

    def _input_problems(self) -> list[str]:
        found = [
            f"{n}: its nominal value is not finite"
            for n, x in self.nominal.items()
            if not np.all(np.isfinite(x))
        ]
        for name, distribution in self.scatter.items():
            found += [f"{name}: {text}" for text in distribution.problems(self.nominal[name])]
        if not _is_whole(self.seed) or self.seed < 0:
            found.append(f"the seed must be a whole number ≥ 0, is {self.seed!r}")
        if self.asked is not None and not _is_whole(self.asked):
            found.append(f"the number of samples must be a whole number, is {self.asked!r}")
        return found

    def _design_problems(self) -> list[str]:
        found = self.design.problems(self.asked, self.space)
        if isinstance(self.design, TableDesign):
            return found + self._table_problems(self.design)
        if not self.scatter:
            found.append(
                "no input has a distribution: a number is a fixed value, jaxmbd.sampling.Normal("
                "1e-3) one that scatters"
            )
        if self.correlations and isinstance(self.design, Saltelli):
            found.append("Sobol indices are of independent inputs: no correlation with Saltelli")
        if self.correlations and isinstance(self.design, Grid):
            found.append("correlations would shear a Grid: use MonteCarlo, Sobol or LatinHypercube")
        return found

    def _table_problems(self, design: TableDesign) -> list[str]:
        places, rows = self._places(), design.rows(0, 1)
        found = [
            f"{design.kind} has {n!r}, which is no input; {hint(n, self.nominal)}"
            for n in rows
            if n not in places
        ]
        for column, (name, index) in places.items():
            want = self.nominal[name].shape[len(index) :]
            if rows[column].shape[1:] != want:
                found.append(f"{column}: its rows have shape {rows[column].shape[1:]}, not {want}")
        whole = {n for n, index in places.values() if not index}
        for n in {n for n, index in places.values() if index} & whole:
            found.append(f"{n} is given as a whole and by its numbers")
        given = {n for n, _ in places.values()}
        found += [
            f"{n} has a distribution, but {design.kind} has no values of it: give them, or fix it"
            for n in self.scatter
            if n not in given
        ]
        if self.correlations:
            found.append(f"correlations mean nothing for the values of {design.kind}")
        return found


def _is_whole(x: Any) -> bool:
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


def _distributions(given: Mapping[str, Any]) -> tuple[dict[str, Distribution], list[str]]:
    """Distributions of ours, and what is none."""
    found, problems = {}, []
    for name, distribution in given.items():
        try:
            found[name] = as_distribution(distribution)
        except (TypeError, ValueError) as error:
            problems.append(f"{name}: {error}")
    return found, problems


DESIGNS: dict[str, type[Design]] = {
    d.kind: d for d in (MonteCarlo, LatinHypercube, Sobol, Saltelli, Grid, FullFactorial, Given)
}


def distribution_of(description: Mapping[str, Any]) -> Distribution:
    """The distribution that a description (as of `Distribution.describe`) says.

    Those of `scipy.stats` are called ``"scipy.weibull_min"``, with their parameters by name.

    Raises:
        ValueError: there is no such distribution or parameter, or a parameter is wrong.

    Example:
        >>> from jaxmbd.sampling import distribution_of
        >>> distribution_of({"distribution": "normal", "sigma": 0.5})
        Normal(sigma=0.5, mean=None, relative=False)
    """
    rest = dict(description)
    kind = rest.pop("distribution", None)
    if isinstance(kind, str) and kind.startswith("scipy."):
        return scipy_distribution(kind.removeprefix("scipy."), rest)
    if kind not in DISTRIBUTIONS:
        raise ValueError(f"distribution = {kind!r}: there is none; {hint(kind, DISTRIBUTIONS)}")
    return _made(kind, DISTRIBUTIONS[kind], rest)


def design_of(description: Mapping[str, Any]) -> Design:
    """The design that a description says, as of `Design.describe`; of `Given` with its ``table``.

    Raises:
        ValueError: there is no such design or parameter, or a parameter is wrong.

    Example:
        >>> from jaxmbd.sampling import design_of
        >>> design_of({"design": "sobol", "scramble": False})
        Sobol(scramble=False)
    """
    rest = dict(description)
    kind = rest.pop("design", None)
    if kind not in DESIGNS:
        raise ValueError(f"design = {kind!r}: there is none; {hint(kind, DESIGNS)}")
    return _made(kind, DESIGNS[kind], rest)


def _made(kind: str, cls: Any, rest: Mapping[str, Any]) -> Any:
    known = [f.name for f in fields(cls)]
    if unknown := [name for name in rest if name not in known]:
        raise ValueError(f"{kind} has no {unknown[0]!r}; {hint(unknown[0], known)}")
    try:
        return cls(**rest)
    except TypeError as error:
        raise ValueError(f"{kind}: {error}") from error
