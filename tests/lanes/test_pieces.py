"""Long kernels, in pieces and many basic blocks: the same numbers as whole ones."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.lanes.codegen import schedule, writer
from jaxmbd.lanes.kernel import CODES
from jaxmbd.lanes.targets import cpu


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


def compiled(monkeypatch, block, short, run):
    """What `run` returns, with blocks of `block` lines; and their number beyond one."""
    texts, target = [], cpu.target
    monkeypatch.setattr(writer, "LONG_BLOCK", block)
    monkeypatch.setattr(schedule, "SHORT", short)
    with monkeypatch.context() as m:
        m.setattr(cpu, "target", lambda ir, *rest: (texts.append(ir), target(ir, *rest))[1])
        m.setenv("JAXMBD_LANES_CACHE", "")  # else the kernel would be found on disk
        CODES.things.clear()
        found = jax.tree_util.tree_map(np.asarray, run())
    return found, sum(text.count("br i1 %never") for text in texts)


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


@pytest.mark.parametrize(
    "run", [values, gradient, pytest.param(one_sample, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("block", "short"),
    [(40, 50), *(pytest.param(*x, marks=pytest.mark.slow) for x in [(200, 50), (40, 1 << 30)])],
)
def test_long_kernels_give_the_same_numbers(run, block, short, monkeypatch):
    """To the bit: a cut does not part a product from the addition that it is fused into."""
    whole, none = compiled(monkeypatch, 1 << 30, short, run)
    assert none == 0
    cut, several = compiled(monkeypatch, block, short, run)
    assert several > 3
    for a, b in zip(*map(jax.tree_util.tree_leaves, (whole, cut)), strict=True):
        np.testing.assert_array_equal(a, b)


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

    found, _ = compiled(monkeypatch, 40, 1, lambda: run(partial(lanes.vmap, strict=True)))
    for a, b in zip(found, run(jax.vmap), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
