"""The elementary functions of jaxmbd.lanes against long doubles, and their special values."""

import ctypes
import functools
import math

import numpy as np
import pytest

from jaxmbd.lanes import elementary

llvm = pytest.importorskip("llvmlite.binding")

LONG = np.longdouble
FLOATS = {64: np.float64, 32: np.float32}
WIDTHS = ((8, 64), (16, 32), (1, 64), (1, 32))
needs_long_double = pytest.mark.skipif(
    np.finfo(LONG).nmant < 63, reason="long double is no wider than double here"
)


def kernel(name: str, arity: int, width: int, bits: int) -> str:
    """A loop that applies a function to arrays; sincos writes two."""
    scalar = "double" if bits == 64 else "float"
    vector = scalar if width == 1 else f"<{width} x {scalar}>"
    lines = [
        f"define void @{name}{bits}(ptr %a, ptr %b, ptr %c, ptr %d, i64 %n) {{",
        "entry:",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [0, %entry], [%next, %loop]",
        *(f"  %{p}i = getelementptr {scalar}, ptr %{p}, i64 %i" for p in "abcd"),
        *(f"  %{p}v = load {vector}, ptr %{p}i, align 4" for p in "ab"),
    ]
    result = f"{{{vector}, {vector}}}" if name == "sincos" else vector
    arguments = ", ".join(f"{vector} %{p}v" for p in "ab"[:arity])
    lines.append(f"  %r = call {result} {elementary.symbol(name, bits, width)}({arguments})")
    for index, place in enumerate("cd" if name == "sincos" else "c"):
        value = "%r"
        if name == "sincos":
            value = f"%r{index}"
            lines.append(f"  {value} = extractvalue {result} %r, {index}")
        lines.append(f"  store {vector} {value}, ptr %{place}i, align 4")
    lines += [
        f"  %next = add i64 %i, {width}",
        "  %more = icmp slt i64 %next, %n",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


@functools.cache
def compiled(width: int, bits: int):
    """All functions for one width and format, in one module."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    needed = [(name, bits) for name in elementary.FUNCTIONS]
    module = llvm.parse_assembly(
        "\n".join(
            [
                *sorted(elementary.declarations(needed, width)),
                elementary.definitions(needed, width),
                *(kernel(n, arity, width, bits) for n, arity in elementary.FUNCTIONS.items()),
            ]
        )
    )
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def apply(name: str, width: int, bits: int, x, y=None) -> tuple[np.ndarray, ...]:
    """A function of arrays; two results (the second only of use for sincos)."""
    x = np.asarray(x, FLOATS[bits])
    n = -(-len(x) // width) * width
    a, b = (np.resize(np.asarray(v, FLOATS[bits]), n) for v in (x, x if y is None else y))
    c, d = np.zeros((2, n), FLOATS[bits])
    address = compiled(width, bits).get_function_address(f"{name}{bits}")
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64)(address)
    call(*(v.ctypes.data for v in (a, b, c, d)), n)
    return c[: len(x)], d[: len(x)]


def ulps(value: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The error in units of the last place of the exact result; 0 where both agree as floats."""
    dtype = value.dtype.type
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        same = (rounded == value) | (np.isnan(rounded) & np.isnan(value))
        info = np.finfo(dtype)
        exponent = np.maximum(np.frexp(exact)[1], info.minexp + 1) - info.nmant - 1
        error = np.abs(value.astype(LONG) - exact) / np.ldexp(LONG(1), exponent)
        # a float beyond the largest counts as the next one
        error = np.where(np.isinf(value) & np.isfinite(rounded), 1e9, error)
    return np.where(same & ~np.isfinite(rounded), 0.0, np.where(np.isnan(error), np.inf, error))


@functools.cache
def everywhere(bits: int, seed: int = 0, n: int = 20000) -> np.ndarray:
    """Floats of every magnitude, both signs."""
    info = np.finfo(FLOATS[bits])
    rng = np.random.default_rng(seed)
    x = np.ldexp(rng.uniform(1, 2, n), rng.integers(info.minexp - info.nmant, info.maxexp, n))
    return (x * rng.choice([-1, 1], n)).astype(FLOATS[bits])


def uniform(low: float, high: float, bits: int, n: int = 20000) -> np.ndarray:
    return np.random.default_rng(1).uniform(low, high, n).astype(FLOATS[bits])


def near_quarters(bits: int) -> np.ndarray:
    """Floats close to multiples of π/2, small and huge."""
    n = np.concatenate([np.arange(-3000, 3000), 2.0 ** np.arange(10, 62), 3 * 2.0 ** np.arange(60)])
    x = (n.astype(LONG) * (LONG(2) * np.arcsin(LONG(1)) / 2)).astype(FLOATS[bits])
    return np.concatenate([x, np.nextafter(x, FLOATS[bits](0)), np.nextafter(x, FLOATS[bits](9e9))])


def angles(bits: int) -> np.ndarray:
    hardest = [6381956970095103.0 * 2.0**797, 5.9e22, 1e22, 1.7e308]
    return np.concatenate(
        [
            uniform(-10, 10, bits),
            uniform(-1e6, 1e6, bits),
            everywhere(bits),
            near_quarters(bits),
            np.array(hardest if bits == 64 else [3e38, 1e20], FLOATS[bits]),
        ]
    )


def line(*bounds: float):
    """Arguments within each ±bound, and of every magnitude."""
    return lambda bits: np.concatenate(
        [everywhere(bits), *(uniform(-bound, bound, bits) for bound in bounds)]
    )


def erfc(x: np.ndarray) -> np.ndarray:
    """In long doubles: Taylor's series of erf below 2.5, a continued fraction above."""
    a = np.abs(x)
    small = np.minimum(a, LONG(1.5))
    term = total = small
    for n in range(1, 100):
        term = term * 2 * small**2 / (2 * n + 1)
        total = total + term
    pi = 2 * np.arcsin(LONG(1))
    near = 1 - 2 / np.sqrt(pi) * np.exp(-(small**2)) * total
    large = np.maximum(a, LONG(1.5))
    fraction = large
    for n in range(200, 0, -1):
        fraction = large + LONG(n) / 2 / fraction
    far = np.exp(-(large**2)) / np.sqrt(pi) / fraction
    positive = np.where(a < 1.5, near, far)
    return np.where(x < 0, 2 - positive, positive)


def erf(x: np.ndarray) -> np.ndarray:
    a = np.minimum(np.abs(x), LONG(1))
    term = total = a
    for n in range(1, 40):
        term = term * 2 * a**2 / (2 * n + 1)
        total = total + term
    near = 2 / np.sqrt(2 * np.arcsin(LONG(1))) * np.exp(-(a**2)) * total
    return np.copysign(np.where(np.abs(x) < 1, near, 1 - erfc(np.abs(x))), x)


# name: oracle, arguments, largest error in ulp of doubles and of floats
UNARY = {
    "sin": (np.sin, angles, 1.6, 1.6),
    "cos": (np.cos, angles, 1.6, 1.6),
    "tan": (np.tan, angles, 2.0, 2.0),
    "asin": (np.arcsin, line(1, 0.1), 0.8, 0.8),
    "acos": (np.arccos, line(1, 0.1), 0.9, 0.9),
    "atan": (np.arctan, line(1, 2, 10), 1.5, 1.5),
    "sinh": (np.sinh, line(1, 50, 750), 1.6, 1.6),
    "cosh": (np.cosh, line(1, 50, 750), 1.5, 1.5),
    "tanh": (np.tanh, line(1, 5, 50), 2.5, 2.5),
    "asinh": (np.arcsinh, line(1, 2, 50), 1.5, 1.5),
    "acosh": (np.arccosh, line(1.1, 2, 50), 1.5, 1.5),
    "atanh": (np.arctanh, line(1, 0.1), 1.5, 1.5),
    "exp": (np.exp, line(1, 50, 750), 1.1, 1.1),
    "exp2": (np.exp2, line(1, 50, 1080), 1.0, 1.0),
    "expm1": (np.expm1, line(1, 50, 750), 1.6, 1.6),
    "log": (np.log, line(2, 50), 1.0, 1.0),
    "log1p": (np.log1p, line(1, 2, 50), 1.5, 1.5),
    "logistic": (lambda x: 1 / (1 + np.exp(-x)), line(1, 50, 750), 2.0, 2.0),
    "cbrt": (np.cbrt, line(1, 10), 0.51, 0.51),
    "erf": (erf, line(1, 3, 7), 1.1, 0.6),
    "erfc": (erfc, line(1, 3, 28), 2.5, 0.6),
}


@functools.cache
def exactly(name: str, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Arguments of a function, and its oracle's results."""
    oracle, arguments, *_ = UNARY[name]
    x = arguments(bits)
    with np.errstate(all="ignore"):
        return x, oracle(x.astype(LONG))


def check(name: str, width: int, bits: int, bound: float, exact: np.ndarray, *arguments):
    error = ulps(apply(name, width, bits, *arguments)[0], exact)
    worst = np.argmax(error)
    assert error[worst] <= bound, f"{name}{tuple(a[worst] for a in arguments)}: {error[worst]} ulp"


@needs_long_double
@pytest.mark.parametrize("width, bits", WIDTHS)
@pytest.mark.parametrize("name", UNARY)
def test_accuracy(name: str, width: int, bits: int):
    x, exact = exactly(name, bits)
    check(name, width, bits, UNARY[name][2 + (bits == 32)], exact, x)


@needs_long_double
@pytest.mark.parametrize("width, bits", WIDTHS)
def test_atan2_accuracy(width: int, bits: int):
    y = np.concatenate([everywhere(bits), uniform(-1, 1, bits), uniform(-1, 1, bits)])
    x = np.concatenate([everywhere(bits, 1), uniform(-1, 1, bits)[::-1], uniform(-1, 1, bits)])
    check("atan2", width, bits, 1.7, np.arctan2(y.astype(LONG), x.astype(LONG)), y, x)


@needs_long_double
@pytest.mark.parametrize("width, bits", WIDTHS)
def test_pow_accuracy(width: int, bits: int):
    # bases near and far from 1, and exponents that lead all over the range of results
    x = np.abs(
        np.concatenate([everywhere(bits), uniform(0, 10, bits), 1 + uniform(-1e-3, 0, bits)])
    )
    scale = uniform(-1, 1, bits, len(x)) * np.log(np.finfo(FLOATS[bits]).max)
    with np.errstate(all="ignore"):
        y = (scale / np.log(x)).astype(FLOATS[bits])
        x, y = x[np.isfinite(y)], y[np.isfinite(y)]
        exact = x.astype(LONG) ** y.astype(LONG)
    check("pow", width, bits, 1.0, exact, x, y)


@needs_long_double
@pytest.mark.parametrize("width, bits", WIDTHS)
def test_erf_inv_accuracy(width: int, bits: int):
    x = np.concatenate([uniform(-1, 1, bits, 1000), everywhere(bits)[:1000]])
    ends = (1 - 2.0 ** -np.arange(2, 53)).astype(FLOATS[bits])
    x = np.concatenate([x[np.abs(x) < 1], ends[ends < 1]])
    given = x.astype(LONG)
    y = apply("erf_inv", width, bits, x)[0].astype(LONG)
    root = np.sqrt(2 * np.arcsin(LONG(1)))
    for _ in range(2):  # Newton's steps, of the complement where it is the smaller one
        complement = (1 - np.abs(given)) - erfc(np.abs(y))
        error = np.where(np.abs(y) < 0.5, erf(y) - given, np.sign(y) * complement)
        y = y - error * root / 2 * np.exp(y**2)
    check("erf_inv", width, bits, 1.7 if bits == 64 else 0.6, y, x)
    limits = apply("erf_inv", width, bits, [0.0, -0.0, 1.0, -1.0, 1.5, np.nan])[0]
    expected = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, np.nan], FLOATS[bits])
    assert_same(limits, expected, 0.0, "erf_inv")


