"""PTX text as functions, basic blocks and instructions.

It covers what LLVM writes for kernels of lanes. Anything else is a `PtxError` that names it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

EXIT = -1
"""The block after the end of a function."""
_TYPE = re.compile(r"(pred|[bsuf](8|16|32|64))$")
_HEADER = re.compile(
    r"^(?:\.visible\s+)?\.(entry|func)\s*(?:\((.*?)\))?\s*([\w$]+)\s*\((.*?)\)([^{;]*)([{;])",
    re.M | re.S,
)
_VARIABLE = re.compile(
    r"\.(global|const|local|param)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+"
    r"(?:\.ptr\s+\.\w+\s+\.align\s+\d+\s+)?([\w$]+)(?:\[(\d+)\])?(?:\s*=\s*\{([\d,\s]*)\})?\s*$"
)
_REGISTER = re.compile(r"\.reg\s+\.(\w+)\s+(%\w+)(?:<(\d+)>)?$")
_ADDRESS = re.compile(r"\[\s*([%$\w.#]+)\s*(?:\+\s*(-?\d+))?\s*\]$")
_SPLIT = re.compile(r",\s*(?![^{\[(]*[}\])])")
_INSTRUCTION = re.compile(r"(?:@(!?)(%\w+)\s+)?([a-z][\w.:]*)\s*(.*)$", re.S)
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_COMMENT = re.compile(r"//[^\n]*")


Words = Sequence[str]


class PtxError(Exception):
    """PTX that the interpreter does not know, or that does what no kernel may do."""


@dataclass(frozen=True)
class Address:
    """An operand like ``[%rd1+8]``: a register or a symbol, and an offset [bytes]."""

    base: str
    offset: int


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes:
        line: number of its line, for messages.
        text: as written.
        opcode: its dotted words, such as ``("fma", "rn", "f64")``.
        operands: names, numbers as written, `Address`es, or tuples of them for braces.
        guard: register of its predicate, if any.
        negated: whether the predicate must be false.
    """

    line: int
    text: str
    opcode: Words
    operands: tuple[str | Address | tuple[str, ...], ...]
    guard: str | None = None
    negated: bool = False


@dataclass(frozen=True)
class Variable:
    """A variable in one of the memories: `size` bytes, `data` if it has initial ones."""

    name: str
    space: str
    align: int
    size: int
    data: bytes | None = None


@dataclass
class Block:
    """Instructions that run one after another; the last one may be a jump.

    Attributes:
        following: blocks that may follow; the one of a taken branch first.
        meeting: the nearest block that all ways from here go through (immediate post-dominator).
        reads: registers read before they are written here.
        writes: registers written here.
    """

    code: list[Instruction] = field(default_factory=list)
    following: list[int] = field(default_factory=list)
    meeting: int = EXIT
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)


@dataclass
class Function:
    """A function with its registers (widths in bits; a predicate has 1) and memories."""

    name: str
    parameters: list[Variable]
    results: list[Variable]
    registers: dict[str, int] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True)
class Program:
    """A module: its functions by name, the one that is a kernel, its tables.

    Attributes:
        most_threads: of a block (.maxntid); 0 if not given.
    """

    functions: dict[str, Function]
    kernel: Function
    tables: list[Variable]
    most_threads: int


@lru_cache(64)
def parse(text: str) -> Program:
    """The program of a module's text.

    Raises:
        PtxError: it has something that the interpreter does not know.
    """
    text = _COMMENT.sub("", text)
    functions, kernels, tables, most, at = {}, [], [], 0, 0
    while (header := _HEADER.search(text, at)) is not None:
        tables += _tables(text[at : header.start()])
        kind, results, name, parameters, directives, opened = header.groups()
        at = header.end()
        if opened == ";":
            continue
        end = text.index("\n}", at)
        line = text.count("\n", 0, at)
        made = Function(name, _variables(parameters), _variables(results or ""))
        _Body(made).read(text[at:end].split("\n"), line)
        functions[name] = made
        if kind == "entry":
            kernels.append(made)
            limit = re.search(r"\.maxntid\s+(\d+)", directives)
            most = int(limit[1]) if limit else 0
        at = end + 2
    if len(kernels) != 1:
        raise PtxError(f"a module needs one kernel, this one has {len(kernels)}")
    return Program(functions, kernels[0], tables + _tables(text[at:]), most)


