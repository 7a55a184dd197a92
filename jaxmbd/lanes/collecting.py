"""The kernels of a program that `export` lowers: not compiled here, but collected for its file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from jax.export import DisabledSafetyCheck

from jaxmbd.lanes.context import collector_paused
from jaxmbd.lanes.kernel import Kernel
from jaxmbd.lanes.targets import cpu, cuda, ptx


class HostKernel(NamedTuple):
    """A kernel of the host.

    Attributes:
        ir: the module, with its handler.
        flops: of one sample.
    """

    ir: str
    flops: int


class GpuKernel(NamedTuple):
    """A kernel of GPUs: PTX; slots of scratch per sample, numbers of arguments and results."""

    text: str
    slots: int
    inputs: int
    outputs: int


class Kernels:
    """Kernels by the names of their FFI targets.

    Attributes:
        host: those of the host.
        gpu: those of GPUs.
        trusted: one entry for each, by which `jax.export` lets a program call it. JAX reads the
            list when it has lowered the program, and so has filled it.
        calls: how many there are of lanes, also those that have no kernel.
    """

    def __init__(self) -> None:
        self.host: dict[str, HostKernel] = {}
        self.gpu: dict[str, GpuKernel] = {}
        self.trusted: list[DisabledSafetyCheck] = []
        self.calls = 0
        self._known: dict[Any, str] = {}

    @collector_paused()
    def of_host(self, k: Kernel, threads: int, batch: int) -> tuple[str, int]:
        """The name of a kernel's target, and flops of a sample."""
        how = (k, threads, min(batch, cpu.vector_bits() // 32))
        if how not in self._known:
            ir, handler, flops = k.host_code(threads, batch)
            k.release()
            self._known[how] = self._named(cpu.name_of(ir + handler))
            self.host[self._known[how]] = HostKernel(ir + handler, flops)
        name = self._known[how]
        return name, self.host[name].flops

    @collector_paused()
    def of_gpu(self, k: Kernel) -> str:
        """The name of a kernel's target."""
        if k not in self._known:
            ir, *numbers = k.gpu_code()
            text = ptx.generate(ir, ptx.OLDEST)
            self._known[k] = self._named(cuda.name_of(text))
            self.gpu[self._known[k]] = GpuKernel(text, *numbers)
        return self._known[k]

    def _named(self, name: str) -> str:
        self.trusted.append(DisabledSafetyCheck.custom_call(name))
        return name


_KERNELS: ContextVar[Kernels | None] = ContextVar("kernels", default=None)


@contextmanager
def collecting() -> Iterator[Kernels]:
    """A context in which programs are lowered for a file that has their kernels."""
    kernels = Kernels()
    token = _KERNELS.set(kernels)
    try:
        yield kernels
    finally:
        _KERNELS.reset(token)


def collected() -> Kernels | None:
    """The kernels of the context; None outside of one."""
    return _KERNELS.get()
