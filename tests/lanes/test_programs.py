"""lanes.vmap agrees with jax.vmap on programs: value, JVP and VJP, nested, from many threads.

Most are random. Cut a failing one short with `program(seed, steps=n)` to find the step at fault.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from random_programs import grid, mode, program

from jaxmbd import lanes
from jaxmbd.lanes import kernel
from jaxmbd.lanes.codegen import pieces
from jaxmbd.lanes.recent import Recent

SIZES = (1, 7, 8, 9, 33)
GROUP = 5  # seeds a test
TOLERANCE = 500  # rounding units of the type, relative to what a leaf holds at its largest


def dtype_of(seed: int):
    return np.float32 if seed % 5 == 4 else np.float64


def batch(rng, example, size: int, dtype):
    """The example with some leaves batched at random, and the axes to map over."""
    floats, rest = example
    axes = jax.tree.map(lambda x: None if rng.random() < 0.25 else 0, example)
    axes[0]["a"] = int(rng.integers(floats["a"].ndim + 1))  # at least one is, along any axis

    def draw(x, axis):
        shape = x.shape if axis is None else (*x.shape[:axis], size, *x.shape[axis:])
        if x.dtype == bool:
            return rng.random(shape) < 0.5
        return (
            rng.integers(4, size=shape).astype(x.dtype)
            if x.dtype == np.int32
            else grid(rng, shape, dtype)
        )

    leaves = [draw(x, axis) for x, axis in zip(*map(_leaves, (example, axes)), strict=True)]
    return jax.tree.unflatten(jax.tree.structure(example), leaves), axes


def _leaves(tree):
    return jax.tree.leaves(tree, is_leaf=lambda x: x is None)


def draw_like(rng, tree):
    return jax.tree.map(lambda x: rng.normal(size=x.shape).astype(x.dtype), tree)


def results(mapped, args, tangents, cotangents, kind: str) -> dict:
    """Value, JVP and VJP, as far as the program has them."""
    floats, rest = args

    def of_floats(floats):
        return mapped(floats, rest)

    found = {"value": mapped(floats, rest)}
    if kind != "reverse":
        found["jvp"] = jax.jvp(of_floats, (floats,), (tangents,), has_aux=True)
    if kind != "forward":
        value, pull, other = jax.vjp(of_floats, floats, has_aux=True)
        found["vjp"] = (value, other, pull(cotangents))
    return found


def difference(found, expected) -> float:
    """Difference of a leaf in rounding units; infinite if type, shape or integers differ."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return np.inf
    if found.dtype.kind != "f":
        return 0 if np.array_equal(found, expected) else np.inf
    scale = np.finfo(found.dtype).eps * max(1.0, np.abs(expected).max(initial=0))
    off = np.abs(found - expected).max(initial=0) / scale
    return np.inf if np.isnan(off) else float(off)


def compare(found, expected) -> list[str]:
    """The leaves that differ by more than the tolerance."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    leaves = zip(jax.tree.leaves_with_path(expected), jax.tree.leaves(found), strict=True)
    return [
        f"{jax.tree_util.keystr(path)}: off by {off:.3g} rounding units"
        for (path, y), x in leaves
        if not (off := difference(x, y)) < TOLERANCE
    ]


def disagreements(seed: int) -> list[str]:
    """The differences between lanes.vmap and jax.vmap for one random program."""
    rng = np.random.default_rng([seed, 1])
    dtype, kind = dtype_of(seed), mode(seed)
    fn, example = program(seed, dtype)
    args, axes = batch(rng, example, SIZES[rng.integers(len(SIZES))], dtype)
    tangents = draw_like(rng, args[0])
    reference = jax.jit(jax.vmap(fn, in_axes=axes))  # traced once for all three
    cotangents = draw_like(rng, jax.eval_shape(reference, *args)[0])

    def run(mapped):
        return jax.jit(lambda a, t, c: results(mapped, a, t, c, kind))(args, tangents, cotangents)

    expected = run(reference)
    found = run(lanes.vmap(fn, in_axes=axes, strict=True))
    return [f"seed {seed}{problem}" for problem in compare(found, expected)]


def check(seeds) -> None:
    problems = []
    for seed in seeds:
        try:
            problems += disagreements(seed)
        except Exception as error:
            problems.append(f"seed {seed}: {type(error).__name__}: {error}")
    assert not problems, "\n".join(problems)


slow = partial(pytest.param, marks=pytest.mark.slow)


def group(first):
    return slow(range(first, first + GROUP), id=str(first))


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(0, GROUP, 2), id="0"),
        slow(range(1, GROUP, 2), id="1"),
        *map(group, range(GROUP, 200, GROUP)),
    ],
)
def test_random_programs_agree(seeds):
    check(seeds)


SMALL = [pytest.param(range(5, 10, 2), id="5"), slow(range(6, 10, 2), id="6"), group(0)]


@pytest.mark.parametrize("seeds", SMALL)
def test_random_programs_agree_in_small_pieces(seeds, monkeypatch):
    """All code is scheduled, and split into pieces at inconvenient positions."""
    monkeypatch.setenv(
        "JAXMBD_LANES_CACHE", ""
    )  # neither finds nor leaves kernels of the usual size
    monkeypatch.setattr(kernel, "CODES", Recent(100))
    monkeypatch.setattr(pieces, "SHORT", 1)
    monkeypatch.setattr(pieces, "LONG", 40)
    check(seeds)


def busy(x, y):
    """One sample's mixture of loops, branches and factorisations."""
    lower = jnp.linalg.cholesky(x @ x.T + jnp.eye(3))
    n, z = lax.while_loop(lambda s: abs(s[1]) > 0.1, lambda s: (s[0] + 1, s[1] / 2), (0, y))
    _, path = lax.scan(lambda c, row: (jnp.sin(c) + row[0], c), z, x)
    return {"path": path, "lower": (lower, n), "chosen": x[jnp.argmax(path)]}


