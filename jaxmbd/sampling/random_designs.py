"""Designs of random and quasi-random points: Monte Carlo, Latin hypercube, Sobol."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from jaxmbd.sampling.design_types import BLOCK, UnitDesign, child_seed
from jaxmbd.sampling.scatter import inside_unit

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

    def count(self, asked, space):
        return asked

    def unit_samples(self, start, stop, space, *, seed, count):
        return random_rows(start, stop, len(space.columns), seed)

    def describe(self):
        return {"design": self.kind}


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

    def count(self, asked, space):
        return asked

    def unit_samples(self, start, stop, space, *, seed, count):
        u = random_rows(start, stop, len(space.columns), seed)
        u += _permutations(seed, count, len(space.columns))[:, start:stop].T
        return inside_unit(u / count)

    def describe(self):
        return {"design": self.kind}


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

    def count(self, asked, space):
        return asked

    def unit_samples(self, start, stop, space, *, seed, count):
        # Unscrambled points k/2^m are moved to the middle of their intervals.
        spacing = 2.0**-_SOBOL_BITS if self.scramble else 2.0 ** -max(count - 1, 0).bit_length()
        return sobol_points(start, stop, len(space.columns), seed, self.scramble) + 0.5 * spacing

    def problems(self, asked, space):
        found = super().problems(asked, space)
        if not found and (self.count(asked, space) or 0) > 2**_SOBOL_BITS:
            found.append(f"Sobol's sequence ends after {2**_SOBOL_BITS} samples")
        return found

    def describe(self):
        return {"design": self.kind, "scramble": self.scramble}


def random_rows(start: int, stop: int, dimensions: int, seed: int) -> np.ndarray:
    """Rows of independent numbers in (0, 1), each block of rows from its own generator."""
    found = np.empty((stop - start, dimensions))
    for block in range(start // BLOCK, -(-stop // BLOCK)):
        rng = np.random.Generator(np.random.PCG64(child_seed(seed, _POINTS, block)))
        first = block * BLOCK
        low, high = max(start, first), min(stop, first + BLOCK)
        found[low - start : high - start] = rng.random((BLOCK, dimensions))[
            low - first : high - first
        ]
    return inside_unit(found)


def sobol_points(start: int, stop: int, dimensions: int, seed: int, scramble: bool) -> np.ndarray:
    """Points of Sobol's sequence, multiples of 2^-30 in [0, 1)."""
    from scipy.stats import qmc

    if dimensions == 0:
        return np.empty((stop - start, 0))
    rng = np.random.Generator(np.random.PCG64(child_seed(seed, _SCRAMBLING)))
    engine = qmc.Sobol(dimensions, scramble=scramble, bits=_SOBOL_BITS, rng=rng)
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
        rng = np.random.Generator(np.random.PCG64(child_seed(seed, _PERMUTATIONS, i)))
        found[i] = rng.permutation(count)
    return found
