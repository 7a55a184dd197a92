"""Runs on the GPU: what is computed, the host's results, and the comparison of every sample."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from throughput_cases.case import Case, Design
from throughput_cases.catalogue import CASES
from throughput_cases.work import difference, function

import jaxmbd as mbd
from gpu_cases.device import Device
from gpu_cases.record import FORWARD, LANES, LAST, ONE, VMAP
from jaxmbd import lanes
from jaxmbd.lanes.ir.nodes import SLOT, WARP
from jaxmbd.lanes.kernel import Kernel
from jaxmbd.lanes.targets import cuda

EMULATED = cuda.Devices("sm_90", True, 1 << 20, 1, 65_536, warps=64, cache=1 << 17)
Sample = tuple[Design, Any, Any]
PENDULUM = Case("pendulum", "pendulum", mbd.zoo.simple_pendulum)  # for a run without a GPU


@dataclass(frozen=True)
class Task:
    """A function of a case in a number type.

    Attributes:
        name: of the case.
        steps: of a rollout; 1 for forward dynamics.
        drawn: different samples; larger batches repeat them.
    """

    name: str
    work: str
    dtype: str
    steps: int
    drawn: int

    @property
    def case(self) -> Case:
        return CASES.get(self.name, PENDULUM)

    @property
    def title(self) -> str:
        return f"{self.case.title}, {self.work}, {self.dtype}"

    @property
    def sample(self) -> Sample:
        """The different samples, on the host."""
        whole = _drawn(self.case, self.drawn, self.work != FORWARD)
        return jax.tree_util.tree_map(lambda x: x.astype(self.dtype), whole)

    @property
    def function(self) -> Callable[..., Any]:
        """Of one sample."""
        return function(self.case, self.work, self.steps)

    def batched(self, column: str) -> Callable[..., Any]:
        """The function of a batch in a column; the same each time, so that it is traced once."""
        return _batched(self, column)


@cache
def _batched(task: Task, column: str) -> Callable[..., Any]:
    if column == VMAP:
        return jax.vmap(task.function)
    if column == LAST:
        return lanes.vmap(task.function, in_axes=-1, out_axes=-1, strict=True)
    if column == ONE:
        fixed = jax.tree_util.tree_map(lambda x: np.asarray(x, task.dtype), task.case.nominal)
        inner = lanes.vmap(partial(task.function, fixed), strict=True)
        return lambda design, q, v: inner(q, v)
    return lanes.vmap(task.function, strict=True)


@cache
def _drawn(case: Case, count: int, rest: bool) -> Sample:
    with on_host():
        return case.draw(count, rest=rest)


@contextmanager
def on_host() -> Iterator[None]:
    """JAX runs on the CPU in this context."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


@cache
def reference(task: Task, column: str) -> Any:
    """The host's results for the different samples.

    Args:
        task: what is computed.
        column: LANES or ONE by lanes; VMAP by XLA, which shares no code with it.
    """
    return _by_host(task, column, task.sample)


def _by_host(task: Task, column: str, sample: Sample) -> Any:
    with on_host():
        host = jax.device_put(sample, jax.devices("cpu")[0])
        out = jax.jit(task.batched(column))(*host)
        return jax.tree_util.tree_map(np.asarray, out)


@cache
def scatter(task: Task, draws: int = 2) -> float:
    """The largest relative difference of the host's results for neighbouring floats.

    Each number of the designs is replaced by the next float above or below, at random: no other
    way of rounding can be held to less.
    """
    rng = np.random.default_rng(2)
    design, q, v = task.sample

    def beside(x: Any) -> Any:
        side = np.where(rng.random(np.shape(x)) < 0.5, -np.inf, np.inf)
        return np.nextafter(x, side.astype(x.dtype))

    truth, worst = reference(task, LANES), np.finfo(task.dtype).eps
    for _ in range(draws):
        found = _by_host(task, LANES, (jax.tree_util.tree_map(beside, design), q, v))
        worst = max(worst, difference(found, truth)[0])
    return float(worst)


