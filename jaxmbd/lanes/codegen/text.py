"""`Text`, LLVM IR under construction."""

from __future__ import annotations


class Text:
    """Lines of a function under construction.

    Attributes:
        width: lanes of a vector.
        lines: the lines written so far.
        block: label of the current basic block; begin: number of lines when it was opened.
        declared: declarations of the intrinsics that were called.
    """

    def __init__(self, width: int):
        self.width = width
        self.lines: list[str] = []
        self.block = "entry"
        self.begin = 0
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
        self.block, self.begin = label, len(self.lines)

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
