"""`Writer`, the state shared by all parts of the code generator: where values lie."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.lanes.codegen import division
from jaxmbd.lanes.codegen.text import Text
from jaxmbd.lanes.codegen.uses import Uses
from jaxmbd.lanes.ir.nodes import BYTES, WARP, Buffer, Node, Routine
from jaxmbd.lanes.ir.nodes import SLOT as SLOT_BYTES
from jaxmbd.lanes.ir.table import root

LLVM = {
    "f64": "double", "f32": "float", "i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32",
    "i64": "i64", "u8": "i8", "u16": "i16", "u32": "i32", "u64": "i64",
}  # fmt: skip


def stored(dtype: str) -> str:
    """The LLVM type of an element in memory: a boolean is a byte."""
    return "i8" if dtype == "i1" else LLVM[dtype]


def literal(value: Any, dtype: str) -> str:
    """A constant; floating-point ones in hexadecimal, as the bits of the equal double."""
    if dtype[0] == "f":
        if dtype == "f32":
            value = float(np.float32(value))
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if dtype == "i1":
        return "true" if value else "false"
    return str(value)


Slot = int | tuple[Buffer, int]
"""Where a value waits in memory: a slot of the stack, or an element of a buffer of scratch."""
HELD = 1 << 20
"""First number of the stack slots of values that outlast their piece of code. They lie apart, so
that the spills of loops stay close together."""
SLOT = "slot"
LONG_BLOCK = 400
"""Lines from which a basic block is ended: the time of LLVM's schedulers grows with its square."""


class Reciprocal(NamedTuple):
    """The value 1/n, shared by several quotients."""

    of: Node

    @property
    def dtype(self) -> str:
        """Its type."""
        return self.of.dtype

    @property
    def uniform(self) -> bool:
        """Whether it has the same value in all samples."""
        return self.of.uniform


Value = Node | Reciprocal
"""What has places; a node that is no alias."""


