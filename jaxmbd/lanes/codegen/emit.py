"""A graph as LLVM IR: a function that loops over vectors of samples.

``kernel(ptr inputs, ptr outputs, i64 first, i64 last, ptr scratch)`` computes the samples first …
last − 1 in vectors of `width`, the last of which ends at `last` and may begin before `first`. On a
GPU the width is one, and each thread computes every n-th sample, where n threads run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from jaxmbd.lanes.codegen import instructions, loops, memory, schedule
from jaxmbd.lanes.codegen.fused import fuse
from jaxmbd.lanes.codegen.uses import Uses
from jaxmbd.lanes.codegen.writer import LLVM, Slot, Writer, literal
from jaxmbd.lanes.ir.graph import Graph, live_nodes
from jaxmbd.lanes.ir.nodes import WARP, Buffer, Loop, Node, Region, Routine
from jaxmbd.lanes.ir.table import IN_PLACE, NAMED, OPERATIONS, root


class Emitter:
    """Writes the kernel of one graph.

    Attributes:
        registers: vector registers of the host; zero leaves scheduling and spills to LLVM.
        w: the writer.
        operations: operations written, loops counted once.
        flops: floating-point operations per sample, loops counted by iterations.
        returned: the live results of each call of a routine.
        called: how often each routine is called per sample; parts: the emitters of routines.
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
        caller: Writer | None = None,
    ):
        """An emitter of a graph.

        Args:
            graph: the graph.
            width: samples in a vector.
            inputs: number of arguments.
            outputs: number of results.
            registers: vector registers of the host.
            gpu: whether to write a kernel for GPUs.
            caller: of a routine, the writer of a function that calls it.
        """
        self.graph, self.registers = graph, registers
        self.inputs, self.outputs = inputs, outputs
        fuse(graph)
        self.uses = Uses(graph, live_nodes(graph))
        self.w = Writer(self.uses, width, gpu=gpu, caller=caller)
        self.returned: dict[Node, list[Node]] = {}
        for n in self.live:
            if n.op == "returned":
                self.returned.setdefault(n.args[0], []).append(n)
                n.args[0].data.routine.wanted.add(n.data)
        self.called: Counter[Routine] = Counter()
        self.parts: list[Emitter] = []
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
        header = gpu_header if w.gpu else cpu_header
        arguments = header(w, self.inputs, self.outputs)
        opened = len(t.lines)
        prologue = self.graph.prologue
        self.region(prologue, [n for n in prologue.nodes if n in self.live])
        footer = open_vectors(w)
        with w.scope():
            self.region(self.graph.base, [n for _, row in self.graph.outputs for n in row])
            for buffer, row in self.graph.outputs:
                w.end_long_block()
                memory.store_row(w, buffer, "0", row)
        t.line(footer)
        if w.gpu and w.looks_up:
            t.lines[opened:opened] = gpu_pointers(self.inputs)
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
            elif n.op == "call" and n in self.live:
                self.call(n)
        self.demand(roots, region)

    def loop(self, loop: Loop) -> None:
        """A loop whose initial carries and captured values have been computed."""
        early = loop.going is not None or loop.times is not None
        passes = 1 if early or loop.count is None else loop.count
        self._times[loop.body] = self._passes(loop.body.parent) * passes
        loops.write(self.w, loop, lambda roots: self.region(loop.body, roots))

    def call(self, n: Node) -> None:
        """A call of a routine, whose operands and results lie in memory."""
        w, (routine, given, found) = self.w, n.data
        places = zip(n.args, routine.places, strict=True)
        self.hand_over({k: a for a, (b, k) in places if b == 0}, given[0], n.region)
        areas = [w.scratch_address(buffer, "0") for buffer in (*given, found)]
        number = w.routines.setdefault(routine, len(w.routines))
        pointers = ", ".join(f"ptr {name}" for name in (*areas, "%scratch"))
        w.text.line(f"call void @routine{number}({pointers}, i64 %last)")
        for result in self.returned[n]:
            w.lies(result, (found, result.data))
        self.called[routine] += self._passes(n.region)

    def hand_over(self, nodes: dict[int, Node], buffer: Buffer, region: Region | None) -> None:
        """Compute nodes of a region and leave them in a buffer, each in its place."""
        homes = {root(n): (buffer, k) for k, n in nodes.items()}
        assert region is not None
        self.demand(nodes.values(), region, asleep=True, homes=homes)
        for k, n in nodes.items():
            self.w.pass_on(n, (buffer, k))

    def demand(
        self,
        nodes: Iterable[Node],
        region: Region,
        *,
        asleep: bool = False,
        homes: Mapping[Node, Slot] | None = None,
    ) -> None:
        """Compute nodes of a region and what they depend on; long pieces are scheduled.

        Values for a rare loop or a routine may stay asleep; others that are asleep are loaded.
        """
        nodes = list(nodes)
        piece = list(self.order(nodes, region))
        if self.registers and len(piece) >= schedule.SHORT:
            schedule.write_piece(
                self.w, piece, nodes, self.registers, self.compute, asleep=asleep, homes=homes or {}
            )
        else:
            for n in piece:
                self.compute(n)
        for n in [] if asleep else map(root, nodes):
            if n.region is region and n.op != "returned" and self.w.asleep(n):
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
            memory.load_element(self.w, n)
            return
        self.operations += 1
        if n.dtype[0] == "f":
            self.flops += OPERATIONS[n.op].flops * self._passes(n.region)
        self.w.define(n, instructions.emit(self.w, n))

    def _passes(self, region: Region | None) -> int:
        """How often a region runs per sample (loops that end early count as one iteration)."""
        return self._times.get(region, 1)

    def module(self) -> str:
        """The kernel's module: kernel, tables, elementary functions, declarations."""
        from jaxmbd.lanes import elementary  # imported late: its tables take time to build

        kernel = self.kernel()
        routines = self._routines()
        text = [*self._tables(), kernel, *routines]
        declared = set(self.w.text.declared)
        if self.w.functions:
            needed = sorted(self.w.functions)
            text.append(elementary.definitions(needed, self.w.width))
            declared |= elementary.declarations(needed, self.w.width)
        if self.w.width > 1:
            w = self.w.width
            declared.add(f"declare i1 @llvm.vector.reduce.or.v{w}i1(<{w} x i1>)")
        return "\n".join([*sorted(declared), *text, loops.SELDOM])

    def _routines(self) -> list[str]:
        """The routines that the kernel calls; those that others call come after these."""
        text = []
        made = [x[0] for x in self.graph.routines.values() if x is not None]
        for routine in reversed(made):
            if routine in self.called:
                wanted = [routine.results[k] for k in sorted(routine.wanted)]
                routine.graph.outputs = [(routine.found, wanted)]
                e = Emitter(
                    routine.graph, self.w.width, 0, 0, registers=self.registers, caller=self.w
                )
                text.append(e.routine(routine, self.w.routines[routine]))
                self.parts.append(e)
                times = self.called[routine]
                self.operations += e.operations
                self.flops += e.flops * times
                for inner, count in e.called.items():
                    self.called[inner] += count * times
                self.w.scratch_slots = e.w.scratch_slots
        return text

    def routine(self, routine: Routine, number: int) -> str:
        """The LLVM IR of a routine."""
        w, t, graph = self.w, self.w.text, self.graph
        given = {buffer: f"%given{k}" for k, buffer in enumerate(routine.given)}
        w.areas = {**given, routine.found: "%found"}
        t.line("%never = icmp slt i64 %last, 0")  # for `Writer.end_long_block`
        for p, (buffer, k) in zip(routine.params, routine.places, strict=True):
            w.lies(p, (routine.given[buffer], k))
        self.region(graph.prologue, [n for n in graph.prologue.nodes if n in self.live])
        self.region(graph.base)
        results = {k: routine.results[k] for k in sorted(routine.wanted)}
        self.hand_over(results, routine.found, graph.base)
        pointers = ", ".join(f"ptr {name}" for name in (*w.areas.values(), "%scratch"))
        return "\n".join(
            [
                f"define internal void @routine{number}({pointers}, i64 %last) noinline {{",
                "entry:",
                *w.stack_slots(),
                *t.lines,
                "  br label %vector.done",
                "vector.done:",
                "  ret void",
                "}",
            ]
        )

    def _tables(self) -> Iterable[str]:
        for buffer, name in self.w.tables.items():
            ty = LLVM[buffer.dtype]
            values = ", ".join(f"{ty} {literal(x, buffer.dtype)}" for x in buffer.values)
            yield f"{name} = private constant [{buffer.size} x {ty}] [{values}]"


