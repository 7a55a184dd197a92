"""Factorisations of small matrices in kernels, and what follows from them, against LAPACK's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes

RNG = np.random.default_rng(3)
COUNT = 12


def several(make):
    return np.stack([make() for _ in range(COUNT)])


def rotation(n):
    return np.linalg.qr(RNG.normal(size=(n, n)))[0]


def matrices(n):
    """Square matrices of every kind that a factorisation may stumble over, (9 COUNT, n, n)."""
    falling, ill = np.logspace(0, -12, n), np.diag(np.logspace(0, -14, n))
    kinds = [
        lambda: RNG.normal(size=(n, n)),
        lambda: rotation(n) @ ill @ rotation(n),
        lambda: falling[:, None] * RNG.normal(size=(n, n)) * falling,
        lambda: falling[::-1, None] * RNG.normal(size=(n, n)) * falling[::-1],
        lambda: np.eye(n)[RNG.permutation(n)],
        lambda: RNG.integers(-1, 2, size=(n, n)).astype(float),  # with ties, and often singular
        lambda: 1e30 * RNG.normal(size=(n, n)),
        lambda: 1e-30 * RNG.normal(size=(n, n)),
        lambda: np.outer(RNG.normal(size=n), RNG.normal(size=n)),
    ]
    return np.concatenate([several(kind) for kind in kinds])


def sizes(a):
    """The largest magnitude of each matrix or vector."""
    return np.abs(a).max(axis=tuple(range(1, a.ndim)))


def within(limit, missed, scale):
    """Whether what is missed is within a limit of each scale: zero, where that is."""
    return (sizes(missed) <= limit * scale).all()


def everything(a, b):
    lu, pivots, order = jax.lax.linalg.lu(a)
    w, v = jnp.linalg.eigh(a + a.T)
    again = jax.lax.linalg.lu_pivots_to_permutation(pivots, len(a) + 1)
    return {"lu": lu, "pivots": pivots, "order": order, "again": again, "w": w, "v": v,
            "x": jnp.linalg.solve(a, b), "inverse": jnp.linalg.inv(a),
            "determinant": jnp.linalg.det(a), "log": jnp.linalg.slogdet(a)}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_backward_errors(n, dtype):
    """Each is the exact answer for numbers that differ by a few rounding units, as LAPACK's are."""
    a, b = matrices(n).astype(dtype), RNG.normal(size=(9 * COUNT, n)).astype(dtype)
    found = jax.jit(lanes.vmap(everything, strict=True))(a, b)
    assert {x.dtype for k, x in found.items() if k in ("lu", "w", "v", "x")} == {np.dtype(dtype)}
    eps = np.finfo(dtype).eps
    a, b = a.astype(float), b.astype(float)
    f = {k: np.asarray(x, float) for k, x in found.items() if k not in ("order", "log")}

    lower = np.tril(f["lu"], -1) + np.eye(n)
    permuted = np.take_along_axis(a, np.asarray(found["order"])[..., None], axis=1)
    assert np.abs(lower).max() <= 1.0
    assert within(4 * eps, permuted - lower @ np.triu(f["lu"]), sizes(a))
    np.testing.assert_array_equal(found["again"][:, :n], found["order"])

    solved = np.isfinite(f["x"]).all(axis=1)
    assert solved[: 2 * COUNT].all()
    x, a_, b_ = f["x"][solved], a[solved], b[solved]
    missed = np.einsum("bij,bj->bi", a_, x) - b_
    assert within(8 * eps, missed, sizes(a_) * sizes(x) + sizes(b_))

    s, w, v = a + a.swapaxes(1, 2), f["w"], f["v"]
    assert within(12 * eps, s @ v - v * w[:, None], sizes(s))
    assert np.abs(v.swapaxes(1, 2) @ v - np.eye(n)).max() <= 8 * eps
    assert (np.diff(w, axis=1) >= 0).all()
    assert within(20 * eps, w - np.linalg.eigvalsh(s), sizes(s))


def orthogonal(a):
    (q, r), (u, s, vt) = jnp.linalg.qr(a, mode="complete"), jnp.linalg.svd(a)
    return {"q": q, "r": r, "u": u, "s": s, "vt": vt}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (5, 2), (2, 4)])
