"""LLVM IR of sums over the batch: of a kernel's results, and of arrays of any number and shape.

A program of XLA with a sum for each of a gradient's arrays is compiled by XLA anew for each size of
batch, which takes a millisecond a sum; this is compiled once.

The order of additions is XLA's on the host, so that results are the same to the bit: windows of 32
rows, with half of what the last one lacks before the first row, then windows of their sums, until
one is left. Like XLA's, it has rounding errors that do not grow with the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from jaxmbd.lanes.targets import cpu, cpu_driver, ffi

TYPES = {"float32": ("float", 11), "float64": ("double", 12)}
"""Names in LLVM and numbers in XLA's FFI of the types that can be summed."""

_HANDLER = """
define ptr @handler(ptr %frame) {
entry:
CALL_FRAME
  %count.p = getelementptr i8, ptr %frame, i64 56
  %count = load i64, ptr %count.p
  br label %arrays
arrays:
  %k = phi i64 [0, %run], [%k.next, %whole]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %array, label %nothing
array:
  %arg.p = getelementptr ptr, ptr %args, i64 %k
  %arg = load ptr, ptr %arg.p
  %ret.p = getelementptr ptr, ptr %rets, i64 %k
  %ret = load ptr, ptr %ret.p
  %from.p = getelementptr i8, ptr %arg, i64 24
  %from = load ptr, ptr %from.p
  %rank.p = getelementptr i8, ptr %arg, i64 32
  %rank = load i64, ptr %rank.p
  %dims.p = getelementptr i8, ptr %arg, i64 40
  %dims = load ptr, ptr %dims.p
  %rows = load i64, ptr %dims
  br label %axes
axes:
  %axis = phi i64 [1, %array], [%axis.next, %factor]
  %columns = phi i64 [1, %array], [%product, %factor]
  %further = icmp slt i64 %axis, %rank
  br i1 %further, label %factor, label %whole
factor:
  %dim.p = getelementptr i64, ptr %dims, i64 %axis
  %dim = load i64, ptr %dim.p
  %product = mul i64 %columns, %dim
  %axis.next = add i64 %axis, 1
  br label %axes
whole:
  %fine = call i1 @lanes_sum(ptr %from, ptr %ret, i64 %rows, i64 %columns)
  %k.next = add i64 %k, 1
  br i1 %fine, label %arrays, label %exhausted
nothing:
  ret ptr null
exhausted:
  %error = call ptr @lanes_refuse(ptr %api, ptr @lanes_no_memory, i32 EXHAUSTED)
  ret ptr %error
}
"""

