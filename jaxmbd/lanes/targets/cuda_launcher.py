"""LLVM IR of the host side of a launch: from XLA's call frame to `cuLaunchKernel`.

Every kernel links its own copy of this module and fills its table. The handler gets the stream,
makes the stream's context current, allocates scratch and launches as many warps as run at once,
which loop over the samples. If scratch memory is short, fewer warps run. Python is not involved and
nothing waits for the GPU: scratch is freed right after the launch, and reused by later work on the
stream. Structure offsets are those of XLA's FFI C API, major version 0 (see `cpu_driver`).
"""

from __future__ import annotations

from jaxmbd.lanes.ir.nodes import WARP
from jaxmbd.lanes.targets import ffi

KERNEL, LAUNCH, CONTEXT, PUSH, POP, INPUTS, OUTPUTS, ROOM, WARPS = range(9)
"""Indices in the table (i64 each): the kernel; cuLaunchKernel, cuStreamGetCtx, cuCtxPushCurrent,
cuCtxPopCurrent; numbers of arguments and results; bytes of scratch per warp; the most warps. A
block is a warp, so that few samples spread over all multiprocessors."""
WORDS = 9
LEAST = 32
"""The call fails if scratch for this many warps cannot be allocated."""
EXTRA = 3
"""Parameters of a kernel after its arguments and results: scratch, room, count."""

_HEAD = """
@table = global [WORDS x i64] zeroinitializer
@launch.name = private constant [15 x i8] c"cuLaunchKernel\\00"
@context.name = private constant [15 x i8] c"cuStreamGetCtx\\00"
@push.name = private constant [17 x i8] c"cuCtxPushCurrent\\00"
@format = private constant [38 x i8] c"lanes: %s failed with CUDA error %d.\\0A\\00"
declare i32 @snprintf(ptr, i64, ptr, ...)

define internal ptr @failure(ptr %api, ptr %name, i32 %code) {
  %text = alloca [256 x i8]
  %n = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %text, i64 256, ptr @format, ptr %name,
    i32 %code)
  %error = call ptr @lanes_refuse(ptr %api, ptr %text, i32 INTERNAL)
  ret ptr %error
}
"""

