"""Kernels for GPUs: by emulation, and on a GPU if JAX has one."""

import ctypes
import os
import re
import subprocess
import sys
import types
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpu_emulation import ERROR, STREAM, Machine, call, facts, frame, run
from jax import lax
from repository import ROOT

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.lanes.kernel import Kernel
from jaxmbd.lanes.targets import cuda, cuda_launcher, ptx

SIZE = 70  # three warps, the last of them not full
TABLE = np.sin(np.arange(40.0)).reshape(8, 5)


def has_gpu() -> bool:
    return any(d.platform == "gpu" for d in jax.devices())


def elementary(x, y):
    z = jnp.tanh(x) + jnp.arctan2(x, y) + jnp.exp(-(y**2)) * jnp.cos(1e12 * x)
    return z @ y, jnp.where(x > 0, jnp.sqrt(jnp.abs(x)), jnp.sin(y)), x < y


def scanned(x, y):
    def step(c, k):
        c = 0.9 * c + 0.1 * jnp.sin(c[::-1] + k * y)
        return c, (c, c[0] > c[1])

    last, (path, flags) = lax.scan(step, x, jnp.arange(7, dtype=x.dtype))
    return last, path, flags


def looping(x, y):
    def going(s):
        return jnp.abs(s[1][0]) > 0.1

    return lax.while_loop(going, lambda s: (s[0] + 1, 0.7 * s[1]), (0, x))


def indexed(x, y):
    k = jnp.argmax(x)
    table = jnp.asarray(TABLE)
    row = lax.dynamic_index_in_dim(table, k, keepdims=False)
    return row[:3] * y[k], lax.dynamic_update_index_in_dim(x, y[0], k, 0), x[::-1] * row[k]


def shared(x, y):
    """`x` is the same in all samples."""
    return jnp.outer(jnp.sin(x), y), jnp.linalg.cholesky(jnp.outer(x, x) + jnp.eye(3)) @ y


def stacked(x, y):
    """Each row is an argument."""

    def step(c, row):
        return jnp.sin(c * row) + row[::-1], c[1]

    pairs = lax.scan(step, y, jnp.stack([x, y]))
    return pairs, lax.scan(step, y, jnp.stack([x, y, y, x, jnp.ones_like(x)]), reverse=True)


def total(x, y):
    path = scanned(x, y)[1]
    return jnp.sum(path**2) + elementary(x, y)[0] + x[jnp.argmax(y)]


PROGRAMS = {f.__name__: f for f in (elementary, scanned, looping, indexed, shared, stacked, total)}


def program(name, dtype=np.float64, size=SIZE):
    """A kernel, its arguments, and the results of `jax.vmap`."""
    fn = PROGRAMS[name.removesuffix(", pulled back")]
    rng = np.random.default_rng(3)
    flags = (fn is not shared, True)
    args = [rng.normal(size=(size, 3) if b else 3).astype(dtype) for b in flags]
    one = [x[0] if b else x for x, b in zip(args, flags, strict=True)]
    closed = jax.make_jaxpr(lambda *a: jax.tree.leaves(fn(*a)))(*one)
    if fn is total and name != "total":
        args.append(rng.normal(size=size).astype(dtype))

        def pulled(x, y, c):
            return jax.vjp(fn, x, y)[1](c)

        expected = jax.jit(jax.vmap(pulled))(*args)
        return Kernel(closed, flags, ((True, True), (True,))), args, jax.tree.leaves(expected)
    axes = tuple(0 if b else None for b in flags)
    expected = jax.jit(jax.vmap(fn, in_axes=axes))(*args)
    return Kernel(closed, flags), args, jax.tree.leaves(expected)


NAMES = (*PROGRAMS, "total, pulled back")


def assert_close(found, expected):
    for x, y in zip(found, expected, strict=True):
        y = np.asarray(y)
        assert x.dtype == y.dtype and x.shape == y.shape
        if y.dtype.kind == "f":
            scale = np.finfo(y.dtype).eps * max(1.0, np.abs(y).max())
            np.testing.assert_allclose(x, y, rtol=0, atol=500 * scale)
        else:
            np.testing.assert_array_equal(x, y)