# The kernel writes what is to be summed to scratch behind a copy of the call frame, in which the
# driver finds other results. Were scratch a result of XLA's, the call's results would not be the
# program's as they are, but twice as many operations.
_DRIVE = """
declare ptr @lanes_drive(ptr, ptr, ptr)
define ptr @lanes_drive_summed(ptr %frame, ptr %kernel, ptr %table, ptr %summed) {
entry:
CALL_FRAME
  %ins.p = getelementptr i64, ptr %table, i64 1
  %ins = load i64, ptr %ins.p
  %outs.p = getelementptr i64, ptr %table, i64 2
  %outs = load i64, ptr %outs.p
  %row.place = add i64 %ins, 7
  %row.list = getelementptr i64, ptr %table, i64 %row.place
  %last.in = sub i64 %ins, 1
  %batched.p = getelementptr ptr, ptr %args, i64 %last.in
  %batched = load ptr, ptr %batched.p
  %dims.p = getelementptr i8, ptr %batched, i64 40
  %dims = load ptr, ptr %dims.p
  %batch = load i64, ptr %dims
  %frame.bytes = load i64, ptr %frame
  %lists.bytes = mul i64 %outs, 56
  %head.bytes = add i64 %frame.bytes, %lists.bytes
  %head.up = add i64 %head.bytes, LESS_ONE
  %head = and i64 %head.up, MASK
  br label %measure
measure:
  %m = phi i64 [0, %run], [%m.next, %measured]
  %bytes = phi i64 [%head, %run], [%bytes.next, %measured]
  %m.more = icmp slt i64 %m, %outs
  br i1 %m.more, label %measured, label %allocate
measured:
  %bytes.next = call i64 @lanes_end(i64 %bytes, i64 %m, i64 %batch, ptr %row.list, ptr %summed)
  %m.next = add i64 %m, 1
  br label %measure
allocate:
  %copy = call ptr @aligned_alloc(i64 ALIGNMENT, i64 %bytes)
  %none = icmp eq ptr %copy, null
  br i1 %none, label %exhausted, label %begin
begin:
  call ptr @memcpy(ptr %copy, ptr %frame, i64 %frame.bytes)
  %list = getelementptr i8, ptr %copy, i64 %frame.bytes
  %buffers = getelementptr ptr, ptr %list, i64 %outs
  %new.rets = getelementptr i8, ptr %copy, i64 112
  store ptr %list, ptr %new.rets
  br label %results
results:
  %k = phi i64 [0, %begin], [%k.next, %placed]
  %offset = phi i64 [%head, %begin], [%offset.next, %placed]
  %more = icmp slt i64 %k, %outs
  br i1 %more, label %result, label %drive
result:
  %ret.p = getelementptr ptr, ptr %rets, i64 %k
  %ret = load ptr, ptr %ret.p
  %buffer = getelementptr [6 x i64], ptr %buffers, i64 %k
  call ptr @memcpy(ptr %buffer, ptr %ret, i64 48)
  %entry.p = getelementptr ptr, ptr %list, i64 %k
  store ptr %buffer, ptr %entry.p
  %flag.p = getelementptr i64, ptr %summed, i64 %k
  %flag = load i64, ptr %flag.p
  %flagged = icmp ne i64 %flag, 0
  br i1 %flagged, label %move, label %placed
move:
  %place = getelementptr i8, ptr %copy, i64 %offset
  %memory.p = getelementptr i8, ptr %buffer, i64 24
  store ptr %place, ptr %memory.p
  %shape.p = getelementptr i8, ptr %buffer, i64 40
  store ptr %dims, ptr %shape.p
  br label %placed
placed:
  %offset.next = call i64 @lanes_end(i64 %offset, i64 %k, i64 %batch, ptr %row.list, ptr %summed)
  %k.next = add i64 %k, 1
  br label %results
drive:
  %error = call ptr @lanes_drive(ptr %copy, ptr %kernel, ptr %table)
  %ran = icmp eq ptr %error, null
  br i1 %ran, label %sums, label %done
sums:
  %j = phi i64 [0, %drive], [%j.next, %next]
  %j.more = icmp slt i64 %j, %outs
  br i1 %j.more, label %look, label %done
look:
  %j.flag.p = getelementptr i64, ptr %summed, i64 %j
  %columns = load i64, ptr %j.flag.p
  %j.flagged = icmp ne i64 %columns, 0
  br i1 %j.flagged, label %sum, label %next
sum:
  %from.b = getelementptr [6 x i64], ptr %buffers, i64 %j
  %from.p = getelementptr i8, ptr %from.b, i64 24
  %from = load ptr, ptr %from.p
  %to.p = getelementptr ptr, ptr %rets, i64 %j
  %to = load ptr, ptr %to.p
  %fine = call i1 @lanes_sum(ptr %from, ptr %to, i64 %batch, i64 %columns)
  br i1 %fine, label %next, label %failed
next:
  %j.next = add i64 %j, 1
  br label %sums
failed:
  call void @free(ptr %copy)
  br label %exhausted
exhausted:
  %refused = call ptr @lanes_refuse(ptr %api, ptr @lanes_no_memory, i32 EXHAUSTED)
  ret ptr %refused
done:
  call void @free(ptr %copy)
  ret ptr %error
}
"""

