"""Graph operations as LLVM instructions, on scalars or vectors."""

from __future__ import annotations

from collections.abc import Callable

from jaxmbd.lanes.codegen import division
from jaxmbd.lanes.codegen.uses import may_invert
from jaxmbd.lanes.codegen.writer import LLVM, Writer
from jaxmbd.lanes.ir.nodes import BYTES, Call, Infix, Intrinsic, Node
from jaxmbd.lanes.ir.table import OPERATIONS


def emit(w: Writer, n: Node) -> str:
    """Write a node's instructions; returns the name of its value."""
    vector = not n.uniform
    entry = OPERATIONS[n.op]
    args = [w.operand(a, vector) for a in n.args]
    llvm = entry.llvm
    if isinstance(llvm, Infix):
        dtype = n.args[0].dtype
        return w.text.let(f"{llvm.word(dtype)} {w.type_of(n, dtype)} {args[0]}, {args[1]}")
    if isinstance(llvm, Intrinsic):
        if w.gpu and n.op == "sqrt":
            return division.square_root(w.text, w.type_of(n), *args)
        return w.text.intrinsic(llvm.name, w.type_of(n), _suffix(w, n), *args)
    if isinstance(llvm, Call):
        return _call(w, n, args, llvm)
    return SPECIAL[n.op](w, n, args)


def _suffix(w: Writer, n: Node) -> str:
    scalar = LLVM[n.dtype]
    if n.uniform:
        return {"double": "f64", "float": "f32"}.get(scalar, scalar)
    return w.text.suffix(scalar)


def _call(w: Writer, n: Node, args: list[str], call: Call) -> str:
    from jaxmbd.lanes.elementary import symbol  # imported late: its tables take time to build

    bits = BYTES[n.dtype] * 8
    # All calls have one width: uniform values are broadcast and computed in every lane.
    vector = w.text.vector(LLVM[n.dtype])
    if n.uniform and w.width > 1:
        args = [w.text.splat(LLVM[n.dtype], a) for a in args]
    given = ", ".join(f"{vector} {a}" for a in args)
    pair = w.uses.pair(n)
    if pair is not None:
        w.functions.add((pair[0], bits))
        ty = f"{{ {vector}, {vector} }}"
        call_it = f"call {ty} {symbol(pair[0], bits, w.width)}({given})"
        both = w.once(("pair", *pair), lambda: w.text.let(call_it))
        name = w.text.let(f"extractvalue {ty} {both}, {call.place}")
    else:
        w.functions.add((n.op, bits))
        name = w.text.let(f"call {vector} {symbol(n.op, bits, w.width)}({given})")
    if n.uniform and w.width > 1:
        return w.text.let(f"extractelement {vector} {name}, i64 0")
    return name


def _div(w: Writer, n: Node, args: list[str]) -> str:
    ty = w.type_of(n)
    if n.dtype[0] == "f":
        free = may_invert(n) and n not in w.uses.exact
        inverse = w.inverse(n.args[1], not n.uniform) if free else None
        if inverse is not None:
            return w.text.let(f"fmul {ty} {args[0]}, {inverse}")
        return w.quotient(ty, *args)
    return _guarded_division(w, n, args, "div", "-1")


def _rem(w: Writer, n: Node, args: list[str]) -> str:
    if n.dtype[0] == "f":
        return _call(w, n, args, Call())
    return _guarded_division(w, n, args, "rem", args[0])


def _guarded_division(w: Writer, n: Node, args: list[str], word: str, at_zero: str) -> str:
    """Integer division or remainder that does not trap by zero or for INT_MIN by −1."""
    t, ty = w.text, w.type_of(n)
    mask = w.type_of(n, "i1")
    signed = n.dtype[0] == "i"
    b = n.args[1]
    instruction = ("s" if signed else "u") + word
    if b.constant and b.data not in (0, -1):
        return t.let(f"{instruction} {ty} {args[0]}, {args[1]}")
    one, zero, minus = (w.constant(k, n.dtype, not n.uniform) for k in (1, 0, -1))
    bad = t.let(f"icmp eq {ty} {args[1]}, {zero}")
    safe = t.let(f"select {mask} {bad}, {ty} {one}, {ty} {args[1]}")
    if signed:
        flip = t.let(f"icmp eq {ty} {args[1]}, {minus}")
        safe = t.let(f"select {mask} {flip}, {ty} {one}, {ty} {safe}")
    result = t.let(f"{instruction} {ty} {args[0]}, {safe}")
    if signed:
        negated = t.let(f"sub {ty} {zero}, {args[0]}") if word == "div" else zero
        result = t.let(f"select {mask} {flip}, {ty} {negated}, {ty} {result}")
    fallback = minus if at_zero == "-1" else at_zero
    return t.let(f"select {mask} {bad}, {ty} {fallback}, {ty} {result}")


