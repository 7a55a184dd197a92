"""Kernels that are written in parts: the same numbers, files on disk, threads, errors, Ctrl-C."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from repository import ROOT

from jaxmbd import lanes
from jaxmbd.lanes.codegen import parts, pieces
from jaxmbd.lanes.kernel import CODES
from jaxmbd.lanes.targets import cpu, disk, machine_code
from jaxmbd.lanes.targets.side_by_side import SideBySide


def program(x, y, k):
    """Loops among pieces of code, with masks, reciprocals and function pairs used far apart."""
    far = x > 0.3
    turned = jnp.stack([jnp.sin(x * k), jnp.cos(x * k)])
    a = jnp.outer(x, y) / k
    for _ in range(3):
        a = jnp.tanh(jnp.where(far, a @ jnp.outer(y, x), a / (2.0 + x * x)) + k * jnp.sin(a))
    z = jax.lax.fori_loop(0, 4, lambda i, z: jnp.sin(z) + a @ z / k, y)

    def step(state):
        z, n = state
        return 0.5 * z + jnp.where(far, a[0], turned[0]), n + 1

    z, n = jax.lax.while_loop(lambda s: (jnp.sum(s[0] ** 2) > 9.0) & (s[1] < 20), step, (z, 0))
    rare = lanes.rarely(jnp.max(z) > 2.0, lambda z, x, k: z / k + jnp.sin(x * k), z, z, x, k)
    for _ in range(3):
        a = a * turned[1] + jnp.outer(rare, x) / (2.0 + x * x)
    return a, jnp.where(far, rare, z) + turned[0], n


def arguments():
    rng = np.random.default_rng(0)
    return rng.normal(size=(37, 5)), rng.normal(size=(37, 5)), np.asarray(1.3)


def compiled(monkeypatch, least, size, run, short):
    """What `run` returns, with kernels in parts from `least` nodes; and the number of parts."""
    sent = []
    monkeypatch.setattr(parts, "LEAST", least)
    monkeypatch.setattr(parts, "SIZE", size)
    monkeypatch.setattr(pieces, "SHORT", short)
    add = cpu.Parts.add
    with monkeypatch.context() as m:
        m.setattr(cpu.Parts, "add", lambda self, text: (sent.append(text), add(self, text))[1])
        m.setenv("JAXMBD_LANES_CACHE", "")  # else the kernel would be found on disk
        CODES.things.clear()
        jax.clear_caches()
        return jax.tree_util.tree_map(np.asarray, run()), len(sent)


def values():
    return jax.jit(lanes.vmap(program, in_axes=(0, 0, None), strict=True))(*arguments())


def gradient():
    def total(*args):
        a, b, _ = lanes.vmap(smooth, in_axes=(0, 0, None), strict=True)(*args)
        return jnp.sum(a) + jnp.sum(b)

    def smooth(x, y, k):
        a = jnp.outer(x, y) / k
        for _ in range(3):
            b = jnp.where(x > 0.3, a @ jnp.outer(y, x), a / (2.0 + x * x))
            a = jnp.tanh(b + k * jnp.sin(a))
        z = jax.lax.fori_loop(0, 4, lambda i, z: jnp.sin(z) + a @ z / k, y)
        return a, z, jnp.cos(x * k)

    return jax.jit(jax.grad(total, (0, 1, 2)))(*arguments())


def one_sample():
    x, y, k = arguments()
    return jax.jit(lanes.jit(program, strict=True))(x[0], y[0], k)


@pytest.mark.parametrize("run", [values, gradient, one_sample])
@pytest.mark.parametrize(("size", "short"), [(40, 50), (300, 50), (40, 1 << 30)])
def test_parts_give_the_same_numbers(run, size, short, monkeypatch):
    """But for roundings: a cut may part a product from an addition that it would be fused into."""
    whole, none = compiled(monkeypatch, 1 << 30, size, run, short)
    cut, several = compiled(monkeypatch, 0, size, run, short)
    assert none == 0
    assert several > 3
    for a, b in zip(*map(jax.tree_util.tree_leaves, (whole, cut)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_aliases_of_what_all_samples_share_in_a_loop_and_after_it(monkeypatch):
    """Of a uniform value that waits in memory, broadcast in a body that may be skipped."""

    def law(x, k):
        u, s = jax.lax.stop_gradient(x), jax.lax.stop_gradient(jnp.sin(k))

        def step(state):
            n, y = state
            return n + 1, 0.9 * y * s + jnp.sin(y * u) + 0.1

        _, y = jax.lax.while_loop(lambda c: (c[0] < 5) & (abs(c[1]) < 0.5), step, (0, u))
        return y * x * s * s * k + jnp.cos(x * s) * k

    def run(vmap):
        total = vmap(law, in_axes=(0, None))
        x = jnp.linspace(-1.0, 1.0, 19)
        return jax.jit(jax.grad(lambda x, k: total(x, k).sum(), (0, 1)))(x, jnp.asarray(0.7))

    found, _ = compiled(monkeypatch, 0, 300, lambda: run(partial(lanes.vmap, strict=True)), 1)
    for a, b in zip(found, run(jax.vmap), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_short_kernel_is_whole(monkeypatch):
    def run():
        return jax.jit(lanes.vmap(lambda x: jnp.sin(x) @ x, strict=True))(np.ones((9, 3)))

    assert compiled(monkeypatch, parts.LEAST, parts.SIZE, run, pieces.SHORT)[1] == 0


PROGRAM = """
import sys
import jax, numpy as np, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
from jaxmbd import lanes
from jaxmbd.lanes.codegen import parts
from jaxmbd.lanes.targets import cpu
parts.LEAST, parts.SIZE = 0, 60
compiled = []
compile_object = cpu.compile_object
cpu.compile_object = lambda ir: (compiled.append(ir), compile_object(ir))[1]
def fn(x):
    for _ in range(4):
        x = jax.lax.fori_loop(0, 4, lambda _, y: jnp.sin(y) + jnp.outer(x, y) @ y, x) / 2
    return x
