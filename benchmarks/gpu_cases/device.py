"""The GPU: whether there is one, its name and its peak speed. Needs no package."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

# From cuda.h (CUdevice_attribute).
CLOCK_KHZ, PROCESSORS, MAJOR, MINOR = 13, 16, 75, 76
DOUBLE = {(6, 0): 64, (7, 0): 64, (8, 0): 64, (9, 0): 128, (10, 0): 128}
"""Floating-point operations per cycle and multiprocessor in float64; `SLOW_DOUBLE` for others."""
SLOW_DOUBLE = 4
SINGLE = {(6, 0): 128, (7, 0): 128, (7, 5): 128, (8, 0): 128}
USUAL_SINGLE = 256


class NoGPU(RuntimeError):
    """There is no NVIDIA GPU; the message says what is missing."""


@dataclass(frozen=True)
class Device:
    """The first GPU.

    Attributes:
        driver: the newest CUDA version that its driver supports, as 13000.
        clock: maximum clock rate [Hz].
        memory: [bytes].
    """

    name: str
    driver: int
    capability: tuple[int, int]
    processors: int
    clock: float
    memory: int

    def peak(self, dtype: str) -> float:
        """Operations per second of its vector units; a fused multiply-add is two."""
        if dtype == "float64":
            each = DOUBLE.get(self.capability, SLOW_DOUBLE)
        else:
            each = SINGLE.get(self.capability, USUAL_SINGLE)
        return each * self.processors * self.clock

    @property
    def wheel(self) -> str:
        """JAX's extra for its driver."""
        return "cuda13" if self.driver >= 13000 else "cuda12"


def find() -> Device:
    """The first GPU.

    Raises:
        NoGPU: there is none.
    """
    try:
        lib = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise NoGPU("NVIDIA's driver (libcuda.so.1) is not installed") from None
    count, code = ctypes.c_int(), lib.cuInit(0)
    if code or lib.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        raise NoGPU(f"NVIDIA's driver finds no GPU (cuInit: {code})")

    def attribute(which: int) -> int:
        value = ctypes.c_int()
        lib.cuDeviceGetAttribute(ctypes.byref(value), which, 0)
        return value.value

    name, version, memory = ctypes.create_string_buffer(128), ctypes.c_int(), ctypes.c_size_t()
    lib.cuDeviceGetName(name, 128, 0)
    lib.cuDriverGetVersion(ctypes.byref(version))
    lib.cuDeviceTotalMem_v2(ctypes.byref(memory), 0)
    return Device(
        name.value.decode(),
        version.value,
        (attribute(MAJOR), attribute(MINOR)),
        attribute(PROCESSORS),
        1e3 * attribute(CLOCK_KHZ),
        memory.value,
    )
