"""Runs of different lengths by one compiled simulation.

The number of steps is part of a compiled program, the step is not: a longer run is a chain of equal
ones.
"""

from collections.abc import Iterator

import jaxmbd as mbd


def chain(mech, q, v, *, runs: int, **options) -> Iterator[mbd.Solution]:
    """`runs` simulations, each from where the one before it ended; ``options`` has ``steps=``."""
    for _ in range(runs):
        solution = mbd.simulate(mech, q, v, **options)
        q, v = solution.q[-1], solution.v[-1]
        yield solution