_HANDLER = """
define ptr @handler(ptr %frame) {
entry:
  %asks = icmp eq ptr %frame, null
  br i1 %asks, label %tell, label %called
tell:
  ret ptr @table
called:
CALL_FRAME
  %result = load ptr, ptr %rets
  %dims.p = getelementptr i8, ptr %result, i64 40
  %dims = load ptr, ptr %dims.p
  %count = load i64, ptr %dims
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %prepare, label %nothing
nothing:
  ret ptr null
prepare:
TABLE
  %buffers = add i64 %t.INPUTS, %t.OUTPUTS
  %words = add i64 %buffers, EXTRA
  %values = alloca i64, i64 %words
  %params = alloca ptr, i64 %words
  br label %fill
fill:
  %k = phi i64 [0, %prepare], [%k1, %filled]
  %value = getelementptr i64, ptr %values, i64 %k
  %param = getelementptr ptr, ptr %params, i64 %k
  store ptr %value, ptr %param
  %is.buffer = icmp slt i64 %k, %buffers
  br i1 %is.buffer, label %pointer, label %filled
pointer:
  %is.in = icmp slt i64 %k, %t.INPUTS
  %rk = sub i64 %k, %t.INPUTS
  %list = select i1 %is.in, ptr %args, ptr %rets
  %lk = select i1 %is.in, i64 %k, i64 %rk
  %entry.p = getelementptr ptr, ptr %list, i64 %lk
  %buffer = load ptr, ptr %entry.p
  %memory.p = getelementptr i8, ptr %buffer, i64 24
  %address = load ptr, ptr %memory.p
  store ptr %address, ptr %value
  br label %filled
filled:
  %k1 = add i64 %k, 1
  %k.more = icmp slt i64 %k1, %words
  br i1 %k.more, label %fill, label %ask
ask:
  %query = alloca [4 x i64]
  store i64 32, ptr %query
  %q1 = getelementptr i64, ptr %query, i64 1
  store ptr null, ptr %q1
  %q2 = getelementptr i64, ptr %query, i64 2
  store ptr %ctx, ptr %q2
  %q3 = getelementptr i64, ptr %query, i64 3
  %ask.p = getelementptr i8, ptr %api, i64 80
  %ask.f = load ptr, ptr %ask.p
  %ask.e = call ptr %ask.f(ptr %query)
  %ask.ok = icmp eq ptr %ask.e, null
  br i1 %ask.ok, label %enter, label %refused
refused:
  ret ptr %ask.e
enter:
  %stream = load ptr, ptr %q3
  %context.p = alloca ptr
  %got = call i32 %t.CONTEXT.f(ptr %stream, ptr %context.p)
  %got.ok = icmp eq i32 %got, 0
  br i1 %got.ok, label %push, label %no.context
no.context:
  %e0 = call ptr @failure(ptr %api, ptr @context.name, i32 %got)
  ret ptr %e0
push:
  %context = load ptr, ptr %context.p
  %pushed = call i32 %t.PUSH.f(ptr %context)
  %pushed.ok = icmp eq i32 %pushed, 0
  br i1 %pushed.ok, label %measure, label %no.push
no.push:
  %e1 = call ptr @failure(ptr %api, ptr @push.name, i32 %pushed)
  ret ptr %e1
measure:
  %request = alloca [6 x i64]
  %up = add i64 %count, WARP_LESS_ONE
  %full = udiv i64 %up, WARP
  %is.few = icmp slt i64 %full, %t.WARPS
  %most = select i1 %is.few, i64 %full, i64 %t.WARPS
  %needs = icmp sgt i64 %t.ROOM, 0
  br i1 %needs, label %allocate, label %ready
allocate:
  %part = phi i64 [%most, %measure], [%half, %again]
  %bytes = mul i64 %part, %t.ROOM
  store i64 48, ptr %request
  %r1 = getelementptr i64, ptr %request, i64 1
  store ptr null, ptr %r1
  %r2 = getelementptr i64, ptr %request, i64 2
  store ptr %ctx, ptr %r2
  %r3 = getelementptr i64, ptr %request, i64 3
  store i64 %bytes, ptr %r3
  %r4 = getelementptr i64, ptr %request, i64 4
  store i64 16, ptr %r4
  %r5 = getelementptr i64, ptr %request, i64 5
  %allocate.p = getelementptr i8, ptr %api, i64 120
  %allocate.f = load ptr, ptr %allocate.p
  %allocate.e = call ptr %allocate.f(ptr %request)
  %allocated = icmp eq ptr %allocate.e, null
  br i1 %allocated, label %own, label %short
own:
  %scratch = load ptr, ptr %r5
  br label %ready
short:
  %last.try = icmp sle i64 %part, LEAST
  br i1 %last.try, label %leave, label %again
again:
  call void @lanes_forget(ptr %api, ptr %allocate.e)
  %half = udiv i64 %part, 2
  br label %allocate
ready:
  %memory = phi ptr [null, %measure], [%scratch, %own]
  %warps = phi i64 [%most, %measure], [%part, %own]
  %v0 = getelementptr i64, ptr %values, i64 %buffers
  store ptr %memory, ptr %v0
  %v1 = getelementptr i64, ptr %v0, i64 1
  store i64 %t.ROOM, ptr %v1
  %v2 = getelementptr i64, ptr %v0, i64 2
  store i64 %count, ptr %v2
  %grid = trunc i64 %warps to i32
  %code = call i32 %t.LAUNCH.f(ptr %t.KERNEL.f, i32 %grid, i32 1, i32 1, i32 WARP, i32 1,
    i32 1, i32 0, ptr %stream, ptr %params, ptr null)
  %launch.ok = icmp eq i32 %code, 0
  br i1 %launch.ok, label %give, label %failed
failed:
  %e2 = call ptr @failure(ptr %api, ptr @launch.name, i32 %code)
  br label %give
give:
  %outcome = phi ptr [%e2, %failed], [null, %ready]
  %has = icmp ne ptr %memory, null
  br i1 %has, label %free, label %leave
free:
  store i64 40, ptr %request
  %f3 = getelementptr i64, ptr %request, i64 4
  store ptr %memory, ptr %f3
  %free.p = getelementptr i8, ptr %api, i64 128
  %free.f = load ptr, ptr %free.p
  %free.e = call ptr %free.f(ptr %request)
  %freed = icmp eq ptr %free.e, null
  br i1 %freed, label %leave, label %not.freed
not.freed:
  call void @lanes_forget(ptr %api, ptr %free.e)
  br label %leave
leave:
  %error = phi ptr [%allocate.e, %short], [%outcome, %give], [%outcome, %free],
    [%outcome, %not.freed]
  %popped = call i32 %t.POP.f(ptr %context.p)
  ret ptr %error
}
"""


def module(abi_minor: int) -> str:
    """LLVM IR of ``handler(frame)``; for a null frame it returns the address of its table."""
    names = {
        "KERNEL": KERNEL, "LAUNCH": LAUNCH, "CONTEXT": CONTEXT, "PUSH": PUSH, "POP": POP,
        "INPUTS": INPUTS, "OUTPUTS": OUTPUTS, "ROOM": ROOM, "WARPS": WARPS,
    }  # fmt: skip
    loads = []
    for name, place in names.items():
        suffix, ty = (".f", "ptr") if place <= POP else ("", "i64")
        loads.append(f"  %p.{name} = getelementptr i64, ptr @table, i64 {place}")
        loads.append(f"  %t.{name}{suffix} = load {ty}, ptr %p.{name}")
    text = (_HEAD + ffi.FORGET + ffi.REFUSE + _HANDLER).replace("TABLE\n", "\n".join(loads) + "\n")
    text = text.replace("CALL_FRAME", ffi.call_frame(abi_minor))
    numbers = dict(
        WORDS=WORDS,
        EXTRA=EXTRA,
        INTERNAL=ffi.INTERNAL,
        LEAST=LEAST,
        WARP_LESS_ONE=WARP - 1,
        WARP=WARP,
    )
    for name, number in numbers.items():
        text = text.replace(name, str(number))
    return text
