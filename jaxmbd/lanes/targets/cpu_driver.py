"""LLVM IR of the CPU driver: from XLA's call frame to chunks of vectors on all cores.

A kernel's FFI handler calls ``lanes_drive(frame, kernel, table)``. The batch is split into chunks,
which the calling thread and tasks on XLA's thread pool take one by one. The last samples, where
they do not fill a vector, are computed with those before them, a second time and to the same bits;
a batch is never smaller than a vector (`Kernel.compile_cpu`). Python is not involved. Between
chunks the driver looks whether to stop (`stopping`). Structure offsets are those of XLA's FFI C
API, major version 0 (``jax.ffi.include_dir()``), whose structures are only extended.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbd.lanes.targets import ffi, stopping

ALIGNMENT = 64
"""Alignment of scratch [bytes]; `aligned_alloc` requires multiples of it."""


def aligned(size: int) -> int:
    """A size [bytes] rounded up to the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def table(
    width: int, inputs: int, outputs: int, scratch: int, grain: int, threads: int
) -> list[int]:
    """A kernel's table of i64 parameters.

    Width, numbers of arguments and results, bytes of scratch, grain (vectors per chunk), threads.
    """
    return [width, inputs, outputs, aligned(scratch), grain, threads]


def handler(numbers: Sequence[int]) -> str:
    """LLVM IR of a kernel's table and FFI handler."""
    values = ", ".join(f"i64 {x}" for x in numbers)
    return f"""
@table = private constant [{len(numbers)} x i64] [{values}]
declare ptr @lanes_drive(ptr, ptr, ptr)
define ptr @handler(ptr %frame) {{
  %r = call ptr @lanes_drive(ptr %frame, ptr @kernel, ptr @table)
  ret ptr %r
}}"""


# Layout of a job in 8-byte words: the state shared by the tasks of one call.
JOB = dict(
    kernel=0, table=1, next=2, done=3, holders=4, chunks=5, batch=6, failed=7, stops=8, pointers=9,
)  # fmt: skip

