"""Runs on the GPU: compiling, checking against the host, timing."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from throughput_cases.case import Case, Design
from throughput_cases.work import FORWARD, GRADIENT, function

from jaxmbd import lanes
from jaxmbd.lanes.kernel import Kernel
from jaxmbd.lanes.targets import cuda

DRAWN = 4096  # different samples; larger batches repeat them
LANES, LAST, ONE, VMAP = "lanes", "lanes, batch last", "lanes, one design", "jax.vmap"
COLUMNS = (LANES, LAST, ONE, VMAP)
"""`lanes.vmap` of arrays with the batch as first axis; of arrays with the batch as last axis, which
need no transposition; of one mechanism with varying states; and `jax.vmap` by XLA."""

Sample = tuple[Design, Any, Any]


@cache
def drawn(case: Case, work: str, dtype: str) -> Sample:
    """Samples on the host."""
    with on_host():
        return case.draw(DRAWN if work == FORWARD else 512, dtype, rest=work != FORWARD)


@contextmanager
def on_host() -> Any:
    """JAX runs on the CPU in this context."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def repeated(sample: Sample, batch: int, last: bool = False) -> Sample:
    """A batch on the GPU, made there; with `last`, along the last axis of each array."""
    drawn = len(sample[1])
    times = -(-batch // drawn)

    def spread(x: Any) -> Any:
        x = jnp.tile(x, (times, *[1] * (x.ndim - 1)))[:batch]
        return jnp.moveaxis(x, 0, -1) if last else x

    whole = jax.jit(lambda tree: jax.tree_util.tree_map(spread, tree))
    return jax.block_until_ready(whole(jax.device_put(sample, jax.devices("gpu")[0])))


def batched(fn: Callable[..., Any], column: str, case: Case, dtype: str) -> Any:
    """The function of a batch in a column."""
    if column == VMAP:
        return jax.vmap(fn)
    if column == LAST:
        return lanes.vmap(fn, in_axes=-1, out_axes=-1, strict=True)
    if column == ONE:
        fixed = jax.tree_util.tree_map(lambda x: np.asarray(x, dtype), case.nominal)
        inner = lanes.vmap(partial(fn, fixed), strict=True)
        return lambda design, q, v: inner(q, v)
    return lanes.vmap(fn, strict=True)


class Program:
    """A function compiled for a batch.

    Attributes:
        compile_seconds: of tracing and compiling.
    """

    def __init__(self, fn: Callable[..., Any], args: Sample):
        start = time.perf_counter()
        self._run = jax.jit(fn).lower(*args).compile()
        self.compile_seconds = time.perf_counter() - start
        self._args = args

    def result(self, count: int, last: bool = False) -> Any:
        """The results of the first samples, on the host."""
        out = self._run(*self._args)
        return jax.tree_util.tree_map(
            lambda y: np.asarray(jnp.moveaxis(y, -1, 0)[:count] if last else y[:count]), out
        )

    def seconds(self, limit: float) -> float:
        """Seconds per call: the best of three series of calls dispatched without waiting."""
        best, calls = self._row(1), 1
        for _ in range(3):
            calls = max(1, min(200, int(limit / 3 / best)))
            best = min(best, self._row(calls))
            if best > limit:
                break
        return best

    def _row(self, calls: int) -> float:
        start = time.perf_counter()
        out = None
        for _ in range(calls):
            out = self._run(*self._args)
        jax.block_until_ready(out)
        return (time.perf_counter() - start) / calls


def facts(fn: Callable[..., Any], sample: Sample) -> dict[str, Any]:
    """Facts of one kernel: operations per sample, registers and memory per thread."""
    leaves, tree = jax.tree_util.tree_flatten(jax.tree_util.tree_map(lambda x: x[0], sample))

    def flat(*leaves: Any) -> list[Any]:
        return jax.tree_util.tree_leaves(fn(*jax.tree_util.tree_unflatten(tree, leaves)))

    kernel = Kernel(jax.make_jaxpr(flat)(*leaves), (True,) * len(leaves))
    emitter = kernel.emitter(1, gpu=True)
    emitter.module()
    compiled = kernel.compile_cuda()
    return dict(
        flops=emitter.flops,
        registers=compiled.registers,
        local_bytes=compiled.local,
        scratch_bytes=compiled.scratch,
    )


def reference(case: Case, work: str, steps: int, sample: Sample, count: int) -> tuple[Any, str]:
    """Results on the host in float64, by XLA, or by lanes if XLA would compile too long."""
    by_xla = case.name == "rssr" or work == FORWARD
    vmap = jax.vmap if by_xla else partial(lanes.vmap, strict=True)
    first = jax.tree_util.tree_map(lambda x: np.asarray(x[:count], np.float64), sample)
    with on_host():
        host = jax.device_put(first, jax.devices("cpu")[0])
        out = jax.jit(vmap(function(case, work, steps)))(*host)
        found = jax.tree_util.tree_map(np.asarray, out)
    return found, "jax.vmap on the host" if by_xla else "lanes on the host"


@contextmanager
def registers(most: int) -> Any:
    """Kernels compiled in this context use at most this number of registers per thread."""
    usual = cuda.target
    cuda.target = partial(usual, registers=most)
    try:
        yield
    finally:
        cuda.target = usual


def checked_samples(work: str) -> int:
    """Number of samples that are compared."""
    return 32 if work == GRADIENT else 128
