"""Measurements: an experiment with the series that were measured in it, and their predictions.

Predictions come with their derivatives, of many samples in one kernel. Unknown may be numbers of
the model, those that experiments hold, offsets and gains.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.interpolate import CubicSpline

from jaxmbd.analysis import PointCoordinate, PointTravel
from jaxmbd.design import Evaluation, Unknowns
from jaxmbd.model import Mechanism, Sampled, coordinate_units
from jaxmbd.observe import REASONS, Configuration, Experiment, Motion, Output, Sweep, Together
from jaxmbd.plumbing import hint
from jaxmbd.variables import Parametrization, Variable, Variables, mechanism_of


@dataclass(frozen=True, eq=False)
class Measured:
    """An experiment with what was measured in it.

    Attributes:
        experiment: what was done, with an output for each measured channel: an `Experiment` of
            `jaxmbd.observe`, several `Together`, or a function of a `Mechanism` that returns a
            dictionary of arrays.
        data: channel to series: a dictionary of arrays, an xarray `Dataset` or a pandas
            `DataFrame`; missing samples are NaN. Series at other places than the experiment's come
            with the places under the axis' name (as ``"t"`` of a `Motion`): the experiment's curves
            are interpolated there by cubic splines.
        name: prefix of the paths of its held values among several measurements.

    Example:
        >>> from jaxmbd.identification import Measured
        >>> from jaxmbd.observe import Coordinate, Configuration
        >>> turned = Configuration({"crank": 0.1}, {"rocker": Coordinate("rocker")})
        >>> Measured(turned, {"rocker": 0.07}, "first").name
        'first'
    """

    experiment: Any
    data: Any
    name: str = ""


class Channel(NamedTuple):
    """One output of an experiment that was measured."""

    name: str
    about: Output
    shape: tuple[int, ...]  # of the experiment's output
    values: np.ndarray  # measured, of `shape` but for the axis' length; NaN where missing
    grid: np.ndarray | None  # of the axis, where curves are computed; None where it is the data's
    places: np.ndarray | None  # of the axis, where it was measured; None without an axis

    def resampled(self, y: np.ndarray) -> np.ndarray:
        """Computed outputs (…, of `shape` flattened) at the places of the data, flattened.

        By cubic splines, which are linear in what they interpolate: derivatives are treated alike.
        """
        if self.grid is None or self.places is None:
            return y
        curves = y.reshape(*y.shape[:-1], self.shape[0], -1)
        fine = np.isfinite(curves).all(axis=(-2, -1), keepdims=True)
        order = np.argsort(self.grid)
        known = np.where(fine, curves, 0.0)[..., order, :]
        spline = CubicSpline(self.grid[order], known, axis=-2)
        found = np.where(fine, spline(np.clip(self.places, *self.grid[order[[0, -1]]])), np.nan)
        return found.reshape(*y.shape[:-1], -1)


class Record(NamedTuple):
    """One measurement, checked: a name, the experiment with its channels only, and their data."""

    name: str
    experiment: Any
    channels: tuple[Channel, ...]

    def resampled(self, y: np.ndarray) -> np.ndarray:
        """Computed outputs (…, m) of all channels at the places of the data (…, N)."""
        ends = np.cumsum([int(np.prod(c.shape)) for c in self.channels])
        parts = np.split(y, ends[:-1], axis=-1)
        return np.concatenate(
            [c.resampled(part) for c, part in zip(self.channels, parts, strict=True)], axis=-1
        )


def records(mech: Mechanism, measurements: list[Measured]) -> list[Record]:
    """The measurements, those of several experiments together one by one.

    Raises:
        ValueError: a channel that no experiment observes, or data of another shape.
    """
    parts: list[Measured] = []
    for i, one in enumerate(measurements):
        name = one.name or (str(i) if len(measurements) > 1 else "")
        parts += _apart(replace(one, name=name))
    names = [part.name for part in parts]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise ValueError(f"several measurements are called {twice}; give each a name of its own")
    return [_record(mech, part) for part in parts]


def _apart(one: Measured) -> list[Measured]:
    """The parts of several experiments together, each with its data."""
    if not isinstance(one.experiment, Together):
        return [one]
    named, parts = one.experiment.named, []
    every = {key: (x, f"{key}." if named else "") for key, x in one.experiment.experiments.items()}
    data = series(one.data, {prefix + x.axis for x, prefix in every.values()})
    left = set(data)
    for key, (experiment, prefix) in every.items():
        axis, prefix = prefix + experiment.axis, f"{key}/" if named else ""
        own = {n: data[prefix + n] for n in experiment.observe if prefix + n in data}
        if axis in data:
            own[experiment.axis] = data[axis]
        left -= {prefix + n for n in own} | {axis}
        if own.keys() - {experiment.axis}:
            name = f"{one.name}/{key}" if one.name else key
            parts.append(Measured(experiment, own, name))
    if left:
        raise ValueError(f"no experiment has an output {sorted(left)}")
    return parts


def series(data: Any, axes: Collection[Any]) -> dict[str, Any]:
    """Series by name, of a dictionary, an xarray `Dataset` or a pandas `DataFrame`.

    Coordinates and indices are taken where they have the name of one of the axes.
    """
    if isinstance(data, dict):
        return dict(data)
    if hasattr(data, "data_vars"):
        names = [*(n for n in data.coords if n in axes), *data.data_vars]
        return {str(n): np.asarray(data[n]) for n in names}
    if hasattr(data, "columns") and hasattr(data, "index"):
        index = {data.index.name: np.asarray(data.index)} if data.index.name in axes else {}
        return index | {str(n): np.asarray(data[n]) for n in data.columns}
    raise ValueError(
        f"data is a {type(data).__name__}; give a dictionary of arrays, an xarray Dataset or a "
        "pandas DataFrame"
    )


def _record(mech: Mechanism, one: Measured) -> Record:
    where = f"measurement {one.name!r}: " if one.name else ""
    outputs, shapes = _outputs(mech, one.experiment)
    axis = grid = None
    if isinstance(one.experiment, Experiment) and one.experiment.has_axis:
        axis = one.experiment.axis
        coords = one.experiment.declare(mech).coords
        grid = np.asarray(coords[axis].values, np.float64) if axis in coords else None
    given = series(one.data, [axis])
    arrays = {n: np.asarray(x) for n, x in given.items()}
    numeric = {n: x for n, x in arrays.items() if np.issubdtype(x.dtype, np.number)}
    data = {n: x.astype(np.float64) for n, x in numeric.items()}
    places = data.pop(axis, None) if axis is not None and axis not in outputs else None
    if unknown := [n for n in data if n not in outputs]:
        raise ValueError(f"{where}no output {unknown[0]!r}; {hint(unknown[0], outputs)}")
    if not data:
        raise ValueError(f"{where}the data have none of the outputs {list(outputs)}")
    made = [
        _channel(f"{where}{n!r}", n, outputs[n], shapes[n], data[n], axis, grid, places)
        for n in outputs
        if n in data
    ]
    if isinstance(one.experiment, Experiment):
        kept = {n: x for n, x in one.experiment.observe.items() if n in data}
        return Record(one.name, replace(one.experiment, observe=kept), tuple(made))  # type: ignore[type-var]
    return Record(one.name, one.experiment, tuple(made))


def _outputs(
    mech: Mechanism, experiment: Any
) -> tuple[dict[str, Output], dict[str, tuple[int, ...]]]:
    """The outputs of an experiment that may be measured, and their shapes."""
    if not isinstance(experiment, (Experiment, Together)):
        shapes = {name: np.shape(x) for name, x in experiment(mech).items()}
        return {name: Output() for name in shapes}, shapes
    experiment.check(mech)
    outputs, coords = experiment.declare(mech)
    outputs = {n: x for n, x in outputs.items() if n not in ("status", *REASONS)}
    return outputs, {n: tuple(len(coords[d].values) for d in x.dims) for n, x in outputs.items()}


def blank(mech: Mechanism, experiment: Any) -> dict[str, np.ndarray]:
    """Zeros as data of all outputs of an experiment."""
    return {name: np.zeros(shape) for name, shape in _outputs(mech, experiment)[1].items()}


def _channel(
    what: str,
    name: str,
    about: Output,
    shape: tuple[int, ...],
    values: np.ndarray,
    axis: str | None,
    grid: np.ndarray | None,
    places: np.ndarray | None,
) -> Channel:
    along = axis is not None and about.dims[:1] == (axis,)
    apart = False
    if along and grid is not None and places is not None:
        _check_places(grid, places, what, axis)
        apart = len(places) != len(grid) or bool(
            np.any(np.abs(places - grid) > 1e-9 * np.ptp(grid))
        )
    count = () if not along else (len(places),) if places is not None else shape[:1]
    wanted = (*count, *shape[1:]) if along else shape
    if values.shape != wanted:
        cure = (
            f"; give the places of the data as {axis!r}, or an experiment with as many points "
            "(of a Motion, keep=None keeps every save_every-th step)"
        )
        raise ValueError(f"{what}: data of shape {values.shape}, the experiment's are {wanted}"
                         + (cure if along else ""))  # fmt: skip
    if not np.isfinite(values).any():
        raise ValueError(f"{what}: all samples are missing")
    here = None if not along or grid is None else grid if places is None else places
    return Channel(name, about, shape, values, grid if apart else None, here)


def _check_places(grid: np.ndarray, places: np.ndarray, what: str, axis: Any) -> None:
    """Raise a ValueError for places that the experiment does not reach."""
    low, high = grid.min(), grid.max()
    room = 1e-9 * (high - low)
    outside = (places < low - room) | (places > high + room)
    if places.ndim != 1 or not np.isfinite(places).all() or outside.any():
        raise ValueError(
            f"{what}: the data's {axis!r} must be numbers from {low:g} to {high:g}, where the "
            "experiment goes"
        )


def places(known: list[Record]) -> tuple[list[str], list[slice]]:
    """Name and place of each channel of each measurement in the vector of all data."""
    names, rows, end = [], [], 0
    for record in known:
        for channel in record.channels:
            names.append(f"{record.name}/{channel.name}" if record.name else channel.name)
            rows.append(slice(end, end + channel.values.size))
            end += channel.values.size
    return names, rows


class ModelOf(NamedTuple):
    """A model as a function of values by path, others than its own ignored."""

    model: Any  # a `Mechanism` or a `Parametrization`
    foreign: frozenset[str]  # paths that are no numbers of the model

    def __call__(self, values: Mapping[str, Any]) -> Mechanism:
        """The mechanism of values by path."""
        own = {path: x for path, x in values.items() if path not in self.foreign}
        return mechanism_of(self.model, own)


def nominal_mechanism(model: Any) -> Mechanism:
    """The mechanism of a model as it is given."""
    if not isinstance(model, (Mechanism, Parametrization)):
        raise ValueError(f"the model must be a Mechanism or a Parametrization: {model!r}")
    mech = mechanism_of(model)
    if mech.dtype != np.float64:
        raise ValueError(
            "identification is computed in double precision, and this mechanism has float32 "
            "numbers: give it float64 ones, with jax.config.update('jax_enable_x64', True) before "
            "anything else"
        )
    return mech


def unknowns_of(model: Any, vary: Mapping[str, Any], known: list[Record]) -> Unknowns:
    """The unknowns as one vector.

    Beside the model's numbers there are, for `vary`, the `held_values` of the experiments (after
    the measurement's name and a slash, where it has one), and for each channel ``offset/CHANNEL``
    and ``gain/CHANNEL``: what is measured is ``gain · output + offset``.
    """
    mech = nominal_mechanism(model)
    extra: dict[str, Variable] = {}
    for record in known:
        for path, x in held_values(record.experiment, mech).items():
            extra[_held_path(record, path)] = x._replace(path=_held_path(record, path))
        for channel in record.channels:
            name, unit = channel.name, channel.about.unit
            for path, value, its in ((f"offset/{name}", 0.0, unit), (f"gain/{name}", 1.0, "")):
                extra[path] = Variable(path, np.asarray(value), its, f"{path[:4]} of {name}")
    own = dict(model.variables) if isinstance(model, Parametrization) else {}
    base = model.mechanism if isinstance(model, Parametrization) else model
    table = Variables([*own.values(), *(x for p, x in extra.items() if p not in own)])
    function = ModelOf(model, frozenset(extra.keys() - own.keys()))
    return Unknowns.of(Parametrization(function, table, base), vary)


def _held_path(record: Record, path: str) -> str:
    """The path of a held value among several measurements."""
    return f"{record.name}/{path}" if record.name else path


_TEXTS = {
    "start": ("where {} starts", 0),
    "speeds": ("speed of {} at the start", 1),
    "inputs": ("effort on {}", 2),
    "known": ("where {} is held", 0),
}
"""Path's first part to text and index into the units of a coordinate, its speed and its effort."""


