"""Scheduling of straight-line code: orders, spill plans, and kernels with unchanged results."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.lanes.codegen import schedule
from jaxmbd.lanes.codegen.emit import Emitter
from jaxmbd.lanes.codegen.schedule import LOOP, NEVER, STRAIGHT, Plan, arrange
from jaxmbd.lanes.kernel import Kernel
from jaxmbd.lanes.targets import cpu


def random_program(seed: int, n: int = 400) -> tuple[list[list[int]], list[bool], list[bool]]:
    """Nodes with up to four earlier operands each; which are live-out, which need no register."""
    rng = np.random.default_rng(seed)
    args = [
        sorted({int(max(0, k - 1 - rng.integers(1 + min(k, 60)))) for _ in range(rng.integers(5))})
        if k
        else []
        for k in range(n)
    ]
    kept = (rng.random(n) < 0.03).tolist()
    kept[-1] = True
    return args, kept, (rng.random(n) < 0.05).tolist()


@pytest.mark.parametrize("least", [LOOP, STRAIGHT])
@pytest.mark.parametrize("seed", range(8))
def test_every_node_comes_once_and_after_what_it_needs(seed: int, least: float) -> None:
    args, kept, free = random_program(seed)
    order = arrange(args, kept, free, least)
    assert sorted(order) == list(range(len(args)))
    place = {x: i for i, x in enumerate(order)}
    assert all(place[a] < place[x] for x in order for a in args[x])


@pytest.mark.parametrize("room", [6, 13, 29])
@pytest.mark.parametrize("seed", range(8))
def test_a_plan_keeps_every_value_until_its_last_use(seed: int, room: int) -> None:
    """Simulates registers and stack slots: operands must be in registers, and pressure bounded."""
    args, kept, _ = random_program(seed)
    extra = [k % 5 == 0 for k in range(len(args))]
    plan = Plan(range(len(args)), args, kept, [2 * e for e in extra], room)
    last = {a: i for i, needs in enumerate(args) for a in needs}
    last |= {a: NEVER for a, k in enumerate(kept) if k}
    registers: set[int] = set()
    memory: dict[int, int] = {}
    for i, step in enumerate(plan.steps):
        for value, slot in step.stores:
            assert value in registers, "stored from a register"
            assert last.get(memory.get(slot, -1), -1) < i, "the place is still needed"
            memory[slot] = value
            registers.discard(value)
        for value, slot in step.loads:
            assert memory[slot] == value
            registers.add(value)
        assert set(args[step.node]) <= registers
        registers.add(step.node)
        registers = {x for x in registers if last.get(x, -1) > i}
        in_memory = set(memory.values())
        assert len(registers - in_memory) <= room
    for x, k in enumerate(kept):
        assert not k or x in registers or memory[plan.slot[x]] == x
    assert plan.slots == len(memory)
    assert plan.stores == sum(len(step.stores) for step in plan.steps)


def test_arranging_spares_stores() -> None:
    """Forty sums of products of the same forty values, in an order of high register pressure."""
    n = 40
    values = list(range(n))
    args: list[list[int]] = [[] for _ in values]
    products = {}
    for i in values:
        for j in values:
            if j <= i:
                products[i, j] = len(args)
                args.append([i, j] if i != j else [i])
    ends = []
    for i in values:
        before = products[i, 0]
        for j in range(1, i + 1):
            args.append([before, products[i, j]])
            before = len(args) - 1
        ends.append(before)
    kept = [False] * len(args)
    for end in ends:
        kept[end] = True
    nothing = [0] * len(args)
    plain = Plan(range(len(args)), args, kept, nothing, 29).stores
    order = arrange(args, kept, [False] * len(args), STRAIGHT)
    assert Plan(order, args, kept, nothing, 29).stores < 0.3 * plain


@jax.custom_jvp
def guarded(x: jax.Array) -> jax.Array:
    return jnp.where(x > 0.0, jnp.sqrt(jnp.where(x > 0.0, x, 1.0)), x)


guarded.defjvp(lambda p, t: (guarded(*p), t[0]))


def program(a: jax.Array, b: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Long, with blocks and packed rows, pairs of sine and cosine, pivots, masks and aliases."""
    m = jnp.outer(jnp.sin(a), jnp.cos(a)) + jnp.outer(jnp.cos(a), jnp.sin(a)) + 4.0 * jnp.eye(9)
    pivots = []
    for k in range(9):
        pivots.append(m[0, 0])
        column = m[1:, 0] / pivots[-1]
        m = m[1:, 1:] - column[:, None] * m[None, 0, 1:]
        b = 0.5 * jnp.cross(b, column[:3] if k < 6 else a[:3]) + 0.1 * guarded(x) + b
    d = jnp.stack(pivots)
    return jnp.where(d > b[0], d, -a) / d, jax.lax.fori_loop(
        0, 3, lambda _, y: 0.1 * jnp.sin(y) @ jnp.outer(y, a[:3]) + y, b
    )


