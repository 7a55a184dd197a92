"""What a study evaluates, draws and observes: its model, its inputs and its outputs.

A `Model` is of one sample, a `Program` of many. Of inputs and outputs, and the coordinates of their
axes, follow the arrays of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxmbd import lanes
from jaxmbd.analysis import Status
from jaxmbd.campaign.store_layout import SAMPLE, Field, FixedArray
from jaxmbd.model import Mechanism
from jaxmbd.observe import XYZ, Axis, Output
from jaxmbd.plumbing import refuse
from jaxmbd.sampling import Distribution
from jaxmbd.variables import Parametrization, Variable, find_variables, in_si, mechanism_of

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


Find = Callable[[str], Mapping[str, Variable]]


@dataclass(frozen=True)
class Input:
    """One input of a study.

    Attributes:
        distribution: of `jaxmbd.sampling` or a frozen one of `scipy.stats`; None if it is fixed.
        nominal: number or array; by default the mechanism's own value.
        unit: SI unit; checked against the mechanism's where that is known.
        text: description.
        dims: names of its axes.

    Example:
        >>> from jaxmbd.campaign import Input
        >>> from jaxmbd.sampling import Normal
        >>> Input(Normal(1e-3), nominal=0.25, unit="m", text="length of the rod").unit
        'm'
    """

    distribution: Any = None
    nominal: Any = None
    unit: str = ""
    text: str = ""
    dims: tuple[str, ...] = ()


def read_inputs(given: Mapping[str, Any], find: Find | None, found: list[str]) -> dict[str, Input]:
    """Inputs with nominal values, from what a user gives.

    Args:
        given: name, or pattern of names such as ``"points/*"``, to a distribution, an `Input` or a
            number.
        find: the variables of the model by name or pattern; None if any name will do.
        found: problems are added to it.
    """
    inputs: dict[str, Input] = {}
    for name, entry in given.items():
        known: Mapping[str, Variable | None] = {name: None}
        if find is not None:
            try:
                known = find(name)
            except ValueError as error:
                found.append(f"input '{name}': {error}")
                continue
        for each, variable in known.items():
            if each in inputs:
                found.append(f"input '{each}' is given twice, the second time by '{name}'")
                continue
            inputs[each] = _settled(each, entry, variable, found)
    return inputs


def _settled(name: str, entry: Any, known: Variable | None, found: list[str]) -> Input:
    if not isinstance(entry, Input):
        fixed = entry is None or isinstance(entry, (int, float, str, list, tuple, np.ndarray))
        entry = Input(nominal=entry) if fixed else Input(distribution=entry)
    unit, text, nominal = entry.unit, entry.text, entry.nominal
    if known is not None:
        if unit and known.unit and unit != known.unit:
            found.append(f"input '{name}' is given in {unit!r}; the model has it in {known.unit!r}")
        unit, text = known.unit or unit, text or known.text
        nominal = known.value if nominal is None else nominal
    distribution, nominal = _in_si(name, entry.distribution, nominal, unit, found)
    if nominal is None:
        found.append(f"input '{name}' has no nominal value; give Input(distribution, nominal=…)")
        nominal = np.nan
    value = np.asarray(nominal, np.float64)
    if known is not None and value.shape != np.shape(known.value):
        shape = np.shape(known.value)
        found.append(f"input '{name}': nominal value of shape {value.shape}, the model has {shape}")
    elif not np.all(np.isfinite(value)):
        found.append(f"input '{name}': its nominal value {value.tolist()} is not finite")
    dims = tuple(entry.dims) or tuple(_axis(name, k, n) for k, n in enumerate(value.shape))
    if len(dims) != value.ndim:
        found.append(f"input '{name}' has {value.ndim} axes, but dims={list(dims)}")
    return Input(distribution, value, unit, text, dims)


def _in_si(
    name: str, distribution: Any, nominal: Any, unit: str, found: list[str]
) -> tuple[Any, Any]:
    """Distribution and nominal value with quantities such as "1 mm" as numbers in SI units."""
    try:
        if isinstance(nominal, str):
            nominal = in_si(nominal, unit, f"input '{name}'")
        if isinstance(distribution, Distribution):
            distribution = distribution.in_units(lambda text: in_si(text, unit, f"input '{name}'"))
    except ValueError as error:
        found.append(str(error))
        nominal = np.nan if isinstance(nominal, str) else nominal
    return distribution, nominal


def _axis(name: str, k: int, size: int) -> str:
    """The name of an axis: vectors in space share theirs."""
    return "axis" if size == 3 else f"{name.replace('/', '.')}_{k}"


CHUNK_BYTES = 1 << 27
"""Most bytes of inputs and outputs of one chunk."""
CHUNK_ROWS = (512, 65536)
"""Fewest and most samples of one chunk; fewer still of samples that are very large."""
MOST_BYTES = 1 << 29
"""Most bytes of a chunk that has the fewest samples."""
PARTS = 8
"""A study has at least this many chunks, if they are not too small."""


def array_name(path: str) -> str:
    """The name of an array for a variable's path: a slash would make a group of the store."""
    return path.replace("/", ".")


def taken_twice(names: Iterable[str]) -> list[str]:
    """Problems of names that the store cannot tell apart, or that it needs itself."""
    first: dict[str, str] = {}
    found = []
    for name in names:
        other = first.setdefault(array_name(name), name)
        if other != name:
            found.append(f"'{other}' and '{name}' are one name in the store; rename one of them")
        if name == SAMPLE:
            found.append(f"'{name}' is the name of the samples' dimension; choose another")
    return found


