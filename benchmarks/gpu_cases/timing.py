"""Times of a compiled function: of a call as the host sees it, and of its kernels on the GPU.

The second is the time between two CUDA events on XLA's stream. A tiny FFI call records them; before
the first, a kernel of one warp keeps the GPU busy for some milliseconds, until the calls to be
timed are queued, so that the host's work for a call is no part of it.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from ctypes import byref, c_float, c_int64, c_uint32, c_void_p
from typing import Any

import jax
import jax.numpy as jnp
from gpu_cases.device import Device, Meter
from jax import lax

from jaxmbd import lanes
from jaxmbd.lanes.targets import cpu

SERIES = 5
PART, MOST = 0.1, 200  # seconds and calls of a series, at most, if a call is not longer
QUEUE = 16  # calls queued at a time: XLA lets the host run ahead by 32 programs
SLOW = 20e-3  # seconds of a call from which the host's part is too short to matter
BUSY = 500_000  # dependent operations of the kernel that keeps the GPU busy: some 5 ms
STAMP = "gpu_benchmark_stamp"
# Offsets in XLA's FFI C API, as in jaxmbd.lanes.targets.ffi.
EXTENSION, API, CONTEXT, GET_STREAM, METADATA, KIND = 8, 16, 24, 80, 24, 8
ABI_MINOR = 28
CALLBACK = ctypes.CFUNCTYPE(c_void_p, c_void_p)


class Stamps:
    """Points in time on XLA's stream; on the host, where there is no driver, of its own clock.

    Args:
        driver: NVIDIA's driver library, or None.
    """

    def __init__(self, driver: Any = None):
        self._driver = driver
        self._points: list[Any] = []
        self._codes: list[int] = []
        self._minor = cpu.abi_minor()
        self._handler = CALLBACK(self.handle)
        self._call: Any = None

    def register(self) -> None:
        """Make the handler known to XLA, once in a process."""
        platform = "cpu" if self._driver is None else "CUDA"
        jax.ffi.register_ffi_target(STAMP, jax.ffi.pycapsule(self._handler), platform=platform)
        kind = jax.ShapeDtypeStruct((), jnp.float32)
        self._call = jax.jit(jax.ffi.ffi_call(STAMP, kind, has_side_effect=True))

    def __call__(self, after: Any) -> Any:
        """Put a point into the stream, behind what computes an array."""
        return self._call(after)

    def handle(self, frame: int) -> None:
        """XLA's call: a query of the version, or the request to record a point."""
        extension = _pointer(frame, EXTENSION)
        if extension and c_uint32.from_address(extension + KIND).value == 1:
            metadata = _pointer(extension, METADATA)
            c_uint32.from_address(metadata + ABI_MINOR - 4).value = 0
            c_uint32.from_address(metadata + ABI_MINOR).value = self._minor
        elif self._driver is None:
            self._points.append(time.perf_counter())
        else:
            self._record(_stream(frame))

    def _record(self, stream: c_void_p) -> None:
        lib, event, context = self._driver, c_void_p(), c_void_p()
        codes = [lib.cuStreamGetCtx(stream, byref(context)), lib.cuCtxPushCurrent_v2(context)]
        codes += [lib.cuEventCreate(byref(event), 0), lib.cuEventRecord(event, stream)]
        codes += [lib.cuCtxPopCurrent_v2(byref(c_void_p()))]
        self._codes += codes
        self._points.append((event, context))

    def taken(self) -> list[float]:
        """Seconds between the points since the last call; the GPU must have passed them.

        Raises:
            RuntimeError: the driver reported an error.
        """
        points, self._points = self._points, []
        codes, self._codes = self._codes, []
        if self._driver is None:
            return [b - a for a, b in zip(points, points[1:], strict=False)]
        lib, spans, context = self._driver, [], c_void_p()
        codes.append(lib.cuCtxPushCurrent_v2(points[0][1]))
        for (a, _), (b, _) in zip(points, points[1:], strict=False):
            span = c_float()
            codes.append(lib.cuEventElapsedTime(byref(span), a, b))
            spans.append(1e-3 * span.value)
        codes += [lib.cuEventDestroy_v2(event) for event, _ in points]
        codes.append(lib.cuCtxPopCurrent_v2(byref(context)))
        if any(codes):
            raise RuntimeError(f"NVIDIA's driver: an event failed, codes {codes}")
        return spans