def cpu_header(w: Writer, inputs: int, outputs: int) -> str:
    """Load the pointers to arguments and results; returns the kernel's parameter list."""
    t = w.text
    t.line("%never = icmp slt i64 %last, 0")  # for `Writer.end_long_block`
    for kind, count in (("in", inputs), ("out", outputs)):
        for k in range(count):
            t.line(f"%{kind}.p{k} = getelementptr ptr, ptr %{kind}s, i64 {k}")
            t.line(f"%{kind}{k} = load ptr, ptr %{kind}.p{k}")
    return "ptr noalias %ins, ptr noalias %outs, i64 %first, i64 %last, ptr noalias %scratch"


def gpu_header(w: Writer, inputs: int, outputs: int) -> str:
    """Open a GPU kernel; its parameter list."""
    pointers = [f"ptr addrspace(1) noalias readonly %in{k}.g" for k in range(inputs)]
    pointers += [f"ptr addrspace(1) noalias %out{k}.g" for k in range(outputs)]
    t = w.text
    for kind, count in (("in", inputs), ("out", outputs)):
        for k in range(count):
            t.line(f"%{kind}{k} = addrspacecast ptr addrspace(1) %{kind}{k}.g to ptr")
    t.line("%scratch = addrspacecast ptr addrspace(1) %scratch.g to ptr")
    for name in ("tid.x", "ctaid.x", "ntid.x", "nctaid.x"):
        function = f"@llvm.nvvm.read.ptx.sreg.{name}"
        t.declared.add(f"declare i32 {function}()")
        t.line(f"%{name} = call i32 {function}()")
    t.line("%block = mul i32 %ctaid.x, %ntid.x")
    t.line("%thread.i = add i32 %block, %tid.x")
    t.line("%thread = zext i32 %thread.i to i64")
    t.line("%threads.i = mul i32 %nctaid.x, %ntid.x")
    t.line("%threads = zext i32 %threads.i to i64")
    return ", ".join([*pointers, "ptr addrspace(1) noalias %scratch.g, i64 %room, i64 %count"])