out = jax.jit(lanes.vmap(fn, strict=True))(np.linspace(0.1, 0.9, 15).reshape(5, 3))
print(np.asarray(out).tobytes().hex())
print(len(compiled), file=sys.stderr)
"""


def test_a_second_process_finds_the_parts_and_makes_those_that_are_gone(tmp_path, monkeypatch):
    def run():
        environment = os.environ | {"JAXMBD_LANES_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-W", "error", "-c", PROGRAM]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout, int(done.stderr)

    numbers, all_of_them = run()
    assert all_of_them > 3
    assert run() == (numbers, 0)
    (index,) = tmp_path.glob("lanes_parts_*")
    monkeypatch.setenv("JAXMBD_LANES_CACHE", str(tmp_path))
    entry = disk.read(index.name)
    assert entry is not None
    (tmp_path / entry.decode().split()[1]).unlink()
    assert run() == (numbers, 1)
    index.write_bytes(b"torn")
    assert run() == (numbers, 0)


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch):
    def fails(ir):
        raise RuntimeError("LLVM is out of order")

    monkeypatch.setattr(disk, "read", lambda key: None)
    with cpu.Parts() as some:
        some.add("this is no module")
        with pytest.raises(RuntimeError, match="parsing"):
            some.results()
    monkeypatch.setattr(cpu, "compile_object", fails)
    with cpu.Parts() as some:
        some.add("a part")
        with pytest.raises(RuntimeError, match="out of order"):
            cpu.target("no kernel", "no handler", 0, some)


def test_what_waits_is_dropped_when_the_caller_is_interrupted():
    begun, gate, done = threading.Event(), threading.Event(), []

    def work(text):
        begun.set()
        gate.wait(30)
        done.append(text)

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), SideBySide(work) as some:
        for k in range(100):
            some.add(str(k))
        begun.wait(30)
        raise KeyboardInterrupt
    assert time.monotonic() - start < 20  # it did not wait for what runs
    gate.set()
    time.sleep(0.2)
    assert len(done) < 100


def module(k):
    lines = [f"  %v{i + 1} = fadd double %v{i}, {float(i + k)}" for i in range(500)]
    return "\n".join([f"define double @f{k}(double %v0) {{", *lines, "  ret double %v500", "}"])


def test_threads_generate_machine_code_at_once():
    texts = [module(k) for k in range(24)]
    expected = [cpu.compile_object(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(cpu.compile_object, texts)) == expected


@pytest.mark.parametrize("locked", [True, False])
def test_machine_code_is_that_of_llvmlite(locked, monkeypatch):
    """Also if llvmlite should have no such function."""
    import llvmlite.binding as llvm

    if locked:
        monkeypatch.setattr(machine_code, "_generate", lambda: None)
    else:
        assert machine_code._generate() is not None
    text = llvm.parse_assembly(module(3))
    assert machine_code.emit(cpu.machine(), text) == cpu.machine().emit_object(text)
