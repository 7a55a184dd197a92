"""The parts of a scalar graph: nodes, regions, loops, buffers.

Memory layout that kernels and their callers agree on.
"""

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
    """Lanes cannot compile something in a function; the message names it and where it is.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd import lanes
        >>> try:
        ...     lanes.vmap(jnp.sort, strict=True)(jnp.ones((2, 3)))
        ... except lanes.Unsupported as error:
        ...     "sort" in str(error)
        True
    """


_WARNED: set[str] = set()


def warn_once(text: str, instead: str) -> None:
    """Warn, once per text, that something cannot be compiled and what is used instead."""
    if text not in _WARNED:
        _WARNED.add(text)
        warnings.warn(f"{text}; {instead} is used instead", stacklevel=4)


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
        count: number of iterations; None for a while loop, whose last carry says which samples
            continue.
        trace: traces the body again.
        saves: for reverse mode, the buffers that hold each carry at the start of each iteration.
        origin: index of the first iteration in `saves`.
        results: buffers of the final carries, one element per iteration of the enclosing loop.
        inner: the loops directly inside, in order.
        carries: which carries of the body as traced these are.
        recallable: whether the adjoint of the enclosing loop may load saved values instead of
            running this loop again.
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
    outs: list[Node] = field(default_factory=list)
    saves: list[Buffer] = field(default_factory=list)
    origin: Node | None = None
    results: list[Buffer] = field(default_factory=list)
    inner: list[Loop] = field(default_factory=list)
    carries: Any = None
    recallable: bool = False
    written: tuple[Buffer, ...] = ()


BYTES = {
    "f64": 8, "f32": 4, "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8,
    "u8": 1, "u16": 2, "u32": 4, "u64": 8,
}  # fmt: skip
"""Bytes of one element of a type in an argument or a result."""
SLOT = 8
"""Bytes of one element of scratch in one lane, for every type."""
WARP = 32
"""GPU threads whose scratch is interleaved, like that of a vector's lanes on the host."""
