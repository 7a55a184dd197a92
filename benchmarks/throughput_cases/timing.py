"""Timing: the best of several repeats, interleaved over all columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import jax
import numpy as np

from throughput_cases.machine import available_memory

ROUNDS = 5


class Timed(Protocol):
    """Something that can be repeated; `round` gives the best seconds so far."""

    def round(self, seconds: float) -> float: ...


class Program:
    """A compiled program with its arguments.

    Attributes:
        compile_seconds: seconds of tracing, lowering and compiling, before any run.
        result: result of the first run, on the host.

    Raises:
        MemoryError: its temporaries would not fit.
    """

    def __init__(self, batched: Callable[..., Any], arguments: Any):
        start = time.perf_counter()
        self._run = jax.jit(batched).lower(*arguments).compile()
        self.compile_seconds = time.perf_counter() - start
        analysis = self._run.memory_analysis()
        need = 0 if analysis is None else analysis.temp_size_in_bytes
        if need > 0.6 * available_memory():
            raise MemoryError(f"needs {need / 1e9:.1f} GB of temporaries")
        self._arguments = arguments
        self._best, self._spent, self._runs = np.inf, 0.0, 0
        self.result = jax.tree_util.tree_map(np.asarray, self._once())

    def _once(self) -> Any:
        start = time.perf_counter()
        out = jax.block_until_ready(self._run(*self._arguments))
        seconds = time.perf_counter() - start
        self._best = min(self._best, seconds)
        self._spent += seconds
        self._runs += 1
        return out

    def round(self, seconds: float) -> float:
        """Repeat for about `seconds`; a long program is run only twice in all."""
        end = time.perf_counter() + seconds
        while True:
            if self._runs >= 2 and self._best > seconds and self._spent > seconds * ROUNDS:
                return self._best
            self._once()
            if time.perf_counter() > end:
                return self._best


def by_turns(timed: Mapping[str, Timed], seconds: float) -> dict[str, float]:
    """The best seconds of each, about `seconds` of repeats for each, interleaved."""
    best = dict.fromkeys(timed, np.inf)
    for _ in range(ROUNDS):
        for name, item in timed.items():
            best[name] = item.round(seconds / ROUNDS)
    return best
