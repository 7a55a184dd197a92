"""Loads and stores of the kernel: rows of arguments and results, scratch, tables.

Rows stand as JAX has them, one sample after the other; a vector of samples is read as a block of
`width` rows and transposed in registers. On a GPU they stand as columns, so that neighbouring
threads read neighbouring elements: element j of sample i at ``j * count + i``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxmbd.lanes.codegen.llvm_text import BYTES, LLVM
from jaxmbd.lanes.ir.nodes import Buffer, Node

if TYPE_CHECKING:
    from jaxmbd.lanes.codegen.emit import Emitter

WRITES = ("store", "accumulate", "row")
SLOT = 8
"""Bytes of one element of scratch in one lane."""
AHEAD = 2
"""How many vectors of samples ahead arguments are asked for."""
WARP = 32
"""Threads of a GPU whose scratch is interleaved, as the lanes of a vector's are on a host."""


def stored(dtype: str) -> str:
    """The LLVM type of an element in memory: booleans take a byte."""
    return "i8" if dtype == "i1" else LLVM[dtype]


def cpu_header(e: Emitter) -> str:
    """Open the kernel: pointers of arguments and results; its parameters."""
    t = e.text
    for kind, count in (("in", e.inputs), ("out", e.outputs)):
        for k in range(count):
            t.line(f"%{kind}.p{k} = getelementptr ptr, ptr %{kind}s, i64 {k}")
            t.line(f"%{kind}{k} = load ptr, ptr %{kind}.p{k}")
    return "ptr noalias %ins, ptr noalias %outs, i64 %first, i64 %last, ptr noalias %scratch"


def gpu_header(e: Emitter) -> str:
    """Open a GPU kernel: a thread for each of the samples first … last − 1 of `count`."""
    pointers = [f"ptr addrspace(1) noalias readonly %in{k}.g" for k in range(e.inputs)]
    pointers += [f"ptr addrspace(1) noalias %out{k}.g" for k in range(e.outputs)]
    t = e.text
    for kind, count in (("in", e.inputs), ("out", e.outputs)):
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


def open_vectors(e: Emitter) -> str:
    """Open the loop over vectors of samples; the lines that close it."""
    t = e.text
    if e.gpu:  # `room`: bytes of scratch of a warp
        t.line(f"%warp = udiv i64 %thread, {WARP}")
        t.line(f"%lane = urem i64 %thread, {WARP}")
        t.line("%before = mul i64 %warp, %room")
        t.line("%memory = getelementptr i8, ptr %scratch, i64 %before")
        return "br label %done\ndone:"
    before = t.block
    t.line("br label %vector")
    t.open("vector")
    t.line(f"%group = phi i64 [%first, %{before}], [%group.next, %vector.end]")
    t.line(f"%sample = mul i64 %group, {e.width}")
    return (
        "br label %vector.end\nvector.end:\n  %group.next = add i64 %group, 1\n"
        "  %vector.more = icmp slt i64 %group.next, %last\n"
        "  br i1 %vector.more, label %vector, label %vector.done\nvector.done:"
    )


def load_element(e: Emitter, n: Node) -> None:
    """An element of an argument; of long rows a block is read at once."""
    buffer, index = n.data
    if not buffer.batched:
        address = e.text.let(
            f"getelementptr {stored(n.dtype)}, ptr %in{buffer.position}, i64 {index}"
        )
        name = e.text.let(f"load {stored(n.dtype)}, ptr {address}")
        e.define(n, _from_memory(e, n, name))
        return
    size, w = buffer.size, e.width
    if w == 1 or size == 1:
        ty, address = e.text.vector(stored(n.dtype)), _row_address(e, buffer, 0, str(index))
        column = e.text.let(f"load {ty}, ptr {address}, align {BYTES[n.dtype]}")
        if w > 1:
            _prefetch(e, buffer, address)
        e.define(n, _from_memory(e, n, column))
        return
    if size < w:
        e.define(n, _from_memory(e, n, _load_packed(e, buffer, index)))
        return
    first = block_start(n, w)
    if (buffer, first) not in e.columns:
        e.columns[buffer, first] = _load_block(e, buffer, first)
    e.define(n, _from_memory(e, n, e.columns[buffer, first][index - first]))


def block_start(n: Node, width: int) -> int:
    """The first element of the block of a row that an element is read with."""
    buffer, index = n.data
    return min(index - index % width, buffer.size - width)


