"""lanes.vmap agrees with jax.vmap on programs: value, JVP and VJP, nested, from many threads.

Most are random; `benchmarks/programs.py` has thousands more. Cut a failing one short with
`program(seed, steps=n)` to find the step at fault.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from program_comparisons import LONG, SHORT, both, compared, disagreements, dtype_of, problems

from jaxmbd import lanes
from jaxmbd.lanes.codegen.schedule import Plan
from jaxmbd.lanes.targets import cpu


def check(seeds) -> None:
    problems = []
    for seed in seeds:
        try:
            problems += [f"seed {seed}{x}" for x in disagreements(*both(seed, dtype_of(seed)))]
        except Exception as error:
            problems.append(f"seed {seed}: {type(error).__name__}: {error}")
    assert not problems, "\n".join(problems)


slow = partial(pytest.param, marks=pytest.mark.slow)


@pytest.mark.parametrize("seeds", [[0, 2], slow([1, *range(3, 20)], id="eighteen")])
def test_random_programs_agree(seeds):
    check(seeds)


@pytest.mark.parametrize("seeds", [range(3, 6), slow([6, *range(1000, 1016)], id="seventeen")])
@pytest.mark.parametrize("dtype", [np.float64, slow(np.float32)])
def test_random_programs_agree_in_small_pieces_and_blocks(seeds, dtype, monkeypatch):
    """At limits at which they are split, and spill, in all places. More: benchmarks/programs.py."""
    monkeypatch.setattr(cpu, "effort", 0)
    found = {seed: compared(seed, dtype, SHORT) for seed in seeds}
    wrong = [text for seed, each in found.items() for text in problems(seed, dtype, each)]
    assert not wrong, "\n".join(wrong)
    assert max(each["blocks"] for each in found.values()) > 5
    assert max(each["spills"] for each in found.values()) > 5


def test_a_wrong_plan_of_spills_gives_no_wrong_numbers(monkeypatch):
    """All values in one slot, which LLVM takes: the table of places finds it."""

    def first(plan):
        plan.slots = 1
        return 0

    monkeypatch.setattr(Plan, "_new_slot", first)
    monkeypatch.setattr(cpu, "effort", 0)
    found = [compared(seed, np.float64, SHORT, one=False) for seed in (1, 4, 6)]
    assert all("AssertionError" in each["failed"] for each in found), found


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_long_random_programs_agree_in_small_pieces_and_blocks(dtype, monkeypatch):
    monkeypatch.setattr(cpu, "effort", 0)
    for seed in range(4):
        found = compared(seed, dtype, LONG)
        assert not (wrong := problems(seed, dtype, found)), "\n".join(wrong)


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
    assert not (wrong := disagreements(found, expected)), "\n".join(wrong)


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
