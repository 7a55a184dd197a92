"""Loads and stores: rows of arguments and results, and elements of scratch.

Arrays are row-major as in JAX, one sample after the other. For a vector of samples, the host loads
a block of `width` rows and transposes it in registers. A thread of a GPU reads its own row; what
the threads of a warp read is one piece of memory, so that each byte comes from DRAM once.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbd.lanes.codegen.writer import LLVM, Writer, stored
from jaxmbd.lanes.ir.nodes import BYTES, Buffer, Node


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
                f"load {ty}, ptr {w.scratch_address(buffer, place)}, align {BYTES[n.dtype]}"
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
            address = w.scratch_address(buffer, at)
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
    address = w.scratch_address(buffer, _place(w, n.args[0], offset))
    ty = w.text.vector(stored(n.dtype))
    word = "store" if w.gpu else "store volatile"
    w.text.line(f"{word} {ty} {to_memory(w, n.args[1])}, ptr {address}, align {BYTES[n.dtype]}")


def accumulate(w: Writer, n: Node) -> None:
    """Add to an element of scratch; lane by lane if the index differs between samples."""
    t, (buffer, offset), scalar = w.text, n.data, LLVM[n.dtype]
    index, value = n.args
    place = _place(w, index, offset)
    if index.uniform or w.width == 1:
        address, ty = w.scratch_address(buffer, place), t.vector(scalar)
        old = t.let(f"load {ty}, ptr {address}, align {BYTES[n.dtype]}")
        new = t.let(f"fadd {ty} {old}, {w.operand(value, True)}")
        t.line(f"store {ty} {new}, ptr {address}, align {BYTES[n.dtype]}")
        return
    for lane in range(w.width):
        at = t.let(f"extractelement <{w.width} x i64> {place}, i64 {lane}")
        address = w.scratch_address(buffer, at)
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
    t.line(f"store {ty} zeroinitializer, ptr {w.scratch_address(buffer, i)}, align 4")
    t.line(f"{following} = add i64 {i}, 1")
    more = t.let(f"icmp slt i64 {following}, {buffer.size}")
    t.line(f"br i1 {more}, label %{head}, label %{after}")
    t.open(after)


def row(w: Writer, n: Node) -> None:
    """Store consecutive elements of a result's row."""
    store_row(w, n.data[0], w.operand(n.args[0], False), n.args[1:])


AHEAD = 2
"""How many vectors of samples ahead arguments are prefetched."""


def load_element(w: Writer, n: Node) -> None:
    """Load an element of an argument; of rows as long as a vector, a whole block at once."""
    buffer, index = n.data
    pointer = _argument(w, n)
    if not buffer.batched:
        address = w.text.let(f"getelementptr {stored(n.dtype)}, ptr {pointer}, i64 {index}")
        name = w.text.let(f"load {stored(n.dtype)}, ptr {address}")
        w.define(n, from_memory(w, n, name))
        return
    size, width = buffer.size, w.width
    if width == 1 or size == 1:
        ty = w.text.vector(stored(n.dtype))
        address = row_address(w, buffer, 0, str(index), pointer)
        column = w.text.let(f"load {ty}, ptr {address}, align {BYTES[n.dtype]}")
        if width > 1:
            _prefetch(w, buffer, address)
        w.define(n, from_memory(w, n, column))
        return
    if size < width:
        w.define(n, from_memory(w, n, _load_packed(w, buffer, index, pointer)))
        return
    first = block_start(n, width)
    columns = w.once(("block", pointer, first), lambda: _load_block(w, buffer, first, pointer))
    w.define(n, from_memory(w, n, columns[index - first]))


def _argument(w: Writer, n: Node) -> str:
    """The pointer to the argument that a node is an element of."""
    buffer = n.data[0]
    if buffer.kind == "input":
        return w.pointer(buffer)
    return w.once(("argument", buffer, n.args[0]), lambda: _looked_up(w, buffer, n.args[0]))


def _looked_up(w: Writer, buffer: Buffer, index: Node) -> str:
    """The pointer to the one of several arguments at an index."""
    t, place, positions = w.text, w.operand(index, False), buffer.values.values
    first, step = positions[0], positions[1] - positions[0]
    if positions == [first + k * step for k in range(len(positions))]:
        place = t.let(f"add i64 {t.let(f'mul i64 {place}, {step}')}, {first}")
    else:
        table = w.tables.setdefault(buffer.values, f"@table{len(w.tables)}")
        place = t.let(f"load i64, ptr {t.let(f'getelementptr i64, ptr {table}, i64 {place}')}")
    w.looks_up = True
    ty = "ptr addrspace(1)" if w.gpu else "ptr"
    pointer = t.let(f"load {ty}, ptr {t.let(f'getelementptr {ty}, ptr %ins, i64 {place}')}")
    return t.let(f"addrspacecast {ty} {pointer} to ptr") if w.gpu else pointer