def test_backward_errors_of_orthogonal_factors(shape, dtype):
    """With all columns of the factors, which are orthogonal even where the matrix has no rank."""
    (m, n), k = shape, min(shape)
    a = matrices(max(shape))[:, :m, :n].astype(dtype)
    found = jax.jit(lanes.vmap(orthogonal, strict=True))(a)
    assert {x.dtype for x in found.values()} == {np.dtype(dtype)}
    eps, a = np.finfo(dtype).eps, a.astype(float)
    f = {name: np.asarray(x, float) for name, x in found.items()}
    for q in (f["q"], f["u"], f["vt"]):
        assert np.abs(q.swapaxes(1, 2) @ q - np.eye(q.shape[-1])).max() <= 8 * eps
    assert within(8 * eps, a - f["q"] @ f["r"], sizes(a))
    assert (np.tril(f["r"], -1) == 0.0).all()
    assert within(16 * eps, a - (f["u"][:, :, :k] * f["s"][:, None]) @ f["vt"][:, :k], sizes(a))
    assert (f["s"] >= 0.0).all() and (np.diff(f["s"], axis=1) <= 0.0).all()
    assert within(16 * eps, f["s"] - np.linalg.svd(a, compute_uv=False), sizes(a))
    expected = np.linalg.qr(a[:COUNT], mode="complete")  # of full rank: unique but for signs
    np.testing.assert_allclose(f["r"][:COUNT], expected[1], rtol=1e3 * eps, atol=1e3 * eps)


def test_what_singular_values_are_for():
    a, b = RNG.normal(size=(7, 5, 3)), RNG.normal(size=(7, 5))
    a[3, :, 2] = a[3, :, 0]  # of rank two: the shortest solution

    def fn(a, b):
        solved = jnp.linalg.lstsq(a, b)
        return solved, jnp.linalg.pinv(a), jnp.linalg.norm(a, 2), jnp.linalg.matrix_rank(a)

    found, expected = (jax.jit(m(fn))(a, b) for m in (lanes.vmap, jax.vmap))
    lanes.vmap(fn, strict=True)(a, b)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)
    assert found[-1].tolist() == [3, 3, 3, 2, 3, 3, 3]


def test_singular_values_of_matrices_without_numbers():
    a = np.stack([np.eye(3), np.full((3, 3), np.nan), np.diag([1e200, 1.0, 1e-200])])
    u, s, vt = lanes.vmap(jnp.linalg.svd, strict=True)(a)
    assert all(np.isnan(x[1]).all() for x in (u, s, vt)), "and the neighbours are not"
    np.testing.assert_array_equal(s[0], 1.0)
    np.testing.assert_allclose(s[2], [1e200, 1.0, 0.0], rtol=1e-15, atol=1e184)


@pytest.mark.parametrize("n", [2, 4])
def test_agreement_where_it_is_to_be_expected(n):
    """Pivots are LAPACK's at ties too, and infinities and NaN are where JAX has them."""
    rng = np.random.default_rng(n)
    a = np.concatenate([rng.integers(-1, 2, size=(40, n, n)), rng.normal(size=(40, n, n))])
    b = rng.normal(size=(80, n))
    found, expected = (jax.jit(m(everything))(a, b) for m in (lanes.vmap, jax.vmap))
    for name in ("pivots", "order", "again"):
        np.testing.assert_array_equal(found[name], expected[name])
    for x, y in zip(*(map(np.asarray, jax.tree.leaves(z)) for z in (found, expected)), strict=True):
        np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
        np.testing.assert_array_equal(np.isinf(x), np.isinf(y))
    for name in ("lu", "w", "determinant"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-13, atol=1e-13)
    distinct = np.linalg.cond(a) < 1e3
    assert distinct.sum() > 40
    for name in ("x", "inverse"):
        np.testing.assert_allclose(
            found[name][distinct], expected[name][distinct], rtol=1e-10, atol=1e-10
        )


def test_rectangular_matrices_and_given_exchanges():
    a, p = RNG.normal(size=(7, 3, 5)), RNG.integers(4, size=(7, 3)).astype(np.int32)

    def fn(a, p):
        both = jax.lax.linalg.lu(a), jax.lax.linalg.lu(a.T)
        return both, jax.lax.linalg.lu_pivots_to_permutation(p, 4)

    found, expected = (jax.jit(m(fn))(a, p) for m in (lanes.vmap, jax.vmap))
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)


def test_eigenvalues_of_matrices_with_equal_ones_and_without_numbers():
    u = rotation(4)
    special = [
        np.zeros((4, 4)), np.eye(4), np.ones((4, 4)), np.diag([3.0, -1.0, 3.0, 0.0]),
        u @ np.diag([1.0, 1.0, 1.0, 2.0]) @ u.T, np.diag([1e200, 1.0, 1e-200, -1e200]),
        1e200 * u @ np.diag([1.0, 2.0, 3.0, 4.0]) @ u.T,
    ]  # fmt: skip
    special = np.stack([0.5 * (a + a.T) for a in special])
    bad = np.stack([np.eye(4)] * 2)
    bad[0, 1, 2] = bad[0, 2, 1] = np.nan
    bad[1, 0, 0] = np.inf
    w, v = map(np.asarray, lanes.vmap(jnp.linalg.eigh, strict=True)(np.concatenate([special, bad])))
    assert np.isnan(w[-2:]).all() and np.isnan(v[-2:]).all(), "and the neighbours are not"
    w, v = w[:-2], v[:-2]
    assert within(1e-15, special @ v - v * w[:, None], sizes(special))
    np.testing.assert_allclose(v.swapaxes(1, 2) @ v, np.stack([np.eye(4)] * 7), atol=1e-15)
    np.testing.assert_array_equal(w[:2], [[0.0] * 4, [1.0] * 4])
    np.testing.assert_array_equal(w[5], [-1e200, 1e-200, 1.0, 1e200])


