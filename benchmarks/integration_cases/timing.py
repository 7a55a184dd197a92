"""Times of programs by turns, so that what else the machine does hits all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax


class Cost(NamedTuple):
    """The least of several calls: CPU seconds of this process, of all its threads; and seconds."""

    cpu: float
    wall: float


def once(function: Callable[[], Any]) -> tuple[Cost, Any]:
    """What a call costs, and its result."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = jax.block_until_ready(function())
    return Cost(time.process_time() - cpu, time.perf_counter() - wall), found


def by_turns(
    functions: Mapping[str, Callable[[], Any]], rounds: int = 5, seconds: float = 1.0
) -> dict[str, Cost]:
    """The least cost of each function, which has been called before, in at least two rounds.

    Rounds end early once all together have taken `seconds` for each function.
    """
    least = dict.fromkeys(functions, Cost(float("inf"), float("inf")))
    end = time.perf_counter() + seconds * len(functions)
    for k in range(rounds):
        for name, function in functions.items():
            least[name] = Cost(*map(min, least[name], once(function)[0]))
        if k and time.perf_counter() > end:
            break
    return least