def _prefetch(e: Emitter, buffer: Buffer, address: str) -> None:
    """Ask for what a later vector of samples will read at the same place."""
    t = e.text
    t.declared.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    ahead = AHEAD * e.width * buffer.size * BYTES[buffer.dtype]
    later = t.let(f"getelementptr i8, ptr {address}, i64 {ahead}")
    t.line(f"call void @llvm.prefetch.p0(ptr {later}, i32 0, i32 2, i32 1)")


def _load_packed(e: Emitter, buffer: Buffer, column: int) -> str:
    """One column of `width` short rows, which lie in memory as `size` whole vectors."""
    t, w, n = e.text, e.width, buffer.size
    scalar = stored(buffer.dtype)
    start = _row_address(e, buffer, 0, "0")
    vectors = []
    for k in range(n):
        address = t.let(f"getelementptr {scalar}, ptr {start}, i64 {k * w}") if k else start
        vectors.append(t.let(f"load <{w} x {scalar}>, ptr {address}, align {BYTES[buffer.dtype]}"))
        if buffer not in e.prefetched:
            _prefetch(e, buffer, address)
    e.prefetched.add(buffer)
    return _gather_lanes(e, vectors, [divmod(row * n + column, w) for row in range(w)], scalar)


def _gather_lanes(
    e: Emitter, vectors: Sequence[str], where: Sequence[tuple[int, int]], scalar: str
) -> str:
    """A vector whose lane k is lane ``where[k][1]`` of vector ``where[k][0]``."""
    w, ty = e.width, f"<{e.width} x {scalar}>"
    result, done = "poison", set()
    for source in sorted({v for v, _ in where}):
        mask = []
        for lane, (v, at) in enumerate(where):
            mask.append(w + at if v == source else lane if v in done else None)
        words = ", ".join("i32 poison" if k is None else f"i32 {k}" for k in mask)
        result = e.text.let(
            f"shufflevector {ty} {result}, {ty} {vectors[source]}, <{w} x i32> <{words}>"
        )
        done.add(source)
    return result


def _row_address(e: Emitter, buffer: Buffer, lane: int, element: str) -> str:
    """Address of an element of the sample in a lane."""
    t = e.text
    pointer = f"%{'in' if buffer.kind == 'input' else 'out'}{buffer.position}"
    if e.gpu:
        column = t.let(f"mul i64 {element}, %count") if element != "0" else "0"
        place = t.let(f"add i64 {column}, %sample") if element != "0" else "%sample"
        return t.let(f"getelementptr {stored(buffer.dtype)}, ptr {pointer}, i64 {place}")
    row = t.let(f"add i64 %sample, {lane}") if lane else "%sample"
    start = t.let(f"mul i64 {row}, {buffer.size}") if buffer.size != 1 else row
    place = start if element == "0" else t.let(f"add i64 {start}, {element}")
    return t.let(f"getelementptr {stored(buffer.dtype)}, ptr {pointer}, i64 {place}")


def _load_block(e: Emitter, buffer: Buffer, first: int) -> list[str]:
    """`width` rows of `width` elements as columns."""
    w, ty = e.width, f"<{e.width} x {stored(buffer.dtype)}>"
    rows = []
    for lane in range(w):
        address = _row_address(e, buffer, lane, str(first))
        rows.append(e.text.let(f"load {ty}, ptr {address}, align {BYTES[buffer.dtype]}"))
        _prefetch(e, buffer, address)
    return _transpose(e, rows, ty)


def _transpose(e: Emitter, rows: list[str], ty: str) -> list[str]:
    """Columns of a square block: exchange halves of ever larger size."""
    w, step = e.width, 1
    rows = list(rows)
    while step < w:
        low = [f"i32 {c if not c & step else w + c - step}" for c in range(w)]
        high = [f"i32 {c + step if not c & step else w + c}" for c in range(w)]
        for r in range(w):
            if not r & step:
                a, b = rows[r], rows[r + step]
                for target, mask in ((r, low), (r + step, high)):
                    rows[target] = e.text.let(
                        f"shufflevector {ty} {a}, {ty} {b}, <{w} x i32> <{', '.join(mask)}>"
                    )
        step *= 2
    return rows


def _from_memory(e: Emitter, n: Node, name: str) -> str:
    if n.dtype != "i1":
        return name
    ty = "i8" if n.uniform else e.text.vector("i8")
    zero = "0" if n.uniform or e.width == 1 else "zeroinitializer"
    return e.text.let(f"icmp ne {ty} {name}, {zero}")


