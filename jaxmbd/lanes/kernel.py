"""`Kernel`: a function with its graph and machine code, compiled once per structure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from jaxmbd.lanes.caching import Recent
from jaxmbd.lanes.codegen.emit import Emitter
from jaxmbd.lanes.context import collector_paused
from jaxmbd.lanes.ir.graph import Graph, live_nodes
from jaxmbd.lanes.ir.nodes import SLOT, Unsupported
from jaxmbd.lanes.reverse import pullback_graph
from jaxmbd.lanes.targets import cpu, cpu_driver, cuda
from jaxmbd.lanes.trace import interpreter
from jaxmbd.lanes.trace.content import Key
from jaxmbd.lanes.trace.routines import repeated

CODES = Recent(4096)
"""FFI targets by the content of the function, so that an equal function needs no new graph.
Evicting one does not free its machine code (see `cpu`)."""
VECTORS = 64
"""Vectors in a chunk of work; fewer if each is expensive."""
UNLIMITED = 1 << 30
"""Registers that no plan of spills runs out of."""
MANY = 1 << 62
"""A batch that fills any vector."""


@dataclass(eq=False)
class Kernel:
    """One compiled function over a batch.

    Attributes:
        function: of one sample, a closed jaxpr.
        batched: which arguments have a batch axis.
        pullback: None for the value; (wanted, given) for the VJP: which arguments' cotangents it
            returns, and for which results it takes a cotangent as an additional argument.
        content: digest of the function for the cache of code, or None.
        lasting: whether the digest is the same in other processes.
    """

    function: Any
    batched: tuple[bool, ...]
    pullback: tuple[tuple[bool, ...], tuple[bool, ...]] | None = None
    content: Any = None
    lasting: bool = False
    _codes: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def graph(self) -> Graph:
        """The scalar graph; released once machine code exists, and then rebuilt on demand.

        Raises:
            Unsupported: lanes cannot compile something in the function.
        """
        return self._graph(routines=True)

    @collector_paused()
    def _graph(self, *, routines: bool) -> Graph:
        try:
            if self.pullback is None:
                # One sample varies: uniform values would be kept for all the vectors to come.
                varies = (True,) * len(self.batched) if self.single else self.batched
                found = repeated(self.function) if routines else ()
                g = interpreter.value_graph(self.function, varies, found)
            else:
                g = pullback_graph(self.function, self.batched, *self.pullback)
        except Unsupported as error:
            raise interpreter.placed_in(error, self.function) from None
        return g

    @cached_property
    def shared(self) -> list[bool]:
        """Which results are uniform (the same in all samples)."""
        rows = {b.position: row for b, row in self.graph.outputs}
        return [all(n.uniform for n in rows.get(k, ())) for k in range(len(self.out_avals))]

    @property
    def single(self) -> bool:
        """Whether it computes the value of one sample."""
        return self.pullback is None and not any(self.batched)

    @cached_property
    def in_avals(self) -> list[Any]:
        """Types of the single-sample arguments, cotangents included."""
        extra = []
        if self.pullback is not None:
            given = self.pullback[1]
            extra = [a for a, g in zip(self.function.out_avals, given, strict=True) if g]
        return [*self.function.in_avals, *extra]

    @cached_property
    def out_avals(self) -> list[Any]:
        """Types of the single-sample results."""
        if self.pullback is None:
            return list(self.function.out_avals)
        wanted = self.pullback[0]
        return [a for a, w in zip(self.function.in_avals, wanted, strict=True) if w]

    @cached_property
    def in_batched(self) -> tuple[bool, ...]:
        """Which arguments have a batch axis; cotangents always do."""
        return self.batched + (True,) * (len(self.in_avals) - len(self.batched))

    def lanes(self) -> int:
        """Samples in a vector of the host: lanes of the graph's floats (f64 if it has any)."""
        if self.single:
            return 1
        widest = 32
        for n in live_nodes(self.graph):
            if n.dtype == "f64":
                widest = 64
                break
        return cpu.vector_bits() // widest

    def emitter(self, width: int, *, gpu: bool = False) -> Emitter:
        """A fresh emitter of the kernel's LLVM IR."""
        # A GPU's threads have too little fast memory to pass operands in it. What does not fit its
        # registers is spilled by its assembler, as code is arranged anew there.
        graph = self._graph(routines=False) if gpu else self.graph
        registers = UNLIMITED if gpu else cpu.vector_registers()
        return Emitter(
            graph,
            width,
            len(self.in_avals),
            len(self.out_avals),
            registers=registers,
            gpu=gpu,
        )

    def compile_cpu(self, threads: int = 0, batch: int = MANY, width: int = 0) -> cpu.Compiled:
        """Machine code for the host, as an FFI target.

        Args:
            threads: most cores to use; 0 for all.
            batch: fewest samples of a call; those that fill no vector are computed one by one.
            width: samples in a vector; by default `lanes()`.
        """
        how = (threads, min(batch, cpu.vector_bits() // 32), width)
        return self._code(("cpu", *how), lambda: self._compile_cpu(*how))

    def compile_cuda(self) -> cuda.Compiled:
        """Code for NVIDIA GPUs, one thread per sample, as an FFI target.

        Raises:
            cuda.Unavailable: there is no usable GPU, or its driver rejects the code.
        """
        return self._code("cuda", self._compile_cuda)

    @collector_paused()
    def _code(self, target: Any, compile_it: Callable[[], Any]) -> Any:
        if target not in self._codes:
            name = (target, self.content, self.batched, self.pullback)
            self._codes[target] = CODES.get(name, compile_it) if self.content else compile_it()
            self.release()
        return self._codes[target]

    def release(self) -> None:
        """Drop the graph; it is rebuilt on demand."""
        graph = self.__dict__.pop("graph", None)
        if graph is not None:
            graph.clear()

    def _compile_cpu(self, *how: int) -> cpu.Compiled:
        if not (self.lasting and interpreter.own()):
            return self._written(*how)
        name = (self.content.hex(), self.batched, self.pullback, *how)
        return cpu.recalled(name, lambda: self._written(*how))

    def _written(self, *how: int) -> cpu.Compiled:
        return cpu.target(*self.host_code(*how))

    def host_code(self, threads: int = 0, batch: int = MANY, width: int = 0) -> Any:
        """LLVM IR of the kernel and of its handler for the host, and flops; see `compile_cpu`."""
        width = width or self.lanes()
        width = width if width <= batch else 1
        e = self.emitter(width)
        ir = e.module()
        scratch = e.scratch_slots * SLOT * width
        work = max(1, e.flops)
        grain = int(max(1, min(VECTORS, 1e5 // work)))
        counts = len(self.in_avals), len(self.out_avals)
        table = cpu_driver.table(width, *counts, scratch, grain, threads)
        return ir, cpu_driver.handler(table), e.flops

    def _compile_cuda(self) -> cuda.Compiled:
        return cuda.target(*self.gpu_code())

    def gpu_code(self) -> tuple[str, int, int, int]:
        """LLVM IR of the kernel for GPUs, slots of scratch, numbers of arguments and results."""
        e = self.emitter(1, gpu=True)
        ir = e.module()
        e.graph.clear()
        return ir, e.scratch_slots, len(self.in_avals), len(self.out_avals)


def kernel(key: Key, batched: Sequence[bool], pullback: Any = None) -> Kernel:
    """The kernel of a function."""
    batched = tuple(batched)
    return key.made(("kernel", batched, pullback), lambda: _kernel(key, batched, pullback))


def _kernel(key: Key, batched: tuple[bool, ...], pullback: Any) -> Kernel:
    # Values do not depend on derivative rules, so their kernels are shared by content regardless.
    content, rules = key.content, b""
    if pullback is not None and content.rules:
        found = content.of_rules()
        if found is None:
            return Kernel(key.closed, batched, pullback)
        rules = found
    return Kernel(key.closed, batched, pullback, content.value + rules, content.lasting)