_MAIN = """
define ptr @lanes_drive(ptr %frame, ptr %kernel, ptr %table) {
entry:
CALL_FRAME
  %first = load ptr, ptr %rets
  %dims.p = getelementptr i8, ptr %first, i64 40
  %dims = load ptr, ptr %dims.p
  %batch = load i64, ptr %dims
  %some = icmp sgt i64 %batch, 0
  br i1 %some, label %prepare, label %nothing
nothing:
  ret ptr null
prepare:
  %stops = load atomic i64, ptr @lanes_stops seq_cst, align 8
  %ending = trunc i64 %stops to i1
  br i1 %ending, label %cancelled, label %begin
cancelled:
  %stopped.e = call ptr @lanes_refuse(ptr %api, ptr @lanes_was_stopped, i32 CANCELLED)
  ret ptr %stopped.e
begin:
  %width = load i64, ptr %table
  %small = icmp slt i64 %batch, %width
  br i1 %small, label %misused, label %measure
misused:
  %misused.e = call ptr @lanes_refuse(ptr %api, ptr @lanes_too_small, i32 INTERNAL)
  ret ptr %misused.e
measure:
  %ins.p = getelementptr i64, ptr %table, i64 1
  %ins = load i64, ptr %ins.p
  %outs.p = getelementptr i64, ptr %table, i64 2
  %outs = load i64, ptr %outs.p
  %grain.p = getelementptr i64, ptr %table, i64 4
  %grain = load i64, ptr %grain.p
  %threads.p = getelementptr i64, ptr %table, i64 5
  %threads = load i64, ptr %threads.p
  %buffers = add i64 %ins, %outs
  %words = add i64 %buffers, POINTERS
  %words8 = mul i64 %words, 8
  %words.up = add i64 %words8, LESS_ONE
  %bytes = and i64 %words.up, MASK
  %job = call ptr @aligned_alloc(i64 ALIGNMENT, i64 %bytes)
  %job.none = icmp eq ptr %job, null
  br i1 %job.none, label %exhausted, label %plan
exhausted:
  %no.memory = call ptr @lanes_refuse(ptr %api, ptr @lanes_no_memory, i32 EXHAUSTED)
  ret ptr %no.memory
plan:
  %size = mul i64 %grain, %width
  %up = add i64 %batch, %size
  %up.less = sub i64 %up, 1
  %chunks = sdiv i64 %up.less, %size
  store ptr %kernel, ptr %job
STORES
  br label %pointers
pointers:
  %k = phi i64 [0, %plan], [%k.next, %kept]
  %more = icmp slt i64 %k, %buffers
  br i1 %more, label %pointer, label %count
pointer:
  %is.in = icmp slt i64 %k, %ins
  %rk = sub i64 %k, %ins
  %list = select i1 %is.in, ptr %args, ptr %rets
  %lk = select i1 %is.in, i64 %k, i64 %rk
  %entry.p = getelementptr ptr, ptr %list, i64 %lk
  %buffer = load ptr, ptr %entry.p
  %memory.p = getelementptr i8, ptr %buffer, i64 24
  %memory = load ptr, ptr %memory.p
  %place = add i64 %k, POINTERS
  %slot = getelementptr i64, ptr %job, i64 %place
  store ptr %memory, ptr %slot
  br label %kept
kept:
  %k.next = add i64 %k, 1
  br label %pointers
count:
  %n.p = alloca i64
  store i64 1, ptr %n.p
  %several = icmp sgt i64 %chunks, 1
  br i1 %several, label %ask, label %share
ask:
  %query = alloca [4 x i64]
  store i64 32, ptr %query
  %q1 = getelementptr i64, ptr %query, i64 1
  store ptr null, ptr %q1
  %q2 = getelementptr i64, ptr %query, i64 2
  store ptr %ctx, ptr %q2
  %q3 = getelementptr i64, ptr %query, i64 3
  store ptr %n.p, ptr %q3
  %ask.p = getelementptr i8, ptr %api, i64 144
  %ask.f = load ptr, ptr %ask.p
  %ask.e = call ptr %ask.f(ptr %query)
  %ask.ok = icmp eq ptr %ask.e, null
  br i1 %ask.ok, label %share, label %refused
refused:
  call void @lanes_forget(ptr %api, ptr %ask.e)
  store i64 1, ptr %n.p
  br label %share
share:
  %n = load i64, ptr %n.p
  %limited = icmp sgt i64 %threads, 0
  %n.small = call i64 @lanes_min(i64 %n, i64 %threads)
  %n.used = select i1 %limited, i64 %n.small, i64 %n
  %n.most = call i64 @lanes_min(i64 %n.used, i64 %chunks)
  %helpers = sub i64 %n.most, 1
  %holders.p = getelementptr i64, ptr %job, i64 4
  store atomic i64 %n.most, ptr %holders.p seq_cst, align 8
  br label %schedule
schedule:
  %h = phi i64 [0, %share], [%h.next, %scheduled]
  %h.more = icmp slt i64 %h, %helpers
  br i1 %h.more, label %one, label %work
one:
  %task = alloca [5 x i64]
  store i64 40, ptr %task
  %t1 = getelementptr i64, ptr %task, i64 1
  store ptr null, ptr %t1
  %t2 = getelementptr i64, ptr %task, i64 2
  store ptr %ctx, ptr %t2
  %t3 = getelementptr i64, ptr %task, i64 3
  store ptr @lanes_task, ptr %t3
  %t4 = getelementptr i64, ptr %task, i64 4
  store ptr %job, ptr %t4
  %schedule.p = getelementptr i8, ptr %api, i64 136
  %schedule.f = load ptr, ptr %schedule.p
  %schedule.e = call ptr %schedule.f(ptr %task)
  %schedule.ok = icmp eq ptr %schedule.e, null
  br i1 %schedule.ok, label %scheduled, label %alone
alone:
  call void @lanes_forget(ptr %api, ptr %schedule.e)
  call void @lanes_release(ptr %job)
  br label %scheduled
scheduled:
  %h.next = add i64 %h, 1
  br label %schedule
work:
  call void @lanes_work(ptr %job)
  %done.p = getelementptr i64, ptr %job, i64 3
  br label %wait
wait:
  %done = load atomic i64, ptr %done.p seq_cst, align 8
  %all = icmp sge i64 %done, %chunks
  br i1 %all, label %finish, label %spin
spin:
  %ignored = call i32 @sched_yield()
  br label %wait
finish:
  %failed.p = getelementptr i64, ptr %job, i64 FAILED
  %failed = load atomic i64, ptr %failed.p seq_cst, align 8
  call void @lanes_release(ptr %job)
  %stops.now = load atomic i64, ptr @lanes_stops seq_cst, align 8
  %whole.run = icmp eq i64 %stops.now, %stops
  br i1 %whole.run, label %judge, label %cancelled
judge:
  %fine = icmp eq i64 %failed, 0
  br i1 %fine, label %nothing, label %exhausted
}
"""