def _to_memory(e: Emitter, n: Node) -> str:
    name = e.operand(n, True)
    if n.dtype != "i1":
        return name
    return e.text.let(f"zext {e.text.vector('i1')} {name} to {e.text.vector('i8')}")


def store_row(e: Emitter, buffer: Buffer, start: str, nodes: Sequence[Node]) -> None:
    """Write elements start … of a result's row, for every lane."""
    w, n = e.width, len(nodes)
    ty, align = e.text.vector(stored(buffer.dtype)), BYTES[buffer.dtype]
    columns = [_to_memory(e, x) for x in nodes]
    if w == 1 or buffer.size == 1:
        for k, column in enumerate(columns):
            address = _row_address(e, buffer, 0, _plus(e, start, k))
            e.text.line(f"store {ty} {column}, ptr {address}, align {align}")
    elif n < w and n == buffer.size:
        _store_packed(e, buffer, columns)
    elif n < w:
        _store_part(e, buffer, start, columns)
    else:
        for first in sorted({*range(0, n - w + 1, w), n - w}):
            rows = _transpose(e, columns[first : first + w], ty)
            for lane, row in enumerate(rows):
                address = _row_address(e, buffer, lane, _plus(e, start, first))
                e.text.line(f"store {ty} {row}, ptr {address}, align {align}")


def _plus(e: Emitter, start: str, k: int) -> str:
    if k == 0:
        return start
    return str(int(start) + k) if start.isdigit() else e.text.let(f"add i64 {start}, {k}")