# Width one, on the host


@pytest.mark.parametrize("name", NAMES)
def test_width_one_agrees(name):
    k, args, expected = program(name)
    compiled = k.compile_cpu(width=1)
    shapes = [jax.ShapeDtypeStruct(y.shape, y.dtype) for y in expected]
    found = jax.ffi.ffi_call(compiled.name, shapes)(*args)
    assert_close([np.asarray(x) for x in found], expected)


# Emulated


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", NAMES)
def test_emulated_threads_agree(name, dtype):
    k, args, expected = program(name, dtype)
    machine = Machine()
    assert_close(run(k, args, machine), expected)
    (launch,) = machine.launches
    assert launch.grid == (3, 1, 1) and launch.block == (32, 1, 1)
    assert (launch.kernel, launch.shared, launch.stream) == (0xF00, 0, STREAM)
    assert launch.numbers[1:] == [SIZE]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
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


@pytest.mark.parametrize("name", ["scanned", "total, pulled back"])
def test_warps_loop_over_the_samples(name):
    k, args, expected = program(name, size=1000)
    machine = Machine()
    assert_close(run(k, args, machine, warps=5), expected)
    assert [x.grid for x in machine.launches] == [(5, 1, 1)]


def test_scratch_is_an_eighth_of_the_memory_at_most():
    k, args, expected = program("total, pulled back", size=3000)
    machine, room = Machine(), 32 * 8 * k_slots(k)
    assert_close(run(k, args, machine, memory=8 * 20 * room + 1), expected)
    assert machine.requests == [20 * room] and machine.launches[0].grid == (20, 1, 1)


def test_refused_scratch_is_asked_for_again_by_halves():
    k, args, expected = program("total, pulled back", size=3000)
    room = 32 * 8 * k_slots(k)
    machine = Machine(limit=50 * room)
    assert_close(run(k, args, machine), expected)
    assert machine.requests == [94 * room, 47 * room] and machine.forgotten == 1


def test_warps_have_their_stacks_in_the_cache():
    device = facts()  # 2¹⁷ bytes of cache
    assert cuda.resident(255, 0, device) == 8 and cuda.resident(40, 0, device) == 32
    assert cuda.resident(255, 700, device) == 5
    assert cuda.resident(255, 1900, device) == 2  # 119 kB
    assert cuda.resident(255, 2000, device) == 8


def k_slots(k):
    e = k.emitter(1, gpu=True)
    e.module()
    assert e.scratch_slots
    return e.scratch_slots


@pytest.mark.parametrize(("name", "steps"), [("rssr", 0), ("rssr", 5)])
def test_emulated_mechanisms_agree(name, steps):
    """Comparison with the host's kernel, which other tests compare with `jax.vmap`."""
    k = mechanism(name, steps)
    rng = np.random.default_rng(5)
    args = [
        start + (0 if steps else 1e-3) * rng.normal(size=(SIZE, *np.shape(start)))
        for start in mechanism_start(name)
    ]
    shapes = [jax.ShapeDtypeStruct((SIZE, *a.shape), a.dtype) for a in k.out_avals]
    expected = jax.ffi.ffi_call(k.compile_cpu().name, shapes)(*args)
    assert_close(run(k, args, Machine()), expected)


# The handler's ways to fail


def handled(machine, slots=0, count=SIZE):
    """The return value of a handler for one argument and one result."""
    lib = machine.library(None, 2)
    address = cuda.handler(0xF00, slots * 8 * 32, 5000, 1, 1, facts(), lib)
    array, keep = np.zeros(1), []
    return call(address, frame(machine, [(array, (count,))], [(array, (count,))], keep))


def test_an_empty_batch_launches_nothing():
    machine = Machine()
    assert handled(machine, slots=3, count=0) is None
    assert not machine.launches and not machine.requests


def test_a_refused_launch_is_an_error_with_its_code():
    machine = Machine(launch_code=701)
    assert handled(machine, slots=3) == ERROR
    assert machine.message.strip() == b"lanes: cuLaunchKernel failed with CUDA error 701."
    assert not machine.memory and not machine.contexts


