"""Entry and exit of a kernel: its parameters, and the loop over vectors of samples."""

from __future__ import annotations

from jaxmbd.lanes.codegen.writer import Writer
from jaxmbd.lanes.ir.nodes import WARP


def cpu_header(w: Writer, inputs: int, outputs: int) -> str:
    """Load the pointers to arguments and results; returns the kernel's parameter list."""
    t = w.text
    t.line("%never = icmp slt i64 %last, 0")  # for `Writer.end_long_block`
    for kind, count in (("in", inputs), ("out", outputs)):
        for k in range(count):
            t.line(f"%{kind}.p{k} = getelementptr ptr, ptr %{kind}s, i64 {k}")
            t.line(f"%{kind}{k} = load ptr, ptr %{kind}.p{k}")
    return "ptr noalias %ins, ptr noalias %outs, i64 %first, i64 %last, ptr noalias %scratch"


def gpu_header(w: Writer, inputs: int, outputs: int) -> str:
    """Open a GPU kernel, a thread for each of the samples first … last − 1; its parameter list."""
    pointers = [f"ptr addrspace(1) noalias readonly %in{k}.g" for k in range(inputs)]
    pointers += [f"ptr addrspace(1) noalias %out{k}.g" for k in range(outputs)]
    t = w.text
    for kind, count in (("in", inputs), ("out", outputs)):
        for k in range(count):
            t.line(f"%{kind}{k} = addrspacecast ptr addrspace(1) %{kind}{k}.g to ptr")
    t.line("%scratch = addrspacecast ptr addrspace(1) %scratch.g to ptr")
    for name in ("tid.x", "ctaid.x", "ntid.x"):
        function = f"@llvm.nvvm.read.ptx.sreg.{name}"
        t.declared.add(f"declare i32 {function}()")
        t.line(f"%{name} = call i32 {function}()")
    t.line("%block = mul i32 %ctaid.x, %ntid.x")
    t.line("%thread.i = add i32 %block, %tid.x")
    t.line("%thread = zext i32 %thread.i to i64")
    t.line("%sample = add i64 %thread, %first")
    t.line("%inside = icmp slt i64 %sample, %last")
    t.line("br i1 %inside, label %work, label %done")
    t.open("work")
    rest = "ptr addrspace(1) noalias %scratch.g, i64 %room, i64 %first, i64 %last, i64 %count"
    return ", ".join([*pointers, rest])


def gpu_pointers(inputs: int) -> list[str]:
    """Lines that make an array of the pointers to arguments, as the host's kernels are given."""
    lines = [f"  %ins = alloca [{inputs} x ptr addrspace(1)]"]
    for k in range(inputs):
        lines.append(f"  %in.p{k} = getelementptr ptr addrspace(1), ptr %ins, i64 {k}")
        lines.append(f"  store ptr addrspace(1) %in{k}.g, ptr %in.p{k}")
    return lines


def open_vectors(w: Writer) -> str:
    """Open the loop over vectors of samples; returns the lines that close it."""
    t = w.text
    if w.gpu:  # `room`: bytes of scratch per warp
        t.line(f"%warp = udiv i64 %thread, {WARP}")
        t.line(f"%lane = urem i64 %thread, {WARP}")
        t.line("%before = mul i64 %warp, %room")
        t.line("%memory = getelementptr i8, ptr %scratch, i64 %before")
        return "br label %done\ndone:"
    before = t.block
    t.line("br label %vector")
    t.open("vector")
    t.line(f"%group = phi i64 [%first, %{before}], [%group.next, %vector.end]")
    t.line(f"%sample = mul i64 %group, {w.width}")
    return (
        "br label %vector.end\nvector.end:\n  %group.next = add i64 %group, 1\n"
        "  %vector.more = icmp slt i64 %group.next, %last\n"
        "  br i1 %vector.more, label %vector, label %vector.done\nvector.done:"
    )