@pytest.mark.parametrize("width, bits", WIDTHS)
def test_remainder_is_exact(width: int, bits: int):
    x = np.concatenate([everywhere(bits), uniform(-1e6, 1e6, bits), everywhere(bits)])
    y = np.concatenate([everywhere(bits, 1), uniform(-3, 3, bits)[::-1], everywhere(bits) / 3])
    with np.errstate(invalid="ignore"):
        expected = np.fmod(x, y)
    np.testing.assert_array_equal(apply("rem", width, bits, x, y)[0], expected)


@pytest.mark.parametrize("width, bits", WIDTHS)
def test_sincos_is_sin_and_cos(width: int, bits: int):
    x = angles(bits)
    s, c = apply("sincos", width, bits, x)
    np.testing.assert_array_equal(s, apply("sin", width, bits, x)[0])
    np.testing.assert_array_equal(c, apply("cos", width, bits, x)[0])


def specials(bits: int) -> np.ndarray:
    info = np.finfo(FLOATS[bits])
    positive = [0, info.smallest_subnormal, info.tiny, 0.5, 1, 2, 3, 4.5, 7, 100, 800, info.max]
    positive = np.array([*positive, np.inf, np.nan], FLOATS[bits])
    return np.concatenate([positive, -positive])


def assert_same(value: np.ndarray, expected: np.ndarray, bound: float, what: str):
    """Check that zeros (signed), infinities and NaN are equal, and other values within some ulp."""
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(value), nan, err_msg=what)
    np.testing.assert_array_equal(np.signbit(value[~nan]), np.signbit(expected[~nan]), what)
    rest = np.isfinite(expected) & (expected != 0)
    np.testing.assert_array_equal(value[~rest & ~nan], expected[~rest & ~nan], err_msg=what)
    error = np.abs(value[rest] - expected[rest]) / np.spacing(np.abs(expected[rest]))
    assert error.max(initial=0) <= bound, what


