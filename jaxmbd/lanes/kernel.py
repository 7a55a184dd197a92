"""A function, its graph, its machine code: made once for each structure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from jaxmbd.lanes.codegen.emit import Emitter
from jaxmbd.lanes.ir import verifier
from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.layout import SLOT
from jaxmbd.lanes.ir.liveness import live_nodes
from jaxmbd.lanes.ir.nodes import Unsupported
from jaxmbd.lanes.reverse.adjoint import pullback_graph
from jaxmbd.lanes.targets import cpu, cpu_driver, cuda
from jaxmbd.lanes.trace import build

VECTORS = 64
"""Vectors in a chunk of work, unless they are long."""


class Key:
    """A closed jaxpr as a dictionary key and a primitive's parameter, by identity."""

    __slots__ = ("closed",)

    def __init__(self, closed: Any):
        self.closed = closed

    def __repr__(self) -> str:
        return f"<{len(self.closed.eqns)} equations>"


@dataclass(eq=False)
class Kernel:
    """One compiled function of a batch.

    Attributes:
        closed: the single-sample function.
        batched: which arguments have a batch axis.
        pullback: None for the value; else (wanted, given): which arguments' cotangents are wanted
            and which results' are given, as arguments after the others.
        seconds: what tracing and compiling took.
    """

    closed: Any
    batched: tuple[bool, ...]
    pullback: tuple[tuple[bool, ...], tuple[bool, ...]] | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @cached_property
    def graph(self) -> Graph:
        """The scalar graph.

        Raises:
            Unsupported: the function holds something that lanes cannot compile.
        """
        start = time.perf_counter()
        try:
            if self.pullback is None:
                g = build.value_graph(self.closed, self.batched)
            else:
                g = pullback_graph(self.closed, self.batched, *self.pullback)
        except Unsupported as error:
            text = str(error)
            start_of_text = "lanes cannot compile "
            raise Unsupported(
                text if text.startswith(start_of_text) else start_of_text + text
            ) from None
        self.seconds["trace"] = time.perf_counter() - start
        if verifier.enabled:
            verifier.verify(g)
        return g

    @cached_property
    def shared(self) -> list[bool]:
        """Which results are the same in all samples."""
        rows = {b.position: row for b, row in self.graph.outputs}
        return [all(n.uniform for n in rows.get(k, ())) for k in range(len(self.out_avals))]

    @property
    def in_avals(self) -> list[Any]:
        """Single-sample arguments."""
        extra = []
        if self.pullback is not None:
            given = self.pullback[1]
            extra = [a for a, g in zip(self.closed.out_avals, given, strict=True) if g]
        return [*self.closed.in_avals, *extra]

    @property
    def out_avals(self) -> list[Any]:
        """Single-sample results."""
        if self.pullback is None:
            return list(self.closed.out_avals)
        wanted = self.pullback[0]
        return [a for a, w in zip(self.closed.in_avals, wanted, strict=True) if w]

    @property
    def in_batched(self) -> tuple[bool, ...]:
        """Which arguments have a batch axis, cotangents with them."""
        return self.batched + (True,) * (len(self.in_avals) - len(self.batched))

    def lanes(self) -> int:
        """Samples in a vector of the host."""
        widest = 32
        for n in live_nodes(self.graph):
            if n.dtype == "f64":
                widest = 64
                break
        return cpu.vector_bits() // widest

    def emitter(self, width: int, *, gpu: bool = False) -> Emitter:
        """A fresh emitter of the kernel's LLVM IR."""
        registers = 0 if gpu or width == 1 else cpu.vector_registers()
        return Emitter(
            self.graph,
            width,
            len(self.in_avals),
            len(self.out_avals),
            registers=registers,
            gpu=gpu,
        )

    def compile_cpu(self, threads: int = 0, width: int = 0) -> cpu.Compiled:
        """Machine code for the host, as an FFI target; `width` is `lanes()` unless given."""
        width = width or self.lanes()
        e = self.emitter(width)
        start = time.perf_counter()
        ir = e.module()
        scratch = e.scratch_slots * SLOT * width
        work = max(1, e.flops)
        grain = int(max(1, min(VECTORS, 1e5 // work)))
        rows = [
            _row_bytes(a) if b else 0 for a, b in zip(self.in_avals, self.in_batched, strict=True)
        ]
        outs = [_row_bytes(a) for a in self.out_avals]
        self.seconds["emit"] = time.perf_counter() - start
        start = time.perf_counter()
        compiled = cpu.target(ir, cpu_driver.table(width, scratch, grain, threads, rows, outs))
        self.seconds["compile"] = time.perf_counter() - start
        return compiled

    def compile_cuda(self) -> cuda.Compiled:
        """Code for NVIDIA GPUs, a thread for each sample, as an FFI target.

        Raises:
            cuda.Unavailable: there is no GPU to run it, or its driver refuses it.
        """
        e = self.emitter(1, gpu=True)
        start = time.perf_counter()
        ir = e.module()
        self.seconds["emit"] = time.perf_counter() - start
        start = time.perf_counter()
        compiled = cuda.target(ir, e.scratch_slots, len(self.in_avals), len(self.out_avals))
        self.seconds["compile"] = time.perf_counter() - start
        return compiled


def _row_bytes(aval: Any) -> int:
    return int(np.prod(aval.shape)) * np.dtype(aval.dtype).itemsize


_KERNELS: dict[Any, Kernel] = {}


def kernel(key: Key, batched: Sequence[bool], pullback: Any = None) -> Kernel:
    """The kernel of a function, made once."""
    name = (key, tuple(batched), pullback)
    found = _KERNELS.get(name)
    if found is None:
        found = _KERNELS[name] = Kernel(key.closed, tuple(batched), pullback)
    return found
