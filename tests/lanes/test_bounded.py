"""`bounded_while`: values of `while_loop`, derivatives of unrolled loops, no needless iteration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpu_emulation import Machine, run

from jaxmbd import lanes
from jaxmbd.lanes.kernel import Kernel
from jaxmbd.lanes.targets import ptx

MOST = 70  # two scans of nine, and eleven iterations less
COUNTS = np.array([0.0, 1, 9, 3, 0, 70, 2, 500, 1, 9, 3])
X = np.random.default_rng(1).normal(size=(len(COUNTS), 3))
P = np.random.default_rng(2).normal(size=(len(COUNTS), 3))
K = jnp.asarray([0.7, -0.4, 1.1])


def by_lanes(fn, in_axes):
    return lanes.vmap(fn, in_axes, strict=True)


HOW = {"lanes": by_lanes, "xla": jax.vmap}


def drawn(seed):
    """A random body of y, a parameter of the sample and one shared by the batch."""
    rng = np.random.default_rng(seed)
    a = jnp.asarray(0.4 * rng.normal(size=(3, 3)))
    steps = (
        lambda y, p, k: jnp.sin(y * k) + 0.2 * p,
        lambda y, p, k: a @ y + jnp.tanh(p * k),
        lambda y, p, k: y[::-1] / (1.0 + y * y + k * k),
        lambda y, p, k: jnp.where(y > p, y * 0.9, 0.5 * y + 0.1 * jnp.exp(-k * k)),
        lambda y, p, k: y * jnp.sqrt(1.0 + p @ p) / (1.0 + y @ y),
    )
    chosen = [steps[j] for j in rng.choice(len(steps), 3, replace=False)]

    def body(y, p, k):
        for step in chosen:
            y = y + 0.02 * step(y, p, k)  # so that derivatives neither fade nor explode
        return y

    return body


def looped(body, most=MOST):
    """A scalar of the end of a loop whose number of iterations is data."""

    def fn(x, p, k, count):
        n, y = lanes.bounded_while(
            lambda s: s[0] < count, lambda s: (s[0] + 1.0, body(s[1], p, k)), (0.0, x), most
        )
        return (y @ jnp.cos(y)) + 0.1 * n * y[0]

    return fn


def unrolled(body, times):
    def fn(x, p, k):
        for _ in range(times):
            x = body(x, p, k)
        return (x @ jnp.cos(x)) + 0.1 * times * x[0]

    return fn


def masked(body, most=MOST):
    """The same without an early end, as JAX differentiates it."""

    def fn(x, p, k, count):
        def step(s, _):
            going = s[0] < count
            return (
                jnp.where(going, s[0] + 1, s[0]),
                jnp.where(going, body(s[1], p, k), s[1]),
            ), None

        n, y = jax.lax.scan(step, (0.0 * count, x), None, most)[0]
        return (y @ jnp.cos(y)) + 0.1 * n * y[0]

    return fn


AXES = (0, 0, None, 0)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("most", [1, 9, 70, 5000])
def test_values(how, most):
    def loop(while_loop):
        def fn(x, p, k, count):
            def cond(s):
                return (s[0] < count) & ((jnp.abs(s[1]).max() < 2.5) | (p[0] > 0))

            return while_loop(cond, lambda s: (s[0] + 1, drawn(0)(s[1], p, k)), (0, x))

        return fn

    def bounded(cond, body, init):
        return jax.lax.while_loop(lambda s: cond(s) & (s[0] < most), body, init)

    expected = jax.jit(jax.vmap(loop(bounded), AXES))(X, P, K, 99 * COUNTS)
    ours = loop(lambda *args: lanes.bounded_while(*args, most))
    found = jax.jit(HOW[how](ours, AXES))(X, P, K, 99 * COUNTS)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-10, atol=1e-12)
    assert found[0].min() == 0 and found[0].max() == most


@pytest.mark.parametrize(
    ("how", "seed"),
    [("lanes", 0), ("xla", 3), *(pytest.param("lanes", k, marks=pytest.mark.slow) for k in (1, 2))],
)
def test_first_derivatives(how, seed):
    """In both modes, of each sample's leaves and of one that the batch shares."""
    body, mapped = drawn(seed), HOW[how](looped(drawn(seed)), AXES)
    gradient = jax.jit(jax.grad(lambda *x: mapped(*x, COUNTS).sum(), (0, 1, 2)))(X, P, K)
    tangent = jax.jit(
        lambda *x: jax.jvp(lambda *y: mapped(*y, COUNTS), x, (jnp.cos(X), P, jnp.sin(K)))[1]
    )(X, P, K)
    total = np.zeros(3)
    for k, count in enumerate(COUNTS):
        times = int(min(count, MOST))
        fn = unrolled(body, times) if times < 4 else lambda *x, n=count: masked(body)(*x, n)
        dx, dp, dk = jax.grad(fn, (0, 1, 2))(X[k], P[k], K)
        np.testing.assert_allclose(gradient[0][k], dx, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(gradient[1][k], dp, rtol=1e-9, atol=1e-11)
        along = dx @ np.cos(X[k]) + dp @ P[k] + dk @ np.sin(K)
        np.testing.assert_allclose(tangent[k], along, rtol=1e-9, atol=1e-11)
        total += dk
    np.testing.assert_allclose(gradient[2], total, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("how", "most"), [("lanes", MOST), ("xla", 9), pytest.param("lanes", 9, marks=pytest.mark.slow)]
)
def test_second_derivatives(how, most):
    def products(mapped):
        def gradient(x, k):
            return jax.grad(lambda x, k: mapped(x, P, k, COUNTS).sum(), (0, 1))(x, k)

        def forward(x, k):
            return jax.jvp(gradient, (x, k), (jnp.cos(x), jnp.sin(k)))[1]

        def reverse(x, k):
            return jax.vjp(gradient, x, k)[1]((jnp.cos(x), jnp.sin(k)))

        return jax.jit(lambda x, k: (forward(x, k), reverse(x, k)))(X, K)

    expected = products(jax.vmap(masked(drawn(1), most), AXES))[0]
    found = products(HOW[how](looped(drawn(1), most), AXES))
    for second in found:
        for a, b in zip(second, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("how", HOW)
def test_a_finished_sample_is_safe_from_its_body(how):
    """Which has no value or no derivative there; some never begin, and may not."""

    def rise(y, k):
        return lanes.bounded_while(
            lambda y: y < 1.0, lambda y: y + jnp.sqrt(1.0 - y) * jnp.sqrt(k), y, 100
        )

    # 0.75 rises to 1 and 0.91 to 1.21; the last two are there already.
    y, k = np.array([0.0, 0.75, 0.91, 0.5, 1.0, 2.0]), np.array([0.1, 0.25, 1.0, 0.3, 0.0, -1.0])
    mapped = HOW[how](rise, (0, 0))
    value = jax.jit(mapped)(y, k)
    grads = jax.jit(jax.grad(lambda *x: mapped(*x).sum(), (0, 1)))(y, k)
    rate = jax.jit(lambda *x: jax.jvp(mapped, x, (np.ones(6), np.ones(6)))[1])(y, k)
    for j in range(6):
        z, dy, dk = y[j], 1.0, 0.0
        while z < 1.0:
            root, gain = np.sqrt(1.0 - z), np.sqrt(k[j])
            dk = dk * (1.0 - 0.5 * gain / root) + 0.5 * root / gain
            dy, z = dy * (1.0 - 0.5 * gain / root), z + root * gain
        found = value[j], grads[0][j], grads[1][j], rate[j]
        np.testing.assert_allclose(found, (z, dy, dk, dy + dk), rtol=1e-10)


def saved(x, p, k, bounded):
    """Adaptive steps to each of several times, as a run makes them."""

    def step(state):
        t, y, end = state
        h = jnp.minimum(0.2 / (1.0 + y @ y), end - t)
        return t + h, y + h * (jnp.sin(y[::-1] * k) + p), end

    @jax.checkpoint
    def to(state, end):
        t, y, _ = bounded(lambda s: s[0] < s[2], step, (*state, end))
        return (t, y), y

    ends = jnp.asarray(np.linspace(0.3, 1.2, 7) ** 2, x.dtype)
    return jax.lax.scan(to, (jnp.zeros((), x.dtype), x), ends)[1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_inside_a_scan_with_checkpoints(dtype):
    def masked_loop(cond, body, init):
        def step(s, _):
            return jax.tree.map(lambda a, b: jnp.where(cond(s), a, b), body(s), s), None

        return jax.lax.scan(step, init, None, MOST)[0]

    def gradient(mapped, dtype):
        args = X.astype(dtype), 0.3 * P.astype(dtype), K.astype(dtype)
        fn = jax.grad(lambda *x: (mapped(*x) ** 2).sum(), (0, 1, 2))
        return jax.jit(lambda *x: (mapped(*x), *fn(*x)))(*args)

    def ours(*x):
        return saved(*x, lambda *loop: lanes.bounded_while(*loop, MOST))

    found = gradient(by_lanes(ours, AXES[:3]), dtype)
    expected = gradient(jax.vmap(lambda *x: saved(*x, masked_loop), AXES[:3]), np.float64)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == dtype
        scale = np.abs(b).max()
        np.testing.assert_allclose(
            a, b, rtol=0, atol=(2e-4 if dtype == np.float32 else 1e-11) * scale
        )


def test_under_vmap_inside_a_kernel():
    """Each entry has its own condition, and the loop goes on for all of them."""
    fn = looped(drawn(2), 12)

    def several(x, p, k, counts):
        return (jax.vmap(fn, AXES)(x, p, k, counts) ** 2).sum()

    x, p, counts = X[:10].reshape(5, 2, 3), P[:10].reshape(5, 2, 3), COUNTS[:10].reshape(5, 2)

    def gradient(mapped):
        return jax.jit(jax.value_and_grad(lambda *x: mapped(*x, counts).sum(), (0, 1, 2)))(x, p, K)

    def flat(x, p, k, counts):
        return by_lanes(fn, AXES)(x.reshape(10, 3), p.reshape(10, 3), k, counts.reshape(10)) ** 2

    found, expected = gradient(by_lanes(several, AXES)), gradient(flat)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def kernels(most):
    """The value and its pullback."""
    closed = jax.make_jaxpr(looped(drawn(3), most))(X[0], P[0], K, COUNTS[0])
    flags = (True, True, False, True)
    return Kernel(closed, flags), Kernel(closed, flags, ((True, True, False, False), (True,)))


def test_no_iteration_beyond_those_that_some_sample_takes():
    """A million of them would take minutes, and their states gigabytes."""
    value, pullback = kernels(10**6)
    for most, room in ((64, 64), (4096, 128), (10**6, 128)):
        e = kernels(most)[1].emitter(8)
        e.module()
        assert e.scratch_slots < 8 * room  # y, the counter and flags
    mapped = by_lanes(looped(drawn(3), 10**6), AXES)
    found = jax.jit(jax.value_and_grad(lambda x: mapped(x, P, K, COUNTS % 10).sum()))(X)
    short = by_lanes(looped(drawn(3), 9), AXES)
    expected = jax.jit(jax.value_and_grad(lambda x: short(x, P, K, COUNTS % 10).sum()))(X)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-12, atol=1e-14)


def test_iterations_are_skipped_in_derivatives_of_derivatives():
    """Forward over reverse mode differentiates JAX's own reverse sweep, a scan that always runs."""

    def fn(x, k):
        return lanes.bounded_while(lambda y: y < k, lambda y: y + jnp.exp(-y), x, 64)

    closed = jax.make_jaxpr(lambda x, k: jax.jvp(jax.grad(fn), (x, k), (k, x)))(0.3, 2.0)
    graph = Kernel(closed, (True, True)).graph

    def nodes(region, skipped):
        for n in region.nodes:
            yield n, skipped
            if n.op == "loop":
                yield from nodes(n.data.body, skipped or n.data.going is not None)

    found = [skipped for n, skipped in nodes(graph.base, False) if n.op == "exp"]
    assert found and all(found)


def test_on_gpus_by_emulation():
    for k, more in zip(kernels(MOST), ([], [np.cos(COUNTS)]), strict=True):
        args = [X, P, np.asarray(K), COUNTS, *more]
        shapes = [jax.ShapeDtypeStruct((len(X), *a.shape), a.dtype) for a in k.out_avals]
        expected = jax.ffi.ffi_call(k.compile_cpu().name, shapes)(*args)
        for a, b in zip(run(k, args, Machine()), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
        assert ".entry kernel" in ptx.generate(k.emitter(1, gpu=True).module())


def test_no_iterations_and_what_is_refused():
    assert lanes.bounded_while(lambda y: y < 3, lambda y: y + 1, 1, 0) == 1
    assert lanes.bounded_while(lambda y: y < 3, lambda y: y + 1, 1, 1) == 2

    t, y = lanes.bounded_while(
        lambda s: s[0] < 3, lambda s: (s[0] + s[1][0], s[1] * 2), (0, jnp.ones(2, jnp.float32)), 5
    )
    assert (t, y.dtype, t.dtype) == (3, jnp.float32, jnp.float32)  # as in while_loop

    def bounded(most=5, cond=lambda s: s["n"] < 3, body=lambda s: s):
        return lanes.bounded_while(cond, body, {"n": 0.0, "x": jnp.ones(3)}, most)

    with pytest.raises(ValueError, match="most=-1"):
        bounded(-1)
    with pytest.raises(ValueError, match="most=4294967296"):
        bounded(2**32)
    with pytest.raises(TypeError, match="give an integer"):
        bounded(2.5)
    with pytest.raises(TypeError, match="boolean without axes"):
        bounded(cond=lambda s: s["x"] < 3)
    with pytest.raises(TypeError, match=r"changes \['n'\] from float64\[\] to float64\[3\]"):
        bounded(body=lambda s: {**s, "n": s["x"]})
    with pytest.raises(TypeError, match="where the first value is"):
        bounded(body=lambda s: s["x"])


def test_a_loop_without_a_bound_names_this_one():
    def fn(x):
        return jax.lax.while_loop(lambda y: y < 3.0, lambda y: y * x, x)

    with pytest.raises(lanes.Unsupported, match="bounded_while"):
        jax.grad(lambda x: lanes.vmap(fn, strict=True)(x).sum())(jnp.full(3, 1.5))
