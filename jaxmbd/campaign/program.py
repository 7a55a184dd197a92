"""A function of one sample as a compiled program over chunks of samples, on all cores or devices.

The program is traced once; the number of samples does not matter. Each sample is computed by
itself, so that its result does not depend on the chunk that it is in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxmbd import lanes


class Program:
    """A function of one sample, `{name: value} -> {name: array}`, over a leading sample axis.

    Args:
        function: the function, plain JAX.
        example: one sample, for names and shapes.
    """

    def __init__(self, function: Callable[..., Any], example: Mapping[str, np.ndarray]):
        devices = jax.devices()
        self.devices = len(devices)
        self.sharding = NamedSharding(Mesh(np.array(devices), ("sample",)), PartitionSpec("sample"))
        self.function = function
        fn = lanes.vmap(function)
        spec = self.sharding.spec
        if self.devices > 1:
            fn = jax.shard_map(
                fn, mesh=self.sharding.mesh, in_specs=spec, out_specs=spec, check_vma=False
            )
        self._batched = jax.jit(fn)
        self._example = {name: np.asarray(x) for name, x in example.items()}

    @cached_property
    def _traced(self) -> Any:
        rows = {n: np.stack([x] * self.devices) for n, x in self._example.items()}
        return self._batched.trace(jax.device_put(rows, self.sharding))

    @property
    def outputs(self) -> dict[str, jax.ShapeDtypeStruct]:
        """Shape and type of each output of one sample."""
        info = self._traced.out_info
        return {n: jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for n, x in info.items()}

    @cached_property
    def digest(self) -> str | None:
        """What the program computes (`lanes.digest`)."""
        return lanes.digest(self._traced.jaxpr)

    def __call__(self, samples: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs of all samples; each array has the sample axis first."""
        samples = {name: np.asarray(x) for name, x in samples.items()}
        count = len(next(iter(samples.values())))
        size = -(-count // self.devices) * self.devices
        rows = np.minimum(np.arange(size), count - 1)
        padded = {n: x if size == count else x[rows] for n, x in samples.items()}
        found = lanes.finished(self._batched(jax.device_put(padded, self.sharding)))
        return {name: np.asarray(x)[:count] for name, x in found.items()}
