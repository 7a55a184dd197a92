"""What the instructions of PTX do: for each of them a step, made once for a launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import ptx_arithmetic as arithmetic
from ptx_text import Address, Instruction, PtxError, type_of, unknown

if TYPE_CHECKING:
    from ptx_interpreter import Frame, Group
    from ptx_memory import Region
    from ptx_text import Variable

Array = np.ndarray
Step = Callable[["Group"], None]
Maker = Callable[["Frame", Instruction], Step]
_CACHING = {"ca", "cg", "cs", "lu", "wb", "wt"}


def plain(
    frame: Frame,
    x: Instruction,
    operation: Callable[..., object],
    ins: Sequence[Array],
    kind: str,
    bits: int,
) -> Step:
    """The step that writes an operation's values to the first operand."""
    out = frame.row(x, x.operands[0], kind, bits)
    part = frame.launch.temporary(out.dtype)

    def step(group: Group) -> None:
        if group.some:
            operation(*ins, part)
            np.copyto(out, part, where=group.mask)
        else:
            operation(*ins, out)

    return step


def copy(value: Array, out: Array) -> None:
    out[:] = value


def number_of(x: Instruction, count: int) -> None:
    """Check the number of operands."""
    if len(x.operands) != count:
        raise unknown(x)


def _arithmetic(frame: Frame, x: Instruction) -> Step:
    """Operations whose operands and result have one type."""
    kind, bits = type_of(x)
    integers = arithmetic.INTEGER if kind in ("u", "s") else arithmetic.LOGIC
    table = arithmetic.FLOAT if kind == "f" else integers
    operation = table.get(".".join(x.opcode[:-1]))
    if operation is None:
        raise unknown(x)
    ins = [frame.value(x, y, kind, bits) for y in x.operands[1:]]
    return plain(frame, x, operation, ins, kind, bits)


def _sum(frame: Frame, x: Instruction) -> Step:
    """Sums and differences, perhaps with a carry."""
    head, *words = x.opcode
    if head in ("add", "sub") and words[:-1] != ["cc"]:
        return _arithmetic(frame, x)
    number_of(x, 3)
    kind, bits = type_of(x)
    if kind == "f" or words[:-1] not in ([], ["cc"]):
        raise unknown(x)
    a, b = (frame.value(x, y, "u", bits) for y in x.operands[1:])
    out, carry, sets = frame.row(x, x.operands[0], "u", bits), frame.carry, words[0] == "cc"
    takes = head in ("addc", "subc")
    combine = arithmetic.add_carrying if head[:3] == "add" else arithmetic.subtract_borrowing

    def step(group: Group) -> None:
        given = carry if takes else np.zeros(len(carry), bool)
        found, over = combine(a, b, given)
        np.copyto(out, found, where=group.mask)
        if sets:
            np.copyto(carry, over, where=group.mask)

    return step


def _product(frame: Frame, x: Instruction) -> Step:
    """Products and fused ones of integers, and of floats by `_arithmetic`."""
    kind, bits = type_of(x)
    word = x.opcode[1]
    if word == "hi" and x.opcode[0] == "mul" and kind in ("u", "s") and len(x.opcode) == 3:
        a, b = (frame.value(x, y, kind, bits) for y in x.operands[1:])
        return plain(frame, x, arithmetic.high_product, (a, b), kind, bits)
    if word == "wide" and kind in ("u", "s") and len(x.opcode) == 3:
        ins = [frame.value(x, y, kind, bits) for y in x.operands[1:3]]
        if x.opcode[0] == "mul":
            return plain(frame, x, arithmetic.wide_product, ins, kind, 2 * bits)
        ins.append(frame.value(x, x.operands[3], kind, 2 * bits))
        return plain(frame, x, arithmetic.wide_multiply_add, ins, kind, 2 * bits)
    return _arithmetic(frame, x)


def _fused(frame: Frame, x: Instruction) -> Step:
    kind, bits = type_of(x)
    if x.opcode[1:-1] != ("rn",) or kind != "f":
        raise unknown(x)
    number_of(x, 4)
    out = frame.row(x, x.operands[0], kind, bits)
    part = frame.launch.temporary(out.dtype)
    ins = [frame.value(x, y, kind, bits) for y in x.operands[1:]]
    a, b, c = (y.ctypes.data for y in ins)
    to_out, to_part, count = out.ctypes.data, part.ctypes.data, len(out)
    call = arithmetic.fused(bits)

    def step(group: Group) -> None:
        if group.some:
            call(a, b, c, to_part, count)
            np.copyto(out, part, where=group.mask)
        else:
            call(a, b, c, to_out, count)

    return step


