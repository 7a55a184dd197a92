"""What all parts of the code generator write with: lines, and the name of every value."""

from __future__ import annotations

from jaxmbd.lanes.codegen.llvm_text import LLVM, Text, literal
from jaxmbd.lanes.codegen.uses import Pair, Uses
from jaxmbd.lanes.ir.layout import BYTES
from jaxmbd.lanes.ir.nodes import Buffer, Node


class Writer:
    """One kernel function under construction.

    Attributes:
        uses: what the values are used for.
        width: samples in a vector; gpu: whether a vector is a thread of a GPU.
        text: the lines, and fresh names.
        names: (node, as a vector) → its operand.
        functions, tables: elementary functions and constant tables that are referred to.
        pairs: names of what two functions of a pair give together.
        columns, prefetched: blocks of arguments that were read, and arguments asked for ahead.
        slots, scratch_slots: places of buffers in scratch, and how many there are.
        waiting, widest: places on the stack for vectors that wait, and their bytes a lane.
    """

    def __init__(self, uses: Uses, width: int, *, gpu: bool = False):
        self.uses, self.width, self.gpu = uses, width, gpu
        self.text = Text(width)
        self.names: dict[tuple[Node, bool], str] = {}
        self.functions: set[tuple[str, int]] = set()
        self.tables: dict[Buffer, str] = {}
        self.pairs: dict[Pair, str] = {}
        self.columns: dict[tuple[Buffer, int], list[str]] = {}
        self.prefetched: set[Buffer] = set()
        self.slots: dict[Buffer, int] = {}
        self.scratch_slots = 0
        self.waiting = self.widest = 0
        self._inverses: dict[tuple[Node, bool], str] = {}

    def type_of(self, n: Node, dtype: str = "") -> str:
        """LLVM type of a node's value, or of values of `dtype` as wide as that."""
        scalar = LLVM[dtype or n.dtype]
        return scalar if n.uniform else self.text.vector(scalar)

    def operand(self, n: Node, vector: bool) -> str:
        """A node as an operand, spread over the lanes where `vector`."""
        if n.constant:
            return self.constant(n.data, n.dtype, vector)
        return self.names[n, (vector and self.width > 1) or not n.uniform]

    def constant(self, value: float, dtype: str, vector: bool) -> str:
        """A number as an operand."""
        word = literal(value, dtype)
        return f"splat ({LLVM[dtype]} {word})" if vector and self.width > 1 else word

    def define(self, n: Node, name: str) -> None:
        """A node's value is known under that name from here on."""
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
        """The name of 1/n, where it is shared; n is what a node stands for."""
        return self._inverses.get((n, vector))

    def place_to_wait(self, k: int, dtype: str) -> str:
        """The address of a place on the stack for a vector that registers do not hold."""
        self.waiting = max(self.waiting, k + 1)
        self.widest = max(self.widest, BYTES[dtype])
        return f"%wait{k}"
