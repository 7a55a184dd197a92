"""What a scalar graph consists of: nodes, regions, loops, memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

FLOATS = ("f64", "f32")
DTYPES = {
    "float64": "f64", "float32": "f32", "bool": "i1",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
NUMPY = {short: np.dtype(name) for name, short in DTYPES.items()}


class Unsupported(NotImplementedError):
    """A function holds something that lanes cannot compile; the message names it and its place."""


_WARNED: set[str] = set()


def warn_once(text: str, instead: str) -> None:
    """Say, once, what cannot be compiled and what is used instead."""
    if text not in _WARNED:
        _WARNED.add(text)
        warnings.warn(f"{text}; {instead} is used instead", stacklevel=4)


class Region:
    """A straight piece of program: nodes in order, inside its parent.

    Depth 0 runs once a call, depth 1 once a vector of samples, deeper ones are loop bodies.
    """

    __slots__ = ("depth", "nodes", "parent")

    def __init__(self, parent: Region | None):
        self.parent = parent
        self.depth = 0 if parent is None else parent.depth + 1
        self.nodes: list[Node] = []


class Node:
    """One scalar value (or effect) of every sample.

    Attributes:
        op: what it does; `args` are its arguments, `data` what is not a node.
        dtype: "f64", "i32", "i1", …
        region: where it is computed; None for constants.
        uniform: whether it is the same in all samples.
        deps: bits of the differentiated inputs that it depends on.
        number: its place in the order of making.
    """

    __slots__ = ("args", "data", "deps", "dtype", "number", "op", "region", "uniform")
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
        self.number = next(Node._numbers)

    @property
    def constant(self) -> bool:
        """Whether its value, `data`, is known."""
        return self.op == "const"

    def __repr__(self) -> str:
        return f"{self.op}:{self.dtype}" + (f"={self.data}" if self.constant else "")


@dataclass(eq=False)
class Buffer:
    """Memory: an argument's rows, a result's rows, the kernel's own scratch, or a constant table.

    Attributes:
        kind: "input", "output", "scratch" or "const".
        size: elements of one sample.
        position: which argument or result of the kernel it is.
        values: a constant table's numbers.
        batched: whether it holds one row for each sample.
        region: where scratch begins to be used.
    """

    kind: str
    dtype: str
    size: int
    position: int = -1
    values: Any = None
    batched: bool = True
    region: Region | None = None


Write = tuple[Buffer, Node, int, Node]
"""Element ``index + offset`` of a buffer becomes a value: (buffer, index, offset, value)."""
Body = Callable[[Node, list[Node]], tuple[list[Node], list[Write]]]
"""(index, carries) → carries and what is written."""


@dataclass(eq=False)
class Loop:
    """A loop: `outs` of one pass are the `params` of the next.

    Attributes:
        count: number of passes; None for a while loop, whose last carry says which samples go on.
        trace: builds the body anew.
        saves: for reverse mode, where each carry is kept at the start of each pass.
        origin: where in `saves` the first pass is.
        results: where the last carries are kept, one for each pass of the loop around.
        inner: the loops right inside, in order.
        recallable: whether the adjoint of the loop around may read what was kept instead of
            running this loop again.
    """

    body: Region
    counter: Node
    params: list[Node]
    inits: list[Node]
    count: int | None
    trace: Body
    outs: list[Node] = field(default_factory=list)
    saves: list[Buffer] = field(default_factory=list)
    origin: Node | None = None
    results: list[Buffer] = field(default_factory=list)
    inner: list[Loop] = field(default_factory=list)
    recallable: bool = False
