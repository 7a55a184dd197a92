"""`Operation`: the properties of an operation of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from jaxmbd.lanes.ir.nodes import Node


class Builder(Protocol):
    """What folding and derivative rules need of a `Graph`."""

    def const(self, value: Any, dtype: str) -> Node:
        """The node of a constant."""
        ...

    def op(self, op: str, *args: Node, dtype: str | None = None) -> Node:
        """The node ``op(*args)``."""
        ...


Fold = Callable[..., "Node | None"]
"""(graph, dtype, *operands) → the simplified node, or None if there is no simplification."""
Partial = Callable[[Builder, Node, Node], Iterable[tuple[Node, Node]]]
"""(graph, node, its cotangent) → pairs (operand, contribution to the operand's cotangent)."""


class Kind(Enum):
    """How nodes of an operation are treated.

    VALUE: computed from their operands just before their first use.
    ALIAS: equal to their first operand; the others serve derivatives only.
    IN_PLACE: access memory, so they are not reordered.
    NAMED: nothing to compute: constants, loops, loop carries and loop results.
    """

    VALUE = "value"
    ALIAS = "alias"
    IN_PLACE = "in place"
    NAMED = "named"


class Result(Enum):
    """Type of a result: that of the last operand, boolean, or stated by the node."""

    LAST = "last"
    BOOLEAN = "boolean"
    STATED = "stated"


@dataclass(frozen=True)
class Infix:
    """An LLVM instruction of two operands: its mnemonic for each kind of operand."""

    floating: str
    signed: str
    unsigned: str

    def word(self, dtype: str) -> str:
        """The mnemonic for operands of a type."""
        if dtype[0] == "f":
            return self.floating
        return self.signed if dtype[0] == "i" and dtype != "i1" else self.unsigned


@dataclass(frozen=True)
class Intrinsic:
    """An LLVM intrinsic whose operands and result have one type."""

    name: str


@dataclass(frozen=True)
class Call:
    """A call of the function of that name in `elementary`.

    Attributes:
        pair: the function that computes this one and another together ("sincos"); empty if none.
        place: which of the pair's two results this is.
    """

    pair: str = ""
    place: int = 0


@dataclass(frozen=True)
class Operation:
    """The properties of an operation.

    Attributes:
        name: the value of `Node.op`.
        arity: number of operands; None for any number.
        kind: how its nodes are treated.
        result: type of its result.
        operands: types of its operands: "any", "float", "integer" (or boolean), or "mixed".
        fold: its simplification rule.
        partial: its reverse-mode rule; None if it cannot be differentiated.
        llvm: its instruction; if None, `codegen` has a function for it.
        flops: floating-point operations that it counts as.
        registers: vector registers that it needs besides those of operands and result.
        commutative: whether its two operands may be exchanged.
        writes: whether it writes to memory.
        primitives: JAX primitives that map to it one to one.
    """

    name: str
    arity: int | None
    fold: Fold | None = None
    partial: Partial | None = None
    llvm: Infix | Intrinsic | Call | None = None
    kind: Kind = Kind.VALUE
    result: Result = Result.LAST
    operands: str = "any"
    flops: int = 0
    registers: int = 0
    commutative: bool = False
    writes: bool = False
    primitives: tuple[str, ...] = ()
