"""A graph as LLVM IR: one function that runs over vectors of samples.

``kernel(ptr inputs, ptr outputs, i64 first, i64 last, ptr scratch)`` treats the vectors first …
last − 1 of `width` samples each. On a GPU the width is one and a vector is a thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property

from jaxmbd.lanes.codegen import instructions, loops, memory, pieces
from jaxmbd.lanes.codegen.llvm_text import BYTES, LLVM, Text, literal
from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.liveness import live_nodes
from jaxmbd.lanes.ir.nodes import Buffer, Loop, Node, Region, reads, root

FIXED = ("const", "param", "result", "loop", "recall")
"""Nodes that have their names from elsewhere."""


class Emitter:
    """Writes the body of the kernel of one graph.

    Attributes:
        text: the lines, and fresh names.
        registers: vector registers of the host; zero leaves all order and allocation to LLVM.
        live: nodes that are needed.
        names: (node, as a vector) → its operand.
        spread: shared values that vectors need; inverted: denominators of several quotients;
            both: angles of which sine and cosine are needed; pairs: the names of those.
        functions, tables: elementary functions and constant tables that are called.
        columns, prefetched: blocks of arguments that are read, and arguments asked for ahead.
        slots, scratch_slots: places in scratch; waiting, widest: those on the stack, their bytes.
        times, captured: how often regions run, and what loops read from outside.
        operations, flops: what was written.
    """

    def __init__(
        self,
        graph: Graph,
        width: int,
        inputs: int,
        outputs: int,
        *,
        registers: int = 0,
        gpu: bool = False,
    ):
        self.graph, self.width, self.registers, self.gpu = graph, width, registers, gpu
        self.inputs, self.outputs = inputs, outputs
        self.text = Text(width)
        self.live = live_nodes(graph)
        self.names: dict[tuple[Node, bool], str] = {}
        self.functions: set[tuple[str, int]] = set()
        self.tables: dict[Buffer, str] = {}
        self.slots: dict[Buffer, int] = {}
        self.columns: dict[tuple[Buffer, int], list[str]] = {}
        self.prefetched: set[Buffer] = set()
        self.waiting = self.widest = 0
        self.scratch_slots = 0
        self.operations = 0
        self.flops = 0
        self.times: dict[Region, int] = {}
        self._inverses: dict[tuple[Node, bool], str] = {}
        self.captured: dict[Loop, list[Node]] = {}
        self.pairs: dict[Node, str] = {}
        self._uses()

    @cached_property
    def readers(self) -> Counter[Node]:
        """How many live nodes, and results, read each node."""
        found = pieces.readers(self.live)
        for n in self.live:
            if n.op == "loop":
                found.update({root(x) for c in loops.carried(self, n.data) for x in c[1:]})
        found.update(root(n) for _, row in self.graph.outputs for n in row)
        return found

    def _uses(self) -> None:
        """Which uniform values vectors need, and which denominators are shared."""
        self.spread: set[Node] = set()
        self.inverted: set[Node] = set()
        seen: set[Node] = set()
        self.both: set[Node] = set()
        angles: dict[Node, set[str]] = {}
        for n in self.live:
            if n.op == "loop":
                self.spread.update(x for c in loops.carried(self, n.data) for x in c[1:])
            elif n.op in memory.WRITES:
                self.spread.update(n.args[1:])
            elif not n.uniform:
                self.spread.update(n.args)
                self.spread.update(map(root, n.args))
            b = root(n.args[1]) if instructions.may_invert(n) else None
            if b is not None and not b.constant:
                assert n.region is not None and b.region is not None
                if b in seen or n.region.depth > b.region.depth:
                    self.inverted.add(b)
                seen.add(b)
            if n.op in ("sin", "cos"):
                angles.setdefault(n.args[0], set()).add(n.op)
        for _, row in self.graph.outputs:
            self.spread.update(row)
        self.both = {x for x, kinds in angles.items() if len(kinds) == 2}

    # Operands

    def type_of(self, n: Node) -> str:
        """LLVM type of a node's value."""
        return LLVM[n.dtype] if n.uniform else self.text.vector(LLVM[n.dtype])

    def operand(self, n: Node, vector: bool) -> str:
        """A node as an operand, spread over the lanes where `vector`."""
        vector = vector and self.width > 1
        if n.constant:
            word = literal(n.data, n.dtype)
            return f"splat ({LLVM[n.dtype]} {word})" if vector else word
        return self.names[n, vector or not n.uniform]

    def define(self, n: Node, name: str) -> None:
        """A node's value is known under that name from here on."""
        self.names[n, not n.uniform] = name
        if self.width == 1:
            self.names[n, True] = self.names[n, False] = name
        elif n.uniform and n in self.spread:
            self.names[n, True] = self.text.splat(LLVM[n.dtype], name)
        if n in self.inverted:
            ty = self.type_of(n)
            one = self.operand(self.graph.const(1.0, n.dtype), not n.uniform)
            inverse = self.text.let(f"fdiv {ty} {one}, {name}")
            self._inverses[n, not n.uniform] = inverse
            if self.width == 1:
                self._inverses[n, n.uniform] = inverse
            elif n.uniform:
                self._inverses[n, True] = self.text.splat(LLVM[n.dtype], inverse)

    def inverse(self, n: Node, vector: bool) -> str | None:
        """The name of 1/n, where it is shared."""
        return self._inverses.get((root(n), vector))

    # Program

    def kernel(self) -> str:
        """The kernel function's text."""
        t = self.text
        kind = "ptx_kernel " if self.gpu else ""
        bounds = " #0" if self.gpu else ""  # attributes that `ptx` defines
        body = memory.gpu_header if self.gpu else memory.cpu_header
        arguments = body(self)
        prologue = self.graph.prologue
        self.region(prologue, [n for n in prologue.nodes if n in self.live])
        footer = memory.open_vectors(self)
        self.region(self.graph.base, [n for _, row in self.graph.outputs for n in row])
        for buffer, row in self.graph.outputs:
            memory.store_row(self, buffer, "0", row)
        t.line(footer)
        size = self.width * self.widest
        waiting = [f"  %wait{k} = alloca [{size} x i8], align {size}" for k in range(self.waiting)]
        return "\n".join(
            [
                f"define {kind}void @kernel({arguments}){bounds} {{",
                "entry:",
                *waiting,
                *t.lines,
                "  ret void",
                "}",
            ]
        )

    def region(self, region: Region, roots: Iterable[Node] = ()) -> None:
        """The live nodes of a region: effects in their order, all else just before its first use.

        What a loop inside needs is computed before it. So few values wait in registers.
        """
        for n in region.nodes:
            if n.op in memory.OPS and n.op != "element" and n in self.live:
                self.demand(n.args, region)
                memory.OPS[n.op](self, n)
            elif n.op == "loop" and n in self.live:
                self.demand([init for _, init, _ in loops.carried(self, n.data)], region)
                self.demand(loops.captured(self, n.data), region)
                loops.write(self, n.data)
        self.demand(roots, region)

    def demand(self, nodes: Iterable[Node], region: Region) -> None:
        """Compute nodes of a region with all that they need; many of them well arranged."""
        nodes = list(nodes)
        piece = list(self.order(nodes, region))
        if self.registers and len(piece) >= pieces.SHORT:
            pieces.compute(self, piece, nodes)
        else:
            for n in piece:
                self.compute(n)

    def place_to_wait(self, k: int, dtype: str) -> str:
        """The address of a place on the stack for a vector that registers do not hold."""
        self.waiting = max(self.waiting, k + 1)
        self.widest = max(self.widest, BYTES[dtype])
        return f"%wait{k}"

    def order(self, nodes: Iterable[Node], region: Region) -> Iterator[Node]:
        """Nodes of a region that are not yet known and all that they need, depth first."""
        seen: set[Node] = set()
        stack = [(n, False) for n in reversed(list(nodes))]
        while stack:
            n, ready = stack.pop()
            if n.region is not region or n.op in FIXED or n in seen:
                continue
            if (n, not n.uniform) in self.names:
                continue
            if n.op == "element" or ready:
                seen.add(n)
                yield n
            elif n.op not in memory.OPS:
                stack.append((n, True))
                stack.extend((a, False) for a in reads(n))

    def compute(self, n: Node) -> None:
        """Write one node's instructions."""
        if n.op == "element":
            memory.load_element(self, n)
        else:
            self.count(n)
            self.define(n, instructions.emit(self, n))

    def count(self, n: Node) -> None:
        """Add a node to the counts of operations and floating operations in its region."""
        self.operations += 1
        if n.dtype[0] == "f":
            self.flops += instructions.flops(n) * self.passes(n.region)

    def passes(self, region: Region | None) -> int:
        """How often a region runs for one sample (while loops counted once)."""
        return self.times.get(region, 1) if region is not None else 1

    def module(self) -> str:
        """The whole module: kernel, tables, elementary functions, declarations."""
        from jaxmbd.lanes import elementary

        kernel = self.kernel()
        parts = [*self._tables(), kernel]
        declared = set(self.text.declared)
        if self.functions:
            needed = sorted(self.functions)
            parts.append(elementary.definitions(needed, self.width))
            declared |= elementary.declarations(needed, self.width)
        if self.width > 1:
            w = self.width
            declared.add(f"declare i1 @llvm.vector.reduce.or.v{w}i1(<{w} x i1>)")
        return "\n".join([*sorted(declared), *parts])

    def _tables(self) -> Iterable[str]:
        for buffer, name in self.tables.items():
            ty = LLVM[buffer.dtype]
            values = ", ".join(f"{ty} {literal(x, buffer.dtype)}" for x in buffer.values)
            yield f"{name} = private constant [{buffer.size} x {ty}] [{values}]"