@pytest.mark.parametrize("width, bits", WIDTHS)
def test_special_values(width: int, bits: int):
    x = specials(bits)
    with np.errstate(all="ignore"):
        for name, (oracle, _, *bounds) in UNARY.items():
            expected = oracle(x.astype(LONG)).astype(x.dtype)
            assert_same(apply(name, width, bits, x)[0], expected, bounds[bits == 32] + 0.5, name)


@pytest.mark.parametrize("width, bits", WIDTHS)
def test_special_values_of_two_arguments(width: int, bits: int):
    x, y = (v.ravel() for v in np.meshgrid(specials(bits), specials(bits)))
    wide = x.astype(LONG), y.astype(LONG)
    with np.errstate(all="ignore"):
        for name, oracle in {"atan2": np.arctan2, "pow": np.power, "rem": np.fmod}.items():
            expected = oracle(*wide).astype(x.dtype)
            assert_same(apply(name, width, bits, x, y)[0], expected, 2.0, name)


def test_declarations_are_apart():
    needed = [("sin", 64), ("exp", 32)]
    assert "declare" not in elementary.definitions(needed, 8)
    assert all(line.startswith("declare ") for line in elementary.declarations(needed, 8))
    assert elementary.symbol("sin", 64, 8) == "@lanes.sin.v8f64"
    assert elementary.symbol("sin", 64, 1) == "@lanes.sin.f64"


def test_widths_share_a_module():
    needed = [(name, bits) for name in elementary.FUNCTIONS for bits in (64, 32)]
    declared = elementary.declarations(needed, 4) | elementary.declarations(needed, 1)
    texts = [elementary.definitions(needed, width) for width in (4, 1)]
    llvm.parse_assembly("\n".join([*sorted(declared), *texts])).verify()


def test_huge_angles():
    """Against results by integer arithmetic: the largest double, and the one nearest to n π/2."""
    x = np.array([1.7976931348623157e308, 6381956970095103.0 * 2.0**797, 1e22])
    expected = [0.004961954789184062, 1.0, -0.8522008497671888]
    np.testing.assert_allclose(apply("sin", 1, 64, x)[0], expected, rtol=4e-16)
    assert math.isclose(apply("cos", 1, 64, x)[0][1], -4.6871659242546276e-19, rel_tol=4e-16)
