"""Quotients and square roots of a GPU's thread, without branches.

NVIDIA's own end in a branch to code for extreme operands. The branch is hardly ever taken, but no
instruction is moved over it, and a thread waits some hundred cycles for each quotient. Here the
usual steps are taken for all operands, and where they give NaN, a product with the approximate
reciprocal stands in, which is right where an operand is zero, infinite or NaN.

A reciprocal r of b, correct to half an ulp, makes of a quotient's approximation ``q = a r`` the
correctly rounded ``q + r (a - b q)`` (Markstein 1990), and likewise of a root's. Where b is above
2**1022 (2**126 in single precision), r is subnormal and the quotient zero.
"""

from __future__ import annotations

from jaxmbd.lanes.codegen.text import Text

_APPROXIMATE = {
    "double": ("rcp.approx.ftz.d", "rsqrt.approx.ftz.d"),
    "float": ("rcp.approx.ftz.f", "rsqrt.approx.ftz.f"),
}
"""NVIDIA's approximate 1/b and 1/sqrt(a), of 20 correct bits at least."""


def quotient(t: Text, ty: str, a: str, b: str) -> str:
    """Write a / b; returns its name."""
    start = _approximate(t, ty, 0, b)
    minus = t.let(f"fneg {ty} {b}")
    e = _fma(t, ty, minus, start, "1.0")  # 1/b = r / (1 - e), where e = 1 - b r
    if ty == "float":
        r = _fma(t, ty, start, e, start)
    else:
        r = _fma(t, ty, start, _fma(t, ty, e, e, e), start)
        r = _fma(t, ty, r, _fma(t, ty, minus, r, "1.0"), r)
    q = t.let(f"fmul {ty} {a}, {r}")
    q = _fma(t, ty, _fma(t, ty, minus, q, a), r, q)
    return _unless_nan(t, ty, q, t.let(f"fmul {ty} {a}, {start}"))


def square_root(t: Text, ty: str, a: str) -> str:
    """Write sqrt(a); returns its name."""
    start = _approximate(t, ty, 1, a)
    s = t.let(f"fmul {ty} {a}, {start}")
    h = t.let(f"fmul {ty} {start}, 0.5")
    for _ in range(2 if ty == "double" else 1):  # Goldschmidt: s to sqrt(a), h to 1/(2 sqrt(a))
        e = _fma(t, ty, t.let(f"fneg {ty} {h}"), s, "0.5")
        s, h = _fma(t, ty, s, e, s), _fma(t, ty, h, e, h)
    rest = _fma(t, ty, t.let(f"fneg {ty} {s}"), s, a)
    s = _fma(t, ty, rest, h, s)
    return _unless_nan(t, ty, s, _unless_negative(t, ty, a))


def _approximate(t: Text, ty: str, which: int, x: str) -> str:
    name = f"@llvm.nvvm.{_APPROXIMATE[ty][which]}"
    t.declared.add(f"declare {ty} {name}({ty})")
    return t.let(f"call {ty} {name}({ty} {x})")


def _fma(t: Text, ty: str, x: str, y: str, z: str) -> str:
    return t.intrinsic("fma", ty, t.suffix(ty), x, y, z)


def _unless_nan(t: Text, ty: str, x: str, other: str) -> str:
    fine = t.let(f"fcmp ord {ty} {x}, {x}")
    return t.let(f"select i1 {fine}, {ty} {x}, {ty} {other}")


def _unless_negative(t: Text, ty: str, a: str) -> str:
    """The root of zero and infinity, which it is itself; NaN below zero."""
    fine = t.let(f"fcmp oge {ty} {a}, 0.0")
    return t.let(f"select i1 {fine}, {ty} {a}, {ty} 0x7FF8000000000000")