# The end of a result's scratch, which starts at an offset; it has none if it is not summed.
_DRIVE += """
define internal i64 @lanes_end(i64 %offset, i64 %k, i64 %batch, ptr %rows, ptr %summed) {
  %flag.p = getelementptr i64, ptr %summed, i64 %k
  %flag = load i64, ptr %flag.p
  %flagged = icmp ne i64 %flag, 0
  %row.p = getelementptr i64, ptr %rows, i64 %k
  %row = load i64, ptr %row.p
  %size = mul i64 %batch, %row
  %up = add i64 %size, LESS_ONE
  %even = and i64 %up, MASK
  %own = select i1 %flagged, i64 %even, i64 0
  %end = add i64 %offset, %own
  ret i64 %end
}
"""

# The sum over rows into a result, whose type it has; false if there is no memory.
_SUM = """
define internal i1 @lanes_sum(ptr %from, ptr %result, i64 %rows, i64 %columns) {
  %type.p = getelementptr i8, ptr %result, i64 16
  %type = load i32, ptr %type.p
  %wide = icmp eq i32 %type, DOUBLE_TYPE
  %to.p = getelementptr i8, ptr %result, i64 24
  %to = load ptr, ptr %to.p
  %short = icmp sle i64 %rows, WINDOW
  br i1 %short, label %once, label %allocate
once:
  call void @lanes_level(i1 %wide, ptr %from, ptr %to, i64 %rows, i64 %columns)
  ret i1 true
allocate:
  %up = add i64 %rows, WINDOW_LESS_ONE
  %windows = sdiv i64 %up, WINDOW
  %words = mul i64 %windows, %columns
  %bytes = mul i64 %words, 8
  %scratch = call ptr @malloc(i64 %bytes)
  %none = icmp eq ptr %scratch, null
  br i1 %none, label %missing, label %begin
missing:
  ret i1 false
begin:
  call void @lanes_level(i1 %wide, ptr %from, ptr %scratch, i64 %rows, i64 %columns)
  br label %levels
levels:
  %n = phi i64 [%windows, %begin], [%n.next, %level]
  %last = icmp sle i64 %n, WINDOW
  br i1 %last, label %finish, label %level
level:
  call void @lanes_level(i1 %wide, ptr %scratch, ptr %scratch, i64 %n, i64 %columns)
  %n.up = add i64 %n, WINDOW_LESS_ONE
  %n.next = sdiv i64 %n.up, WINDOW
  br label %levels
finish:
  call void @lanes_level(i1 %wide, ptr %scratch, ptr %to, i64 %n, i64 %columns)
  call void @free(ptr %scratch)
  ret i1 true
}
define internal void @lanes_level(i1 %wide, ptr %from, ptr %to, i64 %rows, i64 %columns) {
  br i1 %wide, label %doubles, label %floats
doubles:
  call void @lanes_level_double(ptr %from, ptr %to, i64 %rows, i64 %columns)
  ret void
floats:
  call void @lanes_level_float(ptr %from, ptr %to, i64 %rows, i64 %columns)
  ret void
}
"""

