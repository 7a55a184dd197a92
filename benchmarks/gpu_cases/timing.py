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
from jax import lax

from gpu_cases.device import Device, Meter
from jaxmbd import lanes
from jaxmbd.lanes.targets import cpu

SERIES = 5
PART, MOST = 0.1, 200  # seconds and calls of a series, at most, if a call is not longer
QUEUE = 16  # calls queued at a time: XLA lets the host run ahead by 32 programs
SLOW = 20e-3  # seconds of a call from which the host's part is too short to matter
BUSY = 1_000_000  # dependent operations of the kernel that keeps the GPU busy: some 5 ms
STAMP = "gpu_benchmark_stamp"
# Offsets in XLA's FFI C API, as in jaxmbd.lanes.targets.ffi.
EXTENSION, API, CONTEXT, GET_STREAM, METADATA, KIND = 8, 16, 24, 80, 24, 8
ABI_MINOR = 28
KEPT: list[Any] = []
"""Handlers known to XLA, which are never withdrawn."""
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
        """Make the handler known to XLA."""
        name, platform = f"{STAMP}_{len(KEPT)}", "cpu" if self._driver is None else "CUDA"
        KEPT.append(self._handler)
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(self._handler), platform=platform)
        kind = jax.ShapeDtypeStruct((), jnp.float32)
        self._call = jax.jit(jax.ffi.ffi_call(name, kind, has_side_effect=True))

    def __call__(self, unread: Any) -> Any:
        """Put a point into the stream of an array's device."""
        return self._call(unread)

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
        self._on_host = not device.bus
        self._grain = jax.device_put(jnp.ones(32), place)
        length = 100 if self._on_host else BUSY
        self._busy = jax.jit(lanes.vmap(lambda x: lax.fori_loop(0, length, _step, x), strict=True))
        self._stamps: Stamps | None = Stamps(None if self._on_host else driver())
        try:
            self._stamps.register()
            self._series(self._busy, (self._grain,), 1, busy=True)  # compiles
        except Exception as error:  # the host's clock remains
            print(f"  no CUDA events: {type(error).__name__}: {error}", flush=True)
            self._stamps = None

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
        slow = once >= SLOW  # then the GPU is still at work when it is asked for its state
        wall, kernel, queued, found = [], [], True, {}
        for _ in range(series):
            found = self._series(call, args, calls, look=slow)
            wall.append(found["wall"])
            inside = found["kernel"]
            if not slow and self._stamps is not None:
                queue = self._series(call, args, min(calls, QUEUE), busy=True)
                inside, queued = queue["kernel"], queued and queue["queued"]
            kernel.append(inside)
        state = (found if slow else self._series(call, args, calls, look=True))["state"]
        by = "the host's clock" if self._stamps is None else "events"
        facts = dict(series=series, queued=queued, kernel_by=by)
        return _spread("seconds", wall) | _spread("kernel_seconds", kernel) | facts | state

    def _series(
        self,
        call: Callable[..., Any],
        args: Any,
        calls: int,
        *,
        busy: bool = False,
        look: bool = False,
    ) -> dict[str, Any]:
        """Seconds of a call for the host, and on the GPU.

        Args:
            call: the compiled function.
            args: its arguments.
            calls: how many.
            busy: keep the GPU busy until they are `queued`; that they were in time is returned.
            look: also return the GPU's `state` behind them.
        """
        before, out = self._grain, None
        if busy:
            self._stamp()
            before = self._busy(before)
        start = time.perf_counter()
        self._stamp()
        for _ in range(calls):
            out = call(*args)
        dispatched = time.perf_counter() - start
        if self._on_host:
            jax.block_until_ready(out)
        last = self._stamp()
        state = self.meter.now() if look else None
        jax.block_until_ready((before, out, last))
        wall = (time.perf_counter() - start) / calls
        spans = self._stamps.taken() if self._stamps is not None else [0.0, wall * calls]
        queued = busy and spans[-2] > dispatched
        return dict(wall=wall, kernel=spans[-1] / calls, queued=queued, state=state)

    def _stamp(self) -> Any:
        if self._stamps is None:
            return None
        point = self._stamps(self._grain)
        # the host has no stream that orders programs
        return jax.block_until_ready(point) if self._on_host else point


def driver() -> Any:
    """NVIDIA's driver library; it is there if a GPU was found."""
    return ctypes.CDLL("libcuda.so.1")


def _step(k: Any, x: Any) -> Any:
    return 0.5 * x + 1.0


def _spread(name: str, found: list[float]) -> dict[str, float]:
    return {
        name: statistics.median(found),
        f"{name}_min": min(found),
        f"{name}_max": max(found),
    }
