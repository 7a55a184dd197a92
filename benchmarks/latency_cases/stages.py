"""Stages of a first call, with CPU and wall seconds each, none counted in another.

Tracing, lowering, XLA and the run are steps of JAX's own interface. What lanes does inside lowering
is timed around the functions that do it: the graph, its arrangement with the LLVM IR, and machine
code; what is left of lowering is XLA's program around the kernel ("lowering").
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax

from jaxmbd.lanes import kernel
from jaxmbd.lanes.codegen.emit import Emitter
from jaxmbd.lanes.targets import cpu

STAGES = ("tracing", "graph", "emission", "machine code", "lowering", "XLA", "run")
Seconds = dict[str, tuple[float, float]]  # CPU and wall, by stage


class Clock:
    """Attributes the time to the innermost stage that is open."""

    def __init__(self) -> None:
        self.seconds = {stage: [0.0, 0.0] for stage in STAGES}
        self._open: list[str] = []
        self._since = self._now()

    def _now(self) -> tuple[float, float]:
        return time.process_time(), time.perf_counter()

    def _close_interval(self) -> None:
        now = self._now()
        if self._open:
            total = self.seconds[self._open[-1]]
            for k in range(2):
                total[k] += now[k] - self._since[k]
        self._since = now

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._close_interval()
        self._open.append(name)
        try:
            yield
        finally:
            self._close_interval()
            self._open.pop()

    def timed(self, name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.stage(name):
                return fn(*args, **kwargs)

        return call

    def taken(self) -> Seconds:
        """The seconds since the last time that this was asked."""
        found = {stage: (x[0], x[1]) for stage, x in self.seconds.items()}
        self.seconds = {stage: [0.0, 0.0] for stage in STAGES}
        return found


def watch_lanes(clock: Clock) -> None:
    """Time the parts of lanes, from now on in this process."""
    kernel.interpreter.value_graph = clock.timed("graph", kernel.interpreter.value_graph)
    kernel.pullback_graph = clock.timed("graph", kernel.pullback_graph)
    Emitter.__init__ = clock.timed("emission", Emitter.__init__)
    Emitter.module = clock.timed("emission", Emitter.module)
    cpu.target = clock.timed("machine code", cpu.target)


def first_call(clock: Clock, fn: Callable[..., Any], *args: Any) -> Seconds:
    """Seconds of each stage of ``jax.jit(fn)(*args)``."""
    clock.taken()
    with clock.stage("tracing"):
        traced = fn.trace(*args)
    with clock.stage("lowering"):
        lowered = traced.lower()
    with clock.stage("XLA"):
        compiled = lowered.compile()
    with clock.stage("run"):
        jax.block_until_ready(compiled(*args))
    return clock.taken()
