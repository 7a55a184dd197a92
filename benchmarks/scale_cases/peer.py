"""Pinocchio's `aba` on open chains, called from Python: a batch, and a single sample."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from throughput_cases import peer_pinocchio
from throughput_cases.peer_pinocchio import loop
from throughput_cases.tree import Tree


class Aba:
    """Timing of `aba` over a batch; `round()` gives its seconds minus those of empty calls.

    The workspace is shared by all models, which have one structure. The calls of an empty model
    have the same kinds of arguments, so that their time is that of Python and the binding.
    """

    def __init__(self, trees: list[Tree], q: np.ndarray, v: np.ndarray):
        pin = peer_pinocchio.pin
        models = [peer_pinocchio.model(tree)[0] for tree in trees]
        data, tau = models[0].createData(), np.zeros(models[0].nv)
        models = models * (len(q) // len(models))
        samples = [(np.array(x), np.array(u)) for x, u in zip(q, v, strict=True)]
        self._work: list[Any] = [
            partial(pin.aba, m, data, *s, tau) for m, s in zip(models, samples, strict=True)
        ]
        nothing, none = pin.Model(), np.zeros(0)
        empty = partial(pin.aba, nothing, nothing.createData(), none, none, none)
        self._empty = [empty] * len(q)
        self.overhead, self.seconds = np.inf, np.inf

    def result(self) -> np.ndarray:
        """Accelerations of all samples."""
        return np.array([np.array(call()) for call in self._work])

    def round(self, seconds: float) -> float:
        """Another `seconds` of repeats; the best time of the batch so far, minus the overhead."""
        self.overhead = min(self.overhead, loop(self._empty, 0.2 * seconds))
        self.seconds = min(self.seconds, loop(self._work, 0.8 * seconds))
        return len(self._work) * (self.seconds - self.overhead)


class Single:
    """Timing of one call after another, with all that it costs on the host."""

    def __init__(self, call: Any):
        self._call, self.seconds = call, np.inf
        call()

    def round(self, seconds: float) -> float:
        """Another `seconds` of repeats; the best mean of 200 calls so far."""
        self.seconds = min(self.seconds, loop([self._call], seconds, runs=200))
        return self.seconds