def type_of(instruction: Instruction, place: int = -1) -> tuple[str, int]:
    """An operand type of the opcode, by default the last: its kind (b, s, u, f, pred) and bits."""
    word = instruction.opcode[place]
    found = _TYPE.match(word)
    if found is None:
        raise unknown(instruction)
    return ("pred", 1) if word == "pred" else (word[0], int(found[2]))


def unknown(instruction: Instruction) -> PtxError:
    """The error that an instruction is not known."""
    name = ".".join(instruction.opcode)
    return PtxError(f"line {instruction.line}: unknown instruction {name}: {instruction.text}")


def _tables(text: str) -> list[Variable]:
    """Variables between functions."""
    found = []
    for statement in text.split(";"):
        words = " ".join(w for w in statement.split("\n") if not _is_directive(w)).strip()
        if words:
            found.append(_variable(words))
    return found


def _is_directive(line: str) -> bool:
    return line.strip().startswith((".version", ".target", ".address_size"))


def _variables(text: str) -> list[Variable]:
    return [_variable(x.strip()) for x in text.split(",") if x.strip()]


def _variable(text: str) -> Variable:
    found = _VARIABLE.match(text)
    if found is None:
        raise PtxError(f"unknown declaration: {text[:100]}")
    space, align, kind, name, count, data = found.groups()
    if not _TYPE.match(kind):
        raise PtxError(f"unknown type .{kind}: {text[:100]}")
    width = int(kind[1:]) // 8
    size = width * int(count or 1)
    if data is None:
        return Variable(name, space, int(align or width), size)
    values = [int(x) for x in data.split(",")]
    content = b"".join(x.to_bytes(width, "little") for x in values)
    return Variable(name, space, int(align or width), size, content.ljust(size, b"\0"))


