"""What a study evaluates: a function of one sample, or a mechanism and what to observe of it.

A `Model` is of one sample, a `Program` of many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxmbd import lanes
from jaxmbd.analysis import Status
from jaxmbd.model import Mechanism
from jaxmbd.observe import Axis, Output
from jaxmbd.variables import (
    Parametrization,
    Variable,
    find_variables,
    mechanism_of,
)

Sample = dict[str, Any]


class Model:
    """A function of one sample, with what is known of its inputs and outputs.

    Args:
        model: a function ``{name: value} -> {name: array}``; with `observe`, a function
            ``{name: value} -> Mechanism``, or a `Mechanism`, whose inputs are variables by path.
            A `Parametrization` is such a function that knows its inputs.
        observe: an experiment of `jaxmbd.observe`, or any function ``Mechanism -> {name: array}``.

    Attributes:
        outputs: name to `Output`, as declared by the experiment; empty for a function.
        coords: axis to `Axis`, as declared.
    """

    def __init__(self, model: Any, observe: Callable[[Mechanism], Mapping[str, Array]] | None):
        if isinstance(model, Mechanism) and observe is None:
            raise ValueError(
                "Study(mechanism, …) needs observe=: an experiment of jaxmbd.observe, or a "
                "function Mechanism -> {name: array}"
            )
        if observe is not None and not callable(observe):
            raise ValueError(
                f"observe= is a {type(observe).__name__}; give an experiment of jaxmbd.observe, as "
                "Sweep({…}, {'a name': an observable}), or a function Mechanism -> {name: array}"
            )
        if not callable(model) and not isinstance(model, Mechanism):
            raise ValueError(f"a study needs a Mechanism or a function, not {model!r}")
        self.model: Any = model
        self.observe: Any = observe
        self.outputs: dict[str, Output] = {}
        self.coords: dict[str, Axis] = {}
        self._declared: Mechanism | None = None

    def declare(self, nominal: Sample, found: list[str]) -> None:
        """Ask the experiment for its outputs; its problems are added to `found`."""
        declare = getattr(self.observe, "declare", None)
        if declare is None:
            return
        mech = self.mechanism(nominal)
        problems = self.observe.problems(mech)
        found += problems
        if not problems:
            self.outputs, self.coords = declare(mech)
            self._declared = mech

    def warn(self) -> None:
        """Warn of what the experiment tells of the nominal mechanism."""
        warn = getattr(self.observe, "warn", None)
        if warn is not None and self._declared is not None:
            warn(self._declared)

    @property
    def find(self) -> Callable[[str], Mapping[str, Variable]] | None:
        """Variables by name or pattern; None if the function takes any name."""
        known = isinstance(self.model, (Mechanism, Parametrization))
        return partial(find_variables, self.model) if known else None

    def mechanism(self, sample: Mapping[str, Any]) -> Mechanism:
        """The mechanism of a sample.

        Raises:
            ValueError: the study is of a function that shows no mechanism.
        """
        if self.observe is None:
            raise ValueError("this study is of a function {name: value} -> {name: array}")
        return mechanism_of(self.model, dict(sample))

    def observed(self, sample: Sample) -> dict[str, Array]:
        """Outputs of one sample as the function or the experiment gives them."""
        if self.observe is None:
            found = self.model(dict(sample))
        else:
            found = self.observe(self.mechanism(sample))
        if not isinstance(found, Mapping):
            what = "observe" if self.observe is not None else "the function of a study"
            raise ValueError(f"{what} must return {{name: array}}, not a {type(found).__name__}")
        return {name: jnp.asarray(x) for name, x in found.items()}

    def __call__(self, sample: Sample) -> dict[str, Array]:
        """Outputs of one sample, with `status`; NaN, apart from the reasons, if it failed."""
        found = self.observed(sample)
        status = _status(found)
        reasons = {name for name, about in self.outputs.items() if about.role == "reason"}
        blank = {
            name: jnp.where(status == Status.OK, x, jnp.nan)
            if jnp.issubdtype(x.dtype, jnp.floating) and name not in reasons
            else x
            for name, x in found.items()
        }
        return {**blank, "status": status}


def _status(found: Mapping[str, Array]) -> Array:
    """The status that the function gives; if it gives none, whether its outputs are finite."""
    numbers = [x for x in found.values() if jnp.issubdtype(x.dtype, jnp.floating)]
    finite = jnp.all(jnp.array([jnp.all(jnp.isfinite(x)) for x in numbers]))
    unknown = jnp.where(finite, Status.OK, Status.NON_FINITE)
    given = jnp.asarray(found.get("status", unknown))
    # Of another kind it is refused, by its type, when outputs are settled.
    return given.astype(jnp.int32) if jnp.issubdtype(given.dtype, jnp.integer) else given


class Program:
    """A function of one sample as a compiled program over chunks, on all cores or devices.

    It is traced once, whatever the number of samples. Each sample is computed by itself, so that
    its result does not depend on the chunk that it is in.

    Args:
        function: `{name: value} -> {name: array}`, plain JAX.
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
