"""LLVM IR text: names, literals, lines."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

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


class Text:
    """Lines of a function under construction.

    Attributes:
        width: lanes of a vector.
        lines: the lines written so far.
        block: label of the current basic block.
        declared: declarations of the intrinsics that were called.
    """

    def __init__(self, width: int):
        self.width = width
        self.lines: list[str] = []
        self.block = "entry"
        self.declared: set[str] = set()
        self._count = 0

    def name(self) -> str:
        """A fresh value name."""
        self._count += 1
        return f"%v{self._count}"

    def label(self, stem: str) -> str:
        """A fresh block label."""
        self._count += 1
        return f"{stem}{self._count}"

    def line(self, line: str) -> None:
        """Write a line."""
        self.lines.append("  " + line)

    def let(self, expression: str) -> str:
        """Write ``name = expression``; returns the name."""
        name = self.name()
        self.lines.append(f"  {name} = {expression}")
        return name

    def open(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.block = label

    def vector(self, scalar: str) -> str:
        """The type of a vector of `width` scalars."""
        return scalar if self.width == 1 else f"<{self.width} x {scalar}>"

    def suffix(self, scalar: str) -> str:
        """The suffix of that type in names of intrinsics."""
        short = {"double": "f64", "float": "f32"}.get(scalar, scalar)
        return short if self.width == 1 else f"v{self.width}{short}"

    def splat(self, scalar: str, name: str) -> str:
        """Broadcast a scalar to all lanes."""
        v = self.vector(scalar)
        one = self.let(f"insertelement {v} poison, {scalar} {name}, i64 0")
        mask = f"<{self.width} x i32> zeroinitializer"
        return self.let(f"shufflevector {v} {one}, {v} poison, {mask}")

    def intrinsic(self, name: str, ty: str, suffix: str, *args: str) -> str:
        """Call ``llvm.name`` with operands and result of one type."""
        self.declared.add(f"declare {ty} @llvm.{name}.{suffix}({', '.join([ty] * len(args))})")
        given = ", ".join(f"{ty} {a}" for a in args)
        return self.let(f"call {ty} @llvm.{name}.{suffix}({given})")
