"""LLVM IR of the CPU driver: from XLA's call frame to chunks of vectors on all cores.

A kernel's FFI handler calls ``lanes_drive(frame, kernel, table)``. The batch is split into chunks,
which the calling thread and tasks on XLA's thread pool take one by one; the last samples, which do
not fill a vector, are copied to a padded block. Python is not involved. Between chunks the driver
looks whether to stop (`stopping`). Structure offsets are those of XLA's FFI C API, major version 0
(``jax.ffi.include_dir()``), whose structures are only extended.

The last samples' rows are copied to blocks padded by repeating the last sample; the kernel runs on
the blocks, and the results are copied back. The blocks and the list of them are part of the job's
memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbd.lanes.targets import ffi, stopping

TAIL = """
define internal void @lanes_tail(ptr %job, ptr %scratch) {
entry:
  %kernel = load ptr, ptr %job
LOADS
  %width = load i64, ptr %table
  %ins.p = getelementptr i64, ptr %table, i64 1
  %ins = load i64, ptr %ins.p
  %outs.p = getelementptr i64, ptr %table, i64 2
  %outs = load i64, ptr %outs.p
  %buffers = add i64 %ins, %outs
  %list.place = add i64 %buffers, POINTERS
  %list = getelementptr i64, ptr %job, i64 %list.place
  %whole = mul i64 %full, %width
  %end.row = sub i64 %batch, 1
  br label %next
next:
  %k = phi i64 [0, %entry], [%k1, %set]
  %more = icmp slt i64 %k, %buffers
  br i1 %more, label %one, label %run
one:
  %place = add i64 %k, POINTERS
  %memory.p = getelementptr i64, ptr %job, i64 %place
  %memory = load ptr, ptr %memory.p
  %row.place = add i64 %k, 7
  %row.p = getelementptr i64, ptr %table, i64 %row.place
  %row = load i64, ptr %row.p
  %batched = icmp sgt i64 %row, 0
  br i1 %batched, label %padded, label %same
same:
  br label %set
padded:
  %block.place = add i64 %row.place, %buffers
  %block.p = getelementptr i64, ptr %table, i64 %block.place
  %block.at = load i64, ptr %block.p
  %block = getelementptr i8, ptr %blocks, i64 %block.at
  %is.in = icmp slt i64 %k, %ins
  br i1 %is.in, label %copy, label %set
copy:
  %from = mul i64 %whole, %row
  %source = getelementptr i8, ptr %memory, i64 %from
  %part = mul i64 %tail, %row
  %c0 = call ptr @memcpy(ptr %block, ptr %source, i64 %part)
  %last.from = mul i64 %end.row, %row
  %last = getelementptr i8, ptr %memory, i64 %last.from
  br label %fill
fill:
  %r = phi i64 [%tail, %copy], [%r1, %filled]
  %r.more = icmp slt i64 %r, %width
  br i1 %r.more, label %filled, label %set
filled:
  %to = mul i64 %r, %row
  %target = getelementptr i8, ptr %block, i64 %to
  %c1 = call ptr @memcpy(ptr %target, ptr %last, i64 %row)
  %r1 = add i64 %r, 1
  br label %fill
set:
  %used = phi ptr [%memory, %same], [%block, %padded], [%block, %fill]
  %list.p = getelementptr ptr, ptr %list, i64 %k
  store ptr %used, ptr %list.p
  %k1 = add i64 %k, 1
  br label %next
run:
  %list.outs = getelementptr ptr, ptr %list, i64 %ins
  call void %kernel(ptr %list, ptr %list.outs, i64 0, i64 1, ptr %scratch)
  br label %back
back:
  %j = phi i64 [%ins, %run], [%j1, %copied]
  %j.more = icmp slt i64 %j, %buffers
  br i1 %j.more, label %copied, label %end
copied:
  %j.row.place = add i64 %j, 7
  %j.row.p = getelementptr i64, ptr %table, i64 %j.row.place
  %j.row = load i64, ptr %j.row.p
  %j.block.p = getelementptr ptr, ptr %list, i64 %j
  %j.block = load ptr, ptr %j.block.p
  %j.memory.place = add i64 %j, POINTERS
  %j.memory.p = getelementptr i64, ptr %job, i64 %j.memory.place
  %j.memory = load ptr, ptr %j.memory.p
  %j.to = mul i64 %whole, %j.row
  %j.target = getelementptr i8, ptr %j.memory, i64 %j.to
  %j.part = mul i64 %tail, %j.row
  %c2 = call ptr @memcpy(ptr %j.target, ptr %j.block, i64 %j.part)
  %j1 = add i64 %j, 1
  br label %back
end:
  ret void
}
"""


ALIGNMENT = 64
"""Alignment of scratch and padded blocks [bytes]; `aligned_alloc` requires multiples of it."""


def aligned(size: int) -> int:
    """A size [bytes] rounded up to the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def table(
    width: int, scratch: int, grain: int, threads: int, ins: Sequence[int], outs: Sequence[int]
) -> list[int]:
    """A kernel's table of i64 parameters.

    Width, numbers of arguments and results, bytes of scratch, grain (vectors per chunk), threads,
    bytes of all padded blocks; then the bytes of a row of each argument and result (zero without a
    batch axis), then the offsets of their padded blocks.
    """
    rows = [*ins, *outs]
    sizes = [aligned(row * width) for row in rows]
    places = [sum(sizes[:k]) for k in range(len(rows))]
    head = [width, len(ins), len(outs), aligned(scratch), grain, threads, sum(sizes)]
    return [*head, *rows, *places]


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
    kernel=0, table=1, next=2, done=3, holders=4, chunks=5, full=6, tail=7, batch=8, failed=9,
    blocks=10, stops=11, pointers=12,
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
  %ins.p = getelementptr i64, ptr %table, i64 1
  %ins = load i64, ptr %ins.p
  %outs.p = getelementptr i64, ptr %table, i64 2
  %outs = load i64, ptr %outs.p
  %grain.p = getelementptr i64, ptr %table, i64 4
  %grain = load i64, ptr %grain.p
  %threads.p = getelementptr i64, ptr %table, i64 5
  %threads = load i64, ptr %threads.p
  %blocks.p = getelementptr i64, ptr %table, i64 6
  %blocks.bytes = load i64, ptr %blocks.p
  %buffers = add i64 %ins, %outs
  %lists = mul i64 %buffers, 2
  %words = add i64 %lists, POINTERS
  %words8 = mul i64 %words, 8
  %words.up = add i64 %words8, LESS_ONE
  %head.bytes = and i64 %words.up, MASK
  %bytes = add i64 %head.bytes, %blocks.bytes
  %job = call ptr @aligned_alloc(i64 ALIGNMENT, i64 %bytes)
  %job.none = icmp eq ptr %job, null
  br i1 %job.none, label %exhausted, label %plan
