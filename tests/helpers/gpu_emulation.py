"""Emulation of a GPU, its driver and XLA's FFI: the launcher is the real one, PTX is interpreted.

Addresses of arrays and scratch are those of the interpreter's memory: the launcher only passes them
on.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass, field

import numpy as np
import ptx_interpreter
import ptx_text
from ptx_memory import Memory, Region

from jaxmbd.lanes.ir.nodes import SLOT, WARP
from jaxmbd.lanes.kernel import Kernel
from jaxmbd.lanes.targets import cuda, ptx
from jaxmbd.lanes.targets.cuda_launcher import EXTRA

ERROR, STREAM, CONTEXT = 0xE0, 0x51, 0xC0
LAUNCH_FAILED = 719  # CUDA_ERROR_LAUNCH_FAILED
API_WORDS, FRAME_WORDS = 24, 20


@dataclass
class Launch:
    """Arguments of a call of cuLaunchKernel."""

    kernel: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int
    numbers: list[int]  # room, count


@dataclass
class Machine:
    """A driver and an XLA that record the calls made to them.

    Attributes:
        limit: largest scratch that is granted [bytes].
        launch_code: return code of cuLaunchKernel.
        stream_error: error that XLA returns when asked for the stream; 0 is no error.
        program: the kernel; without one, launches run nothing.
        device: the GPU's memory.
        launches: launches so far.
        requests: sizes of the requested scratch [bytes].
        memory: scratch allocated and not yet freed, by address.
        message: message of the error that the handler created.
        contexts: contexts pushed and not yet popped.
        counts: what kernels have executed.
        fault: why a kernel stopped, if one did.
    """

    limit: int = 1 << 62
    launch_code: int = 0
    stream_error: int = 0
    program: ptx_text.Program | None = None
    device: Memory = field(default_factory=Memory)
    launches: list[Launch] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    memory: dict[int, Region] = field(default_factory=dict)
    forgotten: int = 0
    message: bytes = b""
    contexts: list[int] = field(default_factory=list)
    counts: ptx_interpreter.Counts = field(default_factory=ptx_interpreter.Counts)
    fault: Exception | None = None

    def library(self, buffers: int) -> type:
        """The driver's functions, for a kernel with a number of arguments and results."""

        def launch(kernel, gx, gy, gz, bx, by, bz, shared, stream, params, extra):
            assert not extra
            numbers = [
                ctypes.cast(params[buffers + k], POINTER(c_int64))[0] for k in range(1, EXTRA)
            ]
            self.launches.append(
                Launch(kernel, (gx, gy, gz), (bx, by, bz), shared, stream, numbers)
            )
            return self.launch_code or self._run(gx, bx, params)

        def context(stream, out):
            assert stream == STREAM
            out[0] = CONTEXT
            return 0

        def pop(out):
            out[0] = self.contexts.pop()
            return 0

        def push(context):
            self.contexts.append(context)
            return 0

        u = c_uint32
        params = POINTER(c_void_p)
        pointers = dict(
            cuLaunchKernel=CFUNCTYPE(
                c_int32, c_void_p, u, u, u, u, u, u, u, c_void_p, params, c_void_p
            )(launch),
            cuStreamGetCtx=CFUNCTYPE(c_int32, c_void_p, POINTER(c_void_p))(context),
            cuCtxPushCurrent_v2=CFUNCTYPE(c_int32, c_void_p)(push),
            cuCtxPopCurrent_v2=CFUNCTYPE(c_int32, POINTER(c_void_p))(pop),
        )
        self._kept = pointers
        return type("Library", (), {k: staticmethod(f) for k, f in pointers.items()})

    def _run(self, grid: int, threads: int, params: ctypes.Array) -> int:
        """Run the kernel; the code of a failed launch if it does what no kernel may do."""
        if self.program is None:
            return 0
        for scratch in self.memory.values():
            scratch.forget()  # no launch may use what another one left
        sizes = [x.size for x in self.program.kernel.parameters]
        values = [ctypes.string_at(params[k], size) for k, size in enumerate(sizes)]
        try:
            done = ptx_interpreter.launch(self.program, grid, threads, values, self.device)
        except Exception as fault:  # a callback cannot raise
            self.fault = fault
            return LAUNCH_FAILED
        self.counts.add(done)
        return 0

    def api(self) -> ctypes.Array:
        """XLA's table of functions, those at the offsets that c_api.h gives."""

        def create(args):
            assert _word(args, 0, c_size_t) == 28 and _word(args, 24, c_int32) == 13
            self.message = ctypes.string_at(_word(args, 16, c_void_p))
            return ERROR

        def destroy(args):
            assert _word(args, 0, c_size_t) == 24 and _word(args, 16, c_void_p) == ERROR
            self.forgotten += 1

        def stream(args):
            assert _word(args, 0, c_size_t) == 32
            c_void_p.from_address(args + 24).value = STREAM
            return self.stream_error

        def allocate(args):
            size, alignment = _word(args, 24, c_size_t), _word(args, 32, c_size_t)
            assert _word(args, 0, c_size_t) == 48 and alignment in (1, 2, 4, 8, 16)
            self.requests.append(size)
            if size > self.limit:
                return ERROR
            region = self.device.place("scratch", np.empty(size, np.uint8))
            self.memory[region.address] = region
            c_void_p.from_address(args + 40).value = region.address
            return 0

        def free(args):
            assert _word(args, 0, c_size_t) == 40
            region = self.memory.pop(_word(args, 32, c_void_p))
            assert region.size == _word(args, 24, c_size_t)
            self.device.remove(region.address)
            return 0

        one = CFUNCTYPE(c_void_p, c_void_p)
        functions = {48: one(create), 64: CFUNCTYPE(None, c_void_p)(destroy), 80: one(stream),
                     120: one(allocate), 128: one(free)}  # fmt: skip
        self._functions = functions
        table = (c_int64 * API_WORDS)()
        for offset, function in functions.items():
            table[offset // 8] = ctypes.cast(function, c_void_p).value
        return table


def _word(address: int, offset: int, kind: type):
    return kind.from_address(address + offset).value


def _buffer(memory: np.ndarray | Region, dims: tuple[int, ...], keep: list) -> int:
    """An XLA_FFI_Buffer; `dims` are the logical ones."""
    address = memory.address if isinstance(memory, Region) else memory.ctypes.data
    shape = (c_int64 * max(1, len(dims)))(*dims)
    words = (c_int64 * 6)(48, 0, 0, address, len(dims), ctypes.addressof(shape))
    keep += [memory, shape, words]
    return ctypes.addressof(words)


def frame(machine: Machine, ins: list, outs: list, keep: list) -> int:
    """The address of an XLA_FFI_CallFrame; arrays as (memory, logical shape).

    The memory is an array of the host, or a region of an emulated GPU.
    """
    api = machine.api()
    lists = [(c_int64 * max(1, len(x)))(*[_buffer(*b, keep) for b in x]) for x in (ins, outs)]
    words = (c_int64 * FRAME_WORDS)()
    words[0], words[2], words[3] = 8 * FRAME_WORDS, ctypes.addressof(api), 0x77
    words[4] = 3  # the stage: execute
    for at, (given, pointers) in zip((5, 10), zip((ins, outs), lists, strict=True), strict=True):
        words[at], words[at + 2], words[at + 4] = 40, len(given), ctypes.addressof(pointers)
    keep += [api, words, *lists]
    return ctypes.addressof(words)


def facts(memory: int = 1 << 40, processors: int = 4) -> cuda.Devices:
    """Properties of a small GPU."""
    return cuda.Devices("sm_90", True, memory, processors, 1 << 16, 32, 1 << 17)


def call(address: int, frame: int) -> int | None:
    """Call a handler: None or the error that it returns."""
    return CFUNCTYPE(c_void_p, c_void_p)(address)(frame)


def program(k: Kernel) -> tuple[ptx_text.Program, int]:
    """The PTX of a kernel, and the scratch that a warp of it needs [bytes]."""
    e = k.emitter(1, gpu=True)
    return ptx_text.parse(ptx.generate(e.module())), e.scratch_slots * SLOT * WARP


def run(
    k: Kernel, args: list[np.ndarray], machine: Machine, warps: int = 100, memory: int = 1 << 40
) -> list:
    """A kernel's results for a batch: its PTX, interpreted, launched by its handler.

    Args:
        k: the kernel.
        args: its arguments.
        machine: launches it.
        warps: how many run at a time.
        memory: of the GPU [bytes].

    Raises:
        PtxError: the kernel does what no kernel may do, or does not write all of its results.
    """
    machine.program, room = program(k)
    counts = len(k.in_avals), len(k.out_avals)
    lib = machine.library(sum(counts))
    address = cuda.handler(0xF00, room, warps, *counts, facts(memory), lib)
    size = next(len(x) for x, b in zip(args, k.in_batched, strict=True) if b)
    args = [np.ascontiguousarray(x) for x in args]
    outs = [np.zeros((size, *a.shape), a.dtype) for a in k.out_avals]
    given, taken = placed(machine, "argument", args, fixed=True), placed(machine, "result", outs)
    ins, results = (
        [(r, x.shape) for r, x in zip(*both, strict=True)]
        for both in ((given, args), (taken, outs))
    )
    keep: list = []
    error = call(address, frame(machine, ins, results, keep))
    if machine.fault is not None:
        raise machine.fault
    assert error is None, machine.message
    assert not machine.memory and not machine.contexts
    for region in (*given, *taken):
        machine.device.remove(region.address)
        if not region.written.all():
            raise ptx_text.PtxError(f"{region.name} is not written as a whole")
    return outs


def placed(machine: Machine, name: str, arrays: list, *, fixed: bool = False) -> list[Region]:
    """Regions of the GPU's memory that share their bytes with arrays."""
    contents = [x.reshape(-1).view(np.uint8) for x in arrays]
    return [machine.device.place(f"{name} {k}", x, fixed=fixed) for k, x in enumerate(contents)]