_WORK = """
define internal i64 @lanes_min(i64 %a, i64 %b) {
  %c = icmp slt i64 %a, %b
  %m = select i1 %c, i64 %a, i64 %b
  ret i64 %m
}
define internal void @lanes_release(ptr %job) {
  %p = getelementptr i64, ptr %job, i64 4
  %before = atomicrmw sub ptr %p, i64 1 seq_cst
  %last = icmp eq i64 %before, 1
  br i1 %last, label %free, label %end
free:
  call void @free(ptr %job)
  ret void
end:
  ret void
}
define internal void @lanes_task(ptr %job) {
  call void @lanes_work(ptr %job)
  call void @lanes_release(ptr %job)
  ret void
}
define internal void @lanes_work(ptr %job) {
entry:
  %kernel = load ptr, ptr %job
LOADS
  %ins.p = getelementptr i64, ptr %table, i64 1
  %ins = load i64, ptr %ins.p
  %size.p = getelementptr i64, ptr %table, i64 3
  %size = load i64, ptr %size.p
  %grain.p = getelementptr i64, ptr %table, i64 4
  %grain = load i64, ptr %grain.p
  %width = load i64, ptr %table
  %chunk = mul i64 %grain, %width
  %inputs = getelementptr i64, ptr %job, i64 POINTERS
  %outputs = getelementptr i64, ptr %inputs, i64 %ins
  %next.p = getelementptr i64, ptr %job, i64 2
  %done.p = getelementptr i64, ptr %job, i64 3
  br label %take
take:
  %scratch = phi ptr [null, %entry], [%kept, %after]
  %c = atomicrmw add ptr %next.p, i64 1 seq_cst
  %more = icmp slt i64 %c, %chunks
  br i1 %more, label %going, label %ready
going:
  %now = load atomic i64, ptr @lanes_stops seq_cst, align 8
  %goes = icmp eq i64 %now, %stops
  br i1 %goes, label %allocate, label %after
allocate:
  %needs = icmp sgt i64 %size, 0
  %has = icmp ne ptr %scratch, null
  %no = xor i1 %has, true
  %fresh = and i1 %needs, %no
  br i1 %fresh, label %get, label %choose
get:
  %new = call ptr @aligned_alloc(i64 ALIGNMENT, i64 %size)
  %new.none = icmp eq ptr %new, null
  br i1 %new.none, label %missing, label %choose
missing:
  %failed.p = getelementptr i64, ptr %job, i64 FAILED
  store atomic i64 1, ptr %failed.p seq_cst, align 8
  br label %after
choose:
  %memory = phi ptr [%scratch, %allocate], [%new, %get]
  %first = mul i64 %c, %chunk
  %end = add i64 %first, %chunk
  %last = call i64 @lanes_min(i64 %end, i64 %batch)
  call void %kernel(ptr %inputs, ptr %outputs, i64 %first, i64 %last, ptr %memory)
  br label %after
after:
  %kept = phi ptr [%scratch, %going], [null, %missing], [%memory, %choose]
  %d = atomicrmw add ptr %done.p, i64 1 seq_cst
  br label %take
ready:
  call void @free(ptr %scratch)
  ret void
}
"""

_DECLARATIONS = """
@lanes_no_memory = private constant [43 x i8] c"lanes: the host has no memory for a kernel\\00"
@lanes_was_stopped = private constant [26 x i8] c"lanes: it was interrupted\\00"
@lanes_too_small = private constant [37 x i8] c"lanes: a batch smaller than a vector\\00"
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @sched_yield()
"""


def module(abi_minor: int) -> str:
    """LLVM IR of ``lanes_drive`` and what it calls."""
    stores = dict(
        table="ptr %table", next="i64 0", done="i64 0", chunks="i64 %chunks",
        batch="i64 %batch", failed="i64 0", stops="i64 %stops",
    )  # fmt: skip
    lines = [
        f"  %s.{name} = getelementptr i64, ptr %job, i64 {JOB[name]}\n"
        f"  store {value}, ptr %s.{name}"
        for name, value in stores.items()
    ]
    loads = [
        f"  %l.{name} = getelementptr i64, ptr %job, i64 {JOB[name]}\n"
        f"  %{name} = load {'ptr' if name == 'table' else 'i64'}, ptr %l.{name}"
        for name in ("table", "chunks", "batch", "stops")
    ]
    main = _MAIN.replace("STORES", "\n".join(lines)).replace(
        "CALL_FRAME", ffi.call_frame(abi_minor)
    )
    work = _WORK.replace("LOADS", "\n".join(loads))
    text = "\n".join([_DECLARATIONS, stopping.WORD, ffi.FORGET, ffi.REFUSE, main, work])
    numbers = dict(
        ALIGNMENT=ALIGNMENT,
        LESS_ONE=ALIGNMENT - 1,
        MASK=-ALIGNMENT,
        EXHAUSTED=ffi.EXHAUSTED,
        CANCELLED=stopping.CANCELLED,
        INTERNAL=ffi.INTERNAL,
        FAILED=JOB["failed"],
        POINTERS=JOB["pointers"],
    )
    for name, number in numbers.items():
        text = text.replace(name, str(number))
    return text
