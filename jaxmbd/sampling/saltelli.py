"""The design from which Sobol indices are estimated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxmbd.sampling.design_types import UnitDesign
from jaxmbd.sampling.names import Space
from jaxmbd.sampling.random_designs import sobol_points


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

    def describe(self):
        options = {"base": self.base, "second_order": self.second_order, "by": self.by}
        return {"design": self.kind, **options}