def repeated(sample: Sample, batch: int, place: Any, last: bool = False) -> Sample:
    """A batch on a device, made there; with `last`, along the last axis of each array."""
    times = -(-batch // len(sample[1]))

    def spread(x: Any) -> Any:
        x = jnp.tile(x, (times, *[1] * (x.ndim - 1)))[:batch]
        return jnp.moveaxis(x, 0, -1) if last else x

    whole = jax.jit(lambda tree: jax.tree_util.tree_map(spread, tree))
    return jax.block_until_ready(whole(jax.device_put(sample, place)))


class Program:
    """A function compiled for a batch by its first call.

    Attributes:
        call: the compiled function.
        first: its results.
        compile_seconds: of tracing and compiling.
        once: seconds of a call, about.
    """

    def __init__(self, fn: Callable[..., Any], args: Sample):
        self.call = jax.jit(fn)
        self.first, whole = self._timed(args)
        _, self.once = self._timed(args)
        self.compile_seconds = max(0.0, whole - self.once)

    def _timed(self, args: Sample) -> tuple[Any, float]:
        start = time.perf_counter()
        out = jax.block_until_ready(self.call(*args))
        return out, time.perf_counter() - start


@partial(jax.jit, static_argnums=(1, 2))
def compared(out: Any, drawn: int, axis: int) -> tuple[Any, Any, Any]:
    """Compare every sample of a batch with the first one of the same arguments, on the device.

    Args:
        out: results.
        drawn: number of different samples, which the batch repeats.
        axis: of the batch, 0 or -1.

    Returns:
        the results of the different samples, along the first axis; the number of samples whose
        bits are not those of sample ``k % drawn``; the number of samples that are not finite.
    """
    unequal = nonfinite = jnp.zeros((), bool)
    first = []
    leaves, tree = jax.tree_util.tree_flatten(out)
    for y in leaves:
        some = lax.slice_in_dim(y, 0, min(drawn, y.shape[axis]), axis=axis)
        first.append(jnp.moveaxis(some, axis, 0))
        if not y.size:
            continue
        others = tuple(k for k in range(y.ndim) if k != axis % y.ndim)
        source = jnp.arange(y.shape[axis]) % drawn
        bits = lax.bitcast_convert_type(y, f"uint{8 * y.dtype.itemsize}")
        unequal = unequal | (bits != jnp.take(bits, source, axis=axis)).any(axis=others)
        nonfinite = nonfinite | ~jnp.isfinite(y).all(axis=others)
    return jax.tree_util.tree_unflatten(tree, first), jnp.sum(unequal), jnp.sum(nonfinite)


@cache
def facts(task: Task, device: Device, place: Any) -> dict[str, Any]:
    """Facts of a task's kernel, which is compiled for it.

    Returns:
        operations, bytes of arguments and results, and bytes of scratch of a sample; registers and
        bytes of local memory of a thread; seconds of tracing, compiling and assembling.
    """
    sample = jax.device_put(task.sample, place)
    start = time.perf_counter()
    with _noted() as kernels:
        jax.jit(task.batched(LANES)).lower(*sample)
    seconds = time.perf_counter() - start
    kernel = kernels[-1]
    emitter = kernel.emitter(1, gpu=True)
    emitter.module()
    moved = [*kernel.in_avals, *kernel.out_avals]
    used = kernel.compile_cuda() if device.bus else cuda.Compiled("", 255, 0, 0)
    return dict(
        flops=emitter.flops,
        io_bytes=sum(a.size * a.dtype.itemsize for a in moved),
        registers=used.registers,
        local_bytes=used.local,
        scratch_bytes=SLOT * emitter.scratch_slots,
        kernel_compile_seconds=seconds,
    )


@contextmanager
def _noted() -> Iterator[list[Kernel]]:
    """The kernels that are compiled, or found compiled, in this context."""
    found: list[Kernel] = []
    usual = Kernel._code

    def code(self: Kernel, target: Any, compile_it: Callable[[], Any]) -> Any:
        found.append(self)
        return usual(self, target, compile_it)

    Kernel._code = code
    try:
        yield found
    finally:
        Kernel._code = usual


def wave(device: Device, facts: dict[str, Any]) -> int:
    """Samples that run at a time."""
    gpu = cuda.devices() if device.bus else EMULATED
    return gpu.processors * WARP * cuda.resident(facts["registers"], facts["local_bytes"], gpu)


def beyond_scratch(device: Device, facts: dict[str, Any], times: float) -> int:
    """A batch for which scratch of a sample each would be so many times what a kernel may have."""
    budget = device.memory // cuda.SCRATCH_SHARE
    return int(times * budget / max(1, facts["scratch_bytes"]))