def held_values(experiment: Any, mech: Mechanism) -> dict[str, Variable]:
    """The single numbers that an experiment holds, by path.

    Of a `Motion` these are ``start/JOINT``, ``speeds/JOINT`` and ``inputs/JOINT``, of a
    `Configuration` or `Sweep` ``known/JOINT``; ``JOINT/i`` where one coordinate of a joint is held,
    and ``BODY/POINT/z`` for a `PointCoordinate`, ``BODY/POINT/dz`` for a `PointTravel`.
    """
    found = {}
    if isinstance(experiment, Sweep):
        _, mech = experiment.on(mech)  # an axle's is on a rig
    for kind, held in _held(experiment).items():
        text, which = _TEXTS[kind]
        for key, value in held.items():
            if not isinstance(value, (tuple, Sampled)):
                path = f"{kind}/{_name(key)}"
                found[path] = Variable(path, value, _units(mech, key)[which], text.format(key))
    return found


def with_held(experiment: Any, values: Mapping[str, Any]) -> Any:
    """The experiment with some of these numbers replaced, which may be traced."""
    new = {
        kind: {key: values.get(f"{kind}/{_name(key)}", x) for key, x in held.items()}
        for kind, held in _held(experiment).items()
    }
    if not isinstance(experiment, Motion):
        return replace(experiment, known=new["known"]) if new else experiment
    inputs = new.get("inputs", experiment.inputs)
    start = replace(experiment.start, known=new["start"])
    return replace(experiment, start=start, speeds=new["speeds"], inputs=inputs)


