"""Emulation of a GPU driver and XLA's FFI: a kernel's threads run on the host, one after another.

The kernel is the LLVM IR that becomes PTX, compiled for the host; its handler is the real one.
"""

from __future__ import annotations

import ctypes
import re
from ctypes import CFUNCTYPE, POINTER, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass, field

import numpy as np

from jaxmbd.lanes.ir.nodes import SLOT, WARP
from jaxmbd.lanes.kernel import Kernel
from jaxmbd.lanes.targets import cpu, cuda
from jaxmbd.lanes.targets.cuda_launcher import EXTRA

ERROR, STREAM, CONTEXT = 0xE0, 0x51, 0xC0
API_WORDS, FRAME_WORDS = 24, 20
REGISTERS = ("tid", "ctaid", "ntid", "nctaid")


APPROXIMATE = """
define double @approx.{name}.d(double %x) {{
  %root = call double @llvm.sqrt.f64(double %x)
  %y = fdiv double 1.0, {d}
  %bits = bitcast double %y to i64
  %high = and i64 %bits, -4294967296
  %z = bitcast i64 %high to double
  ret double %z
}}
define float @approx.{name}.f(float %x) {{
  %root = call float @llvm.sqrt.f32(float %x)
  %y = fdiv float 1.0, {d}
  ret float %y
}}
"""
"""The reciprocal of x or of its root, with 20 bits after the point in double precision."""


def host_ir(ir: str, buffers: int) -> str:
    """A GPU kernel's IR for the host, and ``grid(params, blocks, threads)`` to run it."""
    ir = re.sub(r"declare \w+ @llvm.nvvm.r(cp|sqrt).approx.*\n", "", ir)
    ir = re.sub(r"@llvm.nvvm.(rcp|rsqrt).approx.ftz.([df])", r"@approx.\1.\2", ir)
    for ty in ("double @llvm.sqrt.f64(double)", "float @llvm.sqrt.f32(float)"):
        ir = f"declare {ty}\n" + ir.replace(f"declare {ty}\n", "")
    ir += APPROXIMATE.format(name="rcp", d="%x") + APPROXIMATE.format(name="rsqrt", d="%root")
    for name in REGISTERS:
        ir = re.sub(rf"declare i32 @llvm.nvvm.read.ptx.sreg.{name}.x\(\)\n", "", ir)
        ir = ir.replace(f"call i32 @llvm.nvvm.read.ptx.sreg.{name}.x()", f"load i32, ptr @{name}")
    ir = ir.replace("ptx_kernel ", "").replace(") #0 {", ") {")
    names = "\n".join(f"@{name} = internal global i32 0" for name in REGISTERS)
    kinds = ["ptr addrspace(1)"] * (buffers + 1) + ["i64"] * (EXTRA - 1)
    loads, given = [], []
    for k, kind in enumerate(kinds):
        loads.append(f"  %p{k} = getelementptr ptr, ptr %params, i64 {k}")
        loads.append(f"  %q{k} = load ptr, ptr %p{k}")
        loads.append(f"  %x{k} = load {kind}, ptr %q{k}")
        given.append(f"{kind} %x{k}")
    return f"""{names}
{ir}
define void @grid(ptr %params, i32 %blocks, i32 %threads) {{
entry:
  store i32 %threads, ptr @ntid
  store i32 %blocks, ptr @nctaid
{chr(10).join(loads)}
  %all = mul i32 %blocks, %threads
  br label %thread
thread:
  %i = phi i32 [0, %entry], [%next, %thread]
  %block = udiv i32 %i, %threads
  %place = urem i32 %i, %threads
  store i32 %block, ptr @ctaid
  store i32 %place, ptr @tid
  call void @kernel({", ".join(given)})
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %all
  br i1 %more, label %thread, label %done
done:
  ret void
}}"""


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
        launches: launches so far.
        requests: sizes of the requested scratch [bytes].
        memory: scratch allocated and not yet freed, by address.
        limit: largest scratch that is granted [bytes].
        launch_code: return code of cuLaunchKernel.
        stream_error: error that XLA returns when asked for the stream; 0 is no error.
        message: message of the error that the handler created.
        contexts: contexts pushed and not yet popped.
    """

    limit: int = 1 << 62
    launch_code: int = 0
    stream_error: int = 0
    launches: list[Launch] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    memory: dict[int, np.ndarray] = field(default_factory=dict)
    forgotten: int = 0
    message: bytes = b""
    contexts: list[int] = field(default_factory=list)

    def library(self, grid: int | None, buffers: int) -> type:
        """The driver's functions; `grid` is the address of the kernel's `grid`."""
        run = CFUNCTYPE(None, c_void_p, c_uint32, c_uint32)(grid) if grid else None

        def launch(kernel, gx, gy, gz, bx, by, bz, shared, stream, params, extra):
            assert not extra
            numbers = [
                ctypes.cast(params[buffers + k], POINTER(c_int64))[0] for k in range(1, EXTRA)
            ]
            self.launches.append(
                Launch(kernel, (gx, gy, gz), (bx, by, bz), shared, stream, numbers)
            )
            if run is not None and not self.launch_code:
                run(ctypes.cast(params, c_void_p), gx, bx)
            return self.launch_code

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
            block = np.full(size + 64, 0xA5, np.uint8)
            address = block.ctypes.data
            self.memory[address] = block
            c_void_p.from_address(args + 40).value = address
            return 0

        def free(args):
            assert _word(args, 0, c_size_t) == 40
            block = self.memory.pop(_word(args, 32, c_void_p))
            assert block.size == _word(args, 24, c_size_t) + 64
            assert (block[-64:] == 0xA5).all(), "written beyond the scratch"
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


def _buffer(array: np.ndarray, dims: tuple[int, ...], keep: list) -> int:
    """An XLA_FFI_Buffer; `dims` are the logical ones."""
    shape = (c_int64 * max(1, len(dims)))(*dims)
    words = (c_int64 * 6)(48, 0, 0, array.ctypes.data, len(dims), ctypes.addressof(shape))
    keep += [array, shape, words]
    return ctypes.addressof(words)


def frame(machine: Machine, ins: list, outs: list, keep: list) -> int:
    """The address of an XLA_FFI_CallFrame; arrays as (memory, logical shape)."""
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


def run(
    k: Kernel, args: list[np.ndarray], machine: Machine, warps: int = 100, memory: int = 1 << 40
) -> list:
    """A kernel's results for a batch, by its handler and emulated threads, in up to `warps`."""
    e = k.emitter(1, gpu=True)
    ir = e.module()
    buffers = len(k.in_avals) + len(k.out_avals)
    grid = cpu.function(host_ir(ir, buffers), "grid")
    lib = machine.library(grid, buffers)
    room = e.scratch_slots * SLOT * WARP
    counts = len(k.in_avals), len(k.out_avals)
    address = cuda.handler(0xF00, room, warps, *counts, facts(memory), lib)
    size = next(len(x) for x, b in zip(args, k.in_batched, strict=True) if b)
    outs = [np.zeros((size, *a.shape), a.dtype) for a in k.out_avals]
    keep: list = []
    ins, outputs = ([(x, x.shape) for x in map(np.ascontiguousarray, xs)] for xs in (args, outs))
    error = call(address, frame(machine, ins, outputs, keep))
    assert error is None, machine.message
    assert not machine.memory and not machine.contexts
    return [x for x, _ in outputs]
