"""Kernels for GPUs, run as PTX by an interpreter, launched by the real launcher.

The host's kernels do the same operations in the same order, but for quotients and roots, for which
a GPU has instructions of its own (`division`). With the processor's in their place, every bit is
compared; without, results differ by some roundings.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpu_emulation import STREAM, Machine, program, run
from gpu_programs import NAMES, SIZE, assert_close, mechanism, on_host, random_program, small
from throughput_cases.work import FORWARD, ROLLOUT

from jaxmbd.lanes.codegen import division
from jaxmbd.lanes.kernel import Kernel
from jaxmbd.lanes.targets import ptx

DTYPES = (np.float64, np.float32)


def assert_bits(found, expected):
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_array_equal(x, y)  # NaN is equal to NaN


@pytest.fixture
def exact_division(monkeypatch):
    """Quotients and roots of kernels are single instructions, correctly rounded."""

    def quotient(t, ty, a, b):
        return t.let(f"fdiv {ty} {a}, {b}")

    def square_root(t, ty, a):
        return t.intrinsic("sqrt", ty, t.suffix(ty), a)

    monkeypatch.setattr(division, "quotient", quotient)
    monkeypatch.setattr(division, "square_root", square_root)


def same_bits(k, args, machine=None, **how):
    """Run a kernel and compare it with the host's, which has the same quotients and roots."""
    assert_bits(run(k, args, machine or Machine(), **how), on_host(k, args))


# Small programs


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_programs(name, dtype):
    k, args, reference = small(name, dtype)
    machine = Machine()
    assert_close(run(k, args, machine), reference())
    (launch,) = machine.launches
    assert launch.grid == (3, 1, 1) and launch.block == (32, 1, 1)
    assert (launch.kernel, launch.shared, launch.stream) == (0xF00, 0, STREAM)
    assert launch.numbers[1:] == [SIZE]
    assert machine.counts.threads == 96


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_programs_to_the_bit(name, dtype, exact_division):
    same_bits(*small(name, dtype)[:2])


@pytest.mark.parametrize("size", [1, 31, 32, 33, 128, 129])
def test_every_sample_is_computed_and_none_beyond(size, exact_division):
    """The interpreter finds results that nothing wrote, and accesses beyond them."""
    same_bits(*small("elementary", size=size)[:2])


@pytest.mark.parametrize("name", ["scanned", "looping", "total, pulled back"])
def test_warps_loop_over_the_samples(name, exact_division):
    """Some more often than others, and the last turn of one is not full."""
    k, args, _ = small(name, size=1000)
    machine = Machine()
    same_bits(k, args, machine, warps=5)
    assert [x.grid for x in machine.launches] == [(5, 1, 1)]


def test_scratch_is_an_eighth_of_the_memory_at_most(exact_division):
    k, args, _ = small("total, pulled back", size=3000)
    machine, room = Machine(), program(k)[1]
    assert room
    same_bits(k, args, machine, memory=8 * 20 * room + 1)
    assert machine.requests == [20 * room] and machine.launches[0].grid == (20, 1, 1)


def test_refused_scratch_is_asked_for_again_by_halves(exact_division):
    k, args, _ = small("total, pulled back", size=3000)
    room = program(k)[1]
    machine = Machine(limit=50 * room)
    same_bits(k, args, machine)
    assert machine.requests == [94 * room, 47 * room] and machine.forgotten == 1


def test_scratch_has_constant_offsets():
    """Otherwise each access costs a multiplication, and compile time grows quadratically."""
    code = [x for b in program(small("total, pulled back")[0])[0].kernel.blocks for x in b.code]
    heads = [".".join(x.opcode[:2]) for x in code]
    accesses = heads.count("ld.global") + heads.count("st.global")
    assert accesses > heads.count("mul.lo") + heads.count("mad.lo") > 0


