"""Kernels on NVIDIA GPUs: loading code into the driver, and FFI targets that launch it.

Only the driver is required (libcuda of CUDA 12.1 or newer). ptxas assembles the code if available,
else the driver does. One kernel handle serves all GPUs of the process.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax

from jaxmbd.lanes.ir.nodes import SLOT, WARP, Unsupported
from jaxmbd.lanes.targets import cpu, cuda_launcher, ptx

SCRATCH_SHARE = 8
"""Scratch takes at most 1/SCRATCH_SHARE of a GPU's memory."""
# From cuda.h: attributes of devices (CUdevice_attribute) and functions (CUfunction_attribute).
_PROCESSORS, _THREADS, _MAJOR, _MINOR = 16, 39, 75, 76
_SHARED, _REGISTER_FILE, _BLOCKS = 81, 82, 106  # of one multiprocessor
_LOCAL_BYTES, _REGISTERS = 3, 4
# Driver functions called here and by the handlers.
_FUNCTIONS = (
    "cuInit", "cuGetErrorString", "cuDeviceGetCount", "cuDeviceTotalMem_v2",
    "cuDeviceGetAttribute", "cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetAttribute",
    "cuLaunchKernel", "cuStreamGetCtx", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2",
)  # fmt: skip

_LOCK = threading.RLock()
_TARGETS: dict[str, Compiled] = {}


class Unavailable(Unsupported):
    """There is no GPU or driver, or no code for the GPU; the message says which."""


@dataclass(frozen=True)
class Compiled:
    """A kernel that XLA can launch.

    Attributes:
        name: name of its FFI target.
        registers: registers per thread.
        local: bytes of local memory per thread (spilled registers).
        scratch: bytes of scratch per sample.
    """

    name: str
    registers: int
    local: int
    scratch: int


@dataclass(frozen=True)
class Devices:
    """The GPUs visible to the driver.

    Attributes:
        arch: the newest target that all of them run.
        alike: whether they have the same compute capability.
        memory: memory of the smallest [bytes].
        processors: multiprocessors of the first GPU.
        registers: of one multiprocessor, of 32 bits each.
        warps: that one multiprocessor can hold.
        cache: memory of one multiprocessor for its first-level cache [bytes].
    """

    arch: str
    alike: bool
    memory: int
    processors: int
    registers: int
    warps: int
    cache: int


@cache
def library() -> Any:
    """NVIDIA's driver library, initialised.

    Raises:
        Unavailable: it is missing, lacks a function, or does not initialise.
    """
    try:
        lib = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise Unavailable(f"NVIDIA's driver library cannot be loaded: {error}") from None
    missing = [name for name in _FUNCTIONS if not hasattr(lib, name)]
    if missing:
        raise Unavailable(
            "NVIDIA's driver is too old: lanes needs one for CUDA 12.1 or newer, with "
            + ", ".join(missing)
        )
    code = lib.cuInit(0)
    if code:
        raise Unavailable(f"NVIDIA's driver cannot be initialised: CUDA error {code}")
    return lib


def _call(name: str, *args: Any) -> None:
    """Call a function of the driver.

    Raises:
        Unavailable: it reports an error.
    """
    lib = library()
    code = getattr(lib, name)(*args)
    if code:
        text = ctypes.c_char_p()
        lib.cuGetErrorString(code, ctypes.byref(text))
        words = (text.value or b"unknown").decode()
        raise Unavailable(f"NVIDIA's driver: {name} failed with error {code} ({words})")


@cache
def devices() -> Devices:
    """Properties of the GPUs that determine how kernels are compiled and launched."""
    count = ctypes.c_int()
    _call("cuDeviceGetCount", ctypes.byref(count))
    if not count.value:
        raise Unavailable("NVIDIA's driver finds no GPU")
    handles = range(count.value)  # a CUdevice is an ordinal
    capabilities = [(attribute(_MAJOR, d), attribute(_MINOR, d)) for d in handles]
    sizes = []
    for d in handles:
        size = ctypes.c_size_t()
        _call("cuDeviceTotalMem_v2", ctypes.byref(size), d)
        sizes.append(size.value)
    try:
        arch = ptx.architecture(min(capabilities))
    except ValueError as error:
        raise Unavailable(str(error)) from None
    return Devices(
        arch,
        alike=len(set(capabilities)) == 1,
        memory=min(sizes),
        processors=attribute(_PROCESSORS),
        registers=attribute(_REGISTER_FILE),
        warps=min(attribute(_THREADS) // WARP, attribute(_BLOCKS)),
        cache=attribute(_SHARED),
    )


def attribute(which: int, device: int = 0) -> int:
    """An attribute of a device, by its number in cuda.h (CUdevice_attribute)."""
    value = ctypes.c_int()
    _call("cuDeviceGetAttribute", ctypes.byref(value), which, device)
    return value.value


def target(ir: str, slots: int, inputs: int, outputs: int) -> Compiled:
    """The FFI target of a kernel, compiled and loaded if it is new.

    Args:
        ir: LLVM IR of the kernel (`Emitter` with ``gpu=True``).
        slots: elements of scratch per sample.
        inputs: number of arguments.
        outputs: number of results.

    Raises:
        Unavailable: there is no usable GPU, or its driver rejects the code.
    """
    return loaded(ptx.generate(ir, devices().arch), slots, inputs, outputs)


def name_of(text: str) -> str:
    """The name of the FFI target of a kernel in PTX."""
    return f"lanes_cuda_{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def loaded(text: str, slots: int, inputs: int, outputs: int) -> Compiled:
    """The FFI target of a kernel in PTX, loaded if it is new; arguments as of `target`.

    Raises:
        Unavailable: there is no usable GPU, or its driver rejects the code.
    """
    facts, name = devices(), name_of(text)
    with _LOCK:
        known = _TARGETS.get(name)
        if known is None:
            kernel = _loaded(text, facts)
            used, local = (_kernel_attribute(which, kernel) for which in (_REGISTERS, _LOCAL_BYTES))
            warps = facts.processors * resident(used, local, facts)
            address = handler(kernel, slots * SLOT * WARP, warps, inputs, outputs, facts)
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(address), platform="CUDA")
            known = _TARGETS[name] = Compiled(name, used, local, scratch=slots * SLOT)
        return known


