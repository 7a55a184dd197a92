"""A graph as LLVM IR: a function that loops over vectors of samples.

``kernel(ptr inputs, ptr outputs, i64 first, i64 last, ptr scratch)`` computes the vectors first …
last − 1, of `width` samples each. On a GPU the width is one and each vector is a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jaxmbd.lanes.codegen import entry, instructions, loops, memory, pieces, rows
from jaxmbd.lanes.codegen.uses import Uses
from jaxmbd.lanes.codegen.writer import LLVM, Writer, literal
from jaxmbd.lanes.ir.graph import Graph
from jaxmbd.lanes.ir.liveness import live_nodes
from jaxmbd.lanes.ir.nodes import Loop, Node, Region
from jaxmbd.lanes.ir.table import IN_PLACE, NAMED, OPERATIONS, root


class Emitter:
    """Writes the kernel of one graph.

    Attributes:
        registers: vector registers of the host; zero leaves scheduling and spills to LLVM.
        w: the writer.
        operations: operations written, loops counted once.
        flops: floating-point operations per sample, loops counted by iterations.
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
        """An emitter of a graph.

        Args:
            graph: the graph.
            width: samples in a vector.
            inputs: number of arguments.
            outputs: number of results.
            registers: vector registers of the host.
            gpu: whether to write a kernel for GPUs.
        """
        self.graph, self.registers = graph, registers
        self.inputs, self.outputs = inputs, outputs
        self.uses = Uses(graph, live_nodes(graph))
        self.w = Writer(self.uses, width, gpu=gpu)
        self.operations = 0
        self.flops = 0
        self._times: dict[Region | None, int] = {}

    @property
    def live(self) -> set[Node]:
        """Live nodes."""
        return self.uses.live

    @property
    def scratch_slots(self) -> int:
        """Elements of scratch per sample."""
        return self.w.scratch_slots

    # Program

    def kernel(self) -> str:
        """The LLVM IR of the kernel function."""
        w, t = self.w, self.w.text
        kind = "ptx_kernel " if w.gpu else ""
        bounds = " #0" if w.gpu else ""  # attributes that `ptx` defines
        header = entry.gpu_header if w.gpu else entry.cpu_header
        arguments = header(w, self.inputs, self.outputs)
        opened = len(t.lines)
        prologue = self.graph.prologue
        self.region(prologue, [n for n in prologue.nodes if n in self.live])
        footer = entry.open_vectors(w)
        with w.scope():
            self.region(self.graph.base, [n for _, row in self.graph.outputs for n in row])
            for buffer, row in self.graph.outputs:
                w.end_long_block()
                rows.store_row(w, buffer, "0", row)
        t.line(footer)
        if w.gpu and w.looks_up:
            t.lines[opened:opened] = entry.gpu_pointers(self.inputs)
        return "\n".join(
            [
                f"define {kind}void @kernel({arguments}){bounds} {{",
                "entry:",
                *w.stack_slots(),
                *t.lines,
                "  ret void",
                "}",
            ]
        )

    def region(self, region: Region, roots: Iterable[Node] = ()) -> None:
        """The live nodes of a region: effects in order, all else just before its first use.

        This keeps live ranges short. Values that a loop captures are computed before the loop.
        """
        for n in region.nodes:
            if n.op in IN_PLACE and n in self.live:
                self.demand(n.args, region)
                self.w.end_long_block()
                memory.WRITE[n.op](self.w, n)
            elif n.op == "loop" and n in self.live:
                inits = [init for _, init, _ in self.uses.carried(n.data)]
                captured = self.uses.captured(n.data)
                if n.data.body.rare:
                    self.demand([*inits, *captured], region, asleep=True)
                else:
                    self.demand(inits, region)
                    self.demand(captured, region)
                self.loop(n.data)
        self.demand(roots, region)

    def loop(self, loop: Loop) -> None:
        """A loop whose initial carries and captured values have been computed."""
        self._times[loop.body] = self._passes(loop.body.parent) * (loop.count or 1)
        loops.write(self.w, loop, lambda roots: self.region(loop.body, roots))

    def demand(self, nodes: Iterable[Node], region: Region, *, asleep: bool = False) -> None:
        """Compute nodes of a region and what they depend on; long pieces are scheduled.

        Values for a rare loop may stay asleep; others that are asleep are loaded.
        """
        nodes = list(nodes)
        piece = list(self.order(nodes, region))
        if self.registers and len(piece) >= pieces.SHORT:
            pieces.write(self.w, piece, nodes, self.registers, self.compute, asleep=asleep)
        else:
            for n in piece:
                self.compute(n)
        for n in [] if asleep else map(root, nodes):
            if n.region is region and self.w.asleep(n):
                self.w.wake(n)

    def order(self, nodes: Iterable[Node], region: Region) -> Iterator[Node]:
        """Nodes of a region still to be computed for some nodes, in depth-first postorder.

        Aliases are left out: they are the nodes that they stand for.
        """
        seen: set[Node] = set()
        stack = [(n, False) for n in reversed(list(nodes))]
        while stack:
            n, ready = stack.pop()
            n = root(n)
            if n.region is not region or n.op in NAMED or n in seen:
                continue
            if self.w.known(n):
                continue
            if n.op == "element" or ready:
                seen.add(n)
                yield n
            elif n.op not in IN_PLACE:
                stack.append((n, True))
                stack.extend((a, False) for a in n.args)

    def compute(self, n: Node) -> None:
        """Write one node's instructions."""
        self.w.end_long_block()
        if n.op in ("element", "entry"):
            rows.load_element(self.w, n)
            return
        self.operations += 1
        if n.dtype[0] == "f":
            self.flops += OPERATIONS[n.op].flops * self._passes(n.region)
        self.w.define(n, instructions.emit(self.w, n))

    def _passes(self, region: Region | None) -> int:
        """How often a region runs per sample (while loops count as one iteration)."""
        return self._times.get(region, 1)

    def module(self) -> str:
        """The kernel's module: kernel, tables, elementary functions, declarations."""
        from jaxmbd.lanes import elementary  # imported late: its tables take time to build

        kernel = self.kernel()
        text = [*self._tables(), kernel]
        declared = set(self.w.text.declared)
        if self.w.functions:
            needed = sorted(self.w.functions)
            text.append(elementary.definitions(needed, self.w.width))
            declared |= elementary.declarations(needed, self.w.width)
        if self.w.width > 1:
            w = self.w.width
            declared.add(f"declare i1 @llvm.vector.reduce.or.v{w}i1(<{w} x i1>)")
        return "\n".join([*sorted(declared), *text, loops.SELDOM])

    def _tables(self) -> Iterable[str]:
        for buffer, name in self.w.tables.items():
            ty = LLVM[buffer.dtype]
            values = ", ".join(f"{ty} {literal(x, buffer.dtype)}" for x in buffer.values)
            yield f"{name} = private constant [{buffer.size} x {ty}] [{values}]"
