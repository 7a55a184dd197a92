"""Each primitive that lanes compiles, with its edge cases, against jax.vmap."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.scipy.linalg import solve_triangular

from jaxmbd import lanes

TOLERANCE = 500  # rounding units
inf, nan = np.inf, np.nan
EDGES = np.array(
    [0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 1e-10, -1e-10, 700.5, -100, 1e5, inf, -inf, nan]
)
INTEGERS = np.array([0, 1, -1, 2, 3, -3, 7, -8, 31, 32, 100, 2**31 - 1, -(2**31)], np.int64)
MATRICES = np.random.default_rng(0).normal(size=(9, 3, 3))


def agree(found, expected, units=TOLERANCE):
    """Check trees, types, shapes and integers, and floats elementwise to some rounding units.

    Infinities and NaNs must be at the same positions.
    """
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    named = jax.tree_util.tree_leaves_with_path(expected)
    for y, (path, x) in zip(jax.tree.leaves(found), named, strict=True):
        name = jax.tree_util.keystr(path)
        assert (y.dtype, y.shape) == (x.dtype, x.shape), name
        if x.dtype.kind == "f":
            eps = units * np.finfo(x.dtype).eps
            np.testing.assert_allclose(y, x, rtol=eps, atol=eps, err_msg=name)
        else:
            np.testing.assert_array_equal(y, x, err_msg=name)


def check(fn, *args, **options):
    found = jax.jit(lanes.vmap(fn, strict=True, **options))(*args)
    agree(found, jax.jit(jax.vmap(fn, **options))(*args))


def every(functions):
    """A function that gives the results of all, by name: one kernel."""
    return lambda *x: {name: fn(*x) for name, fn in functions.items()}


UNARY = {
    name: getattr(jnp, name)
    for name in (
        "abs sign floor ceil trunc round rint negative square sqrt cbrt reciprocal sin cos tan "
        "arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log log2 log10 "
        "log1p isnan isinf isfinite logical_not nan_to_num signbit sinc positive"
    ).split()
} | {
    "rsqrt": lax.rsqrt,
    "logistic": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
    "relu": jax.nn.relu,
    "integer_pow": lambda x: (x**2, x**3, x**5, x**-1, x**-2, x**0),
    "half_power": lambda x: (abs(x) ** 0.5, abs(x) ** -0.5, abs(x) ** 1.5),
    "clamp": lambda x: (jnp.clip(x, -1, 2), jnp.clip(x, 0.5, None), jnp.clip(x, None, 1)),
    "where": lambda x: (jnp.where(x > 0, jnp.sqrt(x), -x), jnp.where(x != x, 0, x)),
    "select_n": lambda x: lax.select_n((x > 0).astype(jnp.int32) + (x > 1), x, 2 * x, 3 * x),
    "to_bool": lambda x: x.astype(bool),
    "to_float": lambda x: (x.astype(jnp.float32), x.astype(jnp.float64) + 1),
    "to_int": lambda x: [x.astype(t) for t in (jnp.int32, jnp.int64, jnp.uint8, jnp.uint32)],
}
BINARY = {
    name: getattr(jnp, name)
    for name in (
        "add subtract multiply divide remainder fmod power maximum minimum arctan2 hypot copysign "
        "equal not_equal less less_equal greater greater_equal logaddexp floor_divide fmax fmin"
    ).split()
}
INTEGER = {
    name: getattr(jnp, name)
    for name in (
        "add subtract multiply maximum minimum bitwise_and bitwise_or bitwise_xor equal less"
    ).split()
} | {
    "unary": lambda a, b: (~a, -a, abs(a), jnp.sign(a), a * a, a**3),
    "divide": lambda a, b: (lax.div(a, b), lax.rem(a, b), a // b, a % b),  # by zero too
    "by_constant": lambda a, b: (a // 3, a % 3, a // -3, a % -3, lax.rem(a, a.dtype.type(5))),
    "shift": lambda a, b: (a << b, a >> b, lax.shift_right_logical(a, b)),
    "cast": lambda a, b: (a.astype(jnp.int64), a.astype(float), a.astype(bool), (a > b) + a),
    "narrow": lambda a, b: (a.astype(jnp.int32), a.astype(jnp.int8), a.astype(jnp.uint8)),
    "logic": lambda a, b: ((a > 0) & (b > 0), (a > 0) | (b > 0), ~(a > 0), (a > 0) ^ (b > 0)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_unary(dtype):
    check(every(UNARY), EDGES.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_binary(dtype):
    a, b = (x.ravel().astype(dtype) for x in np.meshgrid(EDGES, EDGES))
    check(every(BINARY), a, b)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_integers(dtype):
    a, b = (x.ravel().astype(dtype) for x in np.meshgrid(INTEGERS, INTEGERS))
    check(every(INTEGER), a, b)


def _loop(trips):
    return lambda x: lax.fori_loop(0, trips(x), lambda i, c: c @ (0.1 * x) + i, x)


def _scan(length, **options):
    def step(c, x):
        return 0.5 * c + x, (c[0], jnp.argmax(x), c * x)

    return lambda x: lax.scan(step, x[0], jnp.resize(x, (length, 3)), **options)


ARRAYS = {
    "reshape": lambda x: (x.reshape(-1), x.ravel()[None], x.T, x[None, ..., None].squeeze(0)),
    "join": lambda x: (jnp.concatenate([x, x[:1]]), jnp.stack([x, x], -1), jnp.vstack([x, x[0]])),
    "pad": lambda x: (jnp.pad(x, 1), lax.pad(x, 7.0, ((-1, 2, 1), (0, -1, 2)))),
    "pad_edge": lambda x: (jnp.pad(x, 1, mode="edge"), jnp.pad(x, 1, mode="reflect")),
    "repeat": lambda x: (jnp.tile(x, (2, 1)), jnp.repeat(x, 2, axis=1), jnp.roll(x, 1, 1)),
    "slices": lambda x: (x[1:], x[::-1, ::2], x[..., -1], x[:0], x[2:0:-1, None], jnp.split(x, 3)),
    "triangle": lambda x: (jnp.tril(x), jnp.triu(x, 1), jnp.diag(x), jnp.diag(x[0]), jnp.trace(x)),
    "gather": lambda x: (x[jnp.array([2, 0, -1])], x[jnp.array([0, 1]), jnp.array([2, 2])]),
    "take": lambda x: (jnp.take(x, jnp.array([1, 1]), axis=1), jnp.take(x, 5, mode="clip")),
    "scatter": lambda x: (x.at[1].set(0), x.at[:, -1].add(x[0]), x.at[0].mul(3)),
    "scatter_twice": lambda x: [x.at[jnp.array([0, 0, 2])].add(x), x.at[jnp.array([1, 1])].max(1)],
    "scatter_more": lambda x: (x.at[1, 1].divide(3), x.at[1].min(0.2), x.at[0, 1].power(2)),
    "dynamic": lambda x: _dynamic(x, (5 * x[0, 0]).astype(int), jnp.argmax(x[1])),
    "iota": lambda x: (jnp.arange(3) * x, jnp.eye(3) + x, jnp.linspace(0, 1, 4) * x[0, 0]),
    "reduce": lambda x: (x.sum(), x.sum(0), x.prod(1), x.mean(), x.max(1), x.min(), x.var(0)),
    "reduce_bool": lambda x: ((x > 0).any(0), (x > 0).all(), (x > 0).sum(1), (x < 0).mean()),
    "argmax": lambda x: (jnp.argmax(x), jnp.argmin(x, axis=1), jnp.argmax(x // 1, axis=0)),
    "cumulative": lambda x: (jnp.cumsum(x), jnp.cumprod(x, 1), lax.cummax(x), lax.cummin(x, 1)),
    "norms": lambda x: (jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1), jax.nn.softmax(x, axis=0)),
    "dot": lambda x: (x @ x, x @ x[0], jnp.vdot(x, x), jnp.outer(x[0], x[1]), jnp.cross(x, x[0])),
    "einsum": lambda x: (jnp.einsum("bi,bj->bij", x, x), jnp.einsum("ij,jk,ki", x, x, x)),
    "det": lambda x: jnp.linalg.det(x),
    "cholesky": lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3)),
    "cholesky_fails": lambda x: jnp.isnan(jnp.linalg.cholesky(x + x.T + 2 * jnp.eye(3))).any(),
    "triangular": lambda x: [
        solve_triangular(x + 4 * jnp.eye(3), b, lower=l, trans=t, unit_diagonal=u)
        for b in (x, x[0]) for l in (True, False) for t in (0, 1) for u in (True, False)
    ],
    "triangular_right": lambda x: lax.linalg.triangular_solve(x + 4 * jnp.eye(3), x, lower=True),
    "interp": lambda x: jnp.interp(x, jnp.array([-1.0, 0, 0.5]), jnp.array([1.0, 3, 2])),
    "searchsorted": lambda x: jnp.searchsorted(jnp.array([-1.0, 0, 0.5]), x),
    "polynomial": lambda x: jnp.polyval(jnp.array([1.0, -2, 0.5, 3]), x),
    "cond": lambda x: lax.cond(x[0, 0] > 0, lambda x: (x @ x, 1), lambda x: (x, 2), x),
    "switch": lambda x: lax.switch((3 * x[0, 0]).astype(int), [jnp.sin, jnp.cos, jnp.tan], x),
    "scan": _scan(5),
    "scan_reverse": _scan(7, reverse=True),
    "scan_none": _scan(0),
    "scan_unrolled": _scan(5, unroll=2),
    "scan_no_inputs": lambda x: lax.scan(lambda c, _: (0.9 * c, c[0, 0]), x, None, length=12),
    "fori": _loop(lambda x: 4),
    "fori_data": _loop(lambda x: (3 * x[0, 0]).astype(int)),
    "while": lambda x: lax.while_loop(
        lambda s: s[1] > 0.1, lambda s: (s[0] + 1, s[1] / 2), (0, x[0, 0])
    ),
    "while_while": lambda x: lax.while_loop(
        lambda c: c.sum() > 0.1, lambda c: lax.fori_loop(0, 2, lambda i, c: c * 0.7 - 0.01, c), x
    ),
    "map": lambda x: lax.map(lambda row: jnp.sin(row) @ row, x),
    "associative_scan": lambda x: lax.associative_scan(jnp.matmul, jnp.stack([x, x.T, x])),
    "jit": lambda x: jax.jit(jax.checkpoint(lambda y: jnp.sin(x) * y))(x),
    "nothing": lambda x: {"a": [], "same": x, "constant": jnp.ones(2), "number": 1.5, "none": None},
}  # fmt: skip


def _dynamic(x, k, m):
    """Indices out of range are clamped, unlike in indexing, which fills or drops."""
    return (
        lax.dynamic_slice(x, (k, m), (2, 2)),
        lax.dynamic_update_slice(x, x[:2, :2], (m, k)),
        lax.dynamic_index_in_dim(x, k, 1, keepdims=False),
        x[m],
        x[m, jnp.clip(k, 0, 2)],
        x[k],
        x.at[m].set(0),
        x.at[k, m].add(1),
        x.at[k].get(mode="fill", fill_value=0),
        jnp.take_along_axis(x, jnp.array([[1, 2, 0]]) * (m > 0), axis=0),
    )


def test_arrays():
    check(every(ARRAYS), MATRICES)


def busy(x, y):
    """One sample's mixture of everything that could leak into its neighbours."""
    lower = jnp.linalg.cholesky(x @ x.T + jnp.eye(3, dtype=x.dtype))
    n, z = lax.while_loop(lambda s: abs(s[1]) > 0.1, lambda s: (s[0] + 1, s[1] / 2), (0, y))
    _, path = lax.scan(lambda c, row: (jnp.sin(c) + row[0], c), z, x)
    chosen = lax.cond(y > 0, lambda: x[jnp.argmax(path)], lambda: jnp.sin(x[0]) / y)
    return {"path": path, "lower": (lower, n), "chosen": jnp.where(y > 0.5, chosen, jnp.sqrt(y))}


