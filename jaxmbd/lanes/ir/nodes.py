"""The parts of a scalar graph: nodes, regions, loops, buffers, and what an operation is."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np

FLOATS = ("f64", "f32")
DTYPES = {
    "float64": "f64", "float32": "f32", "bool": "i1",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "key<fry>": "u64",
}  # fmt: skip
NUMPY = {short: np.dtype(name) for name, short in DTYPES.items() if "<" not in name}


class Unsupported(NotImplementedError):
    """Lanes cannot compile something in a function; the message names it and where it is.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd import lanes
        >>> try:
        ...     lanes.vmap(jnp.fft.fft, strict=True)(jnp.ones((2, 3)))
        ... except lanes.Unsupported as error:
        ...     "fft" in str(error)
        True
    """


_WARNED: set[str] = set()


def warn_once(text: str, instead: str) -> None:
    """Warn, once per text, that something cannot be compiled and what is used instead."""
    if text not in _WARNED:
        _WARNED.add(text)
        cost = "XLA compiles the function, and each call of a rollout takes several times longer"
        warnings.warn(f"{text}; {instead} is used instead: {cost}", stacklevel=4)


class Region:
    """Straight-line code: nodes in order, nested in a parent region.

    Depth 0 (prologue) runs once per call, depth 1 (base) once per vector of samples; deeper
    regions are loop bodies; a rare one seldom runs at all.
    """

    __slots__ = ("depth", "nodes", "parent", "rare")

    def __init__(self, parent: Region | None):
        self.parent = parent
        self.depth = 0 if parent is None else parent.depth + 1
        self.nodes: list[Node] = []
        self.rare = False


class Node:
    """One scalar value (or memory effect) per sample.

    Attributes:
        op: its operation; `args` are its operands, `data` its attributes that are not nodes.
        dtype: "f64", "i32", "i1", …
        region: where it is computed; None for constants.
        uniform: whether it has the same value in all samples.
        deps: bit set of the differentiated inputs that it depends on.
        number: serial number in order of creation.
        constant: whether it is a literal, with its value in `data`.
    """

    __slots__ = ("args", "constant", "data", "deps", "dtype", "number", "op", "region", "uniform")
    _numbers = count()

    def __init__(
        self,
        op: str,
        args: tuple[Node, ...],
        dtype: str,
        region: Region | None,
        uniform: bool,
        deps: int,
        data: Any = None,
    ):
        self.op, self.args, self.dtype, self.region = op, args, dtype, region
        self.uniform, self.deps, self.data = uniform, deps, data
        self.constant = op == "const"
        self.number = next(Node._numbers)

    def __repr__(self) -> str:
        return f"{self.op}:{self.dtype}" + (f"={self.data}" if self.constant else "")


@dataclass(eq=False)
class Buffer:
    """Memory: rows of an argument or a result, the kernel's scratch, or a constant table.

    Arguments of one type and size can be accessed as one, each as a row of an "inputs" buffer.

    Attributes:
        kind: "input", "inputs", "output", "scratch" or "const".
        size: elements per sample; of "inputs", of each.
        position: index of the kernel's argument or result.
        values: elements of a constant table; of "inputs", a constant table of their positions.
        batched: whether it holds one row per sample.
        region: outermost region that uses a scratch buffer.
        final: whether a scratch buffer is written once, before anything is loaded from it.
    """

    kind: str
    dtype: str
    size: int
    position: int = -1
    values: Any = None
    batched: bool = True
    region: Region | None = None
    final: bool = False


Write = tuple[Buffer, Node, int, Node]
"""(buffer, index, offset, value): store the value to element ``index + offset`` of the buffer."""
Body = Callable[[Node, list[Node]], tuple[list[Node], list[Write]]]
"""(index, carries) → new carries and writes."""


@dataclass(eq=False)
class Loop:
    """A loop: the `outs` of one iteration are the `params` of the next.

    Attributes:
        count: number of iterations, or the largest number; None if there is no bound.
        trace: traces the body again.
        going: place of the carry that says which samples continue, if the loop ends as soon as none
            does.
        times: number of iterations, at most `count`, if it is computed before the loop.
        reached: of a loop that ends early and has an adjoint, the number of its iterations.
        saves: for reverse mode, the buffers that hold each carry at the start of each iteration.
        origin: index of the first iteration in `saves`.
        results: buffers of the final carries, one element per iteration of the enclosing loop.
        inner: the loops directly inside, in order.
        recallable: whether the adjoint of the enclosing loop may load saved values instead of
            running this loop again.
        equation: what it was made for.
        written: the buffers that an iteration writes to besides; traced again inside an adjoint,
            a loop has no stores for those of outside, whose cotangents its adjoint reads all the
            same.
    """

    body: Region
    counter: Node
    params: list[Node]
    inits: list[Node]
    count: int | None
    trace: Body
    going: int | None = None
    times: Node | None = None
    reached: Node | None = None
    outs: list[Node] = field(default_factory=list)
    saves: list[Buffer] = field(default_factory=list)
    origin: Node | None = None
    results: list[Buffer] = field(default_factory=list)
    inner: list[Loop] = field(default_factory=list)
    recallable: bool = False
    equation: Any = None
    written: tuple[Buffer, ...] = ()


@dataclass(eq=False)
class Routine:
    """A function of scalars whose code exists once, called from several places of a kernel.

    Attributes:
        graph: its graph, a `Graph` without nodes of any other but constants.
        params: its parameters.
        given: the buffers in which it finds them: the first is written by the caller, each other is
            what a routine called before has found.
        places: of each parameter, the number of its buffer and the index there.
        results: its results; found: the buffer in which it leaves them.
        wanted: the places of those results that some caller uses.
    """

    graph: Any
    params: list[Node]
    given: list[Buffer]
    places: list[tuple[int, int]]
    results: list[Node]
    found: Buffer
    wanted: set[int] = field(default_factory=set)


class CallSite(NamedTuple):
    """A call of a routine, with the memory of its operands and its results."""

    routine: Routine
    given: list[Buffer]
    found: Buffer


BYTES = {
    "f64": 8, "f32": 4, "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8,
    "u8": 1, "u16": 2, "u32": 4, "u64": 8,
}  # fmt: skip
"""Bytes of one element of a type in an argument or a result."""
SLOT = 8
"""Bytes of one element of scratch in one lane, for every type."""
WARP = 32
"""GPU threads whose scratch is interleaved, like that of a vector's lanes on the host."""


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
    NAMED: nothing to compute: constants, loops, loop carries and loop results, calls of routines.
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