def _store_packed(e: Emitter, buffer: Buffer, columns: Sequence[str]) -> None:
    """`width` short rows, which lie in memory as whole vectors."""
    w, n, scalar = e.width, len(columns), stored(buffer.dtype)
    start = _row_address(e, buffer, 0, "0")
    for k in range(n):
        where = [((k * w + lane) % n, (k * w + lane) // n) for lane in range(w)]
        vector = _gather_lanes(e, columns, where, scalar)
        address = e.text.let(f"getelementptr {scalar}, ptr {start}, i64 {k * w}")
        line = f"store <{w} x {scalar}> {vector}, ptr {address}, align {BYTES[buffer.dtype]}"
        e.text.line(line)


def _store_part(e: Emitter, buffer: Buffer, start: str, columns: Sequence[str]) -> None:
    """A few elements of `width` rows."""
    t, w, n, scalar = e.text, e.width, len(columns), stored(buffer.dtype)
    ty = f"<{w} x {scalar}>"
    keep = ", ".join(f"i32 {k}" for k in range(n))
    for lane, row in enumerate(_transpose(e, [*columns] + ["poison"] * (w - n), ty)):
        address = _row_address(e, buffer, lane, start)
        part = t.let(f"shufflevector {ty} {row}, {ty} poison, <{n} x i32> <{keep}>")
        t.line(f"store <{n} x {scalar}> {part}, ptr {address}, align {BYTES[buffer.dtype]}")


# Nodes


def _place(e: Emitter, index: Node, offset: int) -> str:
    name = e.operand(index, not index.uniform)
    if offset == 0:
        return name
    if index.uniform:
        return e.text.let(f"add i64 {name}, {offset}")
    add = f"splat (i64 {offset})" if e.width > 1 else str(offset)
    return e.text.let(f"add {e.text.vector('i64')} {name}, {add}")


def _slot_address(e: Emitter, buffer: Buffer, place: str) -> str:
    """Address of an element of scratch: lanes beside one another."""
    t = e.text
    if buffer not in e.slots:
        e.slots[buffer] = e.scratch_slots
        e.scratch_slots += buffer.size
    slot = t.let(f"add i64 {place}, {e.slots[buffer]}")
    if e.gpu:
        where = t.let(f"mul i64 {slot}, {WARP * SLOT}")
        row = t.let(f"getelementptr i8, ptr %memory, i64 {where}")
        return t.let(f"getelementptr {stored(buffer.dtype)}, ptr {row}, i64 %lane")
    where = t.let(f"mul i64 {slot}, {e.width * SLOT}")
    return t.let(f"getelementptr i8, ptr %scratch, i64 {where}")


def _load(e: Emitter, n: Node) -> None:
    buffer, offset = n.data
    index = n.args[0]
    place = _place(e, index, offset)
    t, scalar = e.text, stored(n.dtype)
    if index.uniform and not (buffer.kind == "input" and buffer.batched):
        ty = scalar if n.uniform else t.vector(scalar)
        if buffer.kind == "scratch":
            name = t.let(
                f"load {ty}, ptr {_slot_address(e, buffer, place)}, align {BYTES[n.dtype]}"
            )
        else:
            address = t.let(f"getelementptr {scalar}, ptr {_origin(e, buffer)}, i64 {place}")
            name = t.let(f"load {scalar}, ptr {address}")
        e.define(n, _from_memory(e, n, name))
        return
    e.define(n, _from_memory(e, n, _load_lanes(e, buffer, index, place, scalar)))


def _load_lanes(e: Emitter, buffer: Buffer, index: Node, place: str, scalar: str) -> str:
    """One load for each lane: of its own row, or at its own index."""
    t, w = e.text, e.width
    result = "poison"
    for lane in range(w):
        at = place
        if not index.uniform and w > 1:
            at = t.let(f"extractelement <{w} x i64> {place}, i64 {lane}")
        if buffer.kind == "scratch":
            address = _slot_address(e, buffer, at)
            step = lane * BYTES[buffer.dtype]
            address = t.let(f"getelementptr i8, ptr {address}, i64 {step}")
        elif buffer.batched:
            address = _row_address(e, buffer, lane, at)
        else:
            address = t.let(f"getelementptr {scalar}, ptr {_origin(e, buffer)}, i64 {at}")
        value = t.let(f"load {scalar}, ptr {address}")
        if w == 1:
            return value
        result = t.let(f"insertelement <{w} x {scalar}> {result}, {scalar} {value}, i64 {lane}")
    return result


def _origin(e: Emitter, buffer: Buffer) -> str:
    if buffer.kind == "input":
        return f"%in{buffer.position}"
    return e.tables.setdefault(buffer, f"@table{len(e.tables)}")


def _store(e: Emitter, n: Node) -> None:
    buffer, offset = n.data
    address = _slot_address(e, buffer, _place(e, n.args[0], offset))
    ty = e.text.vector(stored(n.dtype))
    e.text.line(f"store {ty} {_to_memory(e, n.args[1])}, ptr {address}, align {BYTES[n.dtype]}")


def _accumulate(e: Emitter, n: Node) -> None:
    """Add to an element of scratch; each lane at its own index where that varies."""
    t, (buffer, offset), scalar = e.text, n.data, LLVM[n.dtype]
    index, value = n.args
    place = _place(e, index, offset)
    if index.uniform or e.width == 1:
        address, ty = _slot_address(e, buffer, place), t.vector(scalar)
        old = t.let(f"load {ty}, ptr {address}, align {BYTES[n.dtype]}")
        new = t.let(f"fadd {ty} {old}, {e.operand(value, True)}")
        t.line(f"store {ty} {new}, ptr {address}, align {BYTES[n.dtype]}")
        return
    for lane in range(e.width):
        at = t.let(f"extractelement <{e.width} x i64> {place}, i64 {lane}")
        address = _slot_address(e, buffer, at)
        address = t.let(f"getelementptr i8, ptr {address}, i64 {lane * BYTES[n.dtype]}")
        vector = f"<{e.width} x {scalar}>"
        part = t.let(f"extractelement {vector} {e.operand(value, True)}, i64 {lane}")
        old = t.let(f"load {scalar}, ptr {address}")
        t.line(f"store {scalar} {t.let(f'fadd {scalar} {old}, {part}')}, ptr {address}")


def _clear(e: Emitter, n: Node) -> None:
    """Fill a buffer of scratch with zeros."""
    t, buffer = e.text, n.data[0]
    head, after = t.label("clear"), t.label("cleared")
    before = t.block
    t.line(f"br label %{head}")
    t.open(head)
    i, following = t.name(), t.name()
    t.line(f"{i} = phi i64 [0, %{before}], [{following}, %{head}]")
    ty = t.vector(LLVM[buffer.dtype])
    t.line(f"store {ty} zeroinitializer, ptr {_slot_address(e, buffer, i)}, align 4")
    t.line(f"{following} = add i64 {i}, 1")
    more = t.let(f"icmp slt i64 {following}, {buffer.size}")
    t.line(f"br i1 {more}, label %{head}, label %{after}")
    t.open(after)


def _row(e: Emitter, n: Node) -> None:
    store_row(e, n.data[0], e.operand(n.args[0], False), n.args[1:])


OPS = {
    "element": load_element, "load": _load, "store": _store, "accumulate": _accumulate,
    "clear": _clear, "row": _row,
}  # fmt: skip