def samples(size, dtype=np.float64, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(size, 3, 3)).astype(dtype), rng.normal(size=size).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 33, 1000])
def test_batch_sizes(size, dtype):
    check(busy, *samples(size, dtype))


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_a_bad_sample_stays_alone(bad):
    x, y = samples(27)
    y[:] = np.where(np.isfinite(y), y, 1)
    mapped = jax.jit(lanes.vmap(busy, strict=True))
    clean = mapped(x, y)
    poisoned = np.array([0, 5, 9, 15, 26])
    x[poisoned, 1, 0] = bad  # an infinite y would never leave the while loop
    others = np.delete(np.arange(27), poisoned)
    found = mapped(x, y)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(clean), strict=True):
        np.testing.assert_array_equal(a[others], b[others])
    assert np.isnan(found["lower"][0][poisoned]).any(axis=(1, 2)).all()


def test_trip_counts_differ_between_neighbours():
    trips = np.array([0, 1000, 1, 3, 0, 17, 999, 2, 5], np.int32)

    def count(n):
        return lax.fori_loop(0, n, lambda i, s: (s[0] + i, s[1] * 0.99 + 1), (0, 1.0))

    check(count, trips)


AXES = {
    "last": (-1, 0, lambda x, y: x * y),
    "shared": ((0, None), 0, lambda x, y: (x.sum(), y[0] * x)),
    "only_second": ((None, 1), 1, lambda x, y: jnp.stack([x[0], x[1] + y[0]])),
    "list": ([-1, 1], (-1, {"a": 1}), lambda x, y: (x[0], {"a": x * y[:, None].sum()})),
    "per_output": (0, (0, {"a": -1, "b": 1}), lambda x, y: (y, {"a": x, "b": [x, y]})),
}