class _Body:
    """Reads the body of a function."""

    def __init__(self, function: Function):
        self.function = function
        self.scopes: list[dict[str, str]] = []  # names of parameters of a call, by name in the text
        self.calls = 0
        self.labels: dict[str, int] = {}
        self.jumps: list[tuple[int, str | None, bool]] = []  # block, label, may also go on
        self.open = False

    def read(self, lines: list[str], first: int) -> None:
        waiting = ""
        for number, line in enumerate(lines, first + 1):
            waiting = f"{waiting} {line.strip()}".strip()
            if waiting.endswith((";", "{", "}", ":")):
                self._statement(waiting.removesuffix(";").strip(), number)
                waiting = ""
        if waiting:
            raise PtxError(f"line {first + len(lines)}: unfinished: {waiting[:100]}")
        self._link()

    def _statement(self, text: str, line: int) -> None:
        if text == "{":
            self.calls += 1
            self.scopes.append({})
        elif text == "}":
            self.scopes.pop()
        elif text.endswith(":"):
            self.open = False
            self._block()
            self.labels[text[:-1]] = len(self.function.blocks) - 1
        elif text.startswith("."):
            self._declare(text, line)
        else:
            self._add(text, line)

    def _declare(self, text: str, line: int) -> None:
        found = _REGISTER.match(text)
        if found is not None:
            kind, name, count = found.groups()
            if not _TYPE.match(kind):
                raise PtxError(f"line {line}: unknown registers: {text}")
            width = 1 if kind == "pred" else int(kind[1:])
            names = [f"{name}{k}" for k in range(int(count))] if count else [name]
            self.function.registers.update(dict.fromkeys(names, width))
            return
        made = _variable(" ".join(text.split()))
        if self.scopes:
            name = f"{made.name}#{self.calls}"
            self.scopes[-1][made.name] = name
            made = Variable(name, made.space, made.align, made.size)
        self.function.variables.append(made)

    def _block(self) -> Block:
        """The block that is being filled; a new one after a jump or at a label."""
        if not self.open:
            self.function.blocks.append(Block())
            self.open = True
        return self.function.blocks[-1]

    def _add(self, text: str, line: int) -> None:
        found = _INSTRUCTION.match(text)
        if found is None:
            raise PtxError(f"line {line}: not an instruction: {text}")
        negated, guard, opcode, rest = found.groups()
        operands = tuple(self._operand(x.strip()) for x in _SPLIT.split(rest) if x.strip())
        words = tuple(opcode.split("."))
        made = Instruction(line, text, words, operands, guard, bool(negated))
        if guard and words[0] != "bra":
            raise PtxError(f"line {line}: unknown: a predicate on {opcode}: {text}")
        self._block().code.append(made)
        if words[0] in ("bra", "ret"):
            label = str(operands[0]) if words[0] == "bra" else None
            self.jumps.append((len(self.function.blocks) - 1, label, bool(guard)))
            self.open = False

    def _operand(self, text: str) -> str | Address | tuple[str, ...]:
        if text[0] in "{(":
            return tuple(self._name(x.strip()) for x in text[1:-1].split(","))
        if text[0] == "[":
            found = _ADDRESS.match(text)
            if found is None:
                raise PtxError(f"unknown address {text}")
            return Address(self._name(found[1]), int(found[2] or 0))
        return self._name(text)

    def _name(self, text: str) -> str:
        return self.scopes[-1].get(text, text) if self.scopes and _WORD.match(text) else text

    def _link(self) -> None:
        """Set what follows and what is read and written in each block."""
        blocks = self.function.blocks
        for k, block in enumerate(blocks):
            block.following = [self._ended(k + 1 if k + 1 < len(blocks) else EXIT)]
        for k, label, goes_on in self.jumps:
            target = EXIT if label is None else self._target(label)
            blocks[k].following = [target, *blocks[k].following] if goes_on else [target]
        for block, meeting in zip(blocks, _meetings(blocks), strict=True):
            block.meeting = meeting
            _note_registers(block)

    def _target(self, label: str) -> int:
        if label not in self.labels:
            raise PtxError(f"{self.function.name}: there is no label {label}")
        return self._ended(self.labels[label])

    def _ended(self, k: int) -> int:
        """A block, or `EXIT` if it only returns: whoever goes there is done."""
        if k == EXIT:
            return k
        code = self.function.blocks[k].code
        return EXIT if len(code) == 1 and code[0].opcode[0] == "ret" else k


def _meetings(blocks: list[Block]) -> list[int]:
    """Immediate post-dominators: of all that every way goes through, the one with the most."""
    end, everything = len(blocks), (1 << (len(blocks) + 1)) - 1
    ways = [everything] * len(blocks) + [1 << end]
    changed = True
    while changed:
        changed = False
        for k in reversed(range(len(blocks))):
            common = everything
            for following in blocks[k].following:
                common &= ways[end if following == EXIT else following]
            common |= 1 << k
            changed |= common != ways[k]
            ways[k] = common
    found = []
    for k in range(len(blocks)):
        others = [j for j in range(end + 1) if j != k and ways[k] >> j & 1]
        nearest = max(others, key=lambda j: ways[j].bit_count(), default=end)
        found.append(EXIT if nearest == end else nearest)
    return found


def _note_registers(block: Block) -> None:
    reads, writes = dict[str, None](), dict[str, None]()
    for x in block.code:
        used, made = registers(x)
        reads.update(dict.fromkeys(n for n in used if n not in writes))
        writes.update(dict.fromkeys(made))
    block.reads, block.writes = list(reads), list(writes)


def registers(x: Instruction) -> tuple[list[str], list[str]]:
    """The registers that an instruction reads, and those that it writes."""
    reads = [x.guard] if x.guard else []
    writes: list[str] = []
    if x.opcode[0] in ("bra", "ret", "call"):
        return reads, writes
    stores = x.opcode[0] == "st"
    for k, operand in enumerate(x.operands):
        names = operand if isinstance(operand, tuple) else (operand,)
        for name in names:
            if isinstance(name, Address):
                reads += [name.base] if name.base[0] == "%" else []
            elif name[0] == "%" and "." not in name:
                (writes if k == 0 and not stores else reads).append(name)
    return reads, writes
