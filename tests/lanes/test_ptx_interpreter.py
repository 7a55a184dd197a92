"""The interpreter of PTX that `test_ptx` relies on: arithmetic, branches, and what it finds."""

from fractions import Fraction
from typing import Any

import numpy as np
import ptx_arithmetic as arithmetic
import pytest
from ptx_interpreter import launch
from ptx_memory import Memory
from ptx_text import PtxError, parse

COUNT, BLOCK = 24, 8
NAN = np.nan

MODULE = """
.version 7.8
.target sm_90
.address_size 64
.global .align 8 .b8 table[16] = {{1, 0, 0, 0, 0, 0, 0, 0, 2}};
.visible .entry kernel(
	.param .u64 .ptr .global .align 1 x,
	.param .u64 .ptr .global .align 1 y,
	.param .u64 .ptr .global .align 1 z
)
.maxntid 64
{{
	.local .align 8 .b8 	depot[16];
	.reg .pred 	%p<9>;
	.reg .b16 	%rs<9>;
	.reg .b32 	%r<20>;
	.reg .b64 	%rd<20>;

	mov.u32 	%r1, %tid.x; // its place
	mov.u32 	%r2, %ctaid.x;
	mov.u32 	%r3, %ntid.x;
	mad.lo.s32 	%r4, %r2, %r3, %r1;
	mul.wide.u32 	%rd4, %r4, 8;
	ld.param.b64 	%rd5, [x];
	add.s64 	%rd6, %rd5, %rd4;
	ld.global.nc.b64 	%rd1, [%rd6];
	ld.param.b64 	%rd5, [y];
	add.s64 	%rd6, %rd5, %rd4;
	ld.global.nc.b64 	%rd2, [%rd6];
	ld.param.b64 	%rd5, [z];
	add.s64 	%rd7, %rd5, %rd4;
{body}
	st.global.b64 	[%rd7], %rd3;
$END:
	ret;

}}
{functions}
"""