class Writer:
    """One kernel function under construction.

    All places of values are in one table. A place holds in the scope where it was written (a
    function, a loop's body) and in those inside, and is lost with it: so what is found in the table
    dominates its use, in memory too, where LLVM does not check it.

    Attributes:
        uses: uses of the graph's values.
        width: samples in a vector; gpu: whether a vector is a GPU thread.
        text: the lines, and a source of fresh names.
        functions, tables: elementary functions and constant tables in use.
        prefetched: arguments already prefetched; looks_up: whether one of several is looked up.
        slots, scratch_slots: first slot of each buffer in scratch, and the number of slots.
        areas: buffers that begin at a pointer of their own.
        routines: the numbers of the routines that the kernel calls.
        waiting, widest: number of stack slots for spilled vectors, and their bytes per lane.
        held: number of slots of values that outlast their piece.
    """

    def __init__(self, uses: Uses, width: int, *, gpu: bool = False, caller: Writer | None = None):
        self.uses, self.width, self.gpu = uses, width, gpu
        self.text = Text(width)
        self.functions: set[tuple[str, int]] = set()
        self.tables: dict[Buffer, str] = {}
        self.routines: dict[Routine, int] = {}
        self.areas: dict[Buffer, str] = {}
        self.prefetched: set[str] = set()
        self.looks_up = False
        self.slots: dict[Buffer, int] = {}
        self.scratch_slots = 0
        if caller is not None:  # parts of one module
            self.text.declared, self.functions = caller.text.declared, caller.functions
            self.tables, self.routines = caller.tables, caller.routines
            self.scratch_slots = caller.scratch_slots
        self.waiting = self.widest = self.held = 0
        # (value, whether as a vector) → its name; (value, SLOT) → its stack slot; a slot → its
        # value; names of anything else by keys of their users.
        self._places: dict[Any, Any] = {}
        self._scopes: list[set[Hashable]] = [set()]

    # Places

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is written in this context has no place after it."""
        self._scopes.append(set())
        yield
        for key in self._scopes.pop():
            self._places.pop(key, None)

    def _put(self, key: Hashable, place: Any) -> None:
        """Enter a place; those of outer scopes must stay, as the next iteration uses them."""
        if key not in self._places:
            self._scopes[-1].add(key)
        else:
            assert key in self._scopes[-1], f"{key} is used outside"
        self._places[key] = place

    def once(self, key: Hashable, write: Callable[[], Any]) -> Any:
        """What `write` returned at its first call for a key in this scope or an outer one."""
        if key not in self._places:
            self._put(key, write())
        return self._places[key]

    def type_of(self, n: Value, dtype: str = "") -> str:
        """LLVM type of a node's value, or of `dtype` with as many lanes."""
        scalar = LLVM[dtype or n.dtype]
        return scalar if n.uniform else self.text.vector(scalar)

    def operand(self, n: Node, vector: bool) -> str:
        """A node's value as an operand, broadcast to all lanes if `vector`."""
        wide, value = self.width > 1 and (vector or not n.uniform), root(n)
        if value.constant:
            return self.constant(value.data, value.dtype, wide)
        return self._places.get((value, wide)) or self._name(value, wide)

    def inverse(self, n: Node, vector: bool) -> str | None:
        """The shared reciprocal 1/n as an operand, or None."""
        value = root(n)
        if value not in self.uses.inverted:
            return None
        if self.asleep(value) and not self._awake(Reciprocal(value)):
            self.wake(value)
        return self._name(Reciprocal(value), self.width > 1 and vector)

    def _name(self, value: Value, wide: bool) -> str:
        """A name of a value: that which it has, else of a copy loaded or broadcast here."""
        name = self._places.get((value, wide))
        if name is not None:
            return name
        spread = wide and value.uniform
        if (value, SLOT) in self._places:
            name = self._loaded(value)
            return self.text.splat(LLVM[value.dtype], name) if spread else name
        assert spread, f"{value} has no place"
        name = self.text.splat(LLVM[value.dtype], self._name(value, False))
        self._put((value, True), name)
        return name

    def _own(self, value: Value) -> tuple[Value, bool]:
        """The key of a value's name as it is computed."""
        return value, self.width > 1 and not value.uniform

    def known(self, n: Node) -> bool:
        """Whether a node's value has been computed."""
        value = root(n)
        return self._own(value) in self._places or (value, SLOT) in self._places

    def asleep(self, n: Node) -> bool:
        """Whether a value waits in a stack slot and has no name."""
        return (n, SLOT) in self._places and not self._awake(n)

    def _awake(self, value: Value) -> bool:
        return self._own(value) in self._places

    def define(self, value: Value, name: str) -> None:
        """Set the name of a value, with its broadcast and reciprocal if they are used."""
        self._put(self._own(value), name)
        node = value.of if isinstance(value, Reciprocal) else value
        if self.width > 1 and value.uniform and (node is not value or node in self.uses.spread):
            self._put((value, True), self.text.splat(LLVM[value.dtype], name))
        if node is value and node in self.uses.inverted and not self._awake(Reciprocal(node)):
            self.define(Reciprocal(node), self._inverse(node, name))

    def _inverse(self, n: Node, name: str) -> str:
        if (Reciprocal(n), SLOT) in self._places:
            return self._loaded(Reciprocal(n))
        return self.quotient(self.type_of(n), self.constant(1.0, n.dtype, not n.uniform), name)

    def quotient(self, ty: str, a: str, b: str) -> str:
        """Write a / b of floating-point operands."""
        if self.gpu:
            return division.quotient(self.text, ty, a, b)
        return self.text.let(f"fdiv {ty} {a}, {b}")

    # Stack slots

    def store(self, value: Value, slot: Slot) -> None:
        """Copy a value to a slot, in the place of what was there."""
        ty, name = self.type_of(value), self._places[self._own(value)]
        assert (value, SLOT) not in self._places, f"{value} lies in a slot already"
        self.lies(value, slot)
        self.text.line(f"store volatile {ty} {name}, ptr {self._address(slot, value.dtype)}")

    def lies(self, value: Value, slot: Slot) -> None:
        """Enter that a value lies in a slot, in the place of what was there."""
        self.vacate(slot)
        self._put(slot, value)
        self._put((value, SLOT), slot)

    def pass_on(self, n: Node, slot: Slot) -> None:
        """Write a value as a vector into a slot, where the routine that is called finds it."""
        if self._places.get((root(n), SLOT)) != slot:
            ty, name = self.text.vector(stored(n.dtype)), self.operand(n, True)
            if n.dtype == "i1":
                name = self.text.let(f"zext {self.text.vector('i1')} {name} to {ty}")
            self.text.line(f"store volatile {ty} {name}, ptr {self._address(slot, n.dtype)}")

    def load(self, n: Node) -> None:
        """Load a value from its slot, under a name of its own."""
        self._put(self._own(n), self._loaded(n))

    def wake(self, n: Node) -> None:
        """Load a value that is asleep, once for all further uses."""
        self.define(n, self._loaded(n))

    def _loaded(self, value: Value) -> str:
        slot = self._places.get((value, SLOT))
        assert slot is not None and self._places[slot] == value, f"{value} lies in no slot"
        address = self._address(slot, value.dtype)
        ty = self.type_of(value, "i8" if value.dtype == "i1" else value.dtype)
        name = self.text.let(f"load volatile {ty}, ptr {address}")
        if value.dtype != "i1":
            return name
        zero = "0" if self.width == 1 else "zeroinitializer"
        return self.text.let(f"icmp ne {self.text.vector('i8')} {name}, {zero}")

    def slot_of(self, n: Node) -> Slot:
        """The slot where a value lies."""
        return self._places[n, SLOT]

    def forget(self, n: Node) -> None:
        """Drop the names of a value that lies in a slot."""
        self._places.pop((n, False), None)
        self._places.pop((n, True), None)

    def vacate(self, slot: Slot) -> None:
        """Forget what a slot holds."""
        assert slot not in self._places or slot in self._scopes[-1], f"{slot} is used outside"
        self._places.pop((self._places.pop(slot, None), SLOT), None)

    def _address(self, k: Slot, dtype: str) -> str:
        """The address of slot k, to hold a vector."""
        if not isinstance(k, int):
            return self.scratch_address(k[0], str(k[1]))
        self.widest = max(self.widest, BYTES[dtype])
        if k >= HELD:
            return f"%held{k - HELD}"
        self.waiting = max(self.waiting, k + 1)
        return f"%wait{k}"

    def stack_slots(self) -> list[str]:
        """Lines that allocate the stack slots."""
        size = self.width * self.widest
        names = [f"%held{k}" for k in range(self.held)] + [f"%wait{k}" for k in range(self.waiting)]
        return [f"  {name} = alloca [{size} x i8], align {size}" for name in names]

    def hold(self) -> int:
        """A stack slot of its own for a value that stays asleep after its piece of code."""
        self.held += 1
        return HELD + self.held - 1

    def scratch_address(self, buffer: Buffer, place: str) -> str:
        """Address of an element of scratch; the lanes of an element are adjacent."""
        t, step = self.text, SLOT_BYTES * (WARP if self.gpu else self.width)
        if buffer not in self.slots:
            self.slots[buffer] = 0 if buffer in self.areas else self.scratch_slots
            self.scratch_slots += 0 if buffer in self.areas else buffer.size
        first = self.slots[buffer]
        if place.isdigit():
            where = str((int(place) + first) * step)
        else:
            where = t.let(f"mul i64 {t.let(f'add i64 {place}, {first}')}, {step}")
        if self.gpu:
            row = t.let(f"getelementptr i8, ptr %memory, i64 {where}")
            return t.let(f"getelementptr {stored(buffer.dtype)}, ptr {row}, i64 %lane")
        return t.let(f"getelementptr i8, ptr {self.areas.get(buffer, '%scratch')}, i64 {where}")

    # Text

    def end_long_block(self) -> None:
        """Go on in a new basic block if this one is long, by a branch that LLVM cannot fold."""
        t = self.text
        if len(t.lines) - t.begin > LONG_BLOCK and not self.gpu:
            label = t.label("next")
            t.line(f"br i1 %never, label %vector.done, label %{label}")
            t.open(label)

    def pointer(self, buffer: Buffer) -> str:
        """The pointer to an argument or a result."""
        return f"%{'in' if buffer.kind == 'input' else 'out'}{buffer.position}"

    def constant(self, value: float, dtype: str, vector: bool) -> str:
        """A constant as an operand."""
        word = literal(value, dtype)
        return f"splat ({LLVM[dtype]} {word})" if vector and self.width > 1 else word
