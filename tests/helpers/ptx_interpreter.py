"""An interpreter of PTX: all threads of a launch at once, one array element for each.

Threads that part at a branch run one group after the other, and together again from the first block
that all of them go through. Checked are: alignment and bounds of every access, reads of memory and
of registers that nothing wrote, and that every instruction is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import ptx_arithmetic as arithmetic
from ptx_instructions import MAKERS, Step
from ptx_memory import Memory, Region
from ptx_text import (
    EXIT,
    Address,
    Block,
    Function,
    Instruction,
    Program,
    PtxError,
    type_of,
    unknown,
)

MOST_STEPS = 10_000_000
"""Instructions of a launch, each counted once for a group of threads: more is an endless loop."""
_DIVISIONS = ("div", "sqrt", "rcp", "rsqrt")
_COUNTED = ("add", "sub", "mul", "fma", *_DIVISIONS)

Array = np.ndarray


@dataclass
class Group:
    """Threads that run together.

    Attributes:
        mask: which of all threads.
        ids: their numbers.
        some: whether other threads will go on later, so that their registers must be kept.
    """

    mask: Array
    ids: Array = field(init=False)
    some: bool = False

    def __post_init__(self) -> None:
        self.ids = np.flatnonzero(self.mask)

    def again(self) -> Group:
        """The same threads."""
        return Group(self.mask)


@dataclass
class Counts:
    """What all threads together executed: instructions, or bytes of memory.

    Attributes:
        launches: kernels launched.
        threads: threads of these launches.
        instructions: all of them.
        f64, f32: sums, products, quotients, roots; a fused one is one.
        fused: fused ones among them.
        divisions: quotients and roots among them, or the approximate ones that they begin with.
        local_load, local_store: bytes of local memory that the PTX itself reads and writes.
        global_load, global_store: bytes of arguments, results, tables and scratch.
    """

    launches: int = 0
    threads: int = 0
    instructions: int = 0
    f64: int = 0
    f32: int = 0
    fused: int = 0
    divisions: int = 0
    local_load: int = 0
    local_store: int = 0
    global_load: int = 0
    global_store: int = 0

    def add(self, other: Counts, times: int = 1) -> None:
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name) + times * getattr(other, f.name))

    def note(self, x: Instruction) -> None:
        """Count one instruction of one thread."""
        self.instructions += 1
        head, last = x.opcode[0], x.opcode[-1]
        if head in _COUNTED and last in ("f64", "f32"):
            setattr(self, last, getattr(self, last) + 1)
            self.fused += head == "fma"
            self.divisions += head in _DIVISIONS
        if head in ("ld", "st") and x.opcode[1] in ("local", "global"):
            place = x.operands[1 if head == "ld" else 0]
            assert isinstance(place, Address)
            values = x.operands[0 if head == "ld" else 1]
            size = type_of(x)[1] // 8 * (len(values) if isinstance(values, tuple) else 1)
            name = f"{x.opcode[1]}_{'load' if head == 'ld' else 'store'}"
            setattr(self, name, getattr(self, name) + size)


def launch(
    program: Program, grid: int, threads: int, values: Sequence[bytes], device: Memory
) -> Counts:
    """Run a kernel.

    Args:
        program: its text, parsed.
        grid: number of blocks.
        threads: of a block.
        values: of its parameters.
        device: arguments, results and scratch.

    Returns:
        What was executed.

    Raises:
        PtxError: an instruction is unknown, or does what no kernel may do.
    """
    if program.most_threads and threads > program.most_threads:
        raise PtxError(f"blocks of {threads} threads, at most {program.most_threads} are allowed")
    tables = []
    try:
        for t in program.tables:
            tables.append(device.place(t.name, _bytes(t.data or bytes(t.size)), fixed=True))
        run = Launch(program, grid, threads, values, device, tables)
        with np.errstate(all="ignore"):
            run.run(run.frames[program.kernel.name], Group(np.ones(run.count, bool)))
        return run.counts()
    finally:
        for region in tables:
            device.remove(region.address)


def _bytes(content: bytes) -> Array:
    return np.frombuffer(bytearray(content), np.uint8)


@dataclass
class Code:
    """A block that can be run.

    Attributes:
        steps: what its instructions do, and their places in the block.
        reads: numbers of registers that it reads before writing them.
        writes: numbers of registers that it writes.
        branch: which threads go to the first of the following blocks; None if all do.
        runs: how many threads have run it.
    """

    block: Block
    steps: list[tuple[Step, int]]
    reads: Array
    writes: Array
    branch: Callable[[], Array] | None
    runs: int = 0


_Waiting = tuple[int, int, Group]
"""A block, the one before which to stop, and the threads."""


class Launch:
    """One launch: the threads, the functions with registers for them, and the memories.

    Attributes:
        count: number of threads.
        live: how many of them have not ended.
    """

    def __init__(
        self,
        program: Program,
        grid: int,
        threads: int,
        values: Sequence[bytes],
        device: Memory,
        tables: list[Region],
    ):
        self.count = self.live = grid * threads
        self.steps = 0
        numbers = np.arange(self.count)
        self.special = {
            "%tid.x": numbers % threads,
            "%ctaid.x": numbers // threads,
            "%ntid.x": np.full(self.count, threads),
            "%nctaid.x": np.full(self.count, grid),
        }
        self.spaces = {"global": device, "local": Memory(), "param": Memory()}
        self.symbols = {r.name: r for r in tables}
        self._constants: dict[tuple[bytes, str], Array] = {}
        self._temporaries: dict[np.dtype, Array] = {}
        given = program.kernel.parameters
        if [len(v) for v in values] != [x.size for x in given]:
            raise PtxError(f"the kernel takes parameters of {[x.size for x in given]} bytes")
        for x, value in zip(given, values, strict=True):
            self.symbols[x.name] = self.spaces["param"].place(x.name, _bytes(value), fixed=True)
        self.frames = {
            f.name: Frame(self, f, f is program.kernel) for f in program.functions.values()
        }
        for frame in self.frames.values():
            frame.bind()

    def constant(self, value: Array) -> Array:
        """An array with a value for all threads."""
        key = value.tobytes(), value.dtype.str
        if key not in self._constants:
            self._constants[key] = np.full(self.count, value)
        return self._constants[key]

    def temporary(self, kind: np.dtype) -> Array:
        """An array for a result of which some threads take their part."""
        if kind not in self._temporaries:
            self._temporaries[kind] = np.empty(self.count, kind)
        return self._temporaries[kind]

    def run(self, frame: Frame, everyone: Group) -> None:
        """Run a function for some threads until all of them have returned from it."""
        waiting: list[_Waiting] = [(0, EXIT, everyone)]
        while waiting:
            k, stop, group = waiting.pop()
            while k not in (stop, EXIT):
                code = frame.codes[k]
                self._run_block(frame, code, group)
                first, *other = code.block.following
                taken = group.mask if code.branch is None else code.branch() & group.mask
                n = np.count_nonzero(taken)
                if 0 < n < len(group.ids):
                    parts = (first, taken), (other[0], group.mask & ~taken)
                    waiting += self._parted(frame, code.block.meeting, stop, group, parts)
                    break
                k = first if n else other[0]
            else:
                if k == EXIT:
                    self._end(frame, group.mask)

    def _parted(
        self,
        frame: Frame,
        meeting: int,
        stop: int,
        group: Group,
        parts: Sequence[tuple[int, Array]],
    ) -> list[_Waiting]:
        """What is to run for threads that go to different blocks: the last one first."""
        found = [] if meeting in (stop, EXIT) else [(meeting, stop, group)]
        for target, mask in parts:
            if target == EXIT:
                self._end(frame, mask)
            elif target != meeting:
                found.append((target, meeting, Group(mask)))
        return found

    def _end(self, frame: Frame, mask: Array) -> None:
        if frame.is_kernel:
            self.live -= int(np.count_nonzero(mask))

    def _run_block(self, frame: Frame, code: Code, group: Group) -> None:
        group.some = len(group.ids) < self.live
        frame.check_read(code, group)
        code.runs += len(group.ids)
        self.steps += len(code.block.code)
        if self.steps > MOST_STEPS:
            raise PtxError(f"{frame.function.name}: more than {MOST_STEPS} instructions")
        at = 0
        try:
            for step, at in code.steps:  # noqa: B007
                step(group)
        except PtxError as error:
            x = code.block.code[at]
            raise PtxError(f"{frame.function.name}, line {x.line}: {x.text}: {error}") from None
        frame.written[code.writes[:, None], group.ids] = True

    def counts(self) -> Counts:
        """What has been executed."""
        found = Counts(launches=1, threads=self.count)
        for frame in self.frames.values():
            for code in frame.codes:
                each = Counts()
                for x in code.block.code:
                    each.note(x)
                found.add(each, code.runs)
        return found


class Frame:
    """A function of a launch: registers and memory of all threads, and code that works on them.

    Attributes:
        written: which registers have a value, for all threads.
        codes: of the blocks.
    """

    def __init__(self, launch: Launch, function: Function, is_kernel: bool):
        self.launch, self.function, self.is_kernel = launch, function, is_kernel
        self.numbers = {name: k for k, name in enumerate(function.registers)}
        self.written = np.zeros((len(self.numbers), launch.count), bool)
        self.rows: dict[str, Array] = {}
        for name, width in function.registers.items():
            kind = "pred" if width == 1 else "b"
            self.rows[name] = np.zeros(launch.count, arithmetic.dtype(kind, width))
        self.carry = np.zeros(launch.count, bool)
        self.codes: list[Code] = []
        self.symbols: dict[str, Region] = {}
        own = [] if is_kernel else [*function.parameters, *function.results]
        for x in (*own, *function.variables):
            if x.space not in launch.spaces:
                raise PtxError(f"{function.name}: unknown memory .{x.space} of {x.name}")
            self.symbols[x.name] = launch.spaces[x.space].place_each(x.name, x.size, launch.count)

    def bind(self) -> None:
        """Make the steps of all blocks."""
        for block in self.function.blocks:
            steps = [(self._step(x), k) for k, x in enumerate(block.code)]
            kept = [(step, k) for step, k in steps if step is not None]
            reads, writes = (self._numbers_of(x) for x in (block.reads, block.writes))
            self.codes.append(Code(block, kept, reads, writes, self._branch(block)))

    def _branch(self, block: Block) -> Callable[[], Array] | None:
        last = block.code[-1] if block.code else None
        if last is None or last.guard is None:
            return None
        row = self.row(last, last.guard, "pred", 1)
        return (lambda: ~row) if last.negated else (lambda: row)

    def enter(self, group: Group) -> None:
        """Forget what an earlier call by these threads left."""
        self.written[:, group.ids] = False
        for region in self.symbols.values():
            region.forget(group.ids)

    def check_read(self, code: Code, group: Group) -> None:
        there = self.written[code.reads[:, None], group.ids]
        if there.all():
            return
        k, j = np.argwhere(~there)[0]
        raise PtxError(
            f"{self.function.name}: thread {group.ids[j]} reads {code.block.reads[k]}, which "
            f"nothing wrote, in the block of line {code.block.code[0].line}"
        )

    def _numbers_of(self, names: Sequence[str]) -> Array:
        return np.array([self._number(n) for n in names], int)

    def _number(self, name: str) -> int:
        if name not in self.numbers:
            raise PtxError(f"{self.function.name}: there is no register {name}")
        return self.numbers[name]

    def _step(self, x: Instruction) -> Step | None:
        if x.opcode[0] in ("bra", "ret"):
            if x.opcode[1:] not in ((), ("uni",)):
                raise unknown(x)
            return None
        make = MAKERS.get(x.opcode[0])
        if make is None:
            raise unknown(x)
        return make(self, x)

    def memory(self, x: Instruction, space: str) -> Memory:
        """The memory that a load or store names."""
        if space not in self.launch.spaces:
            raise unknown(x)
        return self.launch.spaces[space]

    # Operands

    def row(self, x: Instruction, name: object, kind: str, bits: int) -> Array:
        """A register, of which an instruction needs a type."""
        if not isinstance(name, str):
            raise unknown(x)
        self._number(name)
        row = self.rows[name]
        if self.function.registers[name] != bits:
            raise PtxError(f"line {x.line}: {name} has no {bits} bits: {x.text}")
        return row.view(arithmetic.dtype(kind, bits))

    def value(self, x: Instruction, operand: object, kind: str, bits: int) -> Array:
        """An operand's values: a register, a number, or the address of a variable."""
        if not isinstance(operand, str):
            raise unknown(x)
        wanted = arithmetic.dtype(kind, bits)
        if operand in self.launch.special:
            return self.launch.special[operand].astype(wanted)
        if operand[0] == "%":
            return self.row(x, operand, kind, bits)
        if operand[0].isdigit() or operand[0] == "-":
            return self.launch.constant(_number(x, operand, kind, bits))
        return self.launch.constant(np.array(self._address(x, operand), wanted))

    def _address(self, x: Instruction, name: str) -> int:
        region = self.symbols.get(name) or self.launch.symbols.get(name)
        if region is None:
            raise PtxError(f"line {x.line}: there is no variable {name}: {x.text}")
        return region.address


def _number(x: Instruction, text: str, kind: str, bits: int) -> Array:
    """A number as written: an integer, or the bits of a float."""
    if text[:2] in ("0d", "0f"):
        if kind not in "fb" or bits != (64 if text[1] == "d" else 32):
            raise PtxError(f"line {x.line}: {text} does not fit: {x.text}")
        value = int(text[2:], 16)
    else:
        if kind == "f":
            raise PtxError(f"line {x.line}: {text} is no float: {x.text}")
        value = int(text, 0) % (1 << bits)
    if kind == "pred":
        return np.array(bool(value))
    return np.array(value, arithmetic.dtype("u", bits)).view(arithmetic.dtype(kind, bits))
