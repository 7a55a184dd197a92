"""Monte Carlo: draw samples, evaluate them in chunks on all devices, compute the spread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxmbd import lanes

Samples = Mapping[str, np.ndarray]
Progress = Callable[[Iterable[Any]], Iterable[Any]]


class Normal(NamedTuple):
    """Normally distributed about the nominal value, each number independently.

    Attributes:
        sigma: standard deviation, in the unit of the number.
    """

    sigma: float

    def draw(self, rng: np.random.Generator, nominal: np.ndarray, count: int) -> np.ndarray:
        """`count` samples (count, …) about `nominal` (…)."""
        return nominal + self.sigma * rng.standard_normal((count, *nominal.shape))


class Uniform(NamedTuple):
    """Uniformly distributed from ``nominal·(1 − fraction)`` to ``nominal·(1 + fraction)``."""

    fraction: float

    def draw(self, rng: np.random.Generator, nominal: np.ndarray, count: int) -> np.ndarray:
        """`count` samples (count, …) about `nominal` (…)."""
        return nominal * (1.0 + self.fraction * rng.uniform(-1.0, 1.0, (count, *nominal.shape)))


def draw(
    nominal: Mapping[str, Any], scatter: Mapping[str, Normal | Uniform], count: int, seed: int
) -> dict[str, np.ndarray]:
    """Draw `count` samples about nominal inputs; the same seed gives the same samples.

    Args:
        nominal: name to number or array.
        scatter: name to distribution; inputs without one are not varied.
        count: number of samples.
        seed: seed of the random numbers.

    Returns:
        name to array (count, …).

    Example:
        >>> from jaxmbd.campaign import Normal, draw
        >>> draw({"x": 1.0, "y": 2.0}, {"x": Normal(0.1)}, count=3, seed=0)["y"]
        array([2., 2., 2.])
    """
    if unknown := sorted(scatter.keys() - nominal.keys()):
        raise ValueError(f"scatter names {unknown}, which are no inputs: {list(nominal)}")
    rng = np.random.default_rng(seed)
    values = {name: np.asarray(x, np.float64) for name, x in nominal.items()}
    return {
        name: scatter[name].draw(rng, x, count) if name in scatter else np.stack([x] * count)
        for name, x in values.items()
    }


def evaluate(
    function: Callable[[dict[str, Any]], dict[str, Any]],
    samples: Samples,
    *,
    chunks: int = 8,
    progress: Progress | None = None,
) -> dict[str, np.ndarray]:
    """Apply a function of one sample to all, in chunks that each use all cores or all devices.

    The function is compiled once, to one kernel of `lanes.vmap`, which is kept for further calls
    with the same function. The last chunk is padded with copies of the last sample. Ctrl-C stops
    the chunk that runs.

    Args:
        function: one sample (a dictionary) to its outputs (a dictionary of arrays).
        samples: name to array (n, …).
        chunks: number of chunks.
        progress: wraps the iteration over the chunks (`progress_bar`).

    Returns:
        name to array (n, …).

    Raises:
        ValueError: there is no sample, or the arrays have different numbers of samples.
    """
    devices = jax.devices()
    samples = {name: np.asarray(x) for name, x in samples.items()}
    count = _count(samples)
    size = -(-count // max(1, min(chunks, count)))
    size = -(-size // len(devices)) * len(devices)
    sharding = NamedSharding(Mesh(np.array(devices), ("sample",)), PartitionSpec("sample"))
    try:
        batched = _kept(function, sharding)
    except TypeError:  # it cannot be hashed, as a module with arrays
        batched = _batched(function, sharding)
    parts = []
    for start in (progress or list)(range(0, count, size)):
        rows = np.minimum(np.arange(start, start + size), count - 1)
        chunk = {name: x[rows] for name, x in samples.items()}
        outputs = lanes.finished(batched(jax.device_put(chunk, sharding)))
        parts.append(jax.tree_util.tree_map(np.asarray, outputs))
    return {n: np.concatenate([p[n] for p in parts])[:count] for n in parts[0]} if parts else {}


def _batched(function: Callable[..., Any], sharding: NamedSharding) -> Callable[..., Any]:
    """The function of a batch, compiled for the devices of a sharding."""
    fn, spec = lanes.vmap(function), sharding.spec
    if sharding.num_devices > 1:
        fn = jax.shard_map(fn, mesh=sharding.mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return jax.jit(fn)


_kept = lru_cache(16)(_batched)


def _count(samples: Samples) -> int:
    shapes = {name: x.shape for name, x in samples.items()}
    if len({shape[:1] for shape in shapes.values()}) != 1 or () in shapes.values():
        raise ValueError(f"samples must be arrays (n, …) with one n for all; given: {shapes}")
    (count,) = {shape[0] for shape in shapes.values()}
    if count == 0:
        raise ValueError(f"there is no sample to evaluate; given: {shapes}")
    return count


class Spread(NamedTuple):
    """Spread of one number over the samples that succeeded.

    Attributes:
        nominal: value of the nominal mechanism.
        mean, std: NaN if there is no sample (std: fewer than two).
        low, high: smallest and largest value.
        worst: the value farthest from the nominal one.
        sample: index of that sample, -1 if there is none.
    """

    nominal: float
    mean: float
    std: float
    low: float
    high: float
    worst: float
    sample: int


def spread(values: np.ndarray, ok: np.ndarray, nominal: float) -> Spread:
    """Mean, standard deviation and extremes of `values` (n,) over the samples that are `ok` (n,).

    Example:
        >>> import numpy as np
        >>> from jaxmbd.campaign import spread
        >>> spread(np.array([1.0, np.nan, 3.0]), np.array([True, False, True]), 1.5).sample
        2
    """
    rows = np.flatnonzero(ok)
    x = np.asarray(values)[rows]
    if not rows.size:
        nan = float("nan")
        return Spread(nominal, nan, nan, nan, nan, nan, -1)
    far = int(np.argmax(np.abs(x - nominal)))
    std = float(x.std(ddof=1)) if rows.size > 1 else float("nan")
    return Spread(
        nominal, float(x.mean()), std, float(x.min()), float(x.max()), float(x[far]), int(rows[far])
    )
