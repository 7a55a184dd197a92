"""The results of a study as arrays: the other files' functions on an `xarray.Dataset`.

A study's dataset has the dimension ``sample``; each variable's attribute ``role`` says whether it
is an input, an output, the status or a nominal value, ``path`` its name in the study. Names here
are those of the study ("points/uca_ball"), or of the dataset ("points.uca_ball").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.plumbing import hint
from jaxmbd.sampling import Saltelli, design_of, space_of
from jaxmbd.statistics.samples import counted, pieces
from jaxmbd.statistics.sensitivity import SobolIndices, sobol_indices

REDUCTIONS = ("max", "min", "mean", "last", "range")

NOT_COMPUTED = -1
"""The status of samples of chunks that a store does not have yet."""


def succeeded(dataset: Any) -> np.ndarray:
    """Which samples (n,) succeeded.

    Example:
        >>> import xarray
        >>> from jaxmbd.statistics import succeeded
        >>> status = ("sample", [0, 2, 0], {"role": "status"})
        >>> succeeded(xarray.Dataset({"status": status}))
        array([ True, False,  True])
    """
    return _status(dataset) == 0


def computed(dataset: Any) -> np.ndarray:
    """Which samples (n,) there are; those that a study has not come to are neither good nor bad.

    Example:
        >>> import xarray
        >>> from jaxmbd.statistics import computed
        >>> status = ("sample", [0, 2, -1], {"role": "status"})
        >>> computed(xarray.Dataset({"status": status}))
        array([ True,  True, False])
    """
    return _status(dataset) != NOT_COMPUTED


class ValueCount(NamedTuple):
    """How many samples have a value of an output.

    Attributes:
        samples: that were computed; the sum of the others.
        count: with a value: all of its numbers are finite.
        failed: that failed, by their status.
        missing: without a value though they did not fail, as of a crossing that there is none of.

    Example:
        >>> from jaxmbd.statistics import ValueCount
        >>> ValueCount(samples=100, count=97, failed=1, missing=2).missing
        2
    """

    samples: int
    count: int
    failed: int
    missing: int


def value_counts(dataset: Any) -> dict[str, ValueCount]:
    """How many samples have a value, of each output.

    Args:
        dataset: results of a study.

    Example:
        >>> import xarray
        >>> from jaxmbd.statistics import value_counts
        >>> toe = ("sample", [1.0, float("nan"), float("nan")], {"role": "output"})
        >>> status = ("sample", [0, 0, 2], {"role": "status"})
        >>> value_counts(xarray.Dataset({"toe": toe, "status": status}))
        {'toe': ValueCount(samples=3, count=1, failed=1, missing=1)}
    """
    status = _status(dataset)
    good, found = status == 0, {}
    samples = int(np.sum(status != NOT_COMPUTED))
    failed = samples - int(np.sum(good))
    for path, name in _with_role(dataset, "output").items():
        count = sum(int(np.sum(counted(x, good[rows]))) for rows, x in pieces(dataset[name]))
        found[path] = ValueCount(samples, count, failed, samples - failed - count)
    return found


def input_values(dataset: Any) -> dict[str, np.ndarray]:
    """All inputs that were varied, name to values (n, …).

    Example:
        >>> import xarray
        >>> from jaxmbd.statistics import input_values
        >>> dataset = xarray.Dataset({"rate": ("sample", [1.0, 2.0], {"role": "input"})})
        >>> input_values(dataset)
        {'rate': array([1., 2.])}
    """
    return {path: np.asarray(dataset[n]) for path, n in _with_role(dataset, "input").items()}


def output_names(dataset: Any) -> list[str]:
    """Names of the outputs, in the order of the dataset.

    Example:
        >>> import xarray
        >>> from jaxmbd.statistics import output_names
        >>> output_names(xarray.Dataset({"toe": ("sample", [1.0, 2.0], {"role": "output"})}))
        ['toe']
    """
    return list(_with_role(dataset, "output"))


def output_values(
    dataset: Any, name: str, *, at: Mapping[str, Any] | None = None, reduce: str | None = None
) -> np.ndarray:
    """One number for each sample of an output.

    Args:
        dataset: results of a study.
        name: of the output.
        at: dimension to the coordinate at which the output is taken, the nearest that there is.
        reduce: "max", "min", "mean", "last" or "range" (max − min) over what dimensions are left.

    Returns:
        values (n,), NaN where a sample failed or has no value.

    Raises:
        ValueError: there is no such output or dimension, or dimensions are left.

    Example:
        >>> import xarray
        >>> from jaxmbd.statistics import output_values
        >>> toe = (("sample", "travel"), [[1.0, 2.0], [3.0, 5.0]], {"role": "output"})
        >>> dataset = xarray.Dataset({"toe": toe}, {"travel": [0.0, 0.06]})
        >>> output_values(dataset, "toe", at={"travel": 0.05}).tolist()
        [2.0, 5.0]
        >>> output_values(dataset, "toe", reduce="range").tolist()
        [1.0, 2.0]
    """
    return _number(_variable(dataset, name, ("output", "input")), name, at, reduce)


def nominal_value(
    dataset: Any, name: str, *, at: Mapping[str, Any] | None = None, reduce: str | None = None
) -> float:
    """The nominal value of what `output_values` returns.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> from jaxmbd.campaign import Input
        >>> from jaxmbd.sampling import Normal
        >>> inputs = {"x": Input(Normal(0.1), nominal=1.0)}
        >>> study = mbd.Study(lambda s: {"y": s["x"] ** 2}, inputs, samples=8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mbd.statistics.nominal_value(study.run(folder + "/s.zarr", progress=False), "y")
        1.0
    """
    nominal = _variable(dataset, name, ("nominal",)).expand_dims("sample")
    return float(_number(nominal, name, at, reduce)[0])


def sobol_of(
    dataset: Any,
    name: str | np.ndarray,
    *,
    at: Mapping[str, Any] | None = None,
    reduce: str | None = None,
    confidence: float = 0.95,
) -> SobolIndices:
    """Sobol indices of an output of a study whose design is `Saltelli`.

    Args:
        dataset: results of a study.
        name: of the output; or values (n,) made of the outputs, without `at` and `reduce`.
        at: as of `output_values`.
        reduce: as of `output_values`.
        confidence: of the intervals.

    Raises:
        ValueError: the study has another design, or too few of its samples have a value.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> from jaxmbd.campaign import Input
        >>> from jaxmbd.sampling import Saltelli, Uniform
        >>> from jaxmbd.statistics import sobol_of
        >>> inputs = {name: Input(Uniform(1.0), nominal=0.0) for name in "xy"}
        >>> study = mbd.Study(lambda s: {"z": 2 * s["x"]}, inputs, design=Saltelli(64))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sobol_of(study.run(folder + "/s.zarr", progress=False), "z").total.round(2)
        array([1., 0.])
    """
    said = dataset.attrs.get("study", {"design": {"design": None}})
    if (kind := said["design"]["design"]) != Saltelli.kind:
        raise ValueError(f"Sobol indices need a study with the design Saltelli; this has {kind}")
    made = design_of(said["design"])
    assert isinstance(made, Saltelli)
    space = space_of((n, tuple(shape)) for n, shape in said["drawn"])
    values = output_values(dataset, name, at=at, reduce=reduce) if isinstance(name, str) else name
    return sobol_indices(made, space, values, succeeded(dataset), confidence=confidence)


def _status(dataset: Any) -> np.ndarray:
    """Status (n,) of the samples; 0 of a dataset without any."""
    found = _with_role(dataset, "status")
    if not found:
        return np.zeros(dataset.sizes["sample"], int)
    return np.asarray(dataset[next(iter(found.values()))])


def _with_role(dataset: Any, *roles: str) -> dict[str, str]:
    """Path to name of the variables with one of these roles."""
    return {
        str(dataset[n].attrs.get("path", n)): str(n)
        for n in dataset.data_vars
        if dataset[n].attrs.get("role") in roles
    }


def _variable(dataset: Any, name: str, roles: Iterable[str]) -> Any:
    known = _with_role(dataset, *roles)
    found = known.get(name) or next((n for n in known.values() if n == name), None)
    if found is None:
        raise ValueError(f"the study has no {name!r}; {hint(name, known)}")
    return dataset[found]


def _number(
    variable: Any, name: str, at: Mapping[str, Any] | None, reduce: str | None
) -> np.ndarray:
    for dim, value in (at or {}).items():
        if dim not in variable.dims:
            raise ValueError(f"{name} has no dimension {dim!r}; {hint(dim, variable.dims[1:])}")
        axis = variable[dim].values
        text = axis.dtype.kind not in "fiu"
        if not text and not axis.min() <= value <= axis.max():
            raise ValueError(
                f"{name} at {dim} = {value:g}: the axis reaches from {axis.min():g} to "
                f"{axis.max():g} {variable[dim].attrs.get('units', '')}"
            )
        variable = variable.sel({dim: value}, method=None if text else "nearest")
    values = np.asarray(variable)
    if values.ndim == 1:
        return values
    if reduce not in REDUCTIONS:
        left = ", ".join(map(str, variable.dims[1:]))
        raise ValueError(f"{name} is over {left}: say where (at=), or reduce={REDUCTIONS}")
    flat = values.reshape(len(values), -1)
    if reduce == "last":
        return flat[:, -1]
    if reduce == "range":
        return flat.max(axis=1) - flat.min(axis=1)
    return getattr(flat, reduce)(axis=1)
