"""What is said of an operation of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from jaxmbd.lanes.ir.nodes import Node


class Builder(Protocol):
    """What rules of folding and of derivatives build with: a `Graph`."""

    def const(self, value: Any, dtype: str) -> Node:
        """The constant of that value."""
        ...

    def op(self, op: str, *args: Node, dtype: str | None = None) -> Node:
        """The node ``op(*args)``."""
        ...


Fold = Callable[..., "Node | None"]
"""(graph, dtype, *arguments) → what the operation comes to, or None."""
Partial = Callable[[Builder, Node, Node], Iterable[tuple[Node, Node]]]
"""(graph, node, its cotangent) → (argument, part of its cotangent) pairs."""


class Kind(Enum):
    """How nodes of an operation are treated.

    VALUE: computed from their arguments, where they are first needed.
    ALIAS: they are their first argument; the others are for derivatives only.
    IN_PLACE: they read or write memory, and stay where they are.
    NAMED: their values come from elsewhere: constants, carries and results of loops.
    """

    VALUE = "value"
    ALIAS = "alias"
    IN_PLACE = "in place"
    NAMED = "named"


class Result(Enum):
    """Type of a result: that of the last argument, boolean, or as the node says."""

    LAST = "last"
    BOOLEAN = "boolean"
    STATED = "stated"


@dataclass(frozen=True)
class Infix:
    """An LLVM instruction of two operands: its words for each kind of operand."""

    floating: str
    signed: str
    unsigned: str

    def word(self, dtype: str) -> str:
        """The words for operands of a type."""
        if dtype[0] == "f":
            return self.floating
        return self.signed if dtype[0] == "i" and dtype != "i1" else self.unsigned


@dataclass(frozen=True)
class Intrinsic:
    """An LLVM intrinsic whose arguments and result are of one type."""

    name: str


@dataclass(frozen=True)
class Call:
    """The function of that name in `elementary`; of a `pair` of functions, which result."""

    pair: str = ""
    place: int = 0


@dataclass(frozen=True)
class Operation:
    """All that is said of an operation.

    Attributes:
        name: as nodes have it in `Node.op`.
        arity: how many arguments; None for any number.
        kind: how its nodes are treated.
        result: type of its result.
        operands: types of its arguments: "any", "float", "integer" (booleans too), or "mixed".
        fold: what it comes to for some arguments.
        partial: its derivative; None where reverse mode cannot pass.
        llvm: its instruction; where None, `codegen` has a function of its name.
        flops: floating operations that it is counted as.
        registers: vector registers that it takes beside arguments and result.
        commutative: whether its two arguments may change places.
        writes: whether it writes to memory.
        primitives: JAX primitives that are just this.
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