def execute(body: Any, x: Any = 0, y: Any = 0, *, functions="", grid=COUNT // BLOCK, block=BLOCK):
    """Run a kernel that makes %rd3 of %rd1 and %rd2, from x and y, in each thread.

    The body is text, or a list of instructions and labels.
    """
    if not isinstance(body, str):
        body = "\n".join(line if line.endswith(":") else f"\t{line};" for line in body)
    device, z = Memory(), np.zeros(COUNT, np.uint64)
    x, y = (np.broadcast_to(v, COUNT).astype(np.asarray(v).dtype).view("u8") for v in (x, y))
    given = [(name, v.copy(), name != "z") for name, v in (("x", x), ("y", y), ("z", z))]
    regions = [device.place(n, v.view(np.uint8), fixed=f) for n, v, f in given]
    values = [r.address.to_bytes(8, "little") for r in regions]
    program = parse(MODULE.format(body=body, functions=functions))
    counts = launch(program, grid, block, values, device)
    return regions[2].content.view(np.uint64), counts


# Fused products and sums


def rounded(value: Fraction, kind) -> float:
    """The float nearest to an exact number; ties go to the even one."""
    if not value:
        return 0.0
    info = np.finfo(kind)
    digits, least = info.nmant + 1, int(info.minexp) - info.nmant
    size = abs(value)
    top = size.numerator.bit_length() - size.denominator.bit_length()
    top -= size < Fraction(2) ** top
    exponent = max(top - digits + 1, least)
    whole = round(size / Fraction(2) ** exponent)
    found = np.inf if whole * Fraction(2) ** exponent > Fraction(float(info.max)) else None
    found = float(whole * Fraction(2) ** exponent) if found is None else found
    return found if value > 0 else -found


def operands(kind, rng, count):
    """Numbers of all sizes; products near sums, ties, subnormal numbers, overflow."""
    info = np.finfo(kind)

    def drawn(low, high):
        size = np.ldexp(rng.uniform(1, 2, count), rng.integers(low, high, count))
        return (rng.choice([-1, 1], count) * size).astype(kind)

    half = info.nmant // 2
    few = rng.integers(1, 1 << half, (2, count)).astype(kind)  # products are exact
    tie = np.ldexp(few[0] * few[1], -info.nmant - 1).astype(kind)
    a, b = drawn(-2, 2), drawn(-2, 2)
    yield a, b, drawn(-4, 4)
    yield a, b, -(a * b)
    yield a, b, np.ldexp(drawn(0, 1), info.nmant + 1).astype(kind)
    yield few[0], np.ldexp(few[1], -info.nmant - 1).astype(kind), drawn(0, half)
    yield np.full(count, 0.5, kind), np.full(count, 1, kind), np.ldexp(few[0], half) + 1
    yield tie, np.ones(count, kind), np.round(drawn(0, half))
    small = drawn(info.minexp // 2 - half, info.minexp // 2 + 2)
    yield small, small[::-1].copy(), drawn(info.minexp, info.minexp + 4)
    yield small, small[::-1].copy(), np.ldexp(drawn(0, 1), info.minexp - half).astype(kind)
    yield drawn(info.maxexp // 2, info.maxexp // 2 + 1), drawn(0, info.maxexp // 2), drawn(0, 9)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_fused_products_are_rounded_once(kind):
    rng, twice = np.random.default_rng(0), 0
    for a, b, c in operands(kind, rng, 300):
        found = arithmetic.fma(a, b, c)
        exact = [
            Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
            for x, y, z in zip(a, b, c, strict=True)
        ]
        expected = np.array([rounded(v, kind) for v in exact], kind)
        np.testing.assert_array_equal(found, expected)
        with np.errstate(all="ignore"):
            twice += np.count_nonzero(a * b + c != expected)
    assert twice > 400  # so many differ from a product and a sum


def test_fused_products_of_what_is_no_number():
    triples = (np.inf, np.inf, 1.0), (0.0, 1.0, np.nan), (1.0, -np.inf, 1.0), (-0.0, 1.0, -0.0)
    found = arithmetic.fma(*np.array(triples).T)
    np.testing.assert_array_equal(found, [np.inf, NAN, -np.inf, -0.0])
    assert np.signbit(found[3])


# Instructions

BITS = np.random.default_rng(1).integers(0, 1 << 64, (2, COUNT), np.uint64)
SIGNED = BITS.view(np.int64)
MASK = (1 << 64) - 1


def of_integers(fn, signed=False):
    """A function of Python's integers, of both operands in all threads, modulo 2**64."""
    x, y = (SIGNED if signed else BITS).tolist()
    return np.array([fn(a, b) & MASK for a, b in zip(x, y, strict=True)], np.uint64)


def low(x):
    return x & 0xFFFF_FFFF


def signed(x, bits):
    x &= (1 << bits) - 1
    return x - (x >> (bits - 1) << bits)


WORDS = ("mov.b64 {%r5, %r6}, %rd1", "mov.b64 {%r7, %r8}, %rd2")
INTEGERS = {
    "high product": (["mul.hi.u64 %rd3, %rd1, %rd2"], lambda a, b: a * b >> 64),
    "product": (["mul.lo.s64 %rd3, %rd1, %rd2"], lambda a, b: a * b),
    "wide": ([*WORDS, "mul.wide.u32 %rd3, %r5, %r7"], lambda a, b: low(a) * low(b)),
    "mad": (["mad.lo.s64 %rd3, %rd1, %rd2, -7"], lambda a, b: a * b - 7),
    "shift": ([*WORDS, "shl.b64 %rd3, %rd2, %r5"], lambda a, b: b << low(a) if low(a) < 64 else 0),
    "shift by 64": (["shr.u64 %rd3, %rd1, 64"], lambda a, b: 0),
    "logic": (["xor.b64 %rd4, %rd1, %rd2", "not.b64 %rd3, %rd4"], lambda a, b: ~(a ^ b)),
    "funnel": (
        [*WORDS, "shf.l.wrap.b32 %r9, %r5, %r6, 37", "cvt.u64.u32 %rd3, %r9"],
        lambda a, b: low((a << 5) >> 32),
    ),
    "funnel to the right": (
        [*WORDS, "shf.r.wrap.b32 %r9, %r5, %r6, 37", "cvt.u64.u32 %rd3, %r9"],
        lambda a, b: low(a >> 5),
    ),
    "carry": (
        ["add.cc.s64 %rd4, %rd1, %rd2", "addc.cc.s64 %rd3, %rd1, 0"],
        lambda a, b: a + (a + b >> 64),
    ),
    "carry after a carry": (
        ["add.cc.s64 %rd4, %rd1, %rd2", "addc.cc.s64 %rd5, -1, 0", "addc.s64 %rd3, 0, 0"],
        lambda a, b: a + b >> 64,
    ),
    "borrow": (
        ["sub.cc.s64 %rd4, %rd1, %rd2", "subc.cc.s64 %rd3, %rd1, 0"],
        lambda a, b: a - (a < b),
    ),
    "bytes": (
        ["cvt.u16.u64 %rs1, %rd1", "cvt.s64.s8 %rd3, %rs1"],
        lambda a, b: signed(a, 8),
    ),
    "joined": ([*WORDS, "mov.b64 %rd3, {%r6, %r7}"], lambda a, b: (a >> 32) | low(b) << 32),
}  # fmt: skip
SIGNED_INTEGERS = {
    "high product": (["mul.hi.s64 %rd3, %rd1, %rd2"], lambda a, b: a * b >> 64),
    "high product of words": (
        [*WORDS, "mul.hi.s32 %r9, %r5, %r7", "cvt.s64.s32 %rd3, %r9"],
        lambda a, b: signed(a, 32) * signed(b, 32) >> 32,
    ),
    "shift": (["shr.s64 %rd3, %rd1, 9"], lambda a, b: a >> 9),
    "shift of all": (["shr.s64 %rd3, %rd1, 70"], lambda a, b: a >> 63),
    "less": (
        ["setp.lt.s64 %p1, %rd1, %rd2", "selp.b64 %rd3, 5, -5, %p1"],
        lambda a, b: 5 if a < b else -5,
    ),
    "smaller": (["min.s64 %rd3, %rd1, %rd2"], min),
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    body, fn = INTEGERS[name]
    np.testing.assert_array_equal(execute(body, *BITS)[0], of_integers(fn))


@pytest.mark.parametrize("name", SIGNED_INTEGERS)
def test_signed_integers(name):
    body, fn = SIGNED_INTEGERS[name]
    np.testing.assert_array_equal(execute(body, *BITS)[0], of_integers(fn, signed=True))


@pytest.mark.parametrize(
    ("op", "less", "equal", "more", "unordered"),
    [
        ("eq", 0, 1, 0, 0), ("ne", 1, 0, 1, 0), ("lt", 1, 0, 0, 0), ("le", 1, 1, 0, 0),
        ("gt", 0, 0, 1, 0), ("ge", 0, 1, 1, 0), ("equ", 0, 1, 0, 1), ("neu", 1, 0, 1, 1),
        ("ltu", 1, 0, 0, 1), ("leu", 1, 1, 0, 1), ("gtu", 0, 0, 1, 1), ("geu", 0, 1, 1, 1),
        ("num", 1, 1, 1, 0), ("nan", 0, 0, 0, 1),
    ],
)  # fmt: skip
def test_comparisons(op, less, equal, more, unordered):
    x, y = (
        np.resize(v, COUNT)
        for v in ([1.0, 2.0, 3.0, NAN, 2.0, NAN], [2.0, 2.0, 2.0, 2.0, NAN, NAN])
    )
    found, _ = execute([f"setp.{op}.f64 %p1, %rd1, %rd2", "selp.b64 %rd3, 1, 0, %p1"], x, y)
    wanted = [less, equal, more, unordered, unordered, unordered]
    np.testing.assert_array_equal(found, np.resize(wanted, COUNT))


@pytest.mark.parametrize(
    ("code", "x", "y", "wanted"),
    [
        ("min.f64 %rd3, %rd1, %rd2", 0.0, -0.0, -0.0), ("max.f64 %rd3, %rd1, %rd2", -0.0, 0.0, 0.0),
        ("min.f64 %rd3, %rd1, %rd2", NAN, 2.0, 2.0), ("max.f64 %rd3, %rd1, %rd2", 1.0, NAN, 1.0),
        ("copysign.f64 %rd3, %rd1, %rd2", -1.0, 3.0, -3.0),
        ("cvt.rni.f64.f64 %rd3, %rd1", 2.5, 0.0, 2.0),
        ("cvt.rzi.f64.f64 %rd3, %rd1", -2.5, 0.0, -2.0),
        ("rcp.rn.f64 %rd3, %rd1", 3.0, 0.0, 1 / 3), ("sqrt.rn.f64 %rd3, %rd1", 2.0, 0.0, 2**0.5),
    ],
)  # fmt: skip
def test_floats(code, x, y, wanted):
    found, _ = execute([code], x, y)
    np.testing.assert_array_equal(found, np.full(COUNT, wanted).view(np.uint64))


@pytest.mark.parametrize(
    ("x", "wanted"),
    [
        (2.9, 2), (-2.9, -2), (1e300, 2**63 - 1), (2.0**63, 2**63 - 1), (-np.inf, -(2**63)),
        (NAN, -(2**63)), (2.0**62, 2**62),
    ],
)  # fmt: skip
def test_conversions_to_integers_are_saturated(x, wanted):
    found, _ = execute(["cvt.rzi.s64.f64 %rd3, %rd1"], x)
    assert found.view(np.int64).tolist() == [wanted] * COUNT


def test_single_precision():
    body = [
        "cvt.rn.f32.f64 %r5, %rd1", "add.rn.f32 %r6, %r5, 0f3DCCCCCD",
        "mul.rn.f32 %r7, %r6, %r5", "cvt.f64.f32 %rd3, %r7",
    ]  # fmt: skip
    x = np.linspace(0.1, 3.0, COUNT)
    single = x.astype(np.float32)
    wanted = (single + np.float32(0.1)) * single
    np.testing.assert_array_equal(execute(body, x)[0].view(float), wanted.astype(float))


# Branches

LOOP = """
	mov.b64 	%rd3, 0;
	mov.b64 	%rd8, 0;
$NEXT:
	setp.ge.s64 	%p1, %rd8, %rd1;
	@%p1 bra 	$DONE;
	and.b64 	%rd9, %rd8, 1;
	setp.ne.b64 	%p2, %rd9, 0;
	@!%p2 bra 	$EVEN;
	add.s64 	%rd3, %rd3, 100;
	bra.uni 	$JOIN;
$EVEN:
	add.s64 	%rd3, %rd3, %rd8;
$JOIN:
	add.s64 	%rd8, %rd8, 1;
	setp.gt.s64 	%p3, %rd3, %rd2;
	@%p3 bra 	$DONE;
	bra.uni 	$NEXT;
$DONE:"""
FUNCTION = """
.func  (.param .align 8 .b8 value[16]) change(
	.param .b64 given
)
{
	.reg .pred 	%p<2>;
	.reg .b64 	%rd<4>;

	ld.param.b64 	%rd1, [given];
	setp.lt.s64 	%p1, %rd1, 5;
	@%p1 bra 	$SMALL;
	mul.lo.s64 	%rd2, %rd1, 10;
	st.param.v2.b64 	[value], {%rd1, %rd2};
	ret;
$SMALL:
	neg.s64 	%rd3, %rd1;
	st.param.v2.b64 	[value], {%rd3, %rd3};
	ret;

}
"""


CALL = """
	mov.b64 	%rd3, 7;
	setp.eq.s64 	%p1, %rd2, 0;
	@%p1 bra 	$OVER;
	{ // callseq 0, 0
	.param .b64 	first;
	.param .align 8 .b8 	both[16];
	st.param.b64 	[first], %rd1;
	call.uni (both), change, (first);
	ld.param.v2.b64 	{%rd8, %rd9}, [both];
	} // callseq 0
	add.s64 	%rd3, %rd8, %rd9;
$OVER:"""


def test_threads_part_and_meet_again():
    """Loops of as many turns as each thread wants, with a branch and a second way out."""

    def one(turns, most):
        total = 0
        for k in range(turns):
            total += 100 if k % 2 else k
            if total > most:
                break
        return total

    x, y = np.arange(COUNT) % 11, np.where(np.arange(COUNT) % 3, 10_000, 203)
    found, counts = execute(LOOP, x, y)
    assert found.tolist() == [one(*v) for v in zip(x.tolist(), y.tolist(), strict=True)]
    assert counts.threads == COUNT and counts.launches == 1
    together, _ = execute(LOOP, x[::-1].copy(), y[::-1].copy())
    assert together.tolist() == found.tolist()[::-1]


def test_some_threads_call_a_function():
    x, y = np.arange(COUNT), np.arange(COUNT) % 3
    found, _ = execute(CALL, x, y, functions=FUNCTION)
    wanted = np.where(y == 0, 7, np.where(x < 5, -2 * x, 11 * x))
    np.testing.assert_array_equal(found.view(np.int64), wanted)


def test_executed_instructions_are_counted():
    body = [
        "mov.b64 %rd8, depot", "st.local.b64 [%rd8], %rd1", "ld.local.b64 %rd9, [%rd8]",
        "fma.rn.f64 %rd10, %rd9, %rd2, %rd1", "div.rn.f64 %rd3, %rd10, %rd2",
    ]  # fmt: skip
    _, counts = execute(body, 1.5, 2.5)
    each = {k: v / COUNT for k, v in vars(counts).items()}
    assert each == {
        "launches": 1 / COUNT, "threads": 1, "instructions": 13 + 5 + 1, "f64": 2, "f32": 0,
        "fused": 1, "divisions": 1, "local_load": 8, "local_store": 8, "global_load": 16,
        "global_store": 8,
    }  # fmt: skip


# What no kernel may do

ANY = "mov.b64 %rd3, 0"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (["ld.global.b64 %rd3, [%rd6+4]"], "thread 0 .* y \\+ 4 .*no multiple of 8"),
        (["ld.global.v2.b64 {%rd3, %rd4}, [%rd6+8]"], "no multiple of 16"),
        (["ld.global.b64 %rd3, [%rd6+8]"], "thread 23 .*y \\+ 192 \\(it has 192\\), outside"),
        (["ld.global.b64 %rd3, [%rd6+-8]"], "thread 0 .*outside of all memory"),
        (["mov.b64 %rd8, 64", "ld.global.b64 %rd3, [%rd8]"], "at address 64, outside"),
        (["ld.global.b64 %rd3, [%rd7]"], "thread 0 reads 8 bytes at z \\+ 0 .*nothing was written"),
        (["st.global.b64 [%rd6], %rd1", ANY], "writes to y"),
        (["st.global.b64 [%rd7], %rd1", "ld.global.nc.b64 %rd3, [%rd7]"], "as if no kernel wrote"),
        (["mov.b64 %rd8, table", "ld.global.b64 %rd3, [%rd8+16]"], "table \\+ 16 .*outside"),
        (["mov.b64 %rd8, table", "st.global.b64 [%rd8], %rd1", ANY], "writes to table"),
        (["mov.b64 %rd8, depot", "ld.local.b64 %rd3, [%rd8]"], "depot \\+ 0 .*nothing was written"),
        (["mov.b64 %rd8, depot", "st.local.b64 [%rd8+16], %rd1", ANY], "depot \\+ 16 .*outside"),
        (["ld.local.b64 %rd3, [%rd6]"], "outside of all memory"),
        (["ld.param.b64 %rd3, [x+8]"], "outside of all memory"),
        (["add.s64 %rd3, %rd1, %rd9"], "reads %rd9, which nothing wrote"),
        (
            ["setp.eq.s64 %p1, %rd4, 64", "@%p1 bra $A", "mov.b64 %rd3, 1", "$A:"],
            "thread 8 reads %rd3",
        ),
        (["$A:", "bra.uni $A"], "more than 10000000 instructions"),
    ],
)  # fmt: skip
def test_faults(body, message, monkeypatch):
    if "more than" in message:
        monkeypatch.setattr("ptx_interpreter.MOST_STEPS", 1000)
        message = message.replace("10000000", "1000")
    with pytest.raises(PtxError, match=message):
        execute(body, 1, 2)


@pytest.mark.parametrize(
    "code",
    [
        "ex2.approx.f32 %r5, %r4", "add.f64 %rd3, %rd1, %rd2", "ld.b64 %rd3, [%rd6]",
        "fma.rn.ftz.f32 %r5, %r4, %r4, %r4", "ld.volatile.global.b64 %rd3, [%rd6]", "bar.sync 0",
        "shfl.sync.idx.b32 %r5, %r4, 0, 31, -1", "cvt.f32.f64 %r5, %rd1", "lt.f64 %rd3, %rd1",
        "atom.global.add.u64 %rd3, [%rd7], 1", "@%p1 mov.b64 %rd3, 1", "setp.lt.b64 %p1, %rd1, 0",
    ],
)  # fmt: skip
def test_unknown_instructions_are_named(code):
    name = code.removeprefix("@%p1 ").split()[0]
    with pytest.raises(PtxError, match=f"line \\d+: unknown.* {name}"):
        execute([code, "mov.b64 %rd3, 0"])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("add.s64 %rd3, %rd1, %r4", "%r4 has no 64 bits"),
        ("add.rn.f64 %rd3, %rd1, 1", "1 is no float"),
        ("add.rn.f64 %rd3, %rd1, 0f3F800000", "does not fit"),
        ("mov.b64 %rd3, %rd77", "no register %rd77"),
        ("mov.b64 %rd3, nothing", "no variable nothing"),
        ("bra.uni $NOWHERE", "no label"),
    ],
)
def test_senseless_text_is_refused(code, message):
    with pytest.raises(PtxError, match=message):
        execute([code])


def test_blocks_are_as_large_as_the_kernel_allows():
    with pytest.raises(PtxError, match="blocks of 65 threads, at most 64"):
        execute(["mov.b64 %rd3, 0"], block=65)
