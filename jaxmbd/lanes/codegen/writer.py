"""`Writer`, the state shared by all parts of the code generator: text and names of values."""

from __future__ import annotations

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
            return self._awake(source)
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
        name = self._awake(n)
        del self.asleep[n]
        self.define(n, name)

    def _awake(self, n: Node) -> str:
        place, ty = self.place_to_wait(self.asleep[n], n.dtype), self.type_of(n)
        return self.text.let(f"load volatile {ty}, ptr {place}")

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
        one = self.constant(1.0, n.dtype, not n.uniform)
        inverse = self.text.let(f"fdiv {self.type_of(n)} {one}, {name}")
        self._inverses[n, not n.uniform] = inverse
        if self.width == 1:
            self._inverses[n, n.uniform] = inverse
        elif n.uniform:
            self._inverses[n, True] = self.text.splat(LLVM[n.dtype], inverse)

    def inverse(self, n: Node, vector: bool) -> str | None:
        """The name of the shared reciprocal 1/n, or None; n must not be an alias."""
        return self._inverses.get((n, vector))

    def place_to_wait(self, k: int, dtype: str) -> str:
        """The address of stack slot k for a spilled vector."""
        self.widest = max(self.widest, BYTES[dtype])
        if k >= HELD:
            return f"%held{k - HELD}"
        self.waiting = max(self.waiting, k + 1)
        return f"%wait{k}"

    def hold(self) -> int:
        """A stack slot of its own for a value that stays asleep after its piece of code."""
        self.held += 1
        return HELD + self.held - 1
