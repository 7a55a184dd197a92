"""Nodes that access memory: scratch, constant tables, arguments and results at computed indices."""

from __future__ import annotations

from jaxmbd.lanes.codegen.rows import from_memory, row_address, store_row, to_memory
from jaxmbd.lanes.codegen.writer import LLVM, Writer, stored
from jaxmbd.lanes.ir.nodes import BYTES, SLOT, WARP, Buffer, Node


def _place(w: Writer, index: Node, offset: int) -> str:
    if index.constant:
        return str(index.data + offset)
    name = w.operand(index, not index.uniform)
    if offset == 0:
        return name
    if index.uniform:
        return w.text.let(f"add i64 {name}, {offset}")
    add = f"splat (i64 {offset})" if w.width > 1 else str(offset)
    return w.text.let(f"add {w.text.vector('i64')} {name}, {add}")


def _slot_address(w: Writer, buffer: Buffer, place: str) -> str:
    """Address of an element of scratch; the lanes of an element are adjacent."""
    t = w.text
    if buffer not in w.slots:
        w.slots[buffer] = w.scratch_slots
        w.scratch_slots += buffer.size
    step, first = SLOT * (WARP if w.gpu else w.width), w.slots[buffer]
    if place.isdigit():
        where = str((int(place) + first) * step)
    else:
        where = t.let(f"mul i64 {t.let(f'add i64 {place}, {first}')}, {step}")
    if w.gpu:
        row = t.let(f"getelementptr i8, ptr %memory, i64 {where}")
        return t.let(f"getelementptr {stored(buffer.dtype)}, ptr {row}, i64 %lane")
    return t.let(f"getelementptr i8, ptr %scratch, i64 {where}")


def load(w: Writer, n: Node) -> None:
    """Load an element at a computed index."""
    buffer, offset = n.data
    index = n.args[0]
    place = _place(w, index, offset)
    t, scalar = w.text, stored(n.dtype)
    if index.uniform and not (buffer.kind == "input" and buffer.batched):
        ty = scalar if n.uniform else t.vector(scalar)
        if buffer.kind == "scratch":
            name = t.let(
                f"load {ty}, ptr {_slot_address(w, buffer, place)}, align {BYTES[n.dtype]}"
            )
        else:
            address = t.let(f"getelementptr {scalar}, ptr {_origin(w, buffer)}, i64 {place}")
            name = t.let(f"load {scalar}, ptr {address}")
        w.define(n, from_memory(w, n, name))
        return
    w.define(n, from_memory(w, n, _load_lanes(w, buffer, index, place, scalar)))


def _load_lanes(w: Writer, buffer: Buffer, index: Node, place: str, scalar: str) -> str:
    """One scalar load per lane, from its own row or at its own index."""
    t, width = w.text, w.width
    result = "poison"
    for lane in range(width):
        at = place
        if not index.uniform and width > 1:
            at = t.let(f"extractelement <{width} x i64> {place}, i64 {lane}")
        if buffer.kind == "scratch":
            address = _slot_address(w, buffer, at)
            step = lane * BYTES[buffer.dtype]
            address = t.let(f"getelementptr i8, ptr {address}, i64 {step}")
        elif buffer.batched:
            address = row_address(w, buffer, lane, at)
        else:
            address = t.let(f"getelementptr {scalar}, ptr {_origin(w, buffer)}, i64 {at}")
        value = t.let(f"load {scalar}, ptr {address}")
        if width == 1:
            return value
        result = t.let(f"insertelement <{width} x {scalar}> {result}, {scalar} {value}, i64 {lane}")
    return result


def _origin(w: Writer, buffer: Buffer) -> str:
    if buffer.kind == "input":
        return w.pointer(buffer)
    return w.tables.setdefault(buffer, f"@table{len(w.tables)}")


def store(w: Writer, n: Node) -> None:
    """Store one element of scratch.

    Volatile, as the stores of results (`store_row`).
    """
    buffer, offset = n.data
    address = _slot_address(w, buffer, _place(w, n.args[0], offset))
    ty = w.text.vector(stored(n.dtype))
    word = "store" if w.gpu else "store volatile"
    w.text.line(f"{word} {ty} {to_memory(w, n.args[1])}, ptr {address}, align {BYTES[n.dtype]}")


def accumulate(w: Writer, n: Node) -> None:
    """Add to an element of scratch; lane by lane if the index differs between samples."""
    t, (buffer, offset), scalar = w.text, n.data, LLVM[n.dtype]
    index, value = n.args
    place = _place(w, index, offset)
    if index.uniform or w.width == 1:
        address, ty = _slot_address(w, buffer, place), t.vector(scalar)
        old = t.let(f"load {ty}, ptr {address}, align {BYTES[n.dtype]}")
        new = t.let(f"fadd {ty} {old}, {w.operand(value, True)}")
        t.line(f"store {ty} {new}, ptr {address}, align {BYTES[n.dtype]}")
        return
    for lane in range(w.width):
        at = t.let(f"extractelement <{w.width} x i64> {place}, i64 {lane}")
        address = _slot_address(w, buffer, at)
        address = t.let(f"getelementptr i8, ptr {address}, i64 {lane * BYTES[n.dtype]}")
        vector = f"<{w.width} x {scalar}>"
        part = t.let(f"extractelement {vector} {w.operand(value, True)}, i64 {lane}")
        old = t.let(f"load {scalar}, ptr {address}")
        t.line(f"store {scalar} {t.let(f'fadd {scalar} {old}, {part}')}, ptr {address}")


def clear(w: Writer, n: Node) -> None:
    """Set a scratch buffer to zero."""
    t, buffer = w.text, n.data[0]
    head, after = t.label("clear"), t.label("cleared")
    before = t.block
    t.line(f"br label %{head}")
    t.open(head)
    i, following = t.name(), t.name()
    t.line(f"{i} = phi i64 [0, %{before}], [{following}, %{head}]")
    ty = t.vector(LLVM[buffer.dtype])
    t.line(f"store {ty} zeroinitializer, ptr {_slot_address(w, buffer, i)}, align 4")
    t.line(f"{following} = add i64 {i}, 1")
    more = t.let(f"icmp slt i64 {following}, {buffer.size}")
    t.line(f"br i1 {more}, label %{head}, label %{after}")
    t.open(after)


def row(w: Writer, n: Node) -> None:
    """Store consecutive elements of a result's row."""
    store_row(w, n.data[0], w.operand(n.args[0], False), n.args[1:])


WRITE = {"load": load, "store": store, "accumulate": accumulate, "clear": clear, "row": row}
"""Code generators of `Kind.IN_PLACE` operations."""