def test_missing_scratch_is_xlas_error():
    machine = Machine(limit=0)
    assert handled(machine, slots=3, count=100_000) == ERROR
    assert len(machine.requests) > 5 and machine.forgotten == len(machine.requests) - 1
    assert not machine.launches and not machine.contexts


def test_a_missing_stream_is_xlas_error():
    machine = Machine(stream_error=ERROR)
    assert handled(machine) == ERROR
    assert not machine.launches


# PTX


def zoo(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(mbd.zoo, name)()


def mechanism_start(name):
    """A mechanism's points, coordinates and speeds."""
    mech = zoo(name)
    start = (dict(mech.points), mbd.neutral(mech), np.zeros(mbd.topology(mech).nv))
    return [np.asarray(x) for x in jax.tree.leaves(start)]


def mechanism(name, steps=0):
    """Forward dynamics of a mechanism with moving hardpoints, or a rollout of it, as a kernel."""
    mech = zoo(name)

    def fn(points, q, v):
        m = eqx.tree_at(lambda m: m.points, mech, points)
        if not steps:
            return mbd.forward_dynamics(m, q, v, backend="xla")
        s = mbd.simulate(m, q, v, t1=steps * 1e-3, dt=1e-3, throw=False, backend="xla")
        return s.q, s.v

    tree = jax.tree.structure((dict(mech.points), 0, 0))
    leaves = mechanism_start(name)
    closed = jax.make_jaxpr(lambda *a: jax.tree.leaves(fn(*jax.tree.unflatten(tree, a))))(*leaves)
    return Kernel(closed, (True,) * len(leaves))


def ptx_of(k):
    return ptx.generate(k.emitter(1, gpu=True).module())


def check_ptx(text):
    assert re.search(r"\.visible \.entry kernel\(", text) and ".extern" not in text
    assert ".minnctapersm" in text  # without it ptxas may choose 32 registers and spill the rest
    assert not re.search(r"\b(ld|st)\.b(8|32|64)", text), "an address space was not inferred"
    if ptx.assembler() is None:
        pytest.skip("there is no ptxas")
    assert ptx.assemble(text).startswith(b"\x7fELF")
    registers, spilled = usage(text)
    assert 0 < registers <= 255
    return registers, spilled


def usage(text):
    """Registers of a thread, and bytes of spill stores, as ptxas reports them."""
    command = [ptx.assembler(), f"-arch={ptx.DEFAULT}", "-v", "-o", os.devnull, "/dev/stdin"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    report = done.stdout + done.stderr
    spilled = re.search(r"properties for kernel\n.*?(\d+) bytes spill stores", report)
    registers = re.search(r"Used (\d+) registers", report)
    return int(registers[1]), int(spilled[1])


@pytest.mark.parametrize("name", NAMES)
def test_ptx_of_programs(name):
    text = ptx_of(program(name)[0])
    assert "fma.rn.f64" in text or name in ("looping", "indexed")
    check_ptx(text)


@pytest.mark.parametrize(("name", "steps"), [("rssr", 0), ("rssr", 20), ("four_bar", 0)])
def test_ptx_of_mechanisms(name, steps):
    text = ptx_of(mechanism(name, steps))
    fused, plain = (len(re.findall(rf"\b{op}\.f64", text)) for op in ("fma.rn", "(?:add|sub)"))
    assert fused > plain  # of all sums
    registers, spilled = check_ptx(text)
    assert registers > 64 and (steps or spilled < 1000)


def test_scratch_has_constant_offsets():
    """Otherwise each access costs a multiplication, and compile time grows quadratically."""
    text = ptx_of(program("total, pulled back")[0])
    accesses = re.findall(r"\b(?:ld|st)\.global\.b64 .*\[%rd\d+(?:\+\d+)?\]", text)
    assert len(accesses) > len(re.findall(r"\bmul\.lo\.s64|\bmad\.lo\.s64", text))


def test_newer_gpus_run_the_newest_code_known():
    assert ptx.architecture((9, 0)) == "sm_90"
    assert ptx.architecture((13, 7)) == f"sm_{ptx.KNOWN[-1]}"
    with pytest.raises(ValueError, match="too old"):
        ptx.architecture((5, 2))


def test_the_benchmark_says_at_once_that_there_is_no_gpu():
    script = ROOT / "benchmarks" / "gpu.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        assert done.returncode == 2 and "no GPU" in done.stderr
    else:
        assert done.stdout.strip() in ("", "cuda12", "cuda13")  # nothing: all is installed


# Lowering


def lowered(fn, *args):
    return jax.jit(fn).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


def test_arrays_are_row_major(monkeypatch):
    """XLA transposes nothing."""
    made = cuda.Compiled("lanes_cuda_test", 1, 0, 0)
    monkeypatch.setattr(cuda, "target", lambda *a, **k: made)
    x, p = np.zeros((5, 2, 3)), np.zeros((3, 4))
    text = lowered(lanes.vmap(lambda x, p: x @ p, in_axes=(0, None)), x, p)
    assert "lanes_cuda_test" in text and "transpose" not in text
    assert "operand_layouts = [dense<[2, 1, 0]> : tensor<3xindex>, dense<[1, 0]>" in text
    assert "result_layouts = [dense<[2, 1, 0]>" in text


@pytest.mark.skipif(has_gpu(), reason="there is one")
def test_without_a_driver_it_warns_and_falls_back():
    x = np.zeros((5, 3))
    with pytest.warns(UserWarning, match="jax.vmap is used instead"):
        text = lowered(lanes.vmap(lambda x: jnp.sin(x) * 3.25), x)
    assert "stablehlo.sine" in text and "lanes_cuda" not in text
    with pytest.raises(cuda.Unavailable):
        lowered(lanes.vmap(lambda x: jnp.sin(x) * 4.25, strict=True), x)


def test_an_old_driver_names_what_it_lacks(monkeypatch):
    """A driver library that lacks functions leads to a fallback with a warning."""
    old = types.SimpleNamespace(cuInit=lambda flags: 0, cuDeviceGetCount=None)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: old)
    cuda.library.cache_clear()
    cuda.devices.cache_clear()
    try:
        with pytest.raises(cuda.Unavailable, match="too old.*cuLibraryLoadData"):
            cuda.devices()
        with pytest.warns(UserWarning, match="too old.*jax.vmap is used instead"):
            text = lowered(lanes.vmap(lambda x: jnp.sin(x) * 5.25), np.zeros((5, 3)))
        assert "stablehlo.sine" in text
    finally:
        cuda.library.cache_clear()
        cuda.devices.cache_clear()


def test_the_table_has_a_place_for_everything():
    places = (cuda_launcher.KERNEL, cuda_launcher.WARPS)
    assert places == (0, cuda_launcher.WORDS - 1)


# On a GPU

on_gpu = pytest.mark.skipif(not has_gpu(), reason="JAX has no GPU")


@on_gpu
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("size", [1, 33, 5000])
def test_gpu_agrees(name, size):
    fn = PROGRAMS[name]
    _, args, expected = program(name, size=size)
    axes = (None if fn is shared else 0, 0)
    found = jax.jit(lanes.vmap(fn, in_axes=axes, strict=True))(*args)
    assert_close([np.asarray(x) for x in jax.tree.leaves(found)], expected)


@on_gpu
def test_gpu_gradients_agree():
    _, args, _ = program("total", size=5000)

    def gradient(vmap):
        return jax.jit(jax.grad(lambda x, y: jnp.sum(jnp.sin(vmap(total)(x, y))), (0, 1)))

    found = gradient(lambda f: lanes.vmap(f, strict=True))(*args)
    assert_close([np.asarray(x) for x in found], gradient(jax.vmap)(*args))


@on_gpu
def test_gpu_runs_in_loops_and_side_by_side():
    """Many consecutive calls that share scratch, ordered only by the stream."""
    _, args, _ = program("scanned", size=3000)

    def steps(vmap):
        def step(c, _):
            last, path, _ = vmap(scanned)(c, args[1])
            return last + 0.01 * path[:, 3], path[:, -1]

        return jax.jit(lambda x: lax.scan(step, x, None, length=50))

    found = steps(lambda f: lanes.vmap(f, strict=True))(args[0])
    assert_close([np.asarray(x) for x in found], steps(jax.vmap)(args[0]))
