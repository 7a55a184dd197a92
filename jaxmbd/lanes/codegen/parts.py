"""A long kernel as several functions, each in a module of its own that is sent off once written.

LLVM then compiles the first parts while the next are being written, and several side by side. Parts
are cut between the loops and pieces of code that run once per vector of samples, and within long
pieces. Values that a later part uses lie in a frame in memory, one slot each, as spilled values do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any

from jaxmbd.lanes.codegen import entry
from jaxmbd.lanes.codegen.uses import readers_of
from jaxmbd.lanes.codegen.writer import Writer
from jaxmbd.lanes.ir.nodes import SLOT, Loop, Node
from jaxmbd.lanes.ir.table import root

LEAST = 7000
"""Nodes of a kernel that is written in parts."""
SIZE = 2500
"""Lines from which a part ends where it can; about the nodes of a part of a long piece of code."""
_ALIGNMENT = 64
_PARAMETERS = (
    "ptr noalias %ins, ptr noalias %outs, i64 %sample, ptr noalias %scratch, ptr noalias %frame"
)
_ARGUMENTS = "ptr %ins, ptr %outs, i64 %sample, ptr %scratch, ptr %frame"


class Parts:
    """The parts of a kernel under construction.

    Attributes:
        count: number of parts so far.
    """

    def __init__(self, w: Writer, finish: Callable[[str], None]):
        """Begin a kernel.

        Args:
            w: the writer.
            finish: takes the text of a part's function, in the writer's present module.
        """
        self.w, self.finish, self.count = w, finish, 0
        self._read: Counter[Node] = Counter()
        self._written: set[Node] = set()
        self._main: list[str] = []
        self._kept: Any = None
        self._label = ""

    def wrote(self, nodes: Iterable[Node]) -> None:
        """Note that nodes other than loops have been written."""
        new = [n for n in nodes if n not in self._written]
        self._written.update(new)
        readers_of(new, self._read)

    def wrote_loop(self, loop: Loop) -> None:
        """Note that a loop has been written; its body has been noted node by node."""
        self._read.update({root(x) for c in self.w.uses.carried(loop) for x in c[1:]})

    def leave_prologue(self) -> None:
        """Store the values of the prologue that parts use."""
        self.w.sleep(self._alive)

    def open(self) -> None:
        """Begin the first part; the vectors' loop has been opened."""
        w = self.w
        self._main, w.text.lines = w.text.lines, []
        self._kept = w.begin_function()
        self._begin()

    def close(self) -> None:
        """End the last part and return to the kernel's own function."""
        if self.w.text.lines:
            self._end()
        self.w.text.lines = self._main
        self.w.resume_function(self._kept)
        names = [f"declare void @part{k}({_PARAMETERS})" for k in range(self.count)]
        self.w.text.declared.update(names)

    def cut(self, *, least: int | None = None, saved: Collection[Node] = ()) -> None:
        """End a part that has `least` lines and begin another.

        Args:
            least: lines of a part; `SIZE` by default.
            saved: values that the caller has stored as far as they are needed.
        """
        if len(self.w.text.lines) < (SIZE if least is None else least):
            return
        self.w.sleep(self._alive, saved)
        self._end()
        self.w.begin_function()
        self._begin()

    def cuts(self, count: int) -> list[int]:
        """Where to cut a long piece of so many nodes."""
        number = round(count / SIZE)
        return [k * count // number for k in range(1, number)]

    def before_loop(self, loop: Loop, captured: Iterable[Node]) -> None:
        """Load what a loop of the outermost level reads, so that it does not in each iteration."""
        self.cut(least=2 * SIZE)
        if not loop.body.rare:
            for n in dict.fromkeys(map(root, captured)):
                if self.w.asleep(n):
                    self.w.wake(n)

    def frame(self) -> str:
        """The line that allocates the frame."""
        size = max(1, self.w.held) * self._slot
        return f"  %frame = alloca [{size} x i8], align {max(_ALIGNMENT, self._slot)}"

    @property
    def _slot(self) -> int:
        return SLOT * self.w.width

    def slots(self) -> list[str]:
        """Lines with the addresses of the slots that the present function uses."""
        w = self.w
        held = [
            f"  %held{k} = getelementptr i8, ptr %frame, i64 {k * self._slot}"
            for k in sorted(w.touched)
        ]
        return [*w.waiting_slots(), *held]

    def _alive(self, n: Node) -> bool:
        return self.w.uses.readers[n] > self._read[n]

    def _begin(self) -> None:
        self._label = self.w.text.block = self.w.text.label("part")

    def _end(self) -> None:
        w = self.w
        body, w.text.lines = w.text.lines, []
        name = f"@part{self.count}"
        lines = [f"define void {name}({_PARAMETERS}) {{", f"{self._label}:", *self.slots()]
        for pointer in sorted(w.pointers):
            lines += [f"  {line}" for line in entry.pointer(*pointer)]
        self.finish("\n".join([*lines, *body, "  ret void", "}"]))
        self._main.append(f"  call void {name}({_ARGUMENTS})")
        self.count += 1
