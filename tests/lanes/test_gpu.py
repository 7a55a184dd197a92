"""The launcher's ways to fail, lowering for GPUs, and kernels on a GPU if JAX has one.

`test_ptx` runs the kernels without one.
"""

import ctypes
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpu_emulation import ERROR, Machine, call, facts, frame
from gpu_programs import PROGRAMS, SIZE, assert_close, scanned, shared, small, total
from jax import lax
from repository import ROOT

from jaxmbd import lanes
from jaxmbd.lanes.targets import cuda, cuda_launcher, ptx


def has_gpu() -> bool:
    return any(d.platform == "gpu" for d in jax.devices())


# The handler's ways to fail


def handled(machine, slots=0, count=SIZE):
    """The return value of a handler for one argument and one result."""
    lib = machine.library(2)
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


# Targets


def test_warps_have_their_stacks_in_the_cache():
    device = facts()  # 2¹⁷ bytes of cache
    assert cuda.resident(255, 0, device) == 8 and cuda.resident(40, 0, device) == 32
    assert cuda.resident(255, 700, device) == 5
    assert cuda.resident(255, 1900, device) == 2  # 119 kB
    assert cuda.resident(255, 2000, device) == 8


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
    _, args, reference = small(name, size=size)
    axes = (None if fn is shared else 0, 0)
    found = jax.jit(lanes.vmap(fn, in_axes=axes, strict=True))(*args)
    assert_close([np.asarray(x) for x in jax.tree.leaves(found)], reference())


@on_gpu
def test_gpu_gradients_agree():
    _, args, _ = small("total", size=5000)

    def gradient(vmap):
        return jax.jit(jax.grad(lambda x, y: jnp.sum(jnp.sin(vmap(total)(x, y))), (0, 1)))

    found = gradient(lambda f: lanes.vmap(f, strict=True))(*args)
    assert_close([np.asarray(x) for x in found], gradient(jax.vmap)(*args))


@on_gpu
def test_gpu_runs_in_loops_and_side_by_side():
    """Many consecutive calls that share scratch, ordered only by the stream."""
    _, args, _ = small("scanned", size=3000)

    def steps(vmap):
        def step(c, _):
            last, path, _ = vmap(scanned)(c, args[1])
            return last + 0.01 * path[:, 3], path[:, -1]

        return jax.jit(lambda x: lax.scan(step, x, None, length=50))

    found = steps(lambda f: lanes.vmap(f, strict=True))(args[0])
    assert_close([np.asarray(x) for x in found], steps(jax.vmap)(args[0]))
