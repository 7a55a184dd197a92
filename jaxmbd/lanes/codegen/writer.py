"""`Writer`, the state shared by all parts of the code generator: text and names of values."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from jaxmbd.lanes.codegen.llvm_text import LLVM, Text, literal
from jaxmbd.lanes.codegen.uses import Pair, Uses
from jaxmbd.lanes.ir.layout import BYTES
from jaxmbd.lanes.ir.nodes import Buffer, Node
from jaxmbd.lanes.ir.table import root

HELD = 1 << 20
"""First number of the stack slots of values that are asleep. They lie apart, so that the spills of
loops stay close together."""


class Writer:
    """One kernel function under construction.

    Attributes:
        uses: uses of the graph's values.
        width: samples in a vector; gpu: whether a vector is a GPU thread.
        text: the lines, and a source of fresh names.
        names: (node, whether as a vector) → the LLVM operand of its value.
        functions, tables: elementary functions and constant tables in use.
        pairs: names of the joint results of function pairs.
        columns, prefetched: blocks of arguments already loaded, and arguments already prefetched.
        arguments: (several arguments, index, region) → the pointer to the one at the index.
        self.row_starts: dict[tuple[str, str], str] = {}
        slots, scratch_slots: first slot of each buffer in scratch, and the number of slots.
        waiting, widest: number of stack slots for spilled vectors, and their bytes per lane.
        asleep: values that wait in a stack slot and have no name until they are loaded.
        held: number of their slots.
        touched, pointers: slots of these, and arguments and results ("in" or "out", position), that
            the present function uses.
        homes: slots where values lie even while they have names, and where reciprocals do.
    """

    def __init__(self, uses: Uses, width: int, *, gpu: bool = False):
        self.uses, self.width, self.gpu = uses, width, gpu
        self.text = Text(width)
        self.names: dict[tuple[Node, bool], str] = {}
        self.functions: set[tuple[str, int]] = set()
        self.tables: dict[Buffer, str] = {}
        self.pairs: dict[Pair, str] = {}
        self.columns: dict[tuple[str, int], list[str]] = {}
        self.prefetched: set[str] = set()
        self.arguments: dict[tuple[Buffer, Node, Any], str] = {}
        self.row_starts: dict[tuple[str, str], str] = {}
        self.slots: dict[Buffer, int] = {}
        self.scratch_slots = 0
        self.waiting = self.widest = 0
        self.asleep: dict[Node, int] = {}
        self.held = 0
        self.touched: set[int] = set()
        self.pointers: set[tuple[str, int]] = set()
        self.homes: dict[Node, int] = {}
        self.inverse_homes: dict[Node, int] = {}
        self._inverses: dict[tuple[Node, bool], str] = {}

    def type_of(self, n: Node, dtype: str = "") -> str:
        """LLVM type of a node's value, or of `dtype` with as many lanes."""
        scalar = LLVM[dtype or n.dtype]
        return scalar if n.uniform else self.text.vector(scalar)

    def operand(self, n: Node, vector: bool) -> str:
        """A node's value as an operand, broadcast to all lanes if `vector`."""
        if n.constant:
            return self.constant(n.data, n.dtype, vector)
        key, source = (n, (vector and self.width > 1) or not n.uniform), root(n)
        if key not in self.names and source in self.asleep:
            return self._awake(source, key[1])
        return self.names[key] if key in self.names or source is n else self.operand(source, vector)

    def known(self, n: Node) -> bool:
        """Whether a node's value has been computed."""
        return (n, not n.uniform) in self.names or root(n) in self.asleep

    def forget(self, n: Node) -> None:
        """Drop the name of a value that is asleep."""
        self.names.pop((n, True), None)
        self.names.pop((n, False), None)

    def wake(self, n: Node) -> None:
        """Load a value that is asleep, once for all further uses."""
        name = self._awake(n, not n.uniform)
        self.homes[n] = self.asleep.pop(n)
        self.define(n, name)

    def _awake(self, n: Node, vector: bool) -> str:
        return self._loaded(n, self.asleep[n], vector)

    def _loaded(self, n: Node, slot: int, vector: bool) -> str:
        place, ty = self.place_to_wait(slot, n.dtype), self.type_of(n)
        name = self.text.let(f"load volatile {ty}, ptr {place}")
        return self.text.splat(ty, name) if vector and n.uniform and self.width > 1 else name

    def sleep(self, alive: Callable[[Node], bool], saved: Collection[Node] = ()) -> None:
        """Store the values that have names and are alive, but for those saved, and drop all names.

        So a function ends; those that follow load the values from where they lie.
        """
        for n, vector in [*self.names]:
            if vector == n.uniform or n is not root(n) or n in self.asleep or n in saved:
                continue
            if n.region is not None and n.region.depth < 2 and alive(n):  # not of a loop's body
                self.asleep[n] = self._stored(n, self.names[n, vector], self.homes)
                if (n, vector) in self._inverses:
                    self._stored(n, self._inverses[n, vector], self.inverse_homes)
        for names in (self.names, self.pairs, self.columns, self.arguments, self._inverses):
            names.clear()

    def _stored(self, n: Node, name: str, homes: dict[Node, int]) -> int:
        if n not in homes:
            homes[n] = self.hold()
            place = self.place_to_wait(homes[n], n.dtype)
            self.text.line(f"store volatile {self.type_of(n)} {name}, ptr {place}")
        return homes[n]

    def begin_function(self) -> tuple[Any, ...]:
        """Begin a function in another module; returns what `resume_function` takes."""
        before = (
            self.functions, self.tables, self.text.declared, self.touched, self.pointers,
            self.waiting,
        )  # fmt: skip
        self.resume_function((set(), {}, set(), set(), set(), 0))
        return before

    def resume_function(self, state: tuple[Any, ...]) -> None:
        """Return to a function that was left for another."""
        (
            self.functions, self.tables, self.text.declared, self.touched, self.pointers,
            self.waiting,
        ) = state  # fmt: skip

    def pointer(self, buffer: Buffer) -> str:
        """The pointer to an argument or a result."""
        kind = "in" if buffer.kind == "input" else "out"
        self.pointers.add((kind, buffer.position))
        return f"%{kind}{buffer.position}"

    def constant(self, value: float, dtype: str, vector: bool) -> str:
        """A constant as an operand."""
        word = literal(value, dtype)
        return f"splat ({LLVM[dtype]} {word})" if vector and self.width > 1 else word

    def define(self, n: Node, name: str) -> None:
        """Set the name of a node's value, with its broadcast and reciprocal if they are used."""
        self.names[n, not n.uniform] = name
        if self.width == 1:
            self.names[n, True] = self.names[n, False] = name
        elif n.uniform and n in self.uses.spread:
            self.names[n, True] = self.text.splat(LLVM[n.dtype], name)
        if n in self.uses.inverted:
            self._invert(n, name)

    def _invert(self, n: Node, name: str) -> None:
        if n in self.inverse_homes:
            inverse = self._loaded(n, self.inverse_homes[n], not n.uniform)
        else:
            one = self.constant(1.0, n.dtype, not n.uniform)
            inverse = self.text.let(f"fdiv {self.type_of(n)} {one}, {name}")
        self._inverses[n, not n.uniform] = inverse
        if self.width == 1:
            self._inverses[n, n.uniform] = inverse
        elif n.uniform:
            self._inverses[n, True] = self.text.splat(LLVM[n.dtype], inverse)

    def inverse(self, n: Node, vector: bool) -> str | None:
        """The name of the shared reciprocal 1/n, or None; n must not be an alias."""
        if n in self.inverse_homes and (n, vector) not in self._inverses:
            return self._loaded(n, self.inverse_homes[n], vector)
        return self._inverses.get((n, vector))

    def place_to_wait(self, k: int, dtype: str) -> str:
        """The address of stack slot k for a spilled vector."""
        self.widest = max(self.widest, BYTES[dtype])
        if k >= HELD:
            self.touched.add(k - HELD)
            return f"%held{k - HELD}"
        self.waiting = max(self.waiting, k + 1)
        return f"%wait{k}"

    def waiting_slots(self) -> list[str]:
        """Lines that allocate the slots of spilled vectors."""
        return [self.slot(f"%wait{k}") for k in range(self.waiting)]

    def slot(self, name: str) -> str:
        """A line that allocates a stack slot."""
        size = self.width * self.widest
        return f"  {name} = alloca [{size} x i8], align {size}"

    def hold(self) -> int:
        """A stack slot of its own for a value that stays asleep after its piece of code."""
        self.held += 1
        return HELD + self.held - 1