def test_small_eigenvalues_of_graded_matrices_have_all_digits():
    """LAPACK's have those of the largest one only."""
    d = np.logspace(0, -6, 4)
    core = np.eye(4) + 0.1 * np.ones((4, 4))
    w = lanes.vmap(jnp.linalg.eigvalsh, strict=True)((d[:, None] * core * d)[None])[0]
    # Of the inverse, whose largest is the smallest's reciprocal.
    inverse = np.linalg.inv(core) / d / d[:, None]
    np.testing.assert_allclose(w[0], 1.0 / np.linalg.eigvalsh(inverse)[-1], rtol=1e-14)


def eigen(a):
    w, v = jnp.linalg.eigh(a + a.T)
    return w, v**2


def singular(a):
    u, s, vt = jnp.linalg.svd(a, full_matrices=False)
    return u**2, s, vt**2


FUNCTIONS = {
    "solve": lambda a: jnp.linalg.solve(a, a[0]),
    "inverse": lambda a: jnp.linalg.inv(a),
    "determinant": lambda a: (jnp.linalg.det(a), jnp.linalg.slogdet(a)[1]),
    "factors": lambda a: jax.lax.linalg.lu(a)[0],
    "eigenvectors": eigen,
    "reflections": lambda a: jnp.linalg.qr(a[:, :2]),
    "singular vectors": singular,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    """First ones by differences, all by `jax.vmap`: reverse, and forward and reverse over it."""
    n = 4 if name == "determinant" else 3  # up to three rows JAX writes products
    x, dx = RNG.normal(size=(2, 5, n, n)) + np.array([2.0, 0.0])[:, None, None, None] * np.eye(n)

    def ways(mapped):
        def total(x):
            return sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(mapped(x)))

        def run(x):
            gradient = jax.grad(total)
            _, forward = jax.jvp(gradient, (x,), (dx,))
            _, pull = jax.vjp(gradient, x)
            _, slope = jax.jvp(total, (x,), (dx,))
            return gradient(x), forward, pull(dx)[0], slope

        return total, jax.jit(run)

    total, run = ways(lanes.vmap(FUNCTIONS[name], strict=True))
    found, expected = run(x), ways(jax.vmap(FUNCTIONS[name]))[1](x)
    for y, z in zip(found, expected, strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-9, atol=1e-11 * np.abs(z).max())
    h = 1e-5
    difference = (total(x + h * dx) - total(x - h * dx)) / (2 * h)
    np.testing.assert_allclose(np.sum(found[0] * dx), difference, rtol=1e-6)
    np.testing.assert_allclose(found[3], difference, rtol=1e-6)


def test_in_a_loop_that_is_differentiated():
    """Inside a scan Jacobi's own loop runs again in the adjoint, and is not differentiated."""

    def fn(x):
        def step(c, _):
            a = jnp.outer(c, c) + jnp.diag(jnp.sin(c) + jnp.arange(3.0))
            w, v = jnp.linalg.eigh(a)
            return jnp.tanh(w) * v[:, 0] ** 2 + 0.1 * jnp.linalg.solve(a, c), w

        c, w = jax.lax.scan(step, x, None, length=5)
        return jnp.sum(c) + jnp.sum(w)

    x = RNG.uniform(0.5, 1.5, (3, 3))
    found, expected = (
        jax.jit(jax.value_and_grad(lambda x, m=m: jnp.sum(m(fn)(x))))(x)
        for m in (lambda f: lanes.vmap(f, strict=True), jax.vmap)
    )
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-9)


def test_a_sample_does_not_depend_on_its_neighbours():
    """Those of a vector that need more rotations leave it as it is."""
    a = matrices(4)
    both = jax.jit(lanes.vmap(lambda a: jnp.linalg.eigh(a + a.T), strict=True))
    found, order = both(a), RNG.permutation(len(a))
    for x, y in zip(found, both(a[order]), strict=True):
        np.testing.assert_array_equal(np.asarray(x)[order], y)


@pytest.mark.parametrize(
    ("fn", "rows", "message"),
    [
        (lambda a: jax.lax.linalg.lu(a)[0], 25, "'lu'.* 25 × 25"),
        (jnp.linalg.eigvalsh, 9, "'eigh'.* 9 × 9"),
        (jnp.linalg.qr, 9, "'qr'.* 9 × 9"),
    ],
)
def test_larger_ones_fall_back_and_say_so(fn, rows, message):
    report = lanes.explain(fn, jnp.eye(rows))
    assert report.unsupported is not None
    with pytest.raises(lanes.Unsupported, match=message):
        lanes.vmap(fn, strict=True)(jnp.eye(rows)[None])