def _held(experiment: Any) -> dict[str, Mapping[Any, Any]]:
    if isinstance(experiment, Motion):
        found = {"start": experiment.start.known, "speeds": experiment.speeds}
        if isinstance(experiment.inputs, Mapping):
            found["inputs"] = experiment.inputs
        return found
    return {"known": experiment.known} if isinstance(experiment, (Configuration, Sweep)) else {}


def _name(key: Any) -> str:
    if isinstance(key, PointTravel):
        return f"{key.body}/{key.point}/d{key.axis}"
    return key if isinstance(key, str) else "/".join(map(str, key))


def _units(mech: Mechanism, key: Any) -> tuple[str, str, str]:
    if isinstance(key, (PointCoordinate, PointTravel)):
        return "m", "m/s", "N"
    joint, index = key if isinstance(key, tuple) else (key, 0)
    return coordinate_units({joint: mech.joint(joint)}, joint, index)


class Prediction(NamedTuple):
    """What is predicted of all measurements, one after the other."""

    y: np.ndarray  # series (count, N), NaN where a measurement's model fails
    jacobian: np.ndarray  # ∂y/∂x (count, N, n) with respect to the scaled unknowns


class Predictor:
    """The predictions of all measurements, as a function of the scaled unknowns x (count, n).

    Measurements whose experiments differ only in the numbers they hold are cases of one kernel.

    Attributes:
        unknowns: what x stands for.
        mechanism: the model as it is given.
        records: the measurements.
        evaluations: one for each kind of measurement, and the places of these among the records.
    """

    def __init__(self, unknowns: Unknowns, mech: Mechanism, known: list[Record]):
        self.unknowns, self.mechanism, self.records = unknowns, mech, known
        kinds: list[tuple[Any, list[int]]] = []
        for i, record in enumerate(known):
            held = dict.fromkeys(held_values(record.experiment, mech), 0.0)
            blank = with_held(record.experiment, held)
            kind = blank, tuple(held), tuple(c.name for c in record.channels)
            alike = next((its for other, its in kinds if other == kind), None)
            if alike is None:
                kinds.append((kind, alike := []))
            alike.append(i)
        self.evaluations = [(self._evaluation(kind, its), its) for kind, its in kinds]

    def _evaluation(self, kind: Any, its: list[int]) -> Evaluation:
        """The channels ``gain · output + offset`` of measurements that are alike."""
        blank, held, names = kind
        n, rows = len(names), [self._numbers(self.records[i]) for i in its]

        def shown(values: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
            every = [jnp.stack([values.get(p, jnp.asarray(x)) for p, x in r.items()]) for r in rows]
            numbers = case["record"] @ jnp.stack(every)
            gain, offset, hold = numbers[:n], numbers[n : 2 * n], numbers[2 * n :]
            experiment = with_held(blank, dict(zip(held, hold, strict=True)))
            seen = experiment.computed if isinstance(experiment, Experiment) else experiment
            found = seen(self.unknowns.base(values))
            return {name: gain[i] * found[name] + offset[i] for i, name in enumerate(names)}

        cases = {"record": np.eye(len(its))}
        return Evaluation(self.unknowns.bare(), {name: name for name in names}, shown, cases=cases)

    def _numbers(self, record: Record) -> dict[str, float]:
        """Gains, offsets and held values of a measurement by path, as they are given."""
        channels = [c.name for c in record.channels]
        sensors = {f"gain/{c}": 1.0 for c in channels} | {f"offset/{c}": 0.0 for c in channels}
        held = held_values(record.experiment, self.mechanism)
        return sensors | {_held_path(record, path): float(x.value) for path, x in held.items()}

    def __call__(self, x: Any) -> Prediction:
        """The predictions of the unknowns x (count, n)."""
        x, parts = np.atleast_2d(np.asarray(x, np.float64)), {}
        for evaluation, its in self.evaluations:
            y, jacobian = evaluation.jacobians(x)
            both = np.concatenate([y[:, None], np.moveaxis(jacobian, 2, 1)], axis=1)
            parts |= dict(zip(its, np.split(both, len(its), axis=2), strict=True))
        found = [record.resampled(parts[i]) for i, record in enumerate(self.records)]
        whole = np.concatenate(found, axis=2)
        return Prediction(whole[:, 0], np.moveaxis(whole[:, 1:], 1, 2))
