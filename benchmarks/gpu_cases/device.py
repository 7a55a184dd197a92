"""The GPU: whether there is one, its name, its peak speed, its state. Needs no package."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

# From cuda.h (CUdevice_attribute).
CLOCK_KHZ, PROCESSORS, MAJOR, MINOR = 13, 16, 75, 76
DOUBLE = {(6, 0): 64, (7, 0): 64, (8, 0): 64, (9, 0): 128, (10, 0): 128}
"""Floating-point operations per cycle and multiprocessor in float64; `SLOW_DOUBLE` for others."""
SLOW_DOUBLE = 4
SINGLE = {(6, 0): 128, (7, 0): 128, (7, 5): 128, (8, 0): 128}
USUAL_SINGLE = 256
SM_CLOCK = 1  # from nvml.h (nvmlClockType_t)


class NoGPU(RuntimeError):
    """There is no NVIDIA GPU; the message says what is missing."""


def per_cycle(capability: tuple[int, int], dtype: str) -> int:
    """Operations per cycle and multiprocessor of the vector units."""
    if dtype == "float64":
        return DOUBLE.get(capability, SLOW_DOUBLE)
    return SINGLE.get(capability, USUAL_SINGLE)


@dataclass(frozen=True)
class Device:
    """The first GPU.

    Attributes:
        driver: the newest CUDA version that its driver supports, as 13000.
        clock: maximum clock rate [Hz].
        memory: [bytes].
        bus: its PCI address; empty if it is emulated by the host.
    """

    name: str
    driver: int
    capability: tuple[int, int]
    processors: int
    clock: float
    memory: int
    bus: str = ""

    def peak(self, dtype: str) -> float:
        """Operations per second of its vector units; a fused multiply-add is two."""
        return per_cycle(self.capability, dtype) * self.processors * self.clock

    @property
    def wheel(self) -> str:
        """JAX's extra for its driver."""
        return "cuda13" if self.driver >= 13000 else "cuda12"


EMULATED = Device("none: a dry run on the host", 13000, (9, 0), 1, 1e9, 1 << 20)
"""So small that scratch is short for a few hundred gradients."""


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
    bus = ctypes.create_string_buffer(32)
    lib.cuDeviceGetName(name, 128, 0)
    lib.cuDriverGetVersion(ctypes.byref(version))
    lib.cuDeviceTotalMem_v2(ctypes.byref(memory), 0)
    lib.cuDeviceGetPCIBusId(bus, 32, 0)
    return Device(
        name.value.decode(),
        version.value,
        (attribute(MAJOR), attribute(MINOR)),
        attribute(PROCESSORS),
        1e3 * attribute(CLOCK_KHZ),
        memory.value,
        bus.value.decode(),
    )


class Meter:
    """The GPU's clock and power by NVML, which comes with the driver; None where it cannot tell."""

    def __init__(self, device: Device):
        self._lib: Any = None
        self._handle = ctypes.c_void_p()
        self.driver: str | None = None
        try:
            lib = ctypes.CDLL("libnvidia-ml.so.1") if device.bus else None
        except OSError:
            return
        if lib is None or lib.nvmlInit_v2():
            return
        text = ctypes.create_string_buffer(96)
        if not lib.nvmlSystemGetDriverVersion(text, 96):
            self.driver = text.value.decode()
        bus = device.bus.encode()
        if not lib.nvmlDeviceGetHandleByPciBusId_v2(bus, ctypes.byref(self._handle)):
            self._lib = lib

    def now(self) -> dict[str, Any]:
        """Clock of the multiprocessors [MHz], power [W] and the driver's version."""
        clock, power = ctypes.c_uint(), ctypes.c_uint()
        clocked = powered = False
        if self._lib is not None:
            get = self._lib.nvmlDeviceGetClockInfo
            clocked = not get(self._handle, SM_CLOCK, ctypes.byref(clock))
            powered = not self._lib.nvmlDeviceGetPowerUsage(self._handle, ctypes.byref(power))
        return dict(
            clock_mhz=clock.value if clocked else None,
            power_w=power.value / 1e3 if powered else None,
            driver=self.driver,
        )
