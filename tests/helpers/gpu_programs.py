"""Kernels for tests of GPU code: small programs of all kinds, random ones, and mechanisms."""

import jax
import jax.numpy as jnp
import numpy as np
import random_programs
from jax import lax
from throughput_cases.catalogue import CASES
from throughput_cases.work import FORWARD, function

from jaxmbd.lanes.kernel import Kernel

SIZE = 70  # three warps, the last of them not full
TABLE = np.sin(np.arange(40.0)).reshape(8, 5)


def elementary(x, y):
    z = jnp.tanh(x) + jnp.arctan2(x, y) + jnp.exp(-(y**2)) * jnp.cos(1e12 * x)
    return z @ y, jnp.where(x > 0, jnp.sqrt(jnp.abs(x)), jnp.sin(y)), x < y


def scanned(x, y):
    def step(c, k):
        c = 0.9 * c + 0.1 * jnp.sin(c[::-1] + k * y)
        return c, (c, c[0] > c[1])

    last, (path, flags) = lax.scan(step, x, jnp.arange(7, dtype=x.dtype))
    return last, path, flags


def looping(x, y):
    def going(s):
        return jnp.abs(s[1][0]) > 0.1

    return lax.while_loop(going, lambda s: (s[0] + 1, 0.7 * s[1]), (0, x))


def indexed(x, y):
    k = jnp.argmax(x)
    table = jnp.asarray(TABLE)
    row = lax.dynamic_index_in_dim(table, k, keepdims=False)
    return row[:3] * y[k], lax.dynamic_update_index_in_dim(x, y[0], k, 0), x[::-1] * row[k]


def factored(x, y):
    a = 0.3 * jnp.outer(jnp.sin(x), jnp.sin(y)) + jnp.diag(jnp.arange(3, 0, -1).astype(x.dtype))
    solved, w = jnp.linalg.solve(a[::-1], y), jnp.linalg.eigvalsh(a + a.T)
    return solved, w, jnp.argsort(x), lax.top_k(y, 2)


def shared(x, y):
    """`x` is the same in all samples."""
    return jnp.outer(jnp.sin(x), y), jnp.linalg.cholesky(jnp.outer(x, x) + jnp.eye(3)) @ y


def stacked(x, y):
    """Each row is an argument."""

    def step(c, row):
        return jnp.sin(c * row) + row[::-1], c[1]

    pairs = lax.scan(step, y, jnp.stack([x, y]))
    return pairs, lax.scan(step, y, jnp.stack([x, y, y, x, jnp.ones_like(x)]), reverse=True)


def total(x, y):
    path = scanned(x, y)[1]
    return jnp.sum(path**2) + elementary(x, y)[0] + x[jnp.argmax(y)]


PROGRAMS = {
    f.__name__: f for f in (elementary, scanned, looping, indexed, factored, shared, stacked, total)
}


def small(name, dtype=np.float64, size=SIZE):
    """A kernel, its arguments, and a function for the results of `jax.vmap`."""
    fn = PROGRAMS[name.removesuffix(", pulled back")]
    rng = np.random.default_rng(3)
    flags = (fn is not shared, True)
    args = [rng.normal(size=(size, 3) if b else 3).astype(dtype) for b in flags]
    one = [x[0] if b else x for x, b in zip(args, flags, strict=True)]
    closed = jax.make_jaxpr(lambda *a: jax.tree.leaves(fn(*a)))(*one)
    if name in PROGRAMS:
        axes = tuple(0 if b else None for b in flags)
        return Kernel(closed, flags), args, lambda: by_vmap(fn, axes, args)
    args.append(rng.normal(size=size).astype(dtype))

    def pulled(x, y, c):
        return jax.vjp(fn, x, y)[1](c)

    k = Kernel(closed, flags, ((True, True), (True,)))
    return k, args, lambda: by_vmap(pulled, 0, args)


def by_vmap(fn, axes, args):
    found = jax.jit(jax.vmap(fn, in_axes=axes))(*args)
    return [np.asarray(x) for x in jax.tree.leaves(found)]


NAMES = (*PROGRAMS, "total, pulled back")


def kernel_of(fn, leaves, tree, *, pullback):
    """A kernel of a function of a pytree, or its pullback as far as arguments are floats."""
    closed = jax.make_jaxpr(lambda *a: jax.tree.leaves(fn(*jax.tree.unflatten(tree, a))))(*leaves)
    flags = (True,) * len(leaves)
    wanted, given = (
        tuple(x.dtype.kind == "f" for x in avals) for avals in (closed.in_avals, closed.out_avals)
    )
    return Kernel(closed, flags, (wanted, given) if pullback else None)


def cotangents(k, dtype, size):
    rng, own = np.random.default_rng(2), len(k.function.in_avals)
    return [rng.normal(size=(size, *a.shape)).astype(dtype) for a in k.in_avals[own:]]


def random_program(seed, dtype, *, pullback=False, size=33):
    """A kernel of a random program and its arguments; None if it has no pullback."""
    if pullback and random_programs.mode(seed) == "forward":
        return None
    fn, example = random_programs.program(seed, dtype)
    leaves, tree = jax.tree.flatten(example)
    rng = np.random.default_rng([seed, 4])
    k = kernel_of(fn, leaves, tree, pullback=pullback)
    args = [drawn(rng, np.asarray(x), size) for x in leaves]
    return k, args + cotangents(k, dtype, size)


def drawn(rng, example, size):
    shape = (size, *example.shape)
    if example.dtype == bool:
        return rng.random(shape) < 0.5
    if example.dtype.kind == "i":
        return rng.integers(4, size=shape).astype(example.dtype)
    return random_programs.grid(rng, shape, example.dtype)


def mechanism(name, work=FORWARD, dtype=np.float64, size=SIZE, *, steps=2, pullback=False):
    """A kernel of a case of the benchmark, and its arguments."""
    case = CASES[name]
    sample = case.draw(size, np.dtype(dtype).name, rest=work != FORWARD)
    args, tree = jax.tree.flatten(sample)
    k = kernel_of(function(case, work, steps), [x[0] for x in args], tree, pullback=pullback)
    return k, args + cotangents(k, dtype, size)


def on_host(k, args):
    """A kernel's results by the host."""
    size = next(len(x) for x, b in zip(args, k.in_batched, strict=True) if b)
    shapes = [jax.ShapeDtypeStruct((size, *a.shape), a.dtype) for a in k.out_avals]
    return [np.asarray(x) for x in jax.ffi.ffi_call(k.compile_cpu(batch=size).name, shapes)(*args)]


def assert_close(found, expected, ulps=500):
    """That results differ by no more than some roundings of the largest number of each."""
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        if y.dtype.kind == "f":
            scale = np.finfo(y.dtype).eps * max(1.0, np.abs(y).max())
            np.testing.assert_allclose(x, y, rtol=0, atol=ulps * scale)
        else:
            np.testing.assert_array_equal(x, y)