@pytest.mark.parametrize("name", NAMES)
def test_the_assembler_takes_programs(name):
    if ptx.assembler() is None:
        pytest.skip("there is no ptxas")
    text = ptx.generate(small(name)[0].emitter(1, gpu=True).module())
    assert ptx.assemble(text).startswith(b"\x7fELF")


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_and_roots_are_correctly_rounded(dtype):
    """Those without branches, at zero, infinity and NaN too; subnormal numbers are zero."""
    rng, info = np.random.default_rng(8), np.finfo(dtype)
    size = 20_000
    a, b = (
        (rng.normal(size=size) * 2.0 ** rng.uniform(-span, span, size)).astype(dtype)
        for span in (info.maxexp / 2.1, info.maxexp / 2.1)
    )
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.0, info.tiny, 1e30], dtype)
    a[:81], b[:81] = np.repeat(edges, 9), np.tile(edges, 9)

    def fn(x, y):
        return x / y, jnp.sqrt(x), 1.0 / (x * 0.5), y / (x * 0.5)

    k = Kernel(jax.make_jaxpr(fn)(a[0], b[0]), (True, True))
    found = run(k, [a, b], Machine())
    with np.errstate(all="ignore"):
        half = a * dtype(0.5)
        expected = [a / b, np.sqrt(a), dtype(1.0) / half, b / half]
        near = np.array([2.0, 2.0, 2.0, 4.0], dtype) * info.eps
    for x, y, tolerance in zip(found, expected, near, strict=True):
        normal = ~(np.abs(y) < 4 * info.tiny) & ~(np.abs(half) < 4 * info.tiny)
        np.testing.assert_allclose(x[normal], y[normal], rtol=tolerance)
    for x, y in zip(found[:2], expected[:2], strict=True):
        normal = np.isfinite(y) & (np.abs(y) > 4 * info.tiny)
        assert np.mean(x[normal] != y[normal]) < 1e-3


# Random programs and mechanisms

slow = pytest.mark.slow


@pytest.mark.parametrize("seeds", [[5], pytest.param(range(16), marks=slow, id="sixteen")])
@pytest.mark.parametrize("dtype", DTYPES)
def test_random_programs(seeds, dtype, exact_division):
    for seed in seeds:
        for pullback in (False, True):
            made = random_program(seed, dtype, pullback=pullback)
            if made is not None:
                same_bits(*made)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("rssr", np.float64), ("arm7", np.float32)]
    + [pytest.param(n, d, marks=slow) for n, d in (
        ("rssr", np.float32), ("arm7", np.float64), *((n, d) for d in DTYPES
        for n in ("four_bar_1", "double_wishbone")),
    )],
)  # fmt: skip
def test_forward_dynamics_to_the_bit(name, dtype, exact_division):
    """A closed spatial loop, a planar one, a corner, an open arm."""
    k, args = mechanism(name, FORWARD, dtype)
    machine = Machine()
    same_bits(k, args, machine)
    counts = machine.counts
    products = (counts.f64 if dtype is np.float64 else counts.f32) - counts.divisions
    assert counts.fused > 0.3 * products  # most sums have a product in them


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("four_bar_1", np.float32), pytest.param("rssr", np.float64, marks=slow),
        pytest.param("arm7", np.float64, marks=slow),
        pytest.param("double_wishbone", np.float64, marks=slow),
        pytest.param("macpherson", np.float32, marks=slow),
    ],
)  # fmt: skip
def test_rollouts_to_the_bit(name, dtype, exact_division):
    same_bits(*mechanism(name, ROLLOUT, dtype))


@pytest.mark.parametrize(
    ("name", "work", "dtype"),
    [
        ("rssr", FORWARD, np.float32), pytest.param("four_bar_1", ROLLOUT, np.float64, marks=slow),
        pytest.param("rssr", ROLLOUT, np.float64, marks=slow),
        pytest.param("double_wishbone", ROLLOUT, np.float64, marks=slow),
        pytest.param("arm7", ROLLOUT, np.float32, marks=slow),
    ],
)  # fmt: skip
def test_gradients_to_the_bit(name, work, dtype, exact_division):
    """Of hardpoints, masses, inertias and the state, by a warp that takes all samples in turn."""
    k, args = mechanism(name, work, dtype, pullback=True)
    machine = Machine()
    same_bits(k, args, machine, warps=1)
    assert machine.launches[0].grid == (1, 1, 1)
    assert bool(machine.requests) == bool(program(k)[1])


@pytest.mark.parametrize(
    ("name", "work", "pullback"),
    [
        ("rssr", FORWARD, False), pytest.param("double_wishbone", FORWARD, False, marks=slow),
        pytest.param("arm7", ROLLOUT, False, marks=slow),
        pytest.param("rssr", FORWARD, True, marks=slow),
        pytest.param("four_bar_1", ROLLOUT, True, marks=slow),
    ],
)  # fmt: skip
def test_mechanisms_with_quotients_of_their_own(name, work, pullback):
    """They are correctly rounded, but for one in a thousand."""
    k, args = mechanism(name, work, pullback=pullback)
    assert_close(run(k, args, Machine()), on_host(k, args), ulps=20)


def test_results_do_not_depend_on_their_neighbours():
    """Two orders of the samples, so other threads in a warp and other branches taken by it."""
    k, args, _ = small("looping")
    order = np.random.default_rng(0).permutation(SIZE)
    found = run(k, args, Machine())
    moved = run(k, [x[order] for x in args], Machine())
    assert_bits(moved, jax.tree.map(lambda x: x[order], found))
