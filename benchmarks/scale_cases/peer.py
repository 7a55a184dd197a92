"""Pinocchio's `aba` on open chains, called from Python: a batch, and a single sample."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from throughput_cases import peer_pinocchio
from throughput_cases.peer_pinocchio import Batch, loop
from throughput_cases.tree import Tree


class Aba(Batch):
    """Timing of `aba` over a batch.

    The workspace is shared by all models, which have one structure. The calls of an empty model
    have the same kinds of arguments, so that their time is that of Python and the binding.
    """

    def __init__(self, trees: list[Tree], q: np.ndarray, v: np.ndarray):
        pin = peer_pinocchio.pin
        models = [peer_pinocchio.model(tree)[0] for tree in trees]
        data, tau = models[0].createData(), np.zeros(models[0].nv)
        models = models * (len(q) // len(models))
        samples = [(np.array(x), np.array(u)) for x, u in zip(q, v, strict=True)]
        pairs = zip(models, samples, strict=True)
        nothing, none = pin.Model(), np.zeros(0)
        empty = partial(pin.aba, nothing, nothing.createData(), none, none, none)
        super().__init__([partial(pin.aba, m, data, *s, tau) for m, s in pairs], [empty] * len(q))


class Single:
    """Timing of one call after another, with all that it costs on the host."""

    def __init__(self, call: Any):
        self._call, self.seconds = call, np.inf
        call()

    def round(self, seconds: float) -> float:
        """Another `seconds` of repeats; the best mean of 200 calls so far."""
        self.seconds = min(self.seconds, loop([self._call], seconds, runs=200))
        return self.seconds
