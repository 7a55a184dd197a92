"""Caches that are corrupt, read-only or shared; forks; threads: no crash, no hang, same numbers."""

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from repository import ROOT

from jaxmbd import lanes
from jaxmbd.lanes.targets import disk

PROGRAM = textwrap.dedent(
    """
    import sys
    import jax, jax.numpy as jnp, numpy as np
    jax.config.update("jax_enable_x64", True)
    from jaxmbd import lanes
    from jaxmbd.lanes.targets import cpu

    def fn(x):
        return jnp.sin(x) @ x, jax.lax.fori_loop(0, 9, lambda i, y: y + jnp.cos(y), x)

    x = np.arange(30000.0).reshape(-1, 3) / 1e4
    out = jax.jit(lanes.vmap(fn, strict=True))(x)
    y = x.copy()
    for _ in range(9):
        y += np.cos(y)
    ref = np.sum(np.sin(x) * x, axis=1), y
    assert all(np.allclose(a, b, atol=1e-13) for a, b in zip(out, ref))
    print("cached", sum(c.cached for c in cpu._TARGETS.values()), "of", len(cpu._TARGETS))
    """
)


def run(program, **environment):
    """Run a program in a separate process; returns its output."""
    env = os.environ | {"PYTHONPATH": str(ROOT), "JAX_COMPILATION_CACHE_DIR": ""} | environment
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_processes_that_share_a_cache(tmp_path):
    """An empty one; one that is corrupt is made anew. `test_recall` has one that is whole."""
    folder = str(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(run, PROGRAM, JAXMBD_LANES_CACHE=folder) for _ in range(2)]
        said = sorted(job.result().strip() for job in jobs)
    assert said[0] == "cached 0 of 1" and said[1].endswith("of 1")
    files = {file: file.read_bytes() for file in tmp_path.iterdir()}
    assert not [file for file in files if file.name.startswith(".")]  # nothing half-written
    for file, data in files.items():
        file.write_bytes(data[: len(data) // 2] + b"\0" * 64)
    assert "cached 0 of 1" in run(PROGRAM, JAXMBD_LANES_CACHE=folder)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == files


def test_a_cache_that_cannot_be_written():
    places = ["/proc/no/such/folder", "", "/dev/null/x"]
    program = PROGRAM + textwrap.dedent(
        f"""
        import os
        for k, place in enumerate({places[1:]}):
            os.environ["JAXMBD_LANES_CACHE"] = place
            y = lanes.vmap(lambda x: (k + 2.0) * x, strict=True)(x)
            assert np.array_equal(y, (k + 2.0) * x)
        print("then", sum(c.cached for c in cpu._TARGETS.values()), "of", len(cpu._TARGETS))
        """
    )
    said = run(program, JAXMBD_LANES_CACHE=places[0])
    assert "cached 0 of 1" in said and "then 0 of 3" in said


def test_what_is_kept_is_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXMBD_LANES_CACHE", str(tmp_path))
    assert disk.read("a") is None
    disk.write("a", b"code")
    assert disk.read("a") == b"code"
    (tmp_path / "a").write_bytes(b"")
    assert disk.read("a") is None
    (tmp_path / "b").mkdir()
    assert disk.read("b") is None
    disk.write("b", b"code")  # a folder stands there: nothing is written, nothing raised
    assert disk.read("b") is None


def test_sixteen_threads_call_at_once():
    fn = jax.jit(lanes.vmap(lambda x: jnp.tanh(x) * x, strict=True))
    xs = [np.linspace(0.0, k, 4099) for k in range(16)]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda x: np.asarray(fn(x)), xs * 4))
    for x, y in zip(xs * 4, found, strict=True):
        np.testing.assert_allclose(y, np.tanh(x) * x, rtol=1e-14)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_compiles_and_runs():
    program = PROGRAM + textwrap.dedent(
        """
        import os, warnings
        warnings.simplefilter("ignore")
        import ctypes
        from jaxmbd.lanes.kernel import Kernel
        k = Kernel(jax.make_jaxpr(fn)(x[0]), (True,))
        pid = os.fork()  # XLA's threads stay behind: the kernel itself must still run
        if pid == 0:
            ir = k.emitter(k.lanes()).module()
            address = cpu.function(ir, "kernel")
            call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2,
                                    ctypes.c_void_p)(address)
            outs = [np.empty(len(x)), np.empty(x.shape)]
            ptr = lambda arrays: (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
            scratch = np.empty(1000)
            call(ptr([x]), ptr(outs), 0, len(x), scratch.ctypes.data)
            good = np.allclose(outs[0], ref[0]) and np.allclose(outs[1], ref[1])
            os._exit(0 if good else 3)
        _, status = os.waitpid(pid, 0)
        print("child", os.waitstatus_to_exitcode(status))
        """
    )
    assert "child 0" in run(program)


def test_another_argument_list_needs_no_new_kernel():
    before = len(lanes.kernel.CODES)
    fn = jax.jit(lanes.vmap(lambda x, y: x * y + 1.0, in_axes=(0, None), strict=True))
    for k in range(3):
        np.testing.assert_allclose(fn(np.arange(5.0), k), np.arange(5.0) * k + 1.0)
    assert len(lanes.kernel.CODES) == before + 1