@pytest.mark.parametrize("name", AXES)
def test_axes(name):
    into, out, fn = AXES[name]
    x = np.random.default_rng(2).normal(size=(4, 4, 4))
    check(fn, x, x, in_axes=into, out_axes=out)


def test_axes_of_a_tree():
    rng = np.random.default_rng(3)
    tree = {"a": rng.normal(size=(3, 5)), "b": [rng.normal(size=2), None], "c": (np.arange(5),)}
    axes = ({"a": 1, "b": None, "c": 0}, None)
    check(lambda t, s: (t["a"] * s, t["b"][0] * t["c"][0], t), tree, 2.5, in_axes=axes)


def test_an_output_all_samples_share():
    fn = lambda x, y: (x * y, 2 * y)  # noqa: E731
    check(fn, np.arange(5.0), np.ones(2), in_axes=(0, None), out_axes=(0, None))


@pytest.mark.parametrize(
    ("axes", "shapes"), [(0, [(7,), (8,)]), ((0, 1), [(7, 2), (7, 8)]), (None, [(7,), (7,)])]
)
def test_batch_sizes_that_differ_are_refused(axes, shapes):
    mapped = lanes.vmap(lambda x, y: x.sum() + y.sum(), in_axes=axes)
    with pytest.raises(ValueError, match="7.*8|8.*7|in_axes"):
        mapped(*map(np.ones, shapes))


UNSUPPORTED = {
    "schur": lambda x: jax.scipy.linalg.schur(x)[0],
    "fft": lambda x: jnp.fft.fft(x).real,
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported(name, recwarn):
    fn, x = UNSUPPORTED[name], samples(9)[0]
    with pytest.raises(lanes.Unsupported, match=f"{name}|complex"):
        lanes.vmap(fn, strict=True)(x)
    assert issubclass(lanes.Unsupported, NotImplementedError)
    recwarn.clear()
    agree(lanes.vmap(fn)(x), jax.vmap(fn)(x))
    told = [str(w.message) for w in recwarn if "lanes" in str(w.message)]
    assert len(told) == 1 and (name in told[0] or "complex" in told[0])