def _fma(w: Writer, n: Node, args: list[str]) -> str:
    """±x y ± z; two instructions where the processor has no fused one."""
    ty, (x, y, z) = w.type_of(n), args
    minus_product, minus_addend = n.data
    if minus_product:
        x = w.text.let(f"fneg {ty} {x}")
    if minus_addend:
        z = w.text.let(f"fneg {ty} {z}")
    return w.text.intrinsic("fmuladd", ty, _suffix(w, n), x, y, z)


def _neg(w: Writer, n: Node, args: list[str]) -> str:
    if n.dtype[0] == "f":
        return w.text.let(f"fneg {w.type_of(n)} {args[0]}")
    zero = w.constant(0, n.dtype, not n.uniform)
    return w.text.let(f"sub {w.type_of(n)} {zero}, {args[0]}")


def _not(w: Writer, n: Node, args: list[str]) -> str:
    ones = w.constant(-1 if n.dtype != "i1" else True, n.dtype, not n.uniform)
    return w.text.let(f"xor {w.type_of(n)} {args[0]}, {ones}")


def _select(w: Writer, n: Node, args: list[str]) -> str:
    c = n.args[0]
    mask = "i1" if n.uniform else w.text.vector("i1")
    ty = w.type_of(n)
    return w.text.let(
        f"select {mask} {w.operand(c, not n.uniform)}, {ty} {args[1]}, {ty} {args[2]}"
    )


def _extreme(w: Writer, n: Node, args: list[str]) -> str:
    """Minimum or maximum; NaN if an operand is NaN."""
    t, ty, mask = w.text, w.type_of(n), w.type_of(n, "i1")
    a, b = args
    if n.dtype[0] != "f":
        sign = "u" if n.dtype[0] == "u" or n.dtype == "i1" else "s"
        wins = t.let(f"icmp {sign}{'gt' if n.op == 'max' else 'lt'} {ty} {a}, {b}")
        return t.let(f"select {mask} {wins}, {ty} {a}, {ty} {b}")
    wins = t.let(f"fcmp {'ogt' if n.op == 'max' else 'olt'} {ty} {a}, {b}")
    best = t.let(f"select {mask} {wins}, {ty} {a}, {ty} {b}")
    if n.args[0].constant:
        return best
    nan = t.let(f"fcmp uno {ty} {a}, {a}")
    return t.let(f"select {mask} {nan}, {ty} {a}, {ty} {best}")


def _convert(w: Writer, n: Node, args: list[str]) -> str:
    source, target = n.args[0].dtype, n.dtype
    a, b = w.type_of(n, source), w.type_of(n)
    x = args[0]
    if source[0] == "f" and target[0] == "f":
        return w.text.let(f"{'fpext' if target == 'f64' else 'fptrunc'} {a} {x} to {b}")
    if source[0] == "f":
        kind = "fptosi" if target[0] == "i" else "fptoui"
        name = f"@llvm.{kind}.sat.{_word(b)}.{_word(a)}"
        w.text.declared.add(f"declare {b} {name}({a})")
        return w.text.let(f"call {b} {name}({a} {x})")
    signed = source[0] == "i" and source != "i1"
    if target[0] == "f":
        return w.text.let(f"{'sitofp' if signed else 'uitofp'} {a} {x} to {b}")
    if source == target or LLVM[source] == LLVM[target]:
        return x
    if BYTES[target] < BYTES[source] and source != "i1":
        return w.text.let(f"trunc {a} {x} to {b}")
    return w.text.let(f"{'sext' if signed else 'zext'} {a} {x} to {b}")


def _word(ty: str) -> str:
    """A type's name in intrinsics."""
    if ty[0] != "<":
        return {"double": "f64", "float": "f32"}.get(ty, ty)
    count, scalar = ty[1:-1].split(" x ")
    return f"v{count}{_word(scalar)}"


def _bitcast(w: Writer, n: Node, args: list[str]) -> str:
    return w.text.let(f"bitcast {w.type_of(n, n.args[0].dtype)} {args[0]} to {w.type_of(n)}")


def _shift(w: Writer, n: Node, args: list[str]) -> str:
    """Shifts; by the bit width or more they give zero (ashr: the sign)."""
    t, ty, mask = w.text, w.type_of(n), w.type_of(n, "i1")
    bits = BYTES[n.dtype] * 8
    last, zero = (w.constant(k, n.dtype, not n.uniform) for k in (bits - 1, 0))
    far = t.let(f"icmp ugt {ty} {args[1]}, {last}")
    amount = t.let(f"select {mask} {far}, {ty} {last}, {ty} {args[1]}")
    result = t.let(f"{n.op} {ty} {args[0]}, {amount}")
    if n.op == "ashr":
        return result
    return t.let(f"select {mask} {far}, {ty} {zero}, {ty} {result}")


SPECIAL: dict[str, Callable[[Writer, Node, list[str]], str]] = {
    "fma": _fma, "div": _div, "rem": _rem, "neg": _neg, "not": _not, "select": _select,
    "min": _extreme, "max": _extreme, "convert": _convert, "bitcast": _bitcast, "shl": _shift,
    "lshr": _shift, "ashr": _shift,
}  # fmt: skip
"""Code generators of operations that are neither one instruction nor one call."""