def block_start(n: Node, width: int) -> int:
    """Index of the first element of the block that an element is loaded with."""
    buffer, index = n.data
    return min(index - index % width, buffer.size - width)


def _prefetch(w: Writer, buffer: Buffer, address: str) -> None:
    """Prefetch the data at the same position for a later vector of samples."""
    t = w.text
    t.declared.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    ahead = AHEAD * w.width * buffer.size * BYTES[buffer.dtype]
    later = t.let(f"getelementptr i8, ptr {address}, i64 {ahead}")
    t.line(f"call void @llvm.prefetch.p0(ptr {later}, i32 0, i32 2, i32 1)")


def _load_packed(w: Writer, buffer: Buffer, column: int, pointer: str) -> str:
    """Load one column of `width` short rows, which are `size` whole vectors in memory."""
    t, width, n = w.text, w.width, buffer.size
    scalar = stored(buffer.dtype)
    start = row_address(w, buffer, 0, "0", pointer)
    vectors = []
    for k in range(n):
        address = t.let(f"getelementptr {scalar}, ptr {start}, i64 {k * width}") if k else start
        vectors.append(
            t.let(f"load <{width} x {scalar}>, ptr {address}, align {BYTES[buffer.dtype]}")
        )
        if pointer not in w.prefetched:
            _prefetch(w, buffer, address)
    w.prefetched.add(pointer)
    return _gather_lanes(
        w, vectors, [divmod(row * n + column, width) for row in range(width)], scalar
    )


def _gather_lanes(
    w: Writer, vectors: Sequence[str], where: Sequence[tuple[int, int]], scalar: str
) -> str:
    """A vector whose lane k is lane ``where[k][1]`` of vector ``where[k][0]``."""
    width, ty = w.width, f"<{w.width} x {scalar}>"
    result, done = "poison", set()
    for source in sorted({v for v, _ in where}):
        mask = []
        for lane, (v, at) in enumerate(where):
            mask.append(width + at if v == source else lane if v in done else None)
        words = ", ".join("i32 poison" if k is None else f"i32 {k}" for k in mask)
        result = w.text.let(
            f"shufflevector {ty} {result}, {ty} {vectors[source]}, <{width} x i32> <{words}>"
        )
        done.add(source)
    return result


def row_address(w: Writer, buffer: Buffer, lane: int, element: str, pointer: str = "") -> str:
    """Address of an element of a lane's sample."""
    t = w.text
    pointer = pointer or w.pointer(buffer)
    place = lane * buffer.size + int(element) if element.isdigit() else element
    if lane and place is element:
        place = t.let(f"add i64 {element}, {lane * buffer.size}")
    start = _first_row(w, buffer, pointer)
    return t.let(f"getelementptr {stored(buffer.dtype)}, ptr {start}, i64 {place}")


def _first_row(w: Writer, buffer: Buffer, pointer: str) -> str:
    """Address of the first lane's row, computed once in a basic block; the others follow it."""

    def computed() -> str:
        start = w.text.let(f"mul i64 %sample, {buffer.size}") if buffer.size != 1 else "%sample"
        return w.text.let(f"getelementptr {stored(buffer.dtype)}, ptr {pointer}, i64 {start}")

    return w.once(("row", pointer, w.text.block), computed)


def _load_block(w: Writer, buffer: Buffer, first: int, pointer: str) -> list[str]:
    """Load `width` rows of `width` elements; returns their columns."""
    width, ty = w.width, f"<{w.width} x {stored(buffer.dtype)}>"
    rows = []
    for lane in range(width):
        address = row_address(w, buffer, lane, str(first), pointer)
        rows.append(w.text.let(f"load {ty}, ptr {address}, align {BYTES[buffer.dtype]}"))
        _prefetch(w, buffer, address)
    return _transpose(w, rows, ty)


def _transpose(w: Writer, rows: list[str], ty: str) -> list[str]:
    """Transpose of a square block, by exchanging sub-blocks of size 1, 2, 4 and so on."""
    width, step = w.width, 1
    rows = list(rows)
    while step < width:
        low = [f"i32 {c if not c & step else width + c - step}" for c in range(width)]
        high = [f"i32 {c + step if not c & step else width + c}" for c in range(width)]
        for r in range(width):
            if not r & step:
                a, b = rows[r], rows[r + step]
                for target, mask in ((r, low), (r + step, high)):
                    rows[target] = w.text.let(
                        f"shufflevector {ty} {a}, {ty} {b}, <{width} x i32> <{', '.join(mask)}>"
                    )
        step *= 2
    return rows