def _loaded(text: str, facts: Devices) -> int:
    """The handle (CUkernel) of the kernel in PTX: assembled here, or by the driver."""
    if facts.alike:
        try:
            return _load(ptx.assemble(text, facts.arch))
        except (FileNotFoundError, RuntimeError):  # no ptxas, or one newer than the driver
            pass
    return _load(text.encode() + b"\0")


def _load(code: bytes) -> int:
    """Load a cubin or PTX; it is never unloaded, since XLA programs may refer to it."""
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    _call("cuLibraryLoadData", ctypes.byref(module), code, None, None, 0, None, None, 0)
    _call("cuLibraryGetKernel", ctypes.byref(kernel), module, b"kernel")
    assert kernel.value is not None
    return kernel.value


def _kernel_attribute(which: int, kernel: int) -> int:
    value = ctypes.c_int()
    _call("cuKernelGetAttribute", ctypes.byref(value), which, ctypes.c_void_p(kernel), 0)
    return value.value


LEAST_CACHED = 2
"""Fewer warps than these would be slower than as many as there are registers for."""
STACKS = 0.95
"""The part of a multiprocessor's cache that stacks may take; the rest is for arguments."""


def resident(registers: int, local: int, facts: Devices) -> int:
    """How many warps of a kernel run on a multiprocessor at a time.

    No more than have their stacks in the first-level cache, or if hardly any has, as many as there
    are registers for. On an H100 two warps of a rollout with 3.4 kB of stack a thread, whose stacks
    fit, are 1.4 times as fast as eight; eight of a gradient, with 13 kB, are 1.4 times as fast as
    two.

    Args:
        registers: of a thread.
        local: stack of a thread [bytes].
        facts: properties of the GPUs.
    """
    each = -(-registers // 8) * 8 * WARP  # registers are allocated by eight
    most = min(facts.warps, facts.registers // each)
    cached = int(STACKS * facts.cache) // (local * WARP) if local else most
    return max(1, min(most, cached) if cached >= LEAST_CACHED else most)


def handler(
    kernel: int, room: int, warps: int, inputs: int, outputs: int, facts: Devices, lib: Any = None
) -> int:
    """The address of an FFI handler that launches a kernel.

    Args:
        kernel: the kernel's handle.
        room: scratch of a warp [bytes].
        warps: how many run at a time.
        inputs: number of arguments.
        outputs: number of results.
        facts: properties of the GPUs.
        lib: library of the driver's functions; by default the driver.
    """
    lib = library() if lib is None else lib
    address = cpu.function(cuda_launcher.module(cpu.abi_minor()), "handler")
    call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)
    table = (ctypes.c_int64 * cuda_launcher.WORDS).from_address(call(None))
    numbers = {
        cuda_launcher.KERNEL: kernel,
        cuda_launcher.LAUNCH: _pointer(lib.cuLaunchKernel),
        cuda_launcher.CONTEXT: _pointer(lib.cuStreamGetCtx),
        cuda_launcher.PUSH: _pointer(lib.cuCtxPushCurrent_v2),
        cuda_launcher.POP: _pointer(lib.cuCtxPopCurrent_v2),
        cuda_launcher.INPUTS: inputs,
        cuda_launcher.OUTPUTS: outputs,
        cuda_launcher.ROOM: room,
        cuda_launcher.WARPS: min(warps, max(1, facts.memory // SCRATCH_SHARE // max(1, room))),
    }
    for place, number in numbers.items():
        table[place] = number
    return address


def _pointer(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address