# One level: sums of windows. They may be written over the rows, which are read before.
_LEVEL = """
define internal void @lanes_level_TYPE(ptr %from, ptr %to, i64 %rows, i64 %columns) {
entry:
  %up = add i64 %rows, WINDOW_LESS_ONE
  %windows = sdiv i64 %up, WINDOW
  %padded = mul i64 %windows, WINDOW
  %lacking = sub i64 %padded, %rows
  %before = sdiv i64 %lacking, 2
  br label %window
window:
  %w = phi i64 [0, %entry], [%w.next, %columns.end]
  %w.more = icmp slt i64 %w, %windows
  br i1 %w.more, label %bounds, label %end
bounds:
  %place = mul i64 %w, WINDOW
  %start = sub i64 %place, %before
  %start.in = icmp sgt i64 %start, 0
  %first = select i1 %start.in, i64 %start, i64 0
  %stop = add i64 %start, WINDOW
  %stop.in = icmp slt i64 %stop, %rows
  %last = select i1 %stop.in, i64 %stop, i64 %rows
  %read = mul i64 %first, %columns
  %source = getelementptr TYPE, ptr %from, i64 %read
  %write = mul i64 %w, %columns
  %target = getelementptr TYPE, ptr %to, i64 %write
  br label %column
column:
  %c = phi i64 [0, %bounds], [%c.next, %column.end]
  %c.more = icmp slt i64 %c, %columns
  br i1 %c.more, label %column.start, label %columns.end
column.start:
  %top = getelementptr TYPE, ptr %source, i64 %c
  br label %row
row:
  %r = phi i64 [%first, %column.start], [%r.next, %row]
  %p = phi ptr [%top, %column.start], [%p.next, %row]
  %total = phi TYPE [0.0, %column.start], [%sum, %row]
  %x = load TYPE, ptr %p
  %sum = fadd TYPE %total, %x
  %p.next = getelementptr TYPE, ptr %p, i64 %columns
  %r.next = add i64 %r, 1
  %r.more = icmp slt i64 %r.next, %last
  br i1 %r.more, label %row, label %column.end
column.end:
  %sum.p = getelementptr TYPE, ptr %target, i64 %c
  store TYPE %sum, ptr %sum.p
  %c.next = add i64 %c, 1
  br label %column
columns.end:
  %w.next = add i64 %w, 1
  br label %window
end:
  ret void
}
"""

_DECLARATIONS = """
@lanes_no_memory = private constant [40 x i8] c"lanes: the host has no memory for a sum\\00"
declare ptr @malloc(i64)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare ptr @memcpy(ptr, ptr, i64)
"""
WINDOW = 32
"""Rows that are added one after another: XLA's own number."""


def module(main: str) -> str:
    """LLVM IR of one of the functions that XLA or kernels call. Arrays must not be empty."""
    levels = [_LEVEL.replace("TYPE", name) for name, _ in TYPES.values()]
    main = main.replace("CALL_FRAME", ffi.call_frame(cpu.abi_minor()))
    text = "\n".join([_DECLARATIONS, ffi.REFUSE, *levels, _SUM, main])
    numbers = dict(
        DOUBLE_TYPE=TYPES["float64"][1],
        WINDOW_LESS_ONE=WINDOW - 1,
        WINDOW=WINDOW,
        LESS_ONE=cpu_driver.ALIGNMENT - 1,
        ALIGNMENT=cpu_driver.ALIGNMENT,
        MASK=-cpu_driver.ALIGNMENT,
        EXHAUSTED=ffi.EXHAUSTED,
    )
    for name, number in numbers.items():
        text = text.replace(name, str(number))
    return text


@cache
def target() -> str:
    """The name of the FFI target that sums arrays, compiled on first use.

    Raises:
        Unsupported: there is none for this system.
    """
    return cpu.target(module(_HANDLER), "", 0).name


@cache
def drive() -> None:
    """Let kernels be linked that sum results; compiled on first use.

    Raises:
        Unsupported: there is none for this system.
    """
    cpu.offer("lanes_drive_summed", module(_DRIVE))


def handler(numbers: Sequence[int], columns: Sequence[int]) -> str:
    """LLVM IR of a kernel's table and FFI handler, as `cpu_driver.handler`, with sums.

    Args:
        numbers: the kernel's table.
        columns: for each result the numbers in a row of it, if it is summed over the batch, else 0.
    """
    values, flags = (", ".join(f"i64 {x}" for x in xs) for xs in (numbers, columns))
    return f"""
@table = private constant [{len(numbers)} x i64] [{values}]
@summed = private constant [{len(columns)} x i64] [{flags}]
declare ptr @lanes_drive_summed(ptr, ptr, ptr, ptr)
define ptr @handler(ptr %frame) {{
  %r = call ptr @lanes_drive_summed(ptr %frame, ptr @kernel, ptr @table, ptr @summed)
  ret ptr %r
}}"""