def from_memory(w: Writer, n: Node, name: str) -> str:
    """A node's value from its stored form: booleans are bytes in memory."""
    if n.dtype != "i1":
        return name
    ty = "i8" if n.uniform else w.text.vector("i8")
    zero = "0" if n.uniform or w.width == 1 else "zeroinitializer"
    return w.text.let(f"icmp ne {ty} {name}, {zero}")


def to_memory(w: Writer, n: Node) -> str:
    """A node's value in stored form, as a vector."""
    name = w.operand(n, True)
    if n.dtype != "i1":
        return name
    return w.text.let(f"zext {w.text.vector('i1')} {name} to {w.text.vector('i8')}")


def store_row(w: Writer, buffer: Buffer, start: str, nodes: Sequence[Node]) -> None:
    """Store consecutive elements from `start` of a result's row, for every lane.

    The stores are volatile: else LLVM asks of any two of them whether they may overlap, which takes
    seconds for a thousand.
    """
    width, n = w.width, len(nodes)
    ty, align = w.text.vector(stored(buffer.dtype)), BYTES[buffer.dtype]
    columns = [to_memory(w, x) for x in nodes]
    if width == 1 or buffer.size == 1:
        for k, column in enumerate(columns):
            address = row_address(w, buffer, 0, _plus(w, start, k))
            word = "store" if w.gpu else "store volatile"
            w.text.line(f"{word} {ty} {column}, ptr {address}, align {align}")
    elif n < width and n == buffer.size:
        _store_packed(w, buffer, columns)
    elif n < width:
        _store_part(w, buffer, start, columns)
    else:
        for first in sorted({*range(0, n - width + 1, width), n - width}):
            rows = _rows(w, nodes[first : first + width], columns[first : first + width], ty)
            place = _plus(w, start, first)
            for lane, row in enumerate(rows):
                address = row_address(w, buffer, lane, place)
                w.text.line(f"store volatile {ty} {row}, ptr {address}, align {align}")


def _rows(w: Writer, nodes: Sequence[Node], columns: Sequence[str], ty: str) -> list[str]:
    """The rows of a square block of values; equal rows are put together once."""
    if not all(n.uniform and n.dtype != "i1" for n in nodes):
        return _transpose(w, [*columns], ty)
    row, scalar = "poison", stored(nodes[0].dtype)
    for k, n in enumerate(nodes):
        row = w.text.let(f"insertelement {ty} {row}, {scalar} {w.operand(n, False)}, i64 {k}")
    return [row] * w.width


def _plus(w: Writer, start: str, k: int) -> str:
    if k == 0:
        return start
    return str(int(start) + k) if start.isdigit() else w.text.let(f"add i64 {start}, {k}")


def _store_packed(w: Writer, buffer: Buffer, columns: Sequence[str]) -> None:
    """Store `width` short rows, which are whole vectors in memory."""
    width, n, scalar = w.width, len(columns), stored(buffer.dtype)
    start = row_address(w, buffer, 0, "0")
    for k in range(n):
        where = [((k * width + lane) % n, (k * width + lane) // n) for lane in range(width)]
        vector = _gather_lanes(w, columns, where, scalar)
        address = w.text.let(f"getelementptr {scalar}, ptr {start}, i64 {k * width}")
        target = f"ptr {address}, align {BYTES[buffer.dtype]}"
        w.text.line(f"store volatile <{width} x {scalar}> {vector}, {target}")


def _store_part(w: Writer, buffer: Buffer, start: str, columns: Sequence[str]) -> None:
    """Store a few elements of each of `width` rows."""
    t, width, n, scalar = w.text, w.width, len(columns), stored(buffer.dtype)
    ty = f"<{width} x {scalar}>"
    keep = ", ".join(f"i32 {k}" for k in range(n))
    for lane, row in enumerate(_transpose(w, [*columns] + ["poison"] * (width - n), ty)):
        address = row_address(w, buffer, lane, start)
        part = t.let(f"shufflevector {ty} {row}, {ty} poison, <{n} x i32> <{keep}>")
        t.line(
            f"store volatile <{n} x {scalar}> {part}, ptr {address}, align {BYTES[buffer.dtype]}"
        )


WRITE = {"load": load, "store": store, "accumulate": accumulate, "clear": clear, "row": row}
"""Code generators of `Kind.IN_PLACE` operations."""