@pytest.mark.parametrize("registers", [16, 32])
def test_an_arranged_kernel_gives_the_same_numbers(registers: int) -> None:
    rng = np.random.default_rng(0)
    ins = [rng.normal(size=(16, 9)), rng.normal(size=(16, 3)), rng.normal(size=(16, 1))[:, 0]]
    kernel = Kernel(jax.make_jaxpr(program)(*(x[0] for x in ins)), (True,) * 3)
    results = []
    for r in (0, registers):
        emitter = Emitter(kernel.graph, 4, 3, 2, registers=r)
        outs = [np.zeros((16, 9)), np.zeros((16, 3))]
        address = cpu.function(emitter.module(), "kernel")
        assert (emitter.w.waiting > 0) == (r > 0)
        call = ctypes.CFUNCTYPE(
            None, *[ctypes.c_void_p] * 2, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
        )(address)
        scratch = np.zeros(4 * emitter.scratch_slots + 8)
        pointers = [(ctypes.c_void_p * len(x))(*(y.ctypes.data for y in x)) for x in (ins, outs)]
        call(*pointers, 0, 16, scratch.ctypes.data)
        results.append(outs)
    expected = jax.jit(jax.vmap(program))(*ins)
    for plain, arranged, reference in zip(*results, expected, strict=True):
        np.testing.assert_allclose(arranged, plain, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(arranged, reference, rtol=1e-12, atol=1e-13)


def test_what_a_loop_does_not_change_stays_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product before the loop is not recomputed in the loop to fuse it with an addition."""
    monkeypatch.setattr(schedule, "SHORT", 1)

    def run(a: jax.Array, y: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 5, lambda _, y: jnp.sin(y) + a * a[::-1], y)

    kernel = Kernel(jax.make_jaxpr(run)(jnp.ones(3), jnp.ones(3)), (True, True))
    counts = []
    for registers in (0, 16):
        emitter = Emitter(kernel.graph, 4, 2, 1, registers=registers)
        emitter.module()
        counts.append(emitter.operations)
    assert counts[0] == counts[1]


def test_aliases_of_what_all_samples_share() -> None:
    """`stop_gradient` of a parameter that is uniform over the batch."""

    @jax.custom_jvp
    def kept(x: jax.Array) -> jax.Array:
        return x

    kept.defjvp(lambda p, t: (jax.lax.stop_gradient(p[0]), 0.0 * t[0]))

    def law(x: jax.Array, k: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(x * kept(k)) / kept(k))

    def gradient(vmap: Callable[..., Any]) -> Any:
        total = vmap(law, in_axes=(0, None))
        return jax.jit(jax.grad(lambda x, k: total(x, k).sum(), (0, 1)))(x, jnp.asarray(1.7))

    x = np.linspace(-1.0, 1.0, 1280).reshape(8, 160)
    for found, reference in zip(gradient(lanes.vmap), gradient(jax.vmap), strict=True):
        np.testing.assert_allclose(found, reference, rtol=1e-12, atol=1e-14)


def test_one_sample_is_computed_by_scalar_code_with_planned_spills() -> None:
    def fn(x, y):
        for _ in range(3):
            x = jnp.outer(x, y) @ jnp.sin(y) + jnp.where(x > y, x / (2.0 + y), y)
        return x

    x, y = np.linspace(-1.0, 1.0, 12), np.linspace(0.3, 0.9, 12)
    single = Kernel(jax.make_jaxpr(fn)(x, y), (False, False))
    assert single.lanes() == 1
    lines = single.emitter(1).kernel().splitlines()
    assert not any("<" in line for line in lines)
    assert sum("load volatile" in line for line in lines) > 100
    found = lanes.jit(fn, strict=True)(x, y)
    np.testing.assert_allclose(found, fn(x, y), rtol=1e-12)
    many = lanes.vmap(fn, in_axes=(0, None), strict=True)(np.stack([x, y]), y)
    np.testing.assert_allclose(found, many[0], rtol=1e-12)