def samples(size):
    rng = np.random.default_rng(1)
    return rng.normal(size=(size, 3, 3)), rng.normal(size=size)


def assert_agree(found, expected):
    assert not (problems := compare(found, expected)), "\n".join(problems)


def test_nesting():
    x, y = (a.reshape(3, 5, *a.shape[1:]) for a in samples(15))
    expected = jax.vmap(jax.vmap(busy))(x, y)
    for outer, inner in ((lanes.vmap, lanes.vmap), (jax.vmap, lanes.vmap), (lanes.vmap, jax.vmap)):
        assert_agree(jax.jit(outer(inner(busy)))(x, y), expected)

    def steps(vmap):
        def step(c, k):
            path = vmap(busy, in_axes=(0, None))(c, k)["path"]
            return c * 0.9 + 0.1 * path[:, None], path.sum()

        return jax.jit(lambda x, y: lax.scan(step, x, y))

    assert_agree(steps(lanes.vmap)(x[0], y[0]), steps(jax.vmap)(x[0], y[0]))


def smooth(p, x):
    _, ys = lax.scan(lambda c, row: (jnp.tanh(c @ p + row), c), x[0], x)
    return jnp.sum(jnp.sin(ys) ** 2) + jnp.linalg.norm(x @ p)


def test_higher_derivatives():
    x, p = samples(9)[0], np.eye(3) + 0.1

    def derivatives(vmap):
        def total(p, x):
            return vmap(smooth, in_axes=(None, 0))(p, x).sum()

        hessians = vmap(jax.hessian(smooth), in_axes=(None, 0))(p, x)
        return jax.jacfwd(jax.jacrev(total))(p, x), jax.grad(total, (0, 1))(p, x), hessians

    assert_agree(
        jax.jit(lambda: derivatives(lanes.vmap))(), jax.jit(lambda: derivatives(jax.vmap))()
    )


def test_long_rollout_and_its_gradient():
    """A damped pendulum, 1000 steps, every state saved."""
    state, gain = samples(9)[0][:, 0, :2], np.linspace(0.5, 2, 9)

    def rollout(state, gain):
        def step(s, k):
            s = s + 0.01 * jnp.stack([s[1], -gain * jnp.sin(s[0]) - 0.3 * s[1]])
            return s, (s, k)

        return lax.scan(step, state, jnp.arange(1000))

    def loss(vmap):
        def run(state, gain):
            (_, (path, _)) = out = vmap(rollout)(state, gain)
            return (path**2).mean(), out

        return jax.jit(jax.value_and_grad(run, (0, 1), has_aux=True))

    assert_agree(loss(lanes.vmap)(state, gain), loss(jax.vmap)(state, gain))


def test_threads():
    """Sixteen threads that call a new kernel at once get the result of a single caller."""
    x, y = samples(5000)
    mapped = lanes.vmap(lambda x, y: busy(x + 0.25, y), strict=True)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: mapped(x, y), range(64)))
    assert_agree(found[0], jax.jit(jax.vmap(lambda x, y: busy(x + 0.25, y)))(x, y))
    for other in found[1:]:
        jax.tree.map(np.testing.assert_array_equal, other, found[0])