def chunk_rows(count: int, bytes_each: int) -> int:
    """Samples in a chunk: so many that a chunk fits in memory with room to spare.

    All chunks are equal if the number of samples has a divisor that suits, since a program is
    compiled for each number of samples; else they are of a power of two, and the last one shorter.

    Example:
        >>> from jaxmbd.campaign.model import chunk_rows
        >>> chunk_rows(2000, bytes_each=400), chunk_rows(100_003, bytes_each=40_000)
        (500, 2048)
    """
    low, high = CHUNK_ROWS
    low = min(low, max(1, MOST_BYTES // max(bytes_each, 1)))
    most = min(high, CHUNK_BYTES // max(bytes_each, 1), max(count // PARTS, low))
    most = max(low, 1 << max(int(most), 1).bit_length() - 1)
    return next((n for n in range(min(most, count), most // 2, -1) if count % n == 0), most)


def settled_outputs(
    shapes: Mapping[str, Any],
    declared: Mapping[str, Output],
    coords: Mapping[str, Axis],
    inputs: Mapping[str, Input],
) -> dict[str, Output]:
    """Outputs with names for all axes.

    Args:
        shapes: shape and type of each output of one sample, from tracing.
        declared: what is known of them.
        coords: coordinates of axes by name.
        inputs: the study's inputs.

    Raises:
        ValueError: lists all that does not fit.
    """
    found = [f"output '{n}' is declared, but not computed" for n in declared if n not in shapes]
    names = {array_name(n): n for n in inputs}
    found += taken_twice(shapes)
    found += _status_problems(shapes["status"])
    if len(shapes) == 1:
        found.append("no output is computed but the status")
    outputs: dict[str, Output] = {}
    for name, x in shapes.items():
        if array_name(name) in names:
            found.append(f"output '{name}' has the name of an input")
        about = declared.get(name, Output())
        dims = tuple(about.dims) or tuple(f"{array_name(name)}_{k}" for k in range(len(x.shape)))
        if len(dims) != len(x.shape):
            found.append(f"output '{name}' has shape {x.shape}, but dims={list(dims)}")
        for dim, size in zip(dims, x.shape, strict=False):
            if dim in coords and len(coords[dim].values) != size:
                found.append(
                    f"output '{name}' has {size} values along '{dim}', which has "
                    f"{len(coords[dim].values)} coordinates"
                )
        outputs[name] = about._replace(dims=dims)
    refuse("this study's outputs do not fit", found)
    return outputs


def _status_problems(status: Any) -> list[str]:
    if status.shape == () and np.issubdtype(status.dtype, np.integer):
        return []
    return [
        f"output 'status' is {status.dtype} of shape {status.shape}; give one whole number, 0 for "
        "a sample that is right (jaxmbd.Status names the others)"
    ]


def input_attributes(name: str, about: Input) -> dict[str, Any]:
    """Attributes of an input's array."""
    return {"units": about.unit, "long_name": about.text, "role": "input", "path": name}


def output_attributes(name: str, about: Output) -> dict[str, Any]:
    """Attributes of an output's array."""
    role = "status" if name == "status" else about.role
    found = {"units": about.unit, "long_name": about.text, "role": role, "path": name}
    flags = tuple(k.name.lower() for k in Status) if role == "status" else about.flags
    if not flags:
        return found
    return found | {
        "flag_values": list(range(len(flags))),
        "flag_meanings": " ".join(t.replace(" ", "_") for t in flags),
    }


def sampled_fields(
    inputs: Mapping[str, Input], outputs: Mapping[str, Output], types: Mapping[str, Any]
) -> dict[str, Field]:
    """The arrays over samples: inputs that vary, and outputs, whose shapes tracing has found."""
    fields = {
        array_name(name): Field(x.nominal.shape, "float64", x.dims, input_attributes(name, x))
        for name, x in inputs.items()
    }
    for name, x in outputs.items():
        about = output_attributes(name, x)
        fields[array_name(name)] = Field(types[name].shape, str(types[name].dtype), x.dims, about)
    return fields


def fixed_arrays(
    inputs: Mapping[str, Input],
    outputs: Mapping[str, Output],
    axes: Mapping[str, Axis],
    nominal: Mapping[str, Any],
) -> dict[str, FixedArray]:
    """The arrays without samples: coordinates of axes, nominal values of inputs and outputs."""
    fixed = {
        dim: FixedArray((dim,), np.asarray(x.values), {"units": x.unit, "long_name": x.text})
        for dim, x in axes.items()
    }
    for name, values in nominal.items():
        if name in inputs:
            dims, about = inputs[name].dims, input_attributes(name, inputs[name])
        else:
            dims, about = outputs[name].dims, output_attributes(name, outputs[name])
        about = about | {"role": "nominal"}
        fixed[f"nominal.{array_name(name)}"] = FixedArray(dims, np.asarray(values), about)
    return fixed


def axes_of(
    inputs: Mapping[str, Input], outputs: Mapping[str, Output], coords: Mapping[str, Axis]
) -> dict[str, Axis]:
    """Coordinates of all axes that have some: those given, and the directions in space."""
    used = {d for about in (*inputs.values(), *outputs.values()) for d in about.dims}
    axes = {dim: axis for dim, axis in coords.items() if dim in used}
    if "axis" in used and "axis" not in axes:
        axes["axis"] = XYZ
    return axes
