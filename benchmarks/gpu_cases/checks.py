"""Checks before anything is timed: small programs of all kinds on the GPU against the host's XLA.

The sizes of batches are those at the edges of warps, and more than run at a time. With scratch for
few warps, these take turns or loop over the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gpu_cases.runs import on_host
from jaxmbd import lanes
from jaxmbd.lanes.targets import cuda

SIZES = (1, 31, 33, 64, 65, 4097, 70_001)
"""The last one is more than a large GPU runs at a time."""
FEW_SIZES = (33, 70_001)
SHORT = 1 << 16
"""Bytes of scratch, which is that of a few warps of these programs."""
NEEDY = ("scanned", "pulled_back")  # of scratch
ULPS = 500
Function = Callable[[Any, Any], Any]


def programs(change: float = 0.0) -> dict[str, Function]:
    """Functions of one sample by name.

    Args:
        change: of a constant in each: another value makes another kernel.
    """
    tenth, table = 0.1 + change, np.sin(np.arange(40.0) + change).reshape(8, 5)

    def elementary(x: Any, y: Any) -> Any:
        z = jnp.tanh(x) + jnp.arctan2(x, y) + jnp.exp(-(y**2)) * jnp.cos(1e5 * x) + change
        return z @ y, jnp.where(x > 0, jnp.sqrt(jnp.abs(x)), jnp.sin(y)), x < y

    def scanned(x: Any, y: Any) -> Any:
        def step(c: Any, k: Any) -> Any:
            c = 0.9 * c + tenth * jnp.sin(c[::-1] + k * y)
            return c, c

        return lax.scan(step, x, jnp.arange(7, dtype=x.dtype))

    def looping(x: Any, y: Any) -> Any:
        def going(s: Any) -> Any:
            return jnp.abs(s[1][0]) > tenth

        return lax.while_loop(going, lambda s: (s[0] + 1, 0.75 * s[1]), (0, x))

    def indexed(x: Any, y: Any) -> Any:
        k = jnp.argmax(x)
        row = lax.dynamic_index_in_dim(jnp.asarray(table, x.dtype), k, keepdims=False)
        return row[:3] * y[k], lax.dynamic_update_index_in_dim(x, y[0], k, 0), x[::-1] * row[k]

    def solved(x: Any, y: Any) -> Any:
        return jnp.linalg.cholesky(jnp.outer(x, x) + (1.0 + tenth) * jnp.eye(3, dtype=x.dtype)) @ y

    def total(x: Any, y: Any) -> Any:
        return jnp.sum(scanned(x, y)[1] ** 2) + elementary(x, y)[0] + x[jnp.argmax(y)]

    def pulled_back(x: Any, y: Any) -> Any:
        return jax.grad(total, (0, 1))(x, y)

    found = (elementary, scanned, looping, indexed, solved, total, pulled_back)
    return {f.__name__: f for f in found}


def failures(place: Any, memory: int) -> list[str]:
    """What differs, one text each, with the program, its number type and the batch.

    Args:
        place: the device, for JAX.
        memory: of the device [bytes].
    """
    found: list[str] = []
    for dtype, sizes in (("float64", SIZES), ("float32", FEW_SIZES)):
        for name, fn in programs().items():
            found += _differences(name, fn, dtype, sizes, place)
    with short_scratch(memory):
        for name, fn in programs(1e-3).items():
            if name in NEEDY:
                found += _differences(f"{name}, short scratch", fn, "float64", (4097,), place)
    return found


@contextmanager
def short_scratch(memory: int) -> Iterator[None]:
    """Kernels compiled in this context get `SHORT` bytes of scratch."""
    usual = cuda.SCRATCH_SHARE
    cuda.SCRATCH_SHARE = max(1, memory // SHORT)
    try:
        yield
    finally:
        cuda.SCRATCH_SHARE = usual


def _differences(
    name: str, fn: Function, dtype: str, sizes: tuple[int, ...], place: Any
) -> list[str]:
    rng = np.random.default_rng(3)
    x, y = (rng.normal(size=(max(sizes), 3)).astype(dtype) for _ in range(2))
    with on_host():
        expected = jax.tree_util.tree_map(np.asarray, jax.jit(jax.vmap(fn))(x, y))
    call, found = jax.jit(lanes.vmap(fn, strict=True)), []
    for size in sizes:
        title = f"{name}, {dtype}, batch {size}"
        try:
            out = call(*jax.device_put((x[:size], y[:size]), place))
            wrong = count_differing(out, expected)
        except Exception as error:  # the others are still to be told
            found.append(f"{title}: {type(error).__name__}: {error}"[:300])
            break
        if wrong:
            found.append(f"{title}: {wrong} samples differ from jax.vmap on the host")
    return found


def count_differing(found: Any, expected: Any) -> int:
    """Samples that differ by more than `ULPS` roundings of an array's largest entry.

    Args:
        found: arrays, samples first.
        expected: the same with as many samples or more.
    """
    wrong: Any = False
    pairs = zip(*map(jax.tree_util.tree_leaves, (found, expected)), strict=True)
    for a, b in pairs:
        a = np.asarray(a)
        b = b[: len(a)]
        if a.dtype != b.dtype or a.shape != b.shape:
            return len(a)
        limit = 0.0
        if a.dtype.kind == "f":
            limit = ULPS * np.finfo(a.dtype).eps * max(1.0, float(np.abs(b).max()))
        far = ~(np.abs(a.astype(float) - b.astype(float)) <= limit)  # NaN is far
        wrong = wrong | far.reshape(len(a), -1).any(axis=1)
    return int(np.sum(wrong))