def _shift(frame: Frame, x: Instruction) -> Step:
    number_of(x, 3)
    kind, bits = type_of(x)
    left = x.opcode[0] == "shl"
    if len(x.opcode) != 2 or kind not in ("b" if left else "bsu"):
        raise unknown(x)
    ins = frame.value(x, x.operands[1], kind, bits), frame.value(x, x.operands[2], "u", 32)
    way = np.left_shift if left else np.right_shift
    return plain(frame, x, arithmetic.shift(way), ins, kind, bits)


def _funnel(frame: Frame, x: Instruction) -> Step:
    number_of(x, 4)
    ways = {"l": arithmetic.funnel, "r": arithmetic.funnel_right}
    if x.opcode[2:] != ("wrap", "b32") or x.opcode[1] not in ways:
        raise unknown(x)
    ins = [frame.value(x, y, "b", 32) for y in x.operands[1:]]
    return plain(frame, x, ways[x.opcode[1]], ins, "b", 32)


def _compare(frame: Frame, x: Instruction) -> Step:
    number_of(x, 3)
    kind, bits = type_of(x)
    table = arithmetic.COMPARE_FLOATS if kind == "f" else arithmetic.COMPARE_INTEGERS
    operation = table.get(x.opcode[1])
    signless = kind == "b" and x.opcode[1] not in ("eq", "ne")
    if len(x.opcode) != 3 or operation is None or signless:
        raise unknown(x)
    ins = [frame.value(x, y, kind, bits) for y in x.operands[1:]]
    return plain(frame, x, operation, ins, "pred", 1)


def _select(frame: Frame, x: Instruction) -> Step:
    number_of(x, 4)
    kind, bits = type_of(x)
    if len(x.opcode) != 2:
        raise unknown(x)
    a, b = (frame.value(x, y, kind, bits) for y in x.operands[1:3])
    chosen = frame.value(x, x.operands[3], "pred", 1)

    def select(out: Array) -> None:
        out[:] = np.where(chosen, a, b)

    return plain(frame, x, select, (), kind, bits)