exhausted:
  %no.memory = call ptr @lanes_refuse(ptr %api, ptr @lanes_no_memory, i32 EXHAUSTED)
  ret ptr %no.memory
plan:
  %blocks = getelementptr i8, ptr %job, i64 %head.bytes
  %full = sdiv i64 %batch, %width
  %whole = mul i64 %full, %width
  %tail = sub i64 %batch, %whole
  %g1 = sub i64 %grain, 1
  %up = add i64 %full, %g1
  %even = sdiv i64 %up, %grain
  %odd = icmp sgt i64 %tail, 0
  %odd.i = zext i1 %odd to i64
  %chunks = add i64 %even, %odd.i
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
  %failed.p = getelementptr i64, ptr %job, i64 9
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
  %inputs = getelementptr i64, ptr %job, i64 POINTERS
  %outputs = getelementptr i64, ptr %inputs, i64 %ins
  %next.p = getelementptr i64, ptr %job, i64 2
  %done.p = getelementptr i64, ptr %job, i64 3
  br label %take
take:
  %scratch = phi ptr [null, %entry], [%kept, %after]
  %c = atomicrmw add ptr %next.p, i64 1 seq_cst
  %more = icmp slt i64 %c, %chunks
  br i1 %more, label %going, label %end
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
  %failed.p = getelementptr i64, ptr %job, i64 9
  store atomic i64 1, ptr %failed.p seq_cst, align 8
  br label %after
choose:
  %memory = phi ptr [%scratch, %allocate], [%new, %get]
  %first = mul i64 %c, %grain
  %is.tail = icmp sge i64 %first, %full
  br i1 %is.tail, label %rest, label %vectors
vectors:
  %end0 = add i64 %first, %grain
  %last = call i64 @lanes_min(i64 %end0, i64 %full)
  call void %kernel(ptr %inputs, ptr %outputs, i64 %first, i64 %last, ptr %memory)
  br label %after
rest:
  call void @lanes_tail(ptr %job, ptr %memory)
  br label %after
after:
  %kept = phi ptr [%scratch, %going], [null, %missing], [%memory, %vectors], [%memory, %rest]
  %d = atomicrmw add ptr %done.p, i64 1 seq_cst
  br label %take
end:
  call void @free(ptr %scratch)
  ret void
}
"""

_DECLARATIONS = """
@lanes_no_memory = private constant [43 x i8] c"lanes: the host has no memory for a kernel\\00"
@lanes_was_stopped = private constant [26 x i8] c"lanes: it was interrupted\\00"
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare ptr @memcpy(ptr, ptr, i64)
declare i32 @sched_yield()
"""


def module(abi_minor: int) -> str:
    """LLVM IR of ``lanes_drive`` and what it calls."""
    stores = dict(
        table="ptr %table", next="i64 0", done="i64 0", chunks="i64 %chunks",
        full="i64 %full", tail="i64 %tail", batch="i64 %batch", failed="i64 0",
        blocks="ptr %blocks", stops="i64 %stops",
    )  # fmt: skip
    lines = [
        f"  %s.{name} = getelementptr i64, ptr %job, i64 {JOB[name]}\n"
        f"  store {value}, ptr %s.{name}"
        for name, value in stores.items()
    ]
    loads = [
        f"  %l.{name} = getelementptr i64, ptr %job, i64 {JOB[name]}\n"
        f"  %{name} = load {'ptr' if name in ('table', 'blocks') else 'i64'}, ptr %l.{name}"
        for name in ("table", "chunks", "full", "tail", "batch", "blocks", "stops")
    ]
    main = _MAIN.replace("STORES", "\n".join(lines)).replace(
        "CALL_FRAME", ffi.call_frame(abi_minor)
    )
    work, tail = (text.replace("LOADS", "\n".join(loads)) for text in (_WORK, TAIL))
    text = "\n".join([_DECLARATIONS, stopping.WORD, ffi.FORGET, ffi.REFUSE, main, work, tail])
    numbers = dict(
        ALIGNMENT=ALIGNMENT,
        LESS_ONE=ALIGNMENT - 1,
        MASK=-ALIGNMENT,
        EXHAUSTED=ffi.EXHAUSTED,
        CANCELLED=stopping.CANCELLED,
        POINTERS=JOB["pointers"],
    )
    for name, number in numbers.items():
        text = text.replace(name, str(number))
    return text