def _pointer(address: int, offset: int) -> int:
    return c_int64.from_address(address + offset).value


def _stream(frame: int) -> c_void_p:
    """The stream that XLA runs a call on."""
    query = (c_int64 * 4)(32, 0, _pointer(frame, CONTEXT), 0)
    CALLBACK(_pointer(_pointer(frame, API), GET_STREAM))(ctypes.addressof(query))
    return c_void_p(query[3])


class Timer:
    """Times calls on one device.

    Args:
        device: its facts.
        place: the device, for JAX.
    """

    def __init__(self, device: Device, place: Any):
        self.meter = Meter(device)
        self._stamps = Stamps(ctypes.CDLL("libcuda.so.1") if device.bus else None)
        self._stamps.register()
        length = BUSY if device.bus else 100

        def busy(x: Any) -> Any:
            return lax.fori_loop(0, length, lambda k, x: 0.5 * x + 1.0, x)

        self._busy = jax.jit(lanes.vmap(busy, strict=True))
        self._grain = jax.device_put(jnp.ones(32), place)
        self._series(self._busy, (self._grain,), 1, busy=True)  # compiles

    def times(
        self, call: Callable[..., Any], args: Any, once: float, limit: float
    ) -> dict[str, Any]:
        """Medians and spreads of `SERIES` series of calls, and the GPU's state under this load.

        Args:
            call: the compiled function.
            args: its arguments, on the device.
            once: seconds of a call, about.
            limit: seconds for all of it; there are fewer series if they would take longer.
        """
        series = max(1, min(SERIES, int(limit / once)))
        calls = max(1, min(MOST, int(PART / once)))
        self._compiled_stamp(call, args)
        wall, kernel, queued = [], [], True
        for _ in range(series):
            seconds, inside, _ = self._series(call, args, calls)
            wall.append(seconds)
            if once < SLOW:
                few = min(calls, QUEUE)
                _, inside, filled = self._series(call, args, few, busy=True)
                queued = queued and filled
            kernel.append(inside)
        spreads = _spread("seconds", wall) | _spread("kernel_seconds", kernel)
        return spreads | dict(series=series, queued=queued) | self._state(call, args, once)

    def _compiled_stamp(self, call: Callable[..., Any], args: Any) -> None:
        jax.block_until_ready(self._stamps(_smallest(call(*args))))
        self._stamps.taken()

    def _series(
        self, call: Callable[..., Any], args: Any, calls: int, *, busy: bool = False
    ) -> tuple[float, float, bool]:
        """Seconds of a call for the host and on the GPU; whether all were queued in time."""
        before = self._grain
        if busy:
            self._stamps(before)
            before = self._busy(before)
        start = time.perf_counter()
        self._stamps(before)
        out = None
        for _ in range(calls):
            out = call(*args)
        dispatched = time.perf_counter() - start
        last = self._stamps(_smallest(out))
        jax.block_until_ready((out, last))
        wall = time.perf_counter() - start
        spans = self._stamps.taken()
        return wall / calls, spans[-1] / calls, spans[0] > dispatched

    def _state(self, call: Callable[..., Any], args: Any, once: float) -> dict[str, Any]:
        """Clock and power after up to a tenth of a second of calls, while the last ones run."""
        out = None
        for _ in range(max(1, min(2 * MOST, int(PART / once)))):
            out = call(*args)
        state = self.meter.now()
        jax.block_until_ready(out)
        return state


def _smallest(tree: Any) -> Any:
    return min(jax.tree_util.tree_leaves(tree), key=lambda y: y.size)


def _spread(name: str, found: list[float]) -> dict[str, float]:
    return {
        name: statistics.median(found),
        f"{name}_min": min(found),
        f"{name}_max": max(found),
    }