def _move(frame: Frame, x: Instruction) -> Step:
    number_of(x, 2)
    kind, bits = type_of(x)
    if len(x.opcode) != 2:
        raise unknown(x)
    target, source = x.operands
    if isinstance(source, tuple):
        parts = [frame.value(x, y, "b", bits // len(source)) for y in source]
        return plain(frame, x, _joined(parts), (), "b", bits)
    if isinstance(target, tuple):
        return _parted(frame, x, frame.value(x, source, "b", bits), target)
    return plain(frame, x, copy, [frame.value(x, source, kind, bits)], kind, bits)


def _joined(parts: list[Array]) -> Callable[[Array], None]:
    """Registers put together, the lowest bits first."""
    width = 8 * parts[0].itemsize

    def join(out: Array) -> None:
        found = np.zeros_like(out)
        for k, part in enumerate(parts):
            found |= part.astype(out.dtype) << out.dtype.type(k * width)
        out[:] = found

    return join


def _parted(frame: Frame, x: Instruction, source: Array, target: tuple[str, ...]) -> Step:
    width = 8 * source.itemsize // len(target)
    outs = [frame.row(x, name, "b", width) for name in target]

    def step(group: Group) -> None:
        given = source.copy()
        for k, out in enumerate(outs):
            part = (given >> given.dtype.type(k * width)).astype(out.dtype)
            np.copyto(out, part, where=group.mask)

    return step


def _convert(frame: Frame, x: Instruction) -> Step:
    number_of(x, 2)
    (to, to_bits), (of, of_bits) = type_of(x, -2), type_of(x, -1)
    convert = _conversion(x, (to, to_bits), (of, of_bits))
    source, target = (_register_bits(frame, x, x.operands[k]) for k in (1, 0))
    if source < of_bits or target < to_bits:
        raise unknown(x)
    given = frame.value(x, x.operands[1], "b" if source > of_bits else of, source)
    narrow = arithmetic.dtype("u", of_bits) if source > of_bits else None

    def apply(out: Array) -> None:
        value = (
            given if narrow is None else given.astype(narrow).view(arithmetic.dtype(of, of_bits))
        )
        out[:] = convert(value)

    return plain(frame, x, apply, (), to, target)


def _register_bits(frame: Frame, x: Instruction, name: object) -> int:
    """The width of a register; integers are extended to it."""
    if not isinstance(name, str) or name not in frame.function.registers:
        raise unknown(x)
    return frame.function.registers[name]


def _conversion(
    x: Instruction, to: tuple[str, int], of: tuple[str, int]
) -> Callable[[Array], Array]:
    rounding, target = ".".join(x.opcode[1:-2]), arithmetic.dtype(*to)
    floats = (of[0] == "f", to[0] == "f")
    exact = {(False, False): "", (False, True): "rn", (True, True): "" if to[1] > of[1] else "rn"}
    if exact.get(floats) == rounding and (to != of or floats == (False, False)):
        return lambda value: value.astype(target)
    if rounding in arithmetic.ROUND and floats == (True, False):
        return arithmetic.to_integer(rounding, target)
    if rounding in arithmetic.ROUND and floats == (True, True) and to == of:
        return arithmetic.ROUND[rounding]
    raise unknown(x)


# Memory


def _access(x: Instruction) -> tuple[str, bool, str, int, int]:
    """Of a load or store: the memory, whether it is fixed, kind, bytes and number of values."""
    kind, bits = type_of(x)
    space, *words = x.opcode[1:-1] or ("",)
    vectors = [w for w in words if w in ("v2", "v4")]
    if space not in ("global", "local", "param", "const") or kind == "pred":
        raise unknown(x)
    if [w for w in words if w not in ("nc", *vectors) and w not in _CACHING] or len(vectors) > 1:
        raise unknown(x)
    return space, "nc" in words, kind, bits // 8, int(vectors[0][1]) if vectors else 1


def _values(x: Instruction, operand: object, count: int) -> tuple[str, ...]:
    if isinstance(operand, str):
        operand = (operand,)
    if not isinstance(operand, tuple) or len(operand) != count:
        raise unknown(x)
    return operand


def _addresses(frame: Frame, x: Instruction, operand: object) -> Callable[[Group], Array]:
    if not isinstance(operand, Address):
        raise unknown(x)
    base, offset = frame.value(x, operand.base, "u", 64), np.uint64(operand.offset % (1 << 64))
    return lambda group: base[group.ids] + offset


def _load(frame: Frame, x: Instruction) -> Step:
    number_of(x, 2)
    space, fixed, kind, size, count = _access(x)
    memory, addresses = frame.memory(x, space), _addresses(frame, x, x.operands[1])
    names = _values(x, x.operands[0], count)
    signed = "s" if kind == "s" else "u"
    outs = [frame.row(x, n, signed, _register_bits(frame, x, n)) for n in names]
    if outs[0].itemsize < size:
        raise unknown(x)
    read_as = arithmetic.dtype(signed, 8 * size)

    def step(group: Group) -> None:
        at = addresses(group)
        found = memory.read(at, group.ids, size, count, fixed=fixed)
        for out, values in zip(outs, found, strict=True):
            out[group.ids] = values.view(read_as)

    return step


def _store(frame: Frame, x: Instruction) -> Step:
    number_of(x, 2)
    space, fixed, _, size, count = _access(x)
    if fixed:
        raise unknown(x)
    memory, addresses = frame.memory(x, space), _addresses(frame, x, x.operands[0])
    wanted = arithmetic.dtype("u", 8 * size)
    rows = []
    for name in _values(x, x.operands[1], count):
        width = frame.function.registers.get(name, 8 * size)
        rows.append(frame.value(x, name, "b", width))
    if rows[0].itemsize < size:
        raise unknown(x)

    def step(group: Group) -> None:
        values = [row[group.ids].astype(wanted) for row in rows]
        memory.write(addresses(group), group.ids, values)

    return step


def _call(frame: Frame, x: Instruction) -> Step:
    """A call: its parameters are copied, the threads run the function, its results are copied."""
    number_of(x, 3)
    results, name, parameters = x.operands
    if x.opcode != ("call", "uni") or not isinstance(name, str):
        raise unknown(x)
    launch = frame.launch
    called = launch.frames.get(name)
    if called is None or not isinstance(results, tuple) or not isinstance(parameters, tuple):
        raise PtxError(f"line {x.line}: there is no function {name}: {x.text}")
    given = _matched(frame, x, parameters, called, called.function.parameters)
    taken = _matched(frame, x, results, called, called.function.results)

    def step(group: Group) -> None:
        called.enter(group)
        for own, its in given:
            its.copy(own, group.ids)
        launch.run(called, group.again())
        for own, its in taken:
            own.copy(its, group.ids)

    return step


def _matched(
    frame: Frame, x: Instruction, own: tuple[str, ...], called: Frame, its: list[Variable]
) -> list[tuple[Region, Region]]:
    """Memory of the caller and of the function, for its parameters or its results."""
    found = [(frame.symbols[a], called.symbols[b.name]) for a, b in zip(own, its, strict=True)]
    if any(a.size != b.size for a, b in found):
        raise PtxError(f"line {x.line}: sizes of parameters differ: {x.text}")
    return found


MAKERS: dict[str, Maker] = {
    **dict.fromkeys(("add", "sub", "addc", "subc"), _sum),
    **dict.fromkeys(("mul", "mad"), _product),
    **dict.fromkeys(("div", "sqrt", "rcp", "rsqrt", "neg", "abs"), _arithmetic),
    **dict.fromkeys(("min", "max", "copysign", "and", "or", "xor", "not"), _arithmetic),
    "fma": _fused, "shl": _shift, "shr": _shift, "shf": _funnel, "setp": _compare,
    "selp": _select, "mov": _move, "cvt": _convert, "ld": _load, "st": _store, "call": _call,
}  # fmt: skip