def gpu_pointers(inputs: int) -> list[str]:
    """Lines that make an array of the pointers to arguments, as the host's kernels are given."""
    lines = [f"  %ins = alloca [{inputs} x ptr addrspace(1)]"]
    for k in range(inputs):
        lines.append(f"  %in.p{k} = getelementptr ptr addrspace(1), ptr %ins, i64 {k}")
        lines.append(f"  store ptr addrspace(1) %in{k}.g, ptr %in.p{k}")
    return lines


def open_vectors(w: Writer) -> str:
    """Open the loop over vectors of samples; returns the lines that close it.

    Each thread of a GPU takes every `threads`-th sample, and scratch for one; `room` is the scratch
    of a warp in bytes.
    """
    t = w.text
    if w.gpu:
        t.line(f"%warp = udiv i64 %thread, {WARP}")
        t.line(f"%lane = urem i64 %thread, {WARP}")
        t.line("%before = mul i64 %warp, %room")
        t.line("%memory = getelementptr i8, ptr %scratch, i64 %before")
        t.line("%some = icmp slt i64 %thread, %count")
        before = t.block
        t.line("br i1 %some, label %vector, label %vector.done")
        t.open("vector")
        t.line(f"%sample = phi i64 [%thread, %{before}], [%sample.next, %vector.end]")
        return (
            "br label %vector.end\nvector.end:\n  %sample.next = add i64 %sample, %threads\n"
            "  %vector.more = icmp slt i64 %sample.next, %count\n"
            "  br i1 %vector.more, label %vector, label %vector.done\nvector.done:"
        )
    before = t.block
    t.line("br label %vector")
    t.open("vector")
    t.line(f"%sample.at = phi i64 [%first, %{before}], [%sample.next, %vector.end]")
    t.line(f"%sample.most = sub i64 %last, {w.width}")
    t.line("%beyond = icmp sgt i64 %sample.at, %sample.most")
    t.line("%sample = select i1 %beyond, i64 %sample.most, i64 %sample.at")
    return (
        f"br label %vector.end\nvector.end:\n  %sample.next = add i64 %sample, {w.width}\n"
        "  %vector.more = icmp slt i64 %sample.next, %last\n"
        "  br i1 %vector.more, label %vector, label %vector.done\nvector.done:"
    )
